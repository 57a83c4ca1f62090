//===- ProductTest.cpp - Matrix products on the simulator -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelCase.h"

#include "runtime/formats/FloatBits.h"

#include <algorithm>
#include <cmath>

namespace llamac::cuda {
namespace {

/// stream, gemv, gemm and wgmma, which take the same operands; but the last two
/// have their input normalised and in bf16, and wgmma takes maps.
struct Family {
  const char *name;
  /// Errors relative to the sum of the magnitudes of a sum's terms: f32 sums,
  /// or operands rounded to bf16.
  double tolerance;
  std::vector<int64_t> rows;

  bool isWgmma() const { return name == std::string("wgmma"); }
  bool isRounded() const { return isWgmma() || name == std::string("gemm"); }
};

class ProductTest : public KernelCaseTest {
protected:
  std::vector<Family> families() const {
    auto upTo = [](int64_t most) {
      return most == 1 ? std::vector<int64_t>{1}
                       : std::vector<int64_t>{1, most - 1, most};
    };
    std::vector<Family> list = {
        {"stream", 0x1p-17, upTo(std::min(model.maxRows, streamMaxRows))},
        {"gemv", 0x1p-17, upTo(model.maxRows)},
        {"gemm", 0x1p-8, {1, 17, 64, 150}},
        // Tiles of one row alone, that share weights, that share x.
        {"wgmma", 0x1p-8, {1, 129, 260}}};
    return list;
  }

  /// Operand 0 of `family`, rows `x` of `depth`; normalised, where there is
  /// `gain`, for those that do not so themselves.
  DeviceBytes inputOf(const Family &family, const std::vector<float> &x,
                      int64_t depth, const std::vector<float> *gain = nullptr) {
    if (!family.isRounded())
      return DeviceBytes(x);
    // Packed weights are multiplied by columns in the order of lanes.
    auto placeOf = [&](size_t column) {
      const size_t lane = column % 16 / 4, within = column % 4;
      return hasScales(model.format)
                 ? column - column % 16 + 2 * lane + within / 2 * 8 + within % 2
                 : column;
    };
    std::vector<uint16_t> rounded(x.size());
    for (size_t first = 0; first < x.size(); first += depth) {
      const Doubles values =
          gain ? normalised(&x[first], *gain) : row(x, first / depth, depth);
      for (size_t i = 0; i < values.size(); ++i)
        rounded[first + placeOf(i)] = f32ToBf16(static_cast<float>(values[i]));
    }
    return DeviceBytes(rounded);
  }

  /// The operands of `family`, of which number `norm` is the gain.
  static std::vector<Operand>
  operandsOf(const Family &family, std::vector<Operand> all, int norm = 1) {
    if (family.isRounded())
      all.erase(all.begin() + norm);
    return all;
  }

  LaunchShape shape(const Family &family, int64_t outputs, int64_t depth,
                    int weights = 1) const {
    const std::string name = family.name;
    if (name == "wgmma")
      return launchShape(cases::wgmma(model, outputs, depth, weights));
    if (name == "stream")
      return launchShape(cases::stream(model, outputs, depth, weights));
    if (name == "gemv")
      return launchShape(cases::gemv(model, outputs, depth, weights));
    return launchShape(cases::gemm(model, outputs, depth, weights));
  }

  /// The maps of the input, operand 0, and of the weights behind it.
  std::vector<MapShape> maps(const Family &family, int64_t outputs,
                             int64_t depth, int weights = 1) const {
    if (!family.isWgmma())
      return {};
    const WgmmaConfig config = cases::wgmma(model, outputs, depth, weights);
    std::vector<MapShape> list = {wgmmaInputMap(config, 0)};
    for (int i = 0; i < weights; ++i)
      list.push_back(wgmmaWeightMap(config, 0, 1 + i));
    return list;
  }

  LaunchShape qkvShape(const Family &family) const {
    const std::string name = family.name;
    if (name == "wgmma")
      return launchShape(cases::qkvWgmma(model));
    if (name == "stream")
      return launchShape(cases::qkvStream(model));
    if (name == "gemv")
      return launchShape(cases::qkvGemv(model));
    return launchShape(cases::qkvGemm(model));
  }

  std::vector<MapShape> qkvMaps(const Family &family) const {
    if (!family.isWgmma())
      return {};
    const WgmmaConfig config = cases::qkvWgmma(model);
    return {wgmmaInputMap(config, 0), wgmmaWeightMap(config, 0, 1),
            wgmmaWeightMap(config, 1, 2), wgmmaWeightMap(config, 2, 3)};
  }

