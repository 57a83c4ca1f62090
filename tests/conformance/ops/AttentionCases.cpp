//===- AttentionCases.cpp - Query, key, value and attention ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cache is a device's own affair, so it is looked at through attention:
// what qkv appends in one step, rows of this step and of later ones read.
//
// Attention itself is given exact numbers: the weights of qkv pick the query,
// the key and the value out of a row (query | key | value), and the rotations
// are 0.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Cases.h"

#include "runtime/formats/FloatBits.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

namespace llamac::conformance {

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {

/// The next `count` rows of a sequence.
struct Rows {
  int32_t sequence;
  int64_t count;
};

/// Rows of one step: of each sequence one after the other.
using StepRows = std::vector<Rows>;

} // namespace

/// The positions and sequences of steps; all sequences start empty.
static std::vector<Step> stepsOf(const std::vector<StepRows> &list) {
  std::map<int32_t, int32_t> lengths;
  std::vector<Step> steps;
  for (const StepRows &parts : list) {
    int64_t rows = 0;
    for (const Rows &part : parts)
      rows += part.count;
    Step &step = steps.emplace_back(stepOf(rows));
    int64_t row = 0;
    for (const Rows &part : parts)
      for (int64_t i = 0; i < part.count; ++i, ++row) {
        step.sequences[row] = part.sequence;
        step.positions[row] = lengths[part.sequence]++;
      }
  }
  return steps;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Zeros: a rotation by them changes nothing.
static std::vector<double> noRotation(const Model &model) {
  return std::vector<double>(model.headSize / 2, 0.0);
}

/// Frequencies of theta = 100, so that few positions rotate the slow pairs too.
static std::vector<double> someRotation(const Model &model) {
  std::vector<double> frequencies;
  frequencies.reserve(model.headSize / 2);
  for (int64_t i = 0; i < model.headSize / 2; ++i)
    frequencies.push_back(
        std::pow(100.0, -2.0 * static_cast<double>(i) /
                            static_cast<double>(model.headSize)));
  return frequencies;
}

static double scaleOf(const Model &model) {
  return 1 / std::sqrt(static_cast<double>(model.headSize));
}

static std::string tableText(const Model &model, const std::string &name,
                             const std::vector<double> &frequencies) {
  return absl::StrCat("  %table = kernel.rope_table %positions {frequencies = ",
                      frequenciesText(frequencies),
                      "} : (tensor<?xi32>) -> tensor<?x", model.headSize / 2,
                      "x2xf32> loc(\"", name, "_table\")\n");
}

static std::string attentionText(const Model &model, const std::string &name,
                                 const std::string &approximation = "") {
  const std::string rows = rowsText(model.queryWidth());
  return absl::StrFormat(
      "  %%out = kernel.attention %%q over %%newKv at %%positions, %%sequences "
      "{%sscale = %.17e : f64%s} : (%s, !kv, tensor<?xi32>, "
      "tensor<?xi32>) -> %s loc(\"%s\")",
      approximation, scaleOf(model),
      model.window ? absl::StrCat(", window = ", model.window, " : i64") : "",
      rows, rows, name);
}

/// The text after the tensors in the type of an op that appends.
static std::string appendTypes(const Model &model) {
  return absl::StrCat(", tensor<?x", model.headSize / 2,
                      "x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (",
                      rowsText(model.queryWidth()), ", !kv)");
}

/// Query, key and value of %x by the program's weights wq, wk, wv and, where
/// it has one, its gain.
static std::string qkvText(const Program &program, const std::string &name) {
  std::string types = rowsText(program.inputs[0].width);
  for (const StoredWeight &weight : program.weights)
    absl::StrAppend(&types, ", ", typeText(weight));
  if (program.model.apart) {
    const std::string rows =
        absl::StrCat(rowsText(program.model.queryWidth()), ", ",
                     rowsText(program.model.kvWidth()), ", ",
                     rowsText(program.model.kvWidth()));
    return absl::StrCat(
        "  %query, %key, %value = kernel.qkv_products %x, %wq, %wk, %wv : (",
        types, ") -> (", rows, ") loc(\"", name,
        "\")\n  %q, %newKv = kernel.rope_append %query, %key, %value, %table "
        "into %kv at %positions, %sequences : (",
        rows, appendTypes(program.model), " loc(\"", name, "_append\")\n");
  }
  const bool norm = program.weights.size() > 3;
  const bool biased = program.weights.size() > 4;
  return absl::StrCat("  %q, %newKv = kernel.qkv %x, %wq, %wk, %wv",
                      norm ? " norm(%gain)" : "",
                      biased ? " bias(%bq, %bk, %bv)" : "",
                      " rotated by %table into %kv at %positions, %sequences",
                      norm ? " {eps = 1.0e-5 : f64}" : "", " : (", types,
                      appendTypes(program.model), " loc(\"", name, "\")\n");
}

static std::shared_ptr<Program> cacheProgram(const std::string &name,
                                             const Model &model) {
  auto program = std::make_shared<Program>();
  program->name = name;
  program->model = model;
  program->outWidth = model.queryWidth();
  program->outType = rowsText(model.queryWidth());
  program->appends = true;
  return program;
}

/// The matrix that picks `count` columns of `width` from `first` on.
static StoredWeight picker(const std::string &name, int64_t first,
                           int64_t count, int64_t width) {
  StoredWeight weight{name, DataType::BF16, count, width, false, {}};
  weight.bytes.resize(count * width * 2);
  const uint16_t one = f32ToBf16(1);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(&weight.bytes[(i * width + first + i) * 2], &one, 2);
  return weight;
}

/// Attention of the queries that rows (query | key | value) hold, exact or with
/// exponentials by the polynomial.
static std::shared_ptr<Program> exactProgram(const Model &model,
                                             bool hasPolynomial = false) {
  const std::string name =
      absl::StrCat("attention_", model.name, hasPolynomial ? "_poly3" : "");
  auto program = cacheProgram(name, model);
  const int64_t query = model.queryWidth(), kv = model.kvWidth();
  const int64_t width = query + 2 * kv;
  program->inputs = {{"x", width}};
  program->weights = {picker("wq", 0, query, width),
                      picker("wk", query, kv, width),
                      picker("wv", query + kv, kv, width)};
  program->body =
      tableText(model, name, noRotation(model)) +
      qkvText(*program, name + "_qkv") +
      attentionText(model, name,
                    hasPolynomial
                        ? "approximation = #llama.approximation<exp = poly3>, "
                        : "");
  return program;
}

/// The program with rope_append and no products; where `norm` is not 0, query
/// and key are normalised by parts of `norm` heads.
static std::shared_ptr<Program> appendProgram(const Model &model, bool attends,
                                              int64_t norm) {
  const std::string name = absl::StrCat(
      "rope_append", norm ? absl::StrCat("_", model.name, "_norm", norm) : "",
      attends ? "_attention" : "");
  auto program = cacheProgram(name, model);
  program->inputs = {{"query", model.queryWidth()},
                     {"key", model.kvWidth()},
                     {"value", model.kvWidth()}};
  const std::string kvRows = rowsText(model.kvWidth());
  std::string types = appendTypes(model);
  if (norm) {
    // A part of the key is at most all of it.
    const int64_t query = norm * model.headSize;
    const int64_t key = std::min(query, model.kvWidth());
    program->weights = {vectorWeight("queryGain", normalFloats(query, 31)),
                        vectorWeight("keyGain", normalFloats(key, 32))};
    types.replace(types.find(") ->"), 1,
                  absl::StrCat(", ", typeText(program->weights[0]), ", ",
                               typeText(program->weights[1]), ")"));
  }
  program->body = absl::StrCat(
      tableText(model, name, someRotation(model)), "  %", attends ? "q" : "out",
      ", %newKv = kernel.rope_append %query, %key, %value, %table into %kv at "
      "%positions, %sequences",
      norm ? " norms(%queryGain, %keyGain) {eps = 1.0e-5 : f64}" : "", " : (",
      program->outType, ", ", kvRows, ", ", kvRows, types, " loc(\"", name,
      "\")\n", attends ? attentionText(model, name) : "");
  return program;
}

/// Products of random weights of several types, of normalised rows, rotated. In
/// front of attention none is quantised: scores would be too large to say
/// anything.
static std::shared_ptr<Program> qkvProgram(const Model &model, bool attends,
                                           bool biased) {
  const int64_t depth = 96;
  const std::string name =
      absl::StrCat("qkv", biased ? "_biased" : "", attends ? "_attention" : "");
  auto program = cacheProgram(name, model);
  program->inputs = {{"x", depth}};
  program->weights = {
      randomMatrix("wq", attends ? DataType::BF16 : DataType::Q8_0,
                   model.queryWidth(), depth),
      randomMatrix("wk", DataType::BF16, model.kvWidth(), depth),
      randomMatrix("wv", DataType::F16, model.kvWidth(), depth),
      vectorWeight("gain", normalFloats(depth, 51))};
  if (biased)
    for (const auto &[bias, width] :
         {std::pair("bq", model.queryWidth()), std::pair("bk", model.kvWidth()),
          std::pair("bv", model.kvWidth())})
      program->weights.push_back(vectorWeight(
          bias, normalFloats(width, static_cast<uint32_t>(bias[1]))));
  std::string qkv = qkvText(*program, name);
  if (!attends)
    qkv.replace(qkv.find("%q,"), 3, "%out,");
  program->body = absl::StrCat(tableText(model, name, someRotation(model)), qkv,
                               attends ? attentionText(model, name) : "");
  return program;
}

//===----------------------------------------------------------------------===//
// Expectations
//===----------------------------------------------------------------------===//

namespace {

/// Query, key and value of one row.
struct Triple {
  ExpectedRow query, key, value;
  bool isExact; ///< In the format of any cache.
};
using Project =
    std::function<Triple(const Numerics &, const Step &, int64_t row)>;

} // namespace

/// The results of `steps`: rotated queries, or attention over all that was
/// appended by then.
static std::vector<std::vector<ExpectedRow>>
cacheExpectation(const Model &model, const std::vector<Step> &steps,
                 const Project &project, bool attends,
                 const Numerics &numerics) {
  CacheOracle cache(model, numerics);
  std::vector<std::vector<ExpectedRow>> results;
  for (const Step &step : steps) {
    std::vector<ExpectedRow> queries;
    for (int64_t row = 0; row < step.rows(); ++row) {
      Triple triple = project(numerics, step, row);
      queries.push_back(std::move(triple.query));
      cache.append(step.sequences[row], std::move(triple.key),
                   std::move(triple.value), triple.isExact);
    }
    if (attends)
      for (int64_t row = 0; row < step.rows(); ++row)
        queries[row] = cache.attend(queries[row], step.sequences[row],
                                    step.positions[row], scaleOf(model));
    results.push_back(std::move(queries));
  }
  return results;
}

static ExpectedRow exactRow(const std::vector<float> &values, int64_t row,
                            int64_t stride, int64_t first, int64_t count) {
  ExpectedRow result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back({values[row * stride + first + i], 0});
  return result;
}

/// Rows (query | key | value) as they are.
static Project pickedRows(const Model &model) {
  return [=](const Numerics &, const Step &step, int64_t row) {
    const int64_t query = model.queryWidth(), kv = model.kvWidth();
    const int64_t width = query + 2 * kv;
    const std::vector<float> &x = step.inputs.at("x");
    return Triple{exactRow(x, row, width, 0, query),
                  exactRow(x, row, width, query, kv),
                  exactRow(x, row, width, query + kv, kv), true};
  };
}

/// Row `row` of `x`, rows of `width`, each part of it under RMSNorm.
static ExpectedRow normalisedRow(const std::vector<float> &x, int64_t row,
                                 int64_t width, const StoredWeight &gain) {
  ExpectedRow result;
  const int64_t parts = width / gain.cols;
  for (int64_t part = row * parts; part < (row + 1) * parts; ++part)
    for (const double value :
         normalised(rowOf(x, part, gain.cols), gain.values(), normEps))
      result.push_back({value, sumError * std::abs(value)});
  return result;
}

static Project appendedRows(const std::shared_ptr<const Program> &program) {
  return [=](const Numerics &, const Step &step, int64_t row) {
    const Model &model = program->model;
    const int32_t position = step.positions[row];
    const std::vector<double> rotation = someRotation(model);
    auto of = [&](const char *name, int64_t width, const char *gain) {
      const std::vector<float> &x = step.inputs.at(name);
      return program->weights.empty() || !*gain
                 ? exactRow(x, row, width, 0, width)
                 : normalisedRow(x, row, width, program->weight(gain));
    };
    return Triple{
        rotated(of("query", model.queryWidth(), "queryGain"), position,
                rotation),
        rotated(of("key", model.kvWidth(), "keyGain"), position, rotation),
        of("value", model.kvWidth(), ""), false};
  };
}

static Project projectedRows(const std::shared_ptr<const Program> &program) {
  return [=](const Numerics &numerics, const Step &step, int64_t row) {
    const std::vector<double> x =
        normalised(rowOf(step.inputs.at("x"), row, program->inputs[0].width),
                   program->weight("gain").values(), normEps);
    const std::vector<double> rotation = someRotation(program->model);
    const bool biased = program->weights.size() > 4;
    auto product = [&](const char *weight, const char *bias) {
      ExpectedRow result =
          Matrix(program->weight(weight), numerics, step.rows())
              .times(x, Activations::Normal);
      if (biased) {
        const std::vector<double> added = program->weight(bias).values();
        for (size_t i = 0; i < result.size(); ++i) {
          result[i].value += added[i];
          result[i].bound += roundError * std::abs(result[i].value);
        }
      }
      return result;
    };
    const int32_t position = step.positions[row];
    return Triple{rotated(product("wq", "bq"), position, rotation),
                  rotated(product("wk", "bk"), position, rotation),
                  product("wv", "bv"), false};
  };
}

/// A case of `steps` whose inputs are filled.
static OpCase cacheCase(const std::string &name,
                        const std::shared_ptr<const Program> &program,
                        const std::vector<Step> &steps, const Project &project,
                        bool attends) {
  return {name, program, steps, [=](const Numerics &numerics) {
            return cacheExpectation(program->model, steps, project, attends,
                                    numerics);
          }};
}

//===----------------------------------------------------------------------===//
// Attention of exact numbers
//===----------------------------------------------------------------------===//

/// Steps whose rows (query | key | value) are on a grid.
static std::vector<Step> exactSteps(const Model &model,
                                    const std::vector<StepRows> &list) {
  std::vector<Step> steps = stepsOf(list);
  uint32_t seed = 61;
  for (Step &step : steps)
    step.inputs["x"] = gridFloats(
        step.rows(), model.queryWidth() + 2 * model.kvWidth(), ++seed);
  return steps;
}

/// Calls `change(row of x)` for a position of a sequence.
static void changeRow(std::vector<Step> &steps, int32_t sequence,
                      int32_t position,
                      const std::function<void(float *x)> &change) {
  for (Step &step : steps)
    for (int64_t row = 0; row < step.rows(); ++row)
      if (step.sequences[row] == sequence && step.positions[row] == position) {
        std::vector<float> &x = step.inputs.at("x");
        change(&x[row * static_cast<int64_t>(x.size()) / step.rows()]);
      }
}

/// All heads of all rows look along the first element of a head, where the key
/// of `position` of sequence 1 has `key`.
static void setFirstElements(const Model &model, std::vector<Step> &steps,
                             const std::vector<int32_t> &positions, float key) {
  for (Step &step : steps) {
    std::vector<float> &x = step.inputs.at("x");
    const int64_t width = static_cast<int64_t>(x.size()) / step.rows();
    for (int64_t row = 0; row < step.rows(); ++row)
      for (int64_t head = 0; head < model.heads; ++head)
        x[row * width + head * model.headSize] = 2;
  }
  for (const int32_t position : positions)
    changeRow(steps, 1, position, [&](float *x) {
      for (int64_t head = 0; head < model.kvHeads; ++head)
        x[model.queryWidth() + head * model.headSize] = key;
    });
}

/// Steps that fill pages to their ends and beyond, of several sequences at a
/// time, and single rows behind them.
static std::vector<StepRows> mixedSteps() {
  return {{{0, 1}},
          {{0, 1}, {1, 1}},
          {{1, 62}, {2, 5}},
          {{0, 10}, {1, 5}, {2, 30}},
          {{0, 1}, {1, 1}, {2, 1}, {3, 1}},
          {{0, 9}, {1, 1}, {2, 11}, {3, 1}},
          {{1, 60}, {3, 2}},
          {{1, 1}}};
}

/// The cases of every model.
static void addExactAttention(std::vector<OpCase> &cases,
                              const std::shared_ptr<Program> &program) {
  const Model &model = program->model;
  const Project project = pickedRows(model);
  const bool small = model.queryWidth() < 100;
  auto add = [&](const std::string &what, const std::vector<Step> &steps) {
    cases.push_back(cacheCase(program->name + "_" + what, program, steps,
                              project, /*attends=*/true));
  };
  add("one_row", exactSteps(model, {{{2, 1}}}));
  add("mixed", exactSteps(model, mixedSteps()));
  const std::vector<StepRows> prompt = {{{0, 3}, {1, 130}}, {{1, 1}}, {{0, 1}}};
  add("prompt", exactSteps(model, prompt));
  // One key outweighs all others, for the rows that see it.
  for (const int32_t position : {0, 15, 63, 64, 127, 128, 129}) {
    if (!small && position != 64)
      continue;
    std::vector<Step> steps = exactSteps(model, prompt);
    setFirstElements(model, steps, {position}, 64);
    add(absl::StrCat("needle_at_", position), steps);
    cases.back().isVariant = true;
  }
  // A key whose score is minus infinity, where the cache holds no such number,
  // and very small elsewhere, has no weight.
  std::vector<Step> steps = exactSteps(model, prompt);
  setFirstElements(model, steps, {5, 64, 129}, -99840);
  add("key_below_range", steps);
  cases.back().isVariant = true;
}

/// Exponentials that are off by up to 9.5e-5 of themselves: the result by twice
/// that of the largest value at most.
static void addPolynomial(std::vector<OpCase> &cases, const Model &model) {
  const auto program = exactProgram(model, /*hasPolynomial=*/true);
  const std::vector<Step> steps =
      exactSteps(model, {{{3, 300}, {1, 70}}, {{3, 1}}, {{1, 1}, {3, 1}}});
  float largest = 0;
  for (const Step &step : steps)
    for (const float x : step.inputs.at("x"))
      largest = std::max(largest, std::abs(x));
  OpCase polynomial = cacheCase(program->name, program, steps,
                                pickedRows(model), /*attends=*/true);
  polynomial.expected = [=, exact =
                                polynomial.expected](const Numerics &numerics) {
    std::vector<std::vector<ExpectedRow>> results = exact(numerics);
    for (std::vector<ExpectedRow> &rows : results)
      for (ExpectedRow &row : rows)
        for (Expected &number : row)
          number.bound += 2 * 9.5e-5 / (1 - 9.5e-5) * largest;
    return results;
  };
  cases.push_back(std::move(polynomial));
}

/// Contexts of more keys than are merged at a time.
static void addLongAttention(std::vector<OpCase> &cases,
                             const std::shared_ptr<Program> &program) {
  const Model &model = program->model;
  const std::string name = program->name + "_long";
  const Project project = pickedRows(model);
  cases.push_back(cacheCase(name, program,
                            exactSteps(model, {{{3, 512}},
                                               {{3, 1}},
                                               {{3, 70}},
                                               {{3, 1}},
                                               {{3, 1}, {0, 1}, {2, 1}}}),
                            project, /*attends=*/true));
  // The keys that are merged first are all below the range of the cache, where
  // it has no such numbers; then the rows that see no others have no result.
  std::vector<Step> steps = exactSteps(model, {{{1, 131}}, {{1, 1}}});
  std::vector<int32_t> first(128);
  std::iota(first.begin(), first.end(), 0);
  setFirstElements(model, steps, first, -99840);
  OpCase below = cacheCase(name + "_keys_below_range", program, steps, project,
                           /*attends=*/true);
  below.expected = [plain = below.expected](const Numerics &numerics) {
    std::vector<std::vector<ExpectedRow>> results = plain(numerics);
    for (int row = 0; row < 128; ++row)
      for (Expected &number : results[0][row])
        number.isOpen = true;
    return results;
  };
  cases.push_back(std::move(below));
}

/// Sequences whose pages lie more than 2^32 bytes, and more than 2^31 elements,
/// apart.
static void addFarPages(std::vector<OpCase> &cases) {
  const Model model = {"far_h64", 8, 8, 64, int64_t{1} << 20};
  const auto program = exactProgram(model);
  cases.push_back(cacheCase(
      program->name + "_far", program,
      exactSteps(model,
                 {{{0, 40}, {1, 3}, {3, 70}}, {{0, 1}, {3, 1}}, {{1, 1}}}),
      pickedRows(model), /*attends=*/true));
  cases.back().isLarge = true;
}

/// A row of NaNs shows in itself and in the later rows of its sequence.
static void addNanRow(std::vector<OpCase> &cases,
                      const std::shared_ptr<Program> &program) {
  const Model &model = program->model;
  for (const int32_t position : {0, 70}) {
    std::vector<Step> steps = exactSteps(
        model,
        {{{0, 20}, {1, 80}, {2, 20}}, {{0, 1}, {1, 1}, {2, 1}}, {{1, 1}}});
    changeRow(steps, 1, position, [&](float *x) {
      std::fill_n(x, model.queryWidth() + 2 * model.kvWidth(), NAN);
    });
    OpCase nan = cacheCase(absl::StrCat(program->name, "_nan_at_", position),
                           program, steps, pickedRows(model), true);
    nan.expected = [=, plain = nan.expected](const Numerics &numerics) {
      std::vector<std::vector<ExpectedRow>> results = plain(numerics);
      for (int64_t row = 0; row < steps[0].rows(); ++row)
        if (numerics.joinsRows && steps[0].sequences[row] == 1 &&
            steps[0].positions[row] < position)
          for (Expected &number : results[0][row])
            number.isOpen = true;
      return results;
    };
    cases.push_back(std::move(nan));
  }
}

/// Windows that begin in every place of a page and of what is merged at a time,
/// and behind a row of NaNs, which no row shows any more that has left it
/// behind.
static void addWindows(std::vector<OpCase> &cases,
                       const std::shared_ptr<Program> &program) {
  const Model &model = program->model;
  const auto context = model.context > 500 ? 500 : 250;
  std::vector<Step> steps = exactSteps(
      model, {{{1, context}, {2, 3}}, {{1, 1}, {2, 1}}, {{1, 1}}, {{1, 20}}});
  cases.push_back(cacheCase(program->name + "_long", program, steps,
                            pickedRows(model), /*attends=*/true));
  changeRow(steps, 1, 30, [&](float *x) {
    std::fill_n(x, model.queryWidth() + 2 * model.kvWidth(), NAN);
  });
  OpCase nan = cacheCase(program->name + "_nan_behind", program, steps,
                         pickedRows(model), /*attends=*/true);
  nan.expected = [=, plain = nan.expected](const Numerics &numerics) {
    std::vector<std::vector<ExpectedRow>> results = plain(numerics);
    // A block has up to 128 rows of a sequence together.
    for (int64_t row = 0; row < steps[0].rows(); ++row)
      if (numerics.joinsRows && steps[0].sequences[row] == 1 &&
          std::abs(steps[0].positions[row] - 30) < 128 + model.window)
        for (Expected &number : results[0][row])
          number.isOpen = true;
    return results;
  };
  cases.push_back(std::move(nan));
}

//===----------------------------------------------------------------------===//
// Products and rotations before it
//===----------------------------------------------------------------------===//

static void addAppends(std::vector<OpCase> &cases, const Model &model,
                       int64_t norm = 0) {
  for (const bool attends : {false, true}) {
    const auto program = appendProgram(model, attends, norm);
    std::vector<Step> steps = stepsOf(mixedSteps());
    uint32_t seed = 71;
    for (Step &step : steps)
      for (const ProgramInput &input : program->inputs)
        step.inputs[input.name] =
            normalFloats(step.rows() * input.width, ++seed);
    cases.push_back(cacheCase(program->name + "_mixed", program, steps,
                              appendedRows(program), attends));
  }
}

/// The query, key and value, `part` 0 to 2, of rows of `width` under RMSNorm.
static std::shared_ptr<Program>
qkvProductsProgram(const std::array<DataType, 3> &types, int part,
                   int64_t width) {
  static constexpr const char *parts[] = {"query", "key", "value"};
  const std::string name = absl::StrCat("qkv_products_", parts[part], "_",
                                        dataTypeName(types[0]).data());
  auto program = std::make_shared<Program>();
  program->name = name;
  program->model = plainModel();
  program->inputs = {{"x", width}};
  program->weights = {randomMatrix("wq", types[0], 64, width),
                      randomMatrix("wk", types[1], 32, width),
                      randomMatrix("wv", types[2], 40, width),
                      vectorWeight("gain", normalFloats(width, 52))};
  program->outWidth = program->weights[part].rows;
  program->outType = rowsText(program->outWidth);
  std::string results, inputTypes = rowsText(width), resultTypes;
  for (int i = 0; i < 3; ++i) {
    absl::StrAppend(&results, i ? ", %" : "%", i == part ? "out" : parts[i]);
    absl::StrAppend(&resultTypes, i ? ", " : "",
                    rowsText(program->weights[i].rows));
  }
  for (const StoredWeight &weight : program->weights)
    absl::StrAppend(&inputTypes, ", ", typeText(weight));
  program->body = absl::StrCat(
      "  ", results,
      " = kernel.qkv_products %x, %wq, %wk, %wv norm(%gain) {eps = 1.0e-5 : "
      "f64} : (",
      inputTypes, ") -> (", resultTypes, ") loc(\"", name, "\")");
  return program;
}

static void addQkvProducts(std::vector<OpCase> &cases) {
  constexpr int64_t width = 96;
  // GPUs make the three as one stream where they have one type.
  for (const std::array<DataType, 3> &types :
       {std::array{DataType::BF16, DataType::BF16, DataType::BF16},
        std::array{DataType::Q8_0, DataType::BF16, DataType::F16}})
    for (int part = 0; part < 3; ++part) {
      const auto program = qkvProductsProgram(types, part, width);
      for (const int64_t rows : {1, 4, 12, 67}) {
        Step step = stepOf(rows);
        step.inputs["x"] = normalFloats(rows * width, 91, 3);
        cases.push_back(oneStep(
            absl::StrCat(program->name, "_r", rows), program, step,
            [=](const Numerics &numerics) {
              const Matrix weight(program->weights[part], numerics, rows);
              std::vector<ExpectedRow> expected;
              for (int64_t row = 0; row < rows; ++row)
                expected.push_back(weight.times(
                    normalised(rowOf(step.inputs.at("x"), row, width),
                               program->weight("gain").values(), normEps),
                    Activations::Normal));
              return expected;
            }));
      }
    }
}

static void addQkv(std::vector<OpCase> &cases, const Model &model,
                   bool biased) {
  for (const bool attends : {false, true}) {
    const auto program = qkvProgram(model, attends, biased);
    const Project project = projectedRows(program);
    auto stepsWith = [&](const std::vector<StepRows> &list) {
      std::vector<Step> steps = stepsOf(list);
      uint32_t seed = 81;
      for (Step &step : steps)
        step.inputs["x"] = normalFloats(step.rows() * 96, ++seed, 3);
      return steps;
    };
    auto add = [&](const std::string &what, const std::vector<Step> &steps) {
      cases.push_back(cacheCase(program->name + "_" + what, program, steps,
                                project, attends));
    };
    add("mixed", stepsWith(mixedSteps()));
    if (attends)
      continue;
    for (const float bad : {NAN, INFINITY}) {
      std::vector<Step> steps =
          stepsWith({{{0, 1}, {1, 2}}, {{0, 1}, {1, 66}}});
      for (Step &step : steps)
        step.inputs["x"][96 + 95] = bad; // Row 1, its last element.
      add(std::isnan(bad) ? "nan_row" : "inf_row", steps);
    }
  }
}

void addAttentionCases(std::vector<OpCase> &cases) {
  // Each head size has a group of its own kind; the products before attention
  // cost the square of the width, so heads are few.
  const Model models[] = {
      {"gqa2_h16", 4, 2, 16, 640},
      {"mqa8_h32", 8, 1, 32, 320, CacheFormat::BF16},
      {"gqa3_h48", 3, 1, 48, 320, CacheFormat::BF16},
      {"gqa2_h64", 2, 1, 64, 320},
      {"mha_h128", 1, 1, 128, 320},
      {"odd_h24", 3, 1, 24, 320},
      {"wide_h256", 1, 1, 256, 320},
      {"windowed_h16", 4, 2, 16, 640, CacheFormat::F16, 50},
      {"windowed_h64", 2, 1, 64, 320, CacheFormat::BF16, 70},
      {"windowed_h24", 3, 1, 24, 320, CacheFormat::F16, 2},
      {"windowed_q8", 4, 2, 32, 640, CacheFormat::Q8_0, 130},
      {"q8_h32", 4, 2, 32, 640, CacheFormat::Q8_0},
      {"q8_h48", 3, 1, 48, 320, CacheFormat::Q8_0, 70, 1, /*apart=*/true},
      {"fp8_h128", 1, 1, 128, 640, CacheFormat::FP8, 0, 1, /*apart=*/true},
  };
  const Model &q8 = models[11], &q8Apart = models[12], &fp8 = models[13];
  std::vector<std::shared_ptr<Program>> programs;
  for (const Model &model : models) {
    programs.push_back(exactProgram(model));
    addExactAttention(cases, programs.back());
  }
  for (const auto &program : {programs[0], programs[11], programs[13]}) {
    addLongAttention(cases, program);
    addNanRow(cases, program);
  }
  addNanRow(cases, programs[1]);
  addFarPages(cases);
  addPolynomial(cases, models[0]);
  for (const auto &program : programs)
    if (program->model.window)
      addWindows(cases, program);
  for (const bool biased : {false, true})
    addQkv(cases, models[0], biased);
  const Model apart = {"apart", 4, 2, 16, 320};
  addAppends(cases, apart);
  addAppends(cases, apart, /*norm=*/1);
  addAppends(cases, apart, /*norm=*/4);
  // Heads that are no whole vectors, and blocks of a cache in 8 bits.
  addAppends(cases, models[5], /*norm=*/1);
  addAppends(cases, q8, /*norm=*/1);
  addAppends(cases, q8Apart, /*norm=*/1);
  addAppends(cases, fp8, /*norm=*/1);
  addQkvProducts(cases);
}

} // namespace llamac::conformance
