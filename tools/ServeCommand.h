//===- ServeCommand.h - Serves models over HTTP -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_SERVECOMMAND_H
#define LLAMAC_TOOLS_SERVECOMMAND_H

#include "engine/scheduler/Scheduler.h"
#include "engine/step/Model.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

struct ServeOptions {
  /// Paths, each with the name that clients know it by if it is another than
  /// the file's: "NAME=PATH".
  std::vector<std::string> models;
  std::string host = "127.0.0.1";
  uint16_t port = 8080;         ///< 0: a free one.
  std::string certificate, key; ///< Files, for TLS.
  std::string keyFile;          ///< A line for each key.
  bool authenticates = true;    ///< Or a public address needs no key.
  std::vector<std::string> origins;
  /// Answers that run at once, of each model; 0: `hostParallel`, or what fills
  /// a GPU.
  int64_t parallel = 0;
  static constexpr int64_t hostParallel = 8;
  int64_t maxQueue = 256;      ///< And that wait.
  std::string chatTemplate;    ///< A file; empty: the models' own.
  std::string accessLog = "-"; ///< A file; "-": stderr; empty: none.
  int64_t drainSeconds = 300;  ///< Time for answers after SIGTERM.
  SchedulerOptions scheduler;
};

/// Has models loaded for as many answers as run at once, which share pages.
void loadFor(const ServeOptions &options, ModelOptions &loading);

/// Before models are loaded: usage error for options that do not go together.
absl::Status checkServe(const ServeOptions &options);

/// Serves until SIGTERM or SIGINT came and what ran has ended; a second signal
/// ends that, too. `load` loads the model at a path. `listening on URL` goes to
/// `log` when requests are taken. Errors: those of checkServe(), of loading and
/// of the network.
absl::Status
serveCommand(const ServeOptions &options,
             absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Model>>(
                 const std::string &path)>
                 load,
             std::FILE *log);

} // namespace llamac

#endif // LLAMAC_TOOLS_SERVECOMMAND_H
