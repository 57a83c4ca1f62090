//===- Program.h - One op, or a few, as a step of a model -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case of the suite runs a program: the kernel ops of one step, written as
// IR. What an op reads besides weights, the cache and the indices of the step
// is an input of the program, which a test fills.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_PROGRAM_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_PROGRAM_H

#include "engine/sampling/Sampler.h"
#include "runtime/base/DataType.h"
#include "runtime/base/ModelConfig.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llamac::conformance {

/// How a cache holds keys and values, where a device can choose; else in fp16.
enum class CacheFormat { F16, BF16, Q8_0, FP8 };

/// Programs share the layout of the cache. Programs of one model are compiled
/// together.
struct Model {
  std::string name;
  int64_t heads;
  int64_t kvHeads;
  int64_t headSize;
  int64_t context; ///< Tokens of a sequence.
  CacheFormat cache = CacheFormat::F16;
  int64_t window = 0; ///< Keys that a row sees, its own included; 0: all.
  int64_t ranks = 1;  ///< Ranks that run its programs, each on all of the
                      ///< inputs.
  bool apart = false; ///< Whether rows are appended behind their products, as
                      ///< a device needs it that rounds whole heads.

  int64_t queryWidth() const { return heads * headSize; }
  int64_t kvWidth() const { return kvHeads * headSize; }
  int64_t group() const { return heads / kvHeads; }
};

/// Sequences that a device keeps at a time.
inline constexpr int64_t maxSequences = 4;

/// A weight as it is stored: rows x cols of `type`, row-major. A vector, which
/// is f32, has `isVector` and one row. Its rows may be in parts of as many
/// ranks as it has `parts`.
struct StoredWeight {
  std::string name; ///< In its program.
  DataType type;
  int64_t rows;
  int64_t cols;
  bool isVector = false;
  std::vector<uint8_t> bytes;
  int64_t parts = 1;

  /// The values by GGUF's definition of the type.
  std::vector<double> values() const;
};

/// A matrix of random weights.
StoredWeight randomMatrix(const std::string &name, DataType type, int64_t rows,
                          int64_t cols);

/// A vector of f32.
StoredWeight vectorWeight(const std::string &name,
                          const std::vector<float> &values);

/// A tensor f32 [rows, width].
struct ProgramInput {
  std::string name;
  int64_t width;
};

struct Program {
  std::string name; ///< A name that no other program has.
  Model model;
  std::vector<ProgramInput> inputs;
  std::vector<StoredWeight> weights;
  /// Kernel ops on %tokens, %positions, %sequences, %wanted, %kv, the inputs
  /// and the weights by their names, and %rank where there are several. They
  /// define %out, and %newKv where `appends` is set. !kv is the cache's type.
  std::string body;
  std::string outType;  ///< Type of %out: "tensor<?x64xf32>".
  int64_t outWidth;     ///< Its numbers in a row.
  bool appends = false; ///< Whether the cache is changed.
  /// Whether the body gives %tokens, chosen by %draws; they are the result
  /// then, one number a row, and %out is their logits.
  bool samples = false;
  bool wanted = false; ///< Whether rows of %out are the logits rows.

  /// The name of a weight in the whole model.
  std::string weightName(const StoredWeight &weight) const {
    return name + "." + weight.name;
  }
  const StoredWeight &weight(const std::string &weightName) const;
};

/// The row counts of a step and what the program's inputs hold in it.
struct Step {
  std::vector<int32_t> tokens, positions, sequences;
  std::vector<int32_t> wanted;       ///< Rows.
  std::vector<SamplingParams> draws; ///< Sampling params of the logits rows.
  std::map<std::string, std::vector<float>> inputs;

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
};

/// A step of `rows` rows of sequence 0, from position 0, of token r in row r.
Step stepOf(int64_t rows);

/// "tensor<66x72xbf16>", as IR names the type of a weight.
std::string typeText(const StoredWeight &weight);

/// "tensor<?x72xf32>".
std::string rowsText(int64_t width);

/// How a function gives the inputs of its program.
enum class InputsAs {
  Arguments, ///< Behind the step's own five.
  Launches,  ///< kernel.embed at "input.NAME", whose results they are.
};

/// The function @`function` that does what `program` says for at most `maxRows`
/// rows, of which `maxWanted` are logits rows, in text.
std::string functionText(const Program &program, const std::string &function,
                         int64_t maxRows, int64_t maxWanted, InputsAs inputs);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_PROGRAM_H
