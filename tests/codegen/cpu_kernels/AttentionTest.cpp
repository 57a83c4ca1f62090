//===- AttentionTest.cpp - Attention against double precision -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of several lengths share a pool of pages in no order; every slot
// that holds no token is a NaN.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "Oracle.h"
#include "Support.h"

#include "runtime/packing/PanelPacking.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

using namespace llamac;
using namespace llamac::testing;

namespace {
struct AttentionCase {
  std::string level;
  long heads;
  long kvHeads;
  long headSize;
  cpu::KvFormat format;
  long pageTokens;

  std::string suffix() const {
    return "_" + std::to_string(heads) + "_" + std::to_string(kvHeads) + "_" +
           std::to_string(headSize);
  }
};

void PrintTo(const AttentionCase &c, std::ostream *out) {
  *out << c.level << c.suffix();
}

// A cache of some sequences, written as config.h describes it.
class Cache {
public:
  // With `steppedKeys`, the first element of keys is a multiple of 1/8 that all
  // formats hold, beside a second one that is larger than any.
  Cache(cpu::KvConfig kv, const std::vector<long> &lengths,
        std::mt19937 &random, bool steppedKeys = false)
      : kv(kv), sequences(static_cast<long>(lengths.size())), pool(poolBytes()),
        keys(sequences), values(sequences) {
    long pages = sequences * kv.pagesPerSequence;
    for (long page = 0; page < pages; ++page)
      table.push_back(static_cast<int>(page * 7 % pages));
    for (long s = 0; s < sequences; ++s) {
      size_t count = lengths[s] * kv.kvHeads * kv.headSize;
      keys[s] = oracle::randomFloats(count, 1, random);
      values[s] = oracle::randomFloats(count, 1, random);
      for (long key = 0; steppedKeys && key < lengths[s] * kv.kvHeads; ++key) {
        keys[s][key * kv.headSize] =
            float(key / kv.kvHeads * 37 % 251 - 125) / 8;
        keys[s][key * kv.headSize + 1] = 127.0f / 8;
      }
      size_t i = 0;
      for (long token = 0; token < lengths[s]; ++token)
        for (long g = 0; g < kv.kvHeads; ++g)
          for (long d = 0; d < kv.headSize; d += block(), i += block()) {
            write(&Cache::keySlot, s, token, g, d, &keys[s][i]);
            write(&Cache::valueSlot, s, token, g, d, &values[s][i]);
          }
    }
  }

  // Where an element lies, and its scale in Q8_0.
  struct Slot {
    uint8_t *element, *scale;
  };

  Slot keySlot(long s, long token, long g, long d) {
    long at = token % kv.pageTokens, h = kv.headSize;
    uint8_t *keys = head(s, token, g);
    if (kv.format == cpu::KvFormat::Q8_0)
      return {keys + at / 16 * 16 * h + d / 2 * 32 + at % 16 * 2 + d % 2,
              keys + kv.pageTokens * h + (d / 16 * kv.pageTokens + at) * 2};
    return {keys + ((at / 16 * h + d) * 16 + at % 16) *
                       cpu::kvElementBytes(kv.format),
            nullptr};
  }

  Slot valueSlot(long s, long token, long g, long d) {
    long at = token % kv.pageTokens, h = kv.headSize;
    if (kv.format == cpu::KvFormat::Q8_0) {
      uint8_t *values = head(s, token, g) + kv.pageTokens * (h + h / 16 * 2);
      return {values + at * h + d,
              values + kv.pageTokens * h + (d / 16 * kv.pageTokens + at) * 2};
    }
    return {head(s, token, g) +
                (kv.pageTokens * h + at * cpu::paddedHead(h) + d) *
                    cpu::kvElementBytes(kv.format),
            nullptr};
  }

