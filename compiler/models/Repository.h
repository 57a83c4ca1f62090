//===- Repository.h - What a repository of models holds ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The listing of a repository comes from a server, which may be hostile, as may
// be whoever owns the repository: a name in it is used only when it stays
// within the model's folder, and a size only with a checksum.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_MODELS_REPOSITORY_H
#define LLAMAC_COMPILER_MODELS_REPOSITORY_H

#include "compiler/models/Library.h"
#include "frontends/PulledNames.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace llamac {

/// A commit of a repository. Names of files are those in the repository.
struct RepositoryListing {
  std::string commit;
  std::vector<PulledFile> files;
};

/// The listing in `text`, an answer of the server about `name`. Bad file for
/// one that is malformed, or names files outside a folder.
absl::StatusOr<RepositoryListing> parseListing(const RepositoryName &name,
                                               absl::string_view text);

/// A file in a repository, and the same as it is stored.
struct ChosenFile {
  std::string path; ///< Its name in the repository.
  PulledFile stored;
  bool isWeights = false;
};

/// The files of one model, its weights last.
struct ChosenFiles {
  RepositoryName name; ///< The name that the model gets.
  std::vector<ChosenFile> files = {};
};

/// The files that the model `name` needs: those of a .gguf file where the name
/// or the repository has no other, else Hugging Face's, else Meta's. Errors:
/// usage where the name leaves open which .gguf file, with the choices; bad
/// file where there is no model.
absl::StatusOr<ChosenFiles> chooseFiles(const RepositoryName &name,
                                        const RepositoryListing &listing);

} // namespace llamac

#endif // LLAMAC_COMPILER_MODELS_REPOSITORY_H
