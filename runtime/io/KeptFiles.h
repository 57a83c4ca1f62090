//===- KeptFiles.h - What can be made again, kept on disk -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder of files that are named by a hash of all that decides what is in
// them: compiled kernels, each so many bytes and a hash of them. A file that is
// damaged counts as none; one that nobody has asked for in 30 days goes.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_KEPTFILES_H
#define LLAMAC_RUNTIME_IO_KEPTFILES_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// 32 hexadecimal digits that name what `parts` decide.
std::string keyOf(const std::vector<absl::string_view> &parts);

/// Removes the files of `folder` with this extension (".plan") that were not
/// written or found in the last 30 days.
void removeUnusedFiles(const std::string &folder, absl::string_view extension);

class KeptFiles {
public:
  /// Those in `folder`, which exists, whose names end in `extension`.
  KeptFiles(std::string folder, std::string extension)
      : folder(std::move(folder)), extension(std::move(extension)) {}

  /// What was kept under `key`; none when there is nothing, or it is damaged.
  std::optional<std::string> find(const std::string &key) const;

  /// Keeps `bytes`. An error says why that cannot be; nothing else is lost.
  absl::Status keep(const std::string &key, absl::string_view bytes) const;

private:
  std::string pathOf(const std::string &key) const;

  std::string folder, extension;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_KEPTFILES_H