  double read(Slot slot) const {
    if (kv.format == cpu::KvFormat::F32) {
      float value;
      std::memcpy(&value, slot.element, 4);
      return value;
    }
    uint16_t half;
    std::memcpy(&half, slot.scale ? slot.scale : slot.element, 2);
    if (kv.format == cpu::KvFormat::F16)
      return oracle::halfToDouble(half);
    uint32_t bits = uint32_t(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return slot.scale ? value * int8_t(*slot.element) : value;
  }

  // Makes a NaN of the element, and in Q8_0 of its block.
  void spoil(Slot slot) const {
    if (slot.scale)
      std::memset(slot.scale, 0xff, 2);
    else
      std::memset(slot.element, 0xff, cpu::kvElementBytes(kv.format));
  }

  size_t poolBytes() const {
    return sequences * kv.pagesPerSequence * cpu::kvPageBytes(kv);
  }

  cpu::KvConfig kv;
  long sequences;
  AlignedBytes pool;
  std::vector<int> table;
  std::vector<std::vector<float>> keys, values; // [token][kv head][d]

private:
  // Elements that are stored together.
  long block() const { return kv.format == cpu::KvFormat::Q8_0 ? 16 : 1; }

  uint8_t *head(long s, long token, long g) {
    long page = table[s * kv.pagesPerSequence + token / kv.pageTokens];
    return pool.data() + page * cpu::kvPageBytes(kv) + g * cpu::kvHeadBytes(kv);
  }

  // Stores a block from element `d` on, and leaves in it what the format holds.
  void write(Slot (Cache::*slotOf)(long, long, long, long), long s, long token,
             long g, long d, float *values) {
    if (kv.format != cpu::KvFormat::Q8_0) {
      *values = write((this->*slotOf)(s, token, g, d).element, *values);
      return;
    }
    // A scale of eight bits that is at least the largest over 127.
    float largest = 0;
    for (long i = 0; i < 16; ++i)
      largest = std::max(largest, std::abs(values[i]));
    int exponent;
    const float fraction = std::frexp(largest / 127, &exponent);
    const float scale = std::ldexp(std::ceil(fraction * 256), exponent - 8);
    for (long i = 0; i < 16; ++i) {
      const Slot slot = (this->*slotOf)(s, token, g, d + i);
      const auto code = static_cast<int8_t>(std::lround(values[i] / scale));
      std::memcpy(slot.element, &code, 1);
      std::memcpy(slot.scale, reinterpret_cast<const char *>(&scale) + 2, 2);
      values[i] = scale * code;
    }
  }

  // Stores a value that the format holds exactly, and returns it.
  float write(uint8_t *slot, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (kv.format == cpu::KvFormat::F32) {
      std::memcpy(slot, &value, 4);
      return value;
    }
    if (kv.format == cpu::KvFormat::BF16) {
      bits &= 0xffff0000;
      uint16_t half = bits >> 16;
      std::memcpy(slot, &half, 2);
    } else {
      // Keeps ten bits of the fraction; too small for a half float is zero.
      int exponent = int(bits >> 23 & 255) - 127 + 15;
      bits = exponent > 0 ? bits & 0xffffe000 : 0;
      uint16_t half = exponent > 0
                          ? uint16_t((bits >> 16 & 0x8000) | exponent << 10 |
                                     (bits >> 13 & 1023))
                          : 0;
      std::memcpy(slot, &half, 2);
    }
    std::memcpy(&value, &bits, 4);
    return value;
  }
};

class Attention : public ::testing::TestWithParam<AttentionCase> {
protected:
  const AttentionCase &c = GetParam();
  KernelUnit unit{c.level};
  std::mt19937 random{11};
  cpu::KvConfig kv =
      cpu::cases::kv(c.kvHeads, c.headSize, c.format, c.pageTokens);
  cpu::AttentionConfig config = cpu::cases::attention(c.heads, kv);
  long width = c.heads * c.headSize;

  // The result that `config` asks for.
  std::vector<double> expected(const Cache &cache, const float *q,
                               long sequence, long position) const {
    std::vector<double> out(width);
    for (long h = 0; h < c.heads; ++h) {
      long g = h / (c.heads / c.kvHeads);
      auto slot = [&](long token) {
        return (token * c.kvHeads + g) * c.headSize;
      };
      std::vector<double> scores(position + 1, -INFINITY);
      double largest = -INFINITY, sum = 0;
      for (long t = firstKey(config, position); t <= position; ++t) {
        scores[t] = 0;
        for (long d = 0; d < c.headSize; ++d)
          scores[t] +=
              double(q[h * c.headSize + d]) * cache.keys[sequence][slot(t) + d];
        scores[t] *= config.scale;
        largest = std::max(largest, scores[t]);
      }
      for (double &score : scores)
        score = std::exp(score - largest);
      for (long first = 0; config.topK && first <= position;
           first += config.splitTokens)
        keepLargest(scores, first);
      for (double score : scores)
        sum += score;
      for (long t = 0; t <= position; ++t)
        for (long d = 0; d < c.headSize; ++d)
          out[h * c.headSize + d] +=
              scores[t] / sum * cache.values[sequence][slot(t) + d];
    }
    return out;
  }

