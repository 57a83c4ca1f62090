//===- LogitsCommand.h - Writes logits to a file ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_LOGITSCOMMAND_H
#define LLAMAC_TOOLS_LOGITSCOMMAND_H

#include "engine/step/Engine.h"
#include "runtime/io/AtomicFile.h"

#include <memory>
#include <string>
#include <utility>

namespace llamac {

/// A float32 matrix in NumPy's .npy format (version 1.0), written row by row.
/// It is put in place whole, or not at all.
class NpyWriter {
public:
  /// Starts a matrix [rows, cols] that finish() puts at `path`; what is no
  /// regular file, such as /dev/stdout, is written to as it is. Usage error
  /// when it cannot be written.
  static absl::StatusOr<NpyWriter> create(const std::string &path, int64_t rows,
                                          int64_t cols);

  /// The next row's values. Memory error when the disk is full.
  absl::Status writeRow(absl::Span<const float> values);

  /// After the last row.
  absl::Status finish() { return file->commit(); }

private:
  explicit NpyWriter(std::unique_ptr<AtomicFile> file)
      : file(std::move(file)) {}

  std::unique_ptr<AtomicFile> file;
};

struct LogitsOptions {
  std::string tokens; ///< Ids: "1,2,3".
  std::string output; ///< A .npy file.
  /// Tokens of one step at most, so that a prompt is taken in pieces; 0 for as
  /// many as the plan's programs hold.
  int64_t chunk = 0;
  bool batchInvariant = false; ///< EngineOptions.
};

/// Writes the logits that follow each token, float32 [tokens, vocabulary].
absl::Status logitsCommand(const std::shared_ptr<const Model> &model,
                           const LogitsOptions &options);

} // namespace llamac

#endif // LLAMAC_TOOLS_LOGITSCOMMAND_H
