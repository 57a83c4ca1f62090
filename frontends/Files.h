//===- Files.h - Small helpers over files and directories ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_FILES_H
#define LLAMAC_FRONTENDS_FILES_H

#include "frontends/Checkpoint.h"
#include "runtime/io/JsonReader.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace llamac {

/// `directory`/`name`.
std::string joinPath(absl::string_view directory, absl::string_view name);

bool fileExists(const std::string &path);
bool isDirectory(const std::string &path);

/// Names of the files in `directory` that start and end as given, sorted.
absl::StatusOr<std::vector<std::string>> listFiles(const std::string &directory,
                                                   absl::string_view prefix,
                                                   absl::string_view suffix);

/// The last part of `path`, without trailing slashes.
std::string baseName(absl::string_view path);

/// `value` as JSON, quoted for a message; a string as it is.
std::string jsonForMessage(const nlohmann::json &value);

/// Maps and parses the configuration file at `path`, and remembers it among the
/// checkpoint's.
absl::StatusOr<JsonDocument> readConfigFile(const std::string &path,
                                            Checkpoint &checkpoint);

/// Reads generation_config.json of `directory`, where there is one, for end and
/// start tokens and sampling defaults.
absl::Status readGenerationConfig(const std::string &directory,
                                  Checkpoint &checkpoint);

/// Finds tokenizer.model or tokenizer.json in `directory`.
absl::Status findTokenizer(const std::string &directory,
                           Checkpoint &checkpoint);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_FILES_H
