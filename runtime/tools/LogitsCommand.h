//===- LogitsCommand.h - Writes logits to a file ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TOOLS_LOGITSCOMMAND_H
#define LLAMAC_RUNTIME_TOOLS_LOGITSCOMMAND_H

#include "runtime/engine/Engine.h"

#include <cstdio>
#include <string>

namespace llamac {

/// A float32 matrix in NumPy's .npy format (version 1.0), written row by row.
class NpyWriter {
public:
  /// Creates `path` for a matrix [rows, cols]. Usage error when it cannot.
  static absl::StatusOr<NpyWriter> create(const std::string &path, int64_t rows,
                                          int64_t cols);

  NpyWriter(NpyWriter &&other) noexcept;
  NpyWriter &operator=(NpyWriter &&) = delete;
  ~NpyWriter();

  /// The next row's values. Memory error when the disk is full.
  absl::Status writeRow(absl::Span<const float> values);

  /// After the last row.
  absl::Status finish();

private:
  NpyWriter(std::FILE *file, std::string path)
      : file(file), path(std::move(path)) {}
  absl::Status failure() const;

  std::FILE *file;
  std::string path;
};

struct LogitsOptions {
  std::string tokens; ///< Ids: "1,2,3".
  std::string output; ///< A .npy file.
  /// Tokens of one step at most, so that a prompt is taken in pieces; 0 for as
  /// many as the plan's programs hold.
  int64_t chunk = 0;
};

/// Writes the logits that follow each token, float32 [tokens, vocabulary].
absl::Status logitsCommand(const std::shared_ptr<const Model> &model,
                           const LogitsOptions &options);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TOOLS_LOGITSCOMMAND_H