  Doubles row(const std::vector<float> &x, int64_t index, int64_t width) {
    return Doubles(x.begin() + index * width, x.begin() + (index + 1) * width);
  }
};

TEST_P(ProductTest, AddsTheResidual) {
  const Matrix w = matrix(model.width, model.hidden);
  for (const Family &family : families())
    for (const int64_t rows : family.rows) {
      SCOPED_TRACE(testing::Message() << family.name << " rows " << rows);
      const std::vector<float> x = floats(rows * w.depth);
      const std::vector<float> residual = floats(rows * w.outputs);
      DeviceBytes input = inputOf(family, x, w.depth), out(residual);
      DeviceBytes weights(w.packed);
      run(std::string(family.name) + "_down", shape(family, w.outputs, w.depth),
          rows, {reads(input), reads(weights), updates(out)},
          maps(family, w.outputs, w.depth));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t n = 0; n < w.outputs; ++n) {
          const Sum sum = product(w, n, row(x, r, w.depth));
          const double before = residual[r * w.outputs + n];
          ASSERT_NEAR(out.as<float>()[r * w.outputs + n], before + sum.value,
                      family.tolerance * sum.magnitude +
                          0x1p-22 * std::abs(before))
              << "row " << r << " output " << n;
        }
    }
}

TEST_P(ProductTest, MultipliesSiluOfOneProductByTheOther) {
  const Matrix w1 = matrix(model.hidden, model.width);
  const Matrix w3 = matrix(model.hidden, model.width);
  const std::vector<float> gain = floats(model.width);
  for (const Family &family : families())
    for (const int64_t rows : family.rows) {
      SCOPED_TRACE(testing::Message() << family.name << " rows " << rows);
      const std::vector<float> x = floats(rows * model.width, 3);
      DeviceBytes input = inputOf(family, x, model.width, &gain), norm(gain);
      DeviceBytes gates(w1.packed), ups(w3.packed);
      const bool rounds = family.isRounded(); // A prompt's product is emitted
                                              // like this.
      DeviceBytes out(rows * model.hidden *
                      (rounds ? sizeof(uint16_t) : sizeof(float)));
      run(std::string(family.name) + "_up",
          shape(family, model.hidden, model.width, 2), rows,
          operandsOf(family, {reads(input), reads(norm), reads(gates),
                              reads(ups), writes(out)}),
          maps(family, model.hidden, model.width, 2));
      for (int64_t r = 0; r < rows; ++r) {
        const Doubles normal = normalised(&x[r * model.width], gain);
        for (int64_t n = 0; n < model.hidden; ++n) {
          const Sum gate = product(w1, n, normal), up = product(w3, n, normal);
          const double silu = gate.value / (1 + std::exp(-gate.value));
          // silu's slope is at most 1.1.
          const double gateError = family.tolerance * gate.magnitude;
          const double upError = family.tolerance * up.magnitude;
          const int64_t at = r * model.hidden + n;
          ASSERT_NEAR(
              rounds ? bf16ToF32(out.as<uint16_t>()[at]) : out.as<float>()[at],
              silu * up.value,
              1.1 * gateError * (std::abs(up.value) + upError) +
                  upError * std::abs(silu) +
                  (rounds ? 0x1p-8 : 0x1p-18) * std::abs(silu * up.value))
              << "row " << r << " output " << n;
        }
      }
    }
}

TEST_P(ProductTest, EveryOutputOfAWideHeadIsWritten) {
  const Matrix w = matrix(model.vocabulary, model.width);
  const std::vector<float> gain = floats(model.width);
  for (const Family &family : families()) {
    SCOPED_TRACE(family.name);
    const int64_t rows = family.rows.back();
    const std::vector<float> x = floats(rows * model.width);
    DeviceBytes input = inputOf(family, x, model.width, &gain), norm(gain);
    DeviceBytes weights(w.packed);
    DeviceBytes out(rows * model.vocabulary * sizeof(float));
    run(std::string(family.name) + "_head",
        shape(family, model.vocabulary, model.width), rows,
        operandsOf(family,
                   {reads(input), reads(norm), reads(weights), writes(out)}),
        maps(family, model.vocabulary, model.width));
    for (int64_t r = 0; r < rows; ++r) {
      const Doubles normal = normalised(&x[r * model.width], gain);
      for (int64_t n = 0; n < model.vocabulary; ++n) {
        const Sum sum = product(w, n, normal);
        ASSERT_NEAR(out.as<float>()[r * model.vocabulary + n], sum.value,
                    2 * family.tolerance * sum.magnitude)
            << "row " << r << " output " << n;
      }
    }
  }
}

TEST_P(ProductTest, RowsOfSeveralStagesByGemvAndByStream) {
  const Matrix w = matrix(model.width, cases::deep);
  const std::vector<float> gain = floats(w.depth);
  const std::vector<Family> list = families();
  for (const int64_t rows : list.front().rows) {
    const std::vector<float> x = floats(rows * w.depth);
    for (int i = 0; i < 2; ++i) {
      const Family &family = list[i];
      SCOPED_TRACE(testing::Message() << family.name << " rows " << rows);
      DeviceBytes input(x), norm(gain), weights(w.packed);
      DeviceBytes out(rows * w.outputs * sizeof(float));
      run(std::string(family.name) + "_deep", shape(family, w.outputs, w.depth),
          rows, {reads(input), reads(norm), reads(weights), writes(out)});
      for (int64_t r = 0; r < rows; ++r) {
        const Doubles normal = normalised(&x[r * w.depth], gain);
        for (int64_t n = 0; n < w.outputs; ++n) {
          const Sum sum = product(w, n, normal);
          ASSERT_NEAR(out.as<float>()[r * w.outputs + n], sum.value,
                      2 * family.tolerance * sum.magnitude)
              << "row " << r << " output " << n;
        }
      }
    }
  }
}

TEST_P(ProductTest, StreamsGiveTheSameBitsOnAnyNumberOfMultiprocessors) {
  const Matrix w = matrix(model.width, cases::deep);
  const std::vector<float> gain = floats(w.depth);
  const Family stream = families().front();
  const int64_t rows = stream.rows.back();
  const std::vector<float> x = floats(rows * w.depth);
  std::vector<float> first;
  for (const long blocks : {1, 2, 3}) {
    LaunchShape launch = shape(stream, w.outputs, w.depth);
    launch.gridSize = blocks;
    DeviceBytes input(x), norm(gain), weights(w.packed);
    DeviceBytes out(rows * w.outputs * sizeof(float));
    run("stream_deep", launch, rows,
        {reads(input), reads(norm), reads(weights), writes(out)});
    const std::vector<float> result(out.as<float>(),
                                    out.as<float>() + rows * w.outputs);
    if (first.empty())
      first = result;
    EXPECT_EQ(result, first) << blocks << " blocks";
  }
}

// Magnitudes from 2^-16 to 2^15, which neighbours in a block have too: halves
// and bf16 would be off by 2^-12 and 2^-9 of what is largest. Errors are a few
// units of f32's last place, of d * q * x and m * x where weights are d * q +
// m: every kernel sums these apart, and what is left of the two where they
// cancel may be much smaller than either.
TEST_P(ProductTest, FewRowsOfAWideRangeLoseNoMoreThanF32Does) {
  const Matrix w = matrix(model.width, model.hidden);
  for (const Family &family : families()) {
    if (family.tolerance > 0x1p-17)
      continue;
    SCOPED_TRACE(family.name);
    const int64_t rows = family.rows.back();
    std::vector<float> x = floats(rows * w.depth);
    for (float &value : x)
      value = std::ldexp(value, static_cast<int>(random() % 32) - 16);
    const std::vector<float> zeros(rows * w.outputs);
    DeviceBytes input(x), out(zeros), weights(w.packed);
    run(std::string(family.name) + "_down", shape(family, w.outputs, w.depth),
        rows, {reads(input), reads(weights), updates(out)});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < w.outputs; ++n) {
        const Sum sum = product(w, n, row(x, r, w.depth));
        ASSERT_NEAR(out.as<float>()[r * w.outputs + n], sum.value,
                    0x1p-21 * sum.parts)
            << "row " << r << " output " << n;
      }
  }
}