  // Sets all but the topK largest numbers of a split to 0.
  void keepLargest(std::vector<double> &numbers, long first) const {
    const auto begin = numbers.begin() + first;
    const auto end =
        begin + std::min(config.splitTokens, long(numbers.end() - begin));
    if (end - begin <= config.topK)
      return;
    std::vector<double> sorted(begin, end);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    std::replace_if(
        begin, end,
        [&](double number) { return number < sorted[config.topK - 1]; }, 0.0);
  }

  std::vector<const void *> args(const Cache &cache,
                                 const std::vector<float> &q,
                                 const std::vector<int> &positions,
                                 const std::vector<int> &sequences,
                                 const float *out) const {
    return {q.data(),         cache.pool.data(), cache.table.data(),
            positions.data(), sequences.data(),  out};
  }
};

// Rows of a step: all tokens of the sequences in turn, and after each a row
// that decodes the first sequence unless they shall be `distinct`.
struct Step {
  std::vector<int> positions, sequences;

  explicit Step(const std::vector<long> &lengths, bool distinct = false) {
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (long t = 0; t < lengths[s]; ++t) {
        positions.push_back(static_cast<int>(t));
        sequences.push_back(static_cast<int>(s));
      }
      if (distinct)
        continue;
      positions.push_back(static_cast<int>(lengths[0] - 1));
      sequences.push_back(0);
    }
  }

  long rows() const { return static_cast<long>(positions.size()); }
};
} // namespace

TEST_P(Attention, MatchesDoublePrecision) {
  std::vector<long> lengths = {65, 1, 300, 16};
  Cache cache(kv, lengths, random);
  Step step(lengths);
  std::vector<float> q = oracle::randomFloats(step.rows() * width, 1, random);
  std::vector<float> out(step.rows() * width, NAN);
  unit.run("attention" + c.suffix(), attentionShape(config), step.rows(),
           args(cache, q, step.positions, step.sequences, out.data()));
  // Over Q8_0 queries are in 16 bits. An element is then off by up to 2^-16 of
  // the vector's largest, about 3.5; the scores of 128 elements by about 6e-5.
  const double tolerance = c.format == cpu::KvFormat::Q8_0 ? 3e-4 : 1e-5;
  for (long r = 0; r < step.rows(); ++r) {
    std::vector<double> value =
        expected(cache, &q[r * width], step.sequences[r], step.positions[r]);
    for (long i = 0; i < width; ++i)
      ASSERT_NEAR(out[r * width + i], value[i], tolerance)
          << "row " << r << ", position " << step.positions[r] << ", element "
          << i;
  }
}

TEST_P(Attention, RowsDoNotDependOnFormBatchOrRanges) {
  std::vector<long> lengths = {130, 2, 319};
  Cache cache(kv, lengths, random);
  Step step(lengths);
  std::vector<float> q = oracle::randomFloats(step.rows() * width, 1, random);
  std::vector<float> out(step.rows() * width, NAN), again = out;
  auto all = args(cache, q, step.positions, step.sequences, out.data());
  unit.run("attention" + c.suffix(), attentionShape(config), step.rows(), all);
  all.back() = again.data();
  unit.run("attention" + c.suffix(), attentionShape(config), step.rows(), all,
           1, /*backwards=*/true);
  EXPECT_EQ(out, again);

  // Rows taken three at a time, split and merged.
  for (long first : {0L, 63L, 64L, 127L, 128L, 131L, 255L, 256L, 263L, 447L}) {
    long rows = std::min(3L, step.rows() - first);
    Step part = step;
    part.positions.erase(part.positions.begin(),
                         part.positions.begin() + first);
    part.sequences.erase(part.sequences.begin(),
                         part.sequences.begin() + first);
    std::vector<float> some(q.begin() + first * width,
                            q.begin() + (first + rows) * width);
    std::vector<float> expected(out.begin() + first * width,
                                out.begin() + (first + rows) * width);
    for (long pieces : {0L, 1L, 7L}) {
      AlignedBytes partials(rows * attentionPartialRowBytes(config));
      std::vector<float> merged(rows * width, NAN);
      unit.run("attentionSplit" + c.suffix(), attentionSplitShape(config), rows,
               args(cache, some, part.positions, part.sequences,
                    partials.as<float>()),
               pieces, /*backwards=*/pieces == 7);
      unit.run("attentionMerge" + c.suffix(), attentionMergeShape(config), rows,
               {partials.data(), part.positions.data(), merged.data()}, pieces);
      EXPECT_EQ(expected, merged) << "from row " << first;
    }
  }
}

