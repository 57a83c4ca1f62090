//===- PulledNames.h - Names of pulled models -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `llamac pull` puts each model into a folder of its own below the models'
// folder, whose path there is the model's name. The folder appears there by one
// rename, when all of its files are complete.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_PULLEDNAMES_H
#define LLAMAC_FRONTENDS_PULLEDNAMES_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// The file of a pulled model's folder that says what the model is made of. A
/// folder without it is no model.
inline constexpr absl::string_view pulledManifest = ".pulled.json";

/// LLAMAC_MODELS, else llamac/models of XDG_DATA_HOME, else of ~/.local/share;
/// it may not be there. Usage error when the environment names none.
absl::StatusOr<std::string> modelsFolder();

/// "OWNER/REPO", "OWNER/REPO@REVISION", "OWNER/REPO:FILE" or all of it.
struct RepositoryName {
  std::string repository; ///< "OWNER/REPO"
  std::string revision;   ///< A branch, tag or commit; empty: the main branch.
  /// The name of a .gguf file, or its end, such as Q4_K_M; empty: none.
  std::string file;

  /// The parts of `text`; none where it is no such name. No name leads out of
  /// the folder that it is looked for in.
  static std::optional<RepositoryName> parse(absl::string_view text);
  std::string text() const;
};

/// Whether `text` is one part of such a name: letters, digits and "._-", but no
/// ".", ".." or hidden file.
bool isNamePart(absl::string_view text);

/// The name of the .gguf file `file` without its folder and suffix, and without
/// the number of the part, of a model in several files.
std::string ggufStem(absl::string_view file);

/// Whether `asked`, the file of a RepositoryName, stands for the .gguf file
/// `file`. Case does not count.
bool meansGguf(absl::string_view asked, absl::string_view file);

/// The names of all pulled models, sorted.
std::vector<std::string> pulledNames();

/// The folder of the pulled model `name`; none where there is no such model.
std::optional<std::string> findPulled(absl::string_view name);

/// Where the model `given` is: there itself when it is the path of something,
/// else the folder of the pulled model of this name. Bad file where `given` may
/// be a name, but is neither.
absl::StatusOr<std::string> modelPath(absl::string_view given);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_PULLEDNAMES_H