TEST_P(ProductTest, TurnsAndAppends) {
  const KvConfig kv = cases::kv(model);
  const int64_t head = model.headSize;
  const int64_t queryWidth = model.heads * head, kvWidth = model.kvHeads * head;
  const Matrix wq = matrix(queryWidth, model.width);
  const Matrix wk = matrix(kvWidth, model.width);
  const Matrix wv = matrix(kvWidth, model.width);
  const std::vector<float> gain = floats(model.width);
  // Two sequences whose pages lie in disorder.
  const int64_t sequences = 2, pages = sequences * kv.pagesPerSequence;
  std::vector<int> pageTable(pages);
  for (int64_t page = 0; page < pages; ++page)
    pageTable[page] = static_cast<int>((page * 7 + 3) % pages);
  for (const Family &family : families()) {
    SCOPED_TRACE(family.name);
    const int64_t rows = family.rows.back();
    std::vector<int> positions(rows), owners(rows);
    for (int64_t r = 0; r < rows; ++r) {
      owners[r] = r % 3 == 0;
      positions[r] = static_cast<int>(60 + r); // Over the end of a page.
    }
    const std::vector<float> x = floats(rows * model.width);
    const std::vector<float> angles = floats(rows * head, 3);
    std::vector<float> cosSin(rows * head);
    for (int64_t i = 0; i < rows * head; i += 2) {
      cosSin[i] = std::cos(angles[i]);
      cosSin[i + 1] = std::sin(angles[i]);
    }
    DeviceBytes input = inputOf(family, x, model.width, &gain), norm(gain);
    DeviceBytes table(cosSin);
    DeviceBytes q(wq.packed), k(wk.packed), v(wv.packed);
    DeviceBytes pool(pages * kvPageBytes(kv)), position(positions);
    DeviceBytes owner(owners), pageOf(pageTable);
    DeviceBytes out(rows * queryWidth * sizeof(float));
    run(std::string(family.name) + "_qkv", qkvShape(family), rows,
        operandsOf(family,
                   {reads(input), reads(q), reads(k), reads(v), reads(norm),
                    reads(table), updates(pool), reads(position), reads(owner),
                    reads(pageOf), writes(out)},
                   /*norm=*/4),
        qkvMaps(family));

    int64_t written = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const Doubles normal = normalised(&x[r * model.width], gain);
      // The rotated pair (n, n + 1) of a product, and its error.
      auto rotated = [&](const Matrix &w, int64_t n, double(&pair)[2]) {
        const Sum a = product(w, n, normal), b = product(w, n + 1, normal);
        const float *cs = &cosSin[r * head + n % head];
        pair[0] = a.value * cs[0] - b.value * cs[1];
        pair[1] = b.value * cs[0] + a.value * cs[1];
        return 2 * family.tolerance * (a.magnitude + b.magnitude);
      };
      for (int64_t n = 0; n < queryWidth; n += 2) {
        double pair[2];
        const double error = rotated(wq, n, pair);
        for (int i = 0; i < 2; ++i)
          ASSERT_NEAR(out.as<float>()[r * queryWidth + n + i], pair[i], error)
              << "query, row " << r << " output " << n + i;
      }
      const int64_t page =
          pageTable[owners[r] * kv.pagesPerSequence + positions[r] / 64];
      for (int64_t n = 0; n < kvWidth; n += 2) {
        const uint16_t *at = pool.as<uint16_t>() + page * kvPageBytes(kv) / 2 +
                             n / head * kvPlaneBytes(kv) +
                             positions[r] % 64 * head + n % head;
        double pair[2];
        const double error = rotated(wk, n, pair);
        for (int i = 0; i < 2; ++i) {
          ASSERT_NEAR(kvValue(kv.format, at[i]), pair[i],
                      error + kvUnit(kv.format) * std::abs(pair[i]) + 1e-6)
              << "key, row " << r << " output " << n + i;
          const Sum value = product(wv, n + i, normal);
          ASSERT_NEAR(kvValue(kv.format, at[kvPlaneBytes(kv) / 2 + i]),
                      value.value,
                      2 * family.tolerance * value.magnitude +
                          kvUnit(kv.format) * std::abs(value.value) + 1e-6)
              << "value, row " << r << " output " << n + i;
        }
        written += 4;
      }
    }
    // Nothing else was.
    int64_t touched = 0;
    for (size_t i = 0; i < pool.size() / 2; ++i)
      touched += pool.as<uint16_t>()[i] != 0xffff;
    EXPECT_EQ(touched, written);
  }
}