class TopAttention : public Attention {};

// Scores differ by more than the kernel's threshold is off, so that it keeps
// exactly as many as it has to: most of the softmax, and yet not all.
TEST_P(TopAttention, KeepsTheLargestScoresOfEachSplit) {
  constexpr int position = 318;
  config = cpu::cases::topAttention(c.heads, kv);
  Cache cache(kv, {position + 1}, random, /*steppedKeys=*/true);
  std::vector<float> q(width), merged(width, NAN);
  for (long head = 0; head < c.heads; ++head)
    q[head * c.headSize] = 4.0f + float(head) / 4;
  const std::vector<int> positions = {position}, sequences = {0};
  AlignedBytes partials(attentionPartialRowBytes(config));
  unit.run("attentionTop" + c.suffix(), attentionSplitShape(config), 1,
           args(cache, q, positions, sequences, partials.as<float>()));
  unit.run("attentionMerge" + c.suffix(), attentionMergeShape(config), 1,
           {partials.data(), positions.data(), merged.data()});
  const std::vector<double> top = expected(cache, q.data(), 0, position);
  config.topK = 0;
  const std::vector<double> all = expected(cache, q.data(), 0, position);
  const double tolerance = c.format == cpu::KvFormat::Q8_0 ? 3e-4 : 1e-5;
  double dropped = 0;
  for (long i = 0; i < width; ++i) {
    ASSERT_NEAR(merged[i], top[i], tolerance) << "element " << i;
    dropped = std::max(dropped, std::abs(top[i] - all[i]));
  }
  EXPECT_GT(dropped, 30 * tolerance);
}

TEST_P(Attention, LargeScoresDoNotOverflow) {
  std::vector<long> lengths = {200};
  Cache cache(kv, lengths, random);
  std::vector<float> q = oracle::randomFloats(width, 3000, random);
  std::vector<float> out(width, NAN);
  std::vector<int> positions = {199}, sequences = {0};
  unit.run("attention" + c.suffix(), attentionShape(config), 1,
           args(cache, q, positions, sequences, out.data()));
  std::vector<double> value = expected(cache, q.data(), 0, 199);
  for (long i = 0; i < width; ++i)
    EXPECT_NEAR(out[i], value[i], 2e-2) << "element " << i;
}

TEST_P(Attention, NonFiniteQueriesKeysAndValuesShow) {
  std::vector<long> lengths = {140};
  long group = c.heads / c.kvHeads;
  std::vector<int> positions = {139}, sequences = {0};
  std::vector<float> q = oracle::randomFloats(width, 1, random);
  auto run = [&](const Cache &cache) {
    std::vector<float> out(width, 0.0f);
    unit.run("attention" + c.suffix(), attentionShape(config), 1,
             args(cache, q, positions, sequences, out.data()));
    return out;
  };
  Cache bad(kv, lengths, random);
  bad.spoil(bad.keySlot(0, 5, 0, 3));
  std::vector<float> out = run(bad);
  for (long i = 0; i < group * c.headSize; ++i)
    EXPECT_TRUE(std::isnan(out[i]));
  for (long i = group * c.headSize; i < width; ++i)
    EXPECT_TRUE(std::isfinite(out[i]));

  Cache badValue(kv, lengths, random);
  badValue.spoil(badValue.valueSlot(0, 139, 0, 3));
  EXPECT_TRUE(std::isnan(run(badValue)[3]));

  Cache fine(kv, lengths, random);
  q[1] = NAN;
  out = run(fine);
  for (long i = 0; i < c.headSize; ++i)
    EXPECT_TRUE(std::isnan(out[i]));
}

