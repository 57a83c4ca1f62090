//===- ToolVerbs.h - Verbs about the tool itself ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cache, doctor, completion and manual need no plan, and are the same in llamac
// and llamac-run.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_TOOLVERBS_H
#define LLAMAC_TOOLS_TOOLVERBS_H

#include "runtime/load/Devices.h"

#include "absl/status/status.h"
#include "absl/types/span.h"

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// A library and its version: {"LLVM", "19.1.7"}.
using LibraryVersion = std::pair<std::string, std::string>;

/// The devices and libraries that a tool has.
struct ToolParts {
  std::string name; ///< "llamac"
  /// Devices that it runs plans on.
  absl::Span<const DeviceKind> devices = runtimeDevices();
  /// Libraries of the compiler, where it has one; the runtime's are known.
  std::vector<LibraryVersion> compiler = {};
};

/// Their heading in help.
inline constexpr const char *toolVerbsHeading = "This installation";

/// Adds the verbs, and --version. The
/// outcome of the verb that is given is left in `status`, which outlives the
/// parse.
void addToolVerbs(CLI::App &app, const ToolParts &parts, absl::Status &status);

/// Every library of the tool, NVRTC with its version where one is found.
std::vector<LibraryVersion> libraryVersions(const ToolParts &parts);

/// 16 hexadecimal digits, see BuildId.h.
std::string toolBuildId();

// The single verbs.
void addCacheCommand(CLI::App &app, absl::Status &status);
void addDoctorCommand(CLI::App &app, const ToolParts &parts,
                      absl::Status &status);

} // namespace llamac

#endif // LLAMAC_TOOLS_TOOLVERBS_H
