//===- AttentionTest.cpp - Attention on the simulator ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelCase.h"

#include <cmath>

namespace llamac::cuda {
namespace {

/// The kernels that attend.
enum class Form { Whole, Split, Wgmma };

/// A row of a launch.
struct Query {
  int sequence;
  int position;
};

class AttentionTest : public KernelCaseTest {
protected:
  static constexpr int sequences = 3;

  void SetUp() override {
    KernelCaseTest::SetUp();
    config = cases::attention(model);
    const KvConfig &kv = config.kv;
    const int64_t pages = sequences * kv.pagesPerSequence;
    pageTable.resize(pages);
    for (int64_t page = 0; page < pages; ++page)
      pageTable[page] = static_cast<int>((page * 7 + 3) % pages);
  }

  /// Where element 0 of a key of the cache is, in elements of the pool; its
  /// value is plane() further.
  int64_t keyAt(int64_t sequence, int64_t token, int64_t kvHead) const {
    const KvConfig &kv = config.kv;
    const int64_t page =
        pageTable[sequence * kv.pagesPerSequence + token / kv.pageTokens];
    return page * kvPageBytes(kv) / 2 + kvHead * 2 * plane() +
           token % kv.pageTokens * kv.headSize;
  }
  int64_t plane() const { return kvPlaneBytes(config.kv) / 2; }

  /// Fills the keys and values that `queries` see; the rest is NaN.
  std::vector<uint16_t> cache(const std::vector<Query> &queries) {
    const KvConfig &kv = config.kv;
    std::vector<uint16_t> pool(pageTable.size() * kvPageBytes(kv) / 2, 0xffff);
    int last[sequences] = {-1, -1, -1};
    for (const Query &query : queries)
      last[query.sequence] = std::max(last[query.sequence], query.position);
    for (int sequence = 0; sequence < sequences; ++sequence)
      for (int token = 0; token <= last[sequence]; ++token)
        for (int64_t head = 0; head < kv.kvHeads; ++head) {
          const std::vector<float> key = floats(kv.headSize);
          const std::vector<float> value = floats(kv.headSize);
          const int64_t at = keyAt(sequence, token, head);
          for (int64_t d = 0; d < kv.headSize; ++d) {
            pool[at + d] = kvBits(kv.format, key[d]);
            pool[at + plane() + d] = kvBits(kv.format, value[d]);
          }
        }
    return pool;
  }

  std::vector<Form> wholeForms() const {
    std::vector<Form> forms = {Form::Whole};
    if (takesWgmmaAttention(config))
      forms.push_back(Form::Wgmma);
    return forms;
  }

  /// Launches a form of attention; the result is f32 [rows][heads * headSize].
  std::vector<float> attend(Form form, const std::vector<Query> &queries,
                            const std::vector<float> &q,
                            const std::vector<uint16_t> &pool) {
    const auto rows = static_cast<int64_t>(queries.size());
    std::vector<int> positions, owners;
    for (const Query &query : queries) {
      positions.push_back(query.position);
      owners.push_back(query.sequence);
    }
    DeviceBytes query(q), cached(pool), position(positions), owner(owners),
        pageOf(pageTable), out(q.size() * sizeof(float));
    if (form == Form::Wgmma) {
      run("attention_wgmma", wgmmaAttentionShape(config, wholeBlocks), rows,
          {reads(query), reads(cached), reads(position), reads(owner),
           reads(pageOf), writes(out)},
          {wgmmaPoolMap(config, 1)});
    } else if (form == Form::Whole) {
      run("attention_whole", attentionShape(config, wholeBlocks), rows,
          {reads(query), reads(cached), reads(position), reads(owner),
           reads(pageOf), writes(out)});
    } else {
      const LaunchShape shape = attentionSplitShape(config, splitBlocks);
      const std::vector<uint32_t> zeros(rows * shape.counters);
      DeviceBytes partials(rows * shape.workspaceBytes), counters(zeros);
      run("attention_split", shape, rows,
          {reads(query), reads(cached), reads(position), reads(owner),
           reads(pageOf), writes(partials), updates(counters), writes(out)});
      for (size_t i = 0; i < zeros.size(); ++i)
        EXPECT_EQ(counters.as<uint32_t>()[i], 0u) << "counter " << i;
    }
    return {out.as<float>(), out.as<float>() + q.size()};
  }

  /// Compares with softmax(scale q k) v in double precision, for queries
  /// rounded to the cache's format.
  void check(Form form, const std::vector<Query> &queries) {
    const KvConfig &kv = config.kv;
    const std::vector<uint16_t> pool = cache(queries);
    const std::vector<float> q =
        floats(queries.size() * config.heads * kv.headSize);
    const std::vector<float> out = attend(form, queries, q, pool);
    const int64_t group = config.heads / kv.kvHeads;
    const float scale = config.scale * 1.44269504f;
    for (size_t r = 0; r < queries.size(); ++r)
      for (int64_t head = 0; head < config.heads; ++head) {
        const int64_t first = (r * config.heads + head) * kv.headSize;
        double total = 0, largest = 0;
        Doubles sums(kv.headSize);
        for (int token = 0; token <= queries[r].position; ++token) {
          const int64_t at = keyAt(queries[r].sequence, token, head / group);
          double score = 0;
          for (int64_t d = 0; d < kv.headSize; ++d)
            score += roundedToKv(kv.format, q[first + d] * scale) *
                     kvValue(kv.format, pool[at + d]);
          const double weight = std::exp2(score);
          total += weight;
          for (int64_t d = 0; d < kv.headSize; ++d) {
            const double value = kvValue(kv.format, pool[at + plane() + d]);
            sums[d] += weight * value;
            largest = std::max(largest, std::abs(value));
          }
        }
        for (int64_t d = 0; d < kv.headSize; ++d)
          ASSERT_NEAR(out[first + d], sums[d] / total,
                      (kvUnit(kv.format) + 1e-5) * largest)
              << "row " << r << " head " << head << " element " << d;
      }
  }