/// The cos/sin cache of `positions`, f32 [rows][headSize / 2][2].
static std::vector<float> angleTable(const std::vector<int> &positions,
                                     long headSize) {
  std::vector<float> table;
  for (int position : positions)
    for (long i = 0; i < headSize / 2; ++i) {
      double angle = position * std::pow(10000.0, -2.0 * i / headSize);
      table.push_back(float(std::cos(angle)));
      table.push_back(float(std::sin(angle)));
    }
  return table;
}

TEST_P(Attention, RopeRotatesPairsAndAppendsToThePage) {
  std::vector<long> lengths = {0, 0, 0};
  Cache cache(kv, lengths, random);
  Step step({33, 1, 2 * c.pageTokens + 1}, /*distinct=*/true);
  long h = c.headSize, kvWidth = c.kvHeads * h;
  std::vector<float> q = oracle::randomFloats(step.rows() * width, 1, random);
  std::vector<float> k = oracle::randomFloats(step.rows() * kvWidth, 1, random);
  std::vector<float> v = oracle::randomFloats(step.rows() * kvWidth, 1, random);
  std::vector<float> table = angleTable(step.positions, h);
  std::vector<float> out(step.rows() * width, NAN);
  unit.run("ropeAppend" + c.suffix(), cpu::rowwiseShape(), step.rows(),
           {q.data(), k.data(), v.data(), table.data(), cache.pool.data(),
            cache.table.data(), step.positions.data(), step.sequences.data(),
            out.data()},
           1);

  auto rotated = [&](const float *x, long r, long d) {
    double cosine = table[r * h + d / 2 * 2];
    double sine = table[r * h + d / 2 * 2 + 1];
    return d % 2 ? x[d - 1] * sine + x[d] * cosine
                 : x[d] * cosine - x[d + 1] * sine;
  };
  double rounding = kv.format == cpu::KvFormat::F32   ? 1e-6
                    : kv.format == cpu::KvFormat::F16 ? 0x1p-11
                                                      : 0x1p-8;
  // The bound on element d of a head, whose elements `of` gives.
  auto bound = [&](const auto &of, long d) {
    if (kv.format != cpu::KvFormat::Q8_0)
      return rounding * std::abs(of(d)) + 1e-6;
    // Half a step, and scales are within 2^-9 of the largest over 127.
    double largest = 0;
    for (long i = d / 16 * 16; i < d / 16 * 16 + 16; ++i)
      largest = std::max(largest, std::abs(of(i)));
    return largest / 127 / 2 * (1 + 0x1p-8) + 1e-6;
  };
  for (long r = 0; r < step.rows(); ++r) {
    for (long j = 0; j < c.heads; ++j)
      for (long d = 0; d < h; ++d)
        ASSERT_NEAR(out[r * width + j * h + d],
                    rotated(&q[r * width + j * h], r, d), 1e-6);
    for (long g = 0; g < c.kvHeads; ++g)
      for (long d = 0; d < h; ++d) {
        auto key = [&](long i) {
          return rotated(&k[r * kvWidth + g * h], r, i);
        };
        auto value = [&](long i) { return double(v[r * kvWidth + g * h + i]); };
        ASSERT_NEAR(cache.read(cache.keySlot(step.sequences[r],
                                             step.positions[r], g, d)),
                    key(d), bound(key, d))
            << "row " << r << ", kv head " << g << ", element " << d;
        ASSERT_NEAR(cache.read(cache.valueSlot(step.sequences[r],
                                               step.positions[r], g, d)),
                    value(d), bound(value, d))
            << "row " << r << ", kv head " << g << ", element " << d;
      }
  }
}

