//===- Library.h - The pulled models ----------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_MODELS_LIBRARY_H
#define LLAMAC_COMPILER_MODELS_LIBRARY_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

/// A file of a pulled model, and what is known of its contents.
struct PulledFile {
  std::string name; ///< Relative to the model's folder.
  uint64_t size = 0;
  std::string sha256 = {};  ///< In hexadecimal digits; empty: unknown.
  std::string gitSha1 = {}; ///< Git's SHA-1 of a blob; or empty.
  std::string etag = {};    ///< The server's name of its version; or empty.

  friend bool operator==(const PulledFile &, const PulledFile &) = default;
};

/// A pulled model, as its manifest describes it.
struct PulledModel {
  std::string name;
  std::string source;   ///< The URL of the repository or file.
  std::string revision; ///< The commit; empty for a file.
  int64_t pulled = 0;   ///< When its last file came, in seconds since 1970.
  std::vector<PulledFile> files;

  uint64_t bytes() const;
  std::string describeSize() const; ///< "4.1 GiB in 5 files"
  /// "gguf", "meta" or "huggingface".
  absl::string_view format() const;
};

/// The model in `folder`; bad file where there is none.
absl::StatusOr<PulledModel> readManifest(const std::string &folder);
absl::Status writeManifest(const PulledModel &model, const std::string &folder);

/// All pulled models, by their names.
absl::StatusOr<std::vector<PulledModel>> pulledModels();

/// Where the files of the model `name` are until all are there.
absl::StatusOr<std::string> partialFolder(absl::string_view name);

/// Removes folders between the models' folder and `folder` that are empty.
void removeEmptyAbove(const std::string &folder);

/// Removes `folder`, which is within the models' folder, and
/// removeEmptyAbove(). Usage error where a link leads out of it.
absl::Status removeModelFolder(const std::string &folder);

struct RemovedModel {
  std::string name;
  uint64_t bytes = 0;
};

/// Removes the model `name`, or what was pulled of it. Bad file where there is
/// no such model.
absl::StatusOr<RemovedModel> removePulled(const std::string &name);

} // namespace llamac

#endif // LLAMAC_COMPILER_MODELS_LIBRARY_H