  AttentionConfig config;
  std::vector<int> pageTable;
  int64_t splitBlocks = 64;
  int64_t wholeBlocks = 3; ///< Fewer than there are runs.
};

TEST_P(AttentionTest, OneRowOfOneToken) {
  for (const Form form : wholeForms())
    check(form, {{0, 0}});
}

TEST_P(AttentionTest, RowsOverTheEndsOfPagesAndTiles) {
  std::vector<Query> queries;
  for (int i = 0; i < 10; ++i)
    queries.push_back({1, 58 + i});
  for (int i = 0; i < 5; ++i)
    queries.push_back({0, i});
  for (int i = 0; i < 30; ++i)
    queries.push_back({2, 120 + i});
  for (const Form form : wholeForms())
    check(form, queries);
}

TEST_P(AttentionTest, RowsThatDecodeBesideAPrompt) {
  std::vector<Query> queries = {{0, 319}, {2, 64}};
  for (int i = 0; i < 45; ++i)
    queries.push_back({1, 100 + i});
  for (const Form form : wholeForms())
    check(form, queries);
}

TEST_P(AttentionTest, MoreRunsThanABlockLooksAtInOneRound) {
  std::vector<Query> queries;
  for (int i = 0; i < 390; ++i)
    queries.push_back({i % sequences, i / sequences % 7});
  for (const Form form : wholeForms())
    check(form, queries);
}

TEST_P(AttentionTest, SplitsOfRowsOfEveryLength) {
  check(Form::Split, {{0, 0}, {1, 63}, {2, 64}});
  check(Form::Split, {{2, 127}, {0, 200}, {1, 319}});
}

TEST_P(AttentionTest, BlocksShareSplitsOfMoreRowsThanAWarpCounts) {
  std::vector<Query> queries;
  for (int i = 0; i < 35; ++i)
    queries.push_back({i % sequences, 9 * i});
  splitBlocks = 7;
  check(Form::Split, queries);
}

TEST_P(AttentionTest, BitsDoNotDependOnTheNumberOfBlocks) {
  const std::vector<Query> queries = {{2, 130}, {0, 319}, {1, 10}, {1, 11}};
  const std::vector<uint16_t> pool = cache(queries);
  const std::vector<float> q =
      floats(queries.size() * config.heads * config.kv.headSize);
  std::vector<Form> forms = wholeForms();
  forms.push_back(Form::Split);
  for (const Form form : forms) {
    const std::vector<float> expected = attend(form, queries, q, pool);
    for (const int64_t blocks : {1, 2, 1000}) {
      splitBlocks = wholeBlocks = blocks;
      EXPECT_EQ(attend(form, queries, q, pool), expected)
          << blocks << " blocks";
    }
  }
}

TEST_P(AttentionTest, ARowHasTheSameBitsBesideAnyRows) {
  const std::vector<Query> queries = {{2, 300}, {0, 31},  {1, 316},
                                      {1, 317}, {1, 318}, {1, 319}};
  const std::vector<uint16_t> pool = cache(queries);
  const size_t width = config.heads * config.kv.headSize;
  const std::vector<float> q = floats(queries.size() * width);
  std::vector<Form> forms = wholeForms();
  forms.push_back(Form::Split);
  for (const Form form : forms) {
    const std::vector<float> together = attend(form, queries, q, pool);
    for (size_t row = 0; row < queries.size(); ++row) {
      const std::vector<float> alone =
          attend(form, {queries[row]},
                 {q.begin() + static_cast<ptrdiff_t>(row * width),
                  q.begin() + static_cast<ptrdiff_t>((row + 1) * width)},
                 pool);
      for (size_t i = 0; i < width; ++i)
        ASSERT_EQ(alone[i], together[row * width + i])
            << "row " << row << " element " << i;
    }
  }
}

TEST_P(AttentionTest, ANanShowsAndStaysInItsHead) {
  const std::vector<Query> queries = {{0, 70}};
  const int64_t head = config.kv.headSize;
  const std::vector<uint16_t> pool = cache(queries);
  const std::vector<float> q = floats(config.heads * head);
  std::vector<Form> forms = wholeForms();
  forms.push_back(Form::Split);
  for (const Form form : forms) {
    const std::vector<float> before = attend(form, queries, q, pool);
    std::vector<float> spoilt = q;
    spoilt[head - 1] = NAN; // Head 0 has it.
    const std::vector<float> after = attend(form, queries, spoilt, pool);
    for (int64_t i = 0; i < config.heads * head; ++i)
      ASSERT_TRUE(i < head ? std::isnan(after[i]) : after[i] == before[i])
          << "element " << i << ": " << after[i];

    // A key that is a NaN spoils every head that sees it.
    std::vector<uint16_t> badKey = pool;
    badKey[keyAt(0, 65, 0)] = 0x7fff;
    const std::vector<float> bad = attend(form, queries, q, badKey);
    for (int64_t i = 0; i < config.heads / config.kv.kvHeads * head; ++i)
      ASSERT_TRUE(std::isnan(bad[i])) << "element " << i << ": " << bad[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AttentionTest,
                         testing::ValuesIn(kernelCases()), nameOf);

} // namespace
} // namespace llamac::cuda
