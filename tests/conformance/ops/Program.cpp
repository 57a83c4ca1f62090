//===- Program.cpp - One op, or a few, as a step of a model ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Program.h"

#include "tests/codegen/cpu_kernels/Oracle.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <functional>
#include <numeric>
#include <random>

namespace llamac::conformance {

std::vector<double> StoredWeight::values() const {
  std::vector<double> all;
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<double> values = oracle::dequantizeRow(
        type, cols, bytes.data() + row * dataTypeBytes(type, cols));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

StoredWeight randomMatrix(const std::string &name, DataType type, int64_t rows,
                          int64_t cols) {
  std::mt19937 random(static_cast<uint32_t>(rows * 7919 + cols * 31) +
                      static_cast<uint32_t>(name.back()));
  return {name, type,  rows,
          cols, false, oracle::randomWeights(type, rows, cols, random)};
}

StoredWeight vectorWeight(const std::string &name,
                          const std::vector<float> &values) {
  StoredWeight weight{
      name, DataType::F32, 1, static_cast<int64_t>(values.size()), true, {}};
  weight.bytes.resize(values.size() * sizeof(float));
  std::memcpy(weight.bytes.data(), values.data(), weight.bytes.size());
  return weight;
}

const StoredWeight &Program::weight(const std::string &weightName) const {
  for (const StoredWeight &weight : weights)
    if (weight.name == weightName)
      return weight;
  std::abort(); // A case names its own weights.
}

Step stepOf(int64_t rows) {
  Step step;
  step.tokens.resize(rows);
  std::iota(step.tokens.begin(), step.tokens.end(), 0);
  step.positions = step.tokens;
  step.sequences.resize(rows);
  return step;
}

/// The name of an element's type in the IR.
static std::string elementText(DataType type) {
  const std::string name(dataTypeName(type));
  return dataTypeInfo(type).blockElements == 1
             ? name
             : absl::StrCat("!llama.quant<", name, ">");
}

std::string typeText(const StoredWeight &weight) {
  const std::string rows =
      weight.isVector ? "" : absl::StrCat(weight.rows / weight.parts, "x");
  return absl::StrCat("tensor<", rows, weight.cols, "x",
                      elementText(weight.type), ">");
}

std::string rowsText(int64_t width) {
  return absl::StrCat("tensor<?x", width, "xf32>");
}

/// The text after the name of a weight, by which a rank knows its part.
static std::string shardText(const StoredWeight &weight) {
  return weight.parts == 1
             ? ""
             : absl::StrCat(" {shard = #llama.shard<dim = 0, parts = ",
                            weight.parts, ", ranks = ", weight.parts, ">}");
}

/// An argument with its role in a step.
static std::string roleText(const char *name, const std::string &type,
                            const char *role) {
  return absl::StrCat("%", name, ": ", type, " {llama.role = #llama.role<",
                      role, ">}");
}

std::string functionText(const Program &program, const std::string &function,
                         int64_t maxRows, int64_t maxWanted, InputsAs inputs) {
  const Model &model = program.model;
  const std::string kv = absl::StrCat("!llama.kv<heads = ", model.kvHeads,
                                      ", size = ", model.headSize, ">");
  std::string text =
      absl::StrCat("func.func @", function, "(",
                   roleText("tokens", "tensor<?xi32>", "tokens"), ", ",
                   roleText("positions", "tensor<?xi32>", "positions"), ", ",
                   roleText("sequences", "tensor<?xi32>", "sequences"), ", ",
                   roleText("wanted", "tensor<?xi32>", "logits_rows"), ", ",
                   roleText("kv", kv, "kv, layer = 0"));
  if (model.ranks > 1)
    text += ", " + roleText("rank", "tensor<1xi32>", "rank");
  if (program.samples)
    text += ", " + roleText("draws", "tensor<?x4xi32>", "sampling_params");
  if (inputs == InputsAs::Arguments)
    for (const ProgramInput &input : program.inputs)
      absl::StrAppend(&text, ", %", input.name, ": ", rowsText(input.width));
  absl::StrAppend(&text, ") -> (", program.outType, ", ", kv,
                  program.samples ? ", tensor<?xi32>" : "",
                  ") attributes {llamac.max_rows = ", maxRows,
                  " : i64, llamac.max_logits_rows = ", maxWanted,
                  " : i64} {\n");
  for (const StoredWeight &weight : program.weights)
    absl::StrAppend(&text, "  %", weight.name, " = llama.weight \"",
                    program.weightName(weight), "\"", shardText(weight), " : ",
                    typeText(weight), "\n");
  if (inputs == InputsAs::Launches)
    for (const ProgramInput &input : program.inputs) {
      const std::string table = absl::StrCat("tensor<1x", input.width, "xf32>");
      absl::StrAppend(
          &text, "  %", input.name, "_table = llama.weight \"input.",
          input.name, "\" : ", table, "\n  %", input.name,
          " = kernel.embed %tokens, %", input.name, "_table : (tensor<?xi32>, ",
          table, ") -> ", rowsText(input.width), " loc(\"input.", input.name,
          "\")\n");
    }
  absl::StrAppend(&text, program.body, "\n  return %out, ",
                  program.appends ? "%newKv" : "%kv",
                  program.samples ? ", %chosen" : "", " : ", program.outType,
                  ", ", kv, program.samples ? ", tensor<?xi32>" : "", "\n}\n");
  // Written out, so that functions of several models parse alike.
  for (size_t at = 0; (at = text.find("!kv", at)) != std::string::npos;)
    text.replace(at, 3, kv);
  return text;
}

} // namespace llamac::conformance
