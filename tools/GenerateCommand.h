//===- GenerateCommand.h - Answers a file of requests -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_GENERATECOMMAND_H
#define LLAMAC_TOOLS_GENERATECOMMAND_H

#include "engine/scheduler/Scheduler.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace llamac {

struct GenerateCommandOptions {
  std::string prompts; ///< A file of requests, a line each; "-": stdin.
  std::string output;  ///< A file of answers, a line each; "-": stdout.
  /// Sequences that run together; 0: `hostParallel`, or what fills a GPU.
  int64_t parallel = 0;
  static constexpr int64_t hostParallel = 16;
  int64_t maxTokens = 128; ///< The default of an answer.
  SchedulerOptions scheduler = {};
  /// Whether answers that the output has already are done without.
  bool overwrite = false;
  bool printIds = false; ///< Answers have no text.
  bool json = false;     ///< The summary is JSON, on stdout.
  bool quiet = false;    ///< No progress and no summary.
  bool strict = false;   ///< A wrong request is an error in the end.
};

/// Has a model loaded for as many sequences as run at once, which share pages.
void loadFor(const GenerateCommandOptions &options, ModelOptions &loading);

/// Before a model is loaded: usage error for options that do not go together,
/// or that of a file of requests that cannot be read.
absl::Status checkGenerate(const GenerateCommandOptions &options);

/// Answers the requests of a file in any order, as docs/generate.md has it, and
/// appends each answer to the output as it ends; requests whose answers are
/// there already are passed over. Where an answer there is to another request
/// of the same id, or of another model, that is a usage error. A request that
/// is wrong has an error for an answer. At an interrupt it says how to go on
/// and ends as the signal does.
///
/// `out` gets answers or a summary where they go to stdout, `log` the summary
/// for people. Errors: usage for options that do not go together, text without
/// a tokenizer, an output that is not one of this command, or a wrong request
/// where `strict` is set; those of the files and of the device.
absl::Status generateCommand(const std::shared_ptr<const Model> &model,
                             const GenerateCommandOptions &options,
                             std::FILE *out, std::FILE *log);

} // namespace llamac

#endif // LLAMAC_TOOLS_GENERATECOMMAND_H