// The parts are held against double precision by the tests of Matmul and the
// one above.
TEST_P(Attention, QkvIsThreeProductsThenRopeAndAppend) {
  const cpu::QkvConfig config = cpu::cases::qkv(c.heads, kv);
  auto packed = [&](DataType type, long outputs) {
    std::vector<uint8_t> stored =
        oracle::randomWeights(type, outputs, cpu::cases::qkvDepth, random);
    AlignedBytes panels(packedBytes(type, outputs, cpu::cases::qkvDepth));
    packRows(type, outputs, cpu::cases::qkvDepth, 0, panelCount(outputs),
             stored.data(), panels.data());
    return panels;
  };
  const long kvWidth = c.kvHeads * c.headSize;
  AlignedBytes wq = packed(DataType::Q8_0, width);
  AlignedBytes wk = packed(DataType::Q8_0, kvWidth);
  AlignedBytes wv = packed(DataType::F32, kvWidth);
  for (const std::vector<long> &lengths :
       {std::vector<long>{1}, {3, 1}, {33, 1, 2 * c.pageTokens + 1}}) {
    Step step(lengths, /*distinct=*/true);
    const long rows = step.rows();
    std::vector<float> x =
        oracle::randomFloats(rows * cpu::cases::qkvDepth, 1, random);
    std::vector<float> table = angleTable(step.positions, c.headSize);
    std::vector<float> q(rows * width), k(rows * kvWidth), v(rows * kvWidth);
    unit.run("queryProduct" + c.suffix(), gemmShape(config.query), rows,
             {x.data(), wq.data(), q.data()});
    unit.run("keyProduct" + c.suffix(), gemmShape(config.key), rows,
             {x.data(), wk.data(), k.data()});
    unit.run("valueProduct" + c.suffix(), gemmShape(config.value), rows,
             {x.data(), wv.data(), v.data()});
    std::vector<long> empty(lengths.size(), 0);
    Cache cache(kv, empty, random);
    unit.run("ropeAppend" + c.suffix(), cpu::rowwiseShape(), rows,
             {q.data(), k.data(), v.data(), table.data(), cache.pool.data(),
              cache.table.data(), step.positions.data(), step.sequences.data(),
              q.data()});
    auto fused = [&](const std::string &family, cpu::LaunchShape shape,
                     long range) {
      Cache other(kv, empty, random);
      std::vector<float> out(rows * width, NAN);
      unit.run(family + c.suffix(), shape, rows,
               {x.data(), wq.data(), wk.data(), wv.data(), table.data(),
                other.pool.data(), other.table.data(), step.positions.data(),
                step.sequences.data(), out.data()},
               range, /*backwards=*/range == 1);
      EXPECT_EQ(out, q) << family << " of " << rows << " rows in " << range;
      EXPECT_EQ(
          std::memcmp(other.pool.data(), cache.pool.data(), cache.poolBytes()),
          0)
          << family << " of " << rows << " rows in " << range;
    };
    for (long range : {0, 1, 3}) {
      fused("qkvGemm", gemmShape(config), range);
      if (rows == 1)
        fused("qkvGemv", gemvShape(config), range);
    }
  }
}

static std::vector<AttentionCase> topCases() {
  std::vector<AttentionCase> all;
  for (const std::string &level : hostLevels())
    if (level != amxModel) {
#define LLAMAC_CASE(heads, kvHeads, headSize, format, pageTokens)              \
  all.push_back(                                                               \
      {level, heads, kvHeads, headSize, cpu::KvFormat::format, pageTokens});
      LLAMAC_TOP_ATTENTION_CASES(LLAMAC_CASE)
#undef LLAMAC_CASE
    }
  return all;
}

static std::vector<AttentionCase> attentionCases() {
  std::vector<AttentionCase> all;
  for (const std::string &level : hostLevels()) {
#define LLAMAC_CASE(heads, kvHeads, headSize, format, pageTokens)              \
  all.push_back(                                                               \
      {level, heads, kvHeads, headSize, cpu::KvFormat::format, pageTokens});
    LLAMAC_SOME_ATTENTION_CASES(LLAMAC_CASE)
    if (level != amxModel) {
      LLAMAC_OTHER_ATTENTION_CASES(LLAMAC_CASE)
    }
#undef LLAMAC_CASE
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Levels, Attention,
                         ::testing::ValuesIn(attentionCases()),
                         [](const auto &info) {
                           return info.param.level + info.param.suffix();
                         });

INSTANTIATE_TEST_SUITE_P(Levels, TopAttention, ::testing::ValuesIn(topCases()),
                         [](const auto &info) {
                           return info.param.level + info.param.suffix();
                         });