TEST_P(ProductTest, ARowDoesNotDependOnTheOthersAndANanShows) {
  const Matrix w = matrix(model.width, model.hidden);
  for (const Family &family : families()) {
    SCOPED_TRACE(family.name);
    const int64_t rows = family.rows.back();
    std::vector<float> x = floats(rows * w.depth);
    const std::vector<float> zeros(rows * w.outputs);
    auto results = [&](const std::vector<float> &values, int64_t count) {
      DeviceBytes input = inputOf(family, values, w.depth), out(zeros);
      DeviceBytes weights(w.packed);
      run(std::string(family.name) + "_down", shape(family, w.outputs, w.depth),
          count, {reads(input), reads(weights), updates(out)},
          maps(family, w.outputs, w.depth));
      return std::vector<float>(out.as<float>(),
                                out.as<float>() + count * w.outputs);
    };
    const std::vector<float> all = results(x, rows);
    const std::vector<float> first = results(x, 1);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));

    const int64_t bad = rows - 1;
    x[bad * w.depth + w.depth - 1] = NAN;
    const std::vector<float> spoilt = results(x, rows);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < w.outputs; ++n) {
        const float value = spoilt[r * w.outputs + n];
        ASSERT_TRUE(r == bad ? std::isnan(value)
                             : value == all[r * w.outputs + n])
            << "row " << r << " output " << n << ": " << value;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ProductTest, testing::ValuesIn(kernelCases()),
                         nameOf);

} // namespace
} // namespace llamac::cuda
