//===- GgufParts.h - A model in one or several GGUF files ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model in several files has NAME-00001-of-0000N.gguf to
// NAME-0000N-of-0000N.gguf. Each has split.no, its number from 0 on,
// split.count, that of files, and split.tensors.count, that of all tensors.
// The first has the metadata of the model.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_GGUF_GGUFPARTS_H
#define LLAMAC_FRONTENDS_GGUF_GGUFPARTS_H

#include "frontends/gguf/GgufReader.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// The files of a model, of which the first has the metadata.
class GgufParts {
public:
  /// Opens the file at `path` and, where it is the first of several, those
  /// beside it. Errors: another part than the first; a part that is missing,
  /// has another number or is another model's; a tensor in two of them, or one
  /// that is missing.
  static absl::StatusOr<GgufParts> open(const std::string &path);

  const std::shared_ptr<const GgufReader> &first() const { return parts[0]; }
  const std::vector<std::shared_ptr<const GgufReader>> &all() const {
    return parts;
  }

  struct Found {
    const StoredTensor *tensor = nullptr; ///< Null: there is none.
    const GgufReader *file = nullptr;
  };
  Found findTensor(absl::string_view name) const;

private:
  absl::Status addPart(const std::string &path, int64_t number, int64_t count);
  absl::Status checkTensors() const;

  std::vector<std::shared_ptr<const GgufReader>> parts;
};

/// The first of the file names `names` when they are the parts of one model,
/// whether or not all are there.
std::optional<std::string> firstPart(const std::vector<std::string> &names);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_GGUF_GGUFPARTS_H
