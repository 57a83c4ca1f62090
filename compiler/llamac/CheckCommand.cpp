//===- CheckCommand.cpp - llamac check --------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/driver/Check.h"
#include "compiler/llamac/Commands.h"
#include "runtime/base/Status.h"
#include "runtime/tools/RunCommand.h"

#include "absl/strings/str_cat.h"

#include <cstdio>

namespace llamac {

namespace {

struct CheckCommand {
  CompileFlags flags;
  CheckOptions options;
  std::string model, tokens;

  absl::Status run() {
    if (!(options.tolerance > 0) || !(options.targetTolerance > 0))
      return usageError("check: expected tolerances above 0");
    LLAMAC_ASSIGN_OR_RETURN(const CompileOptions compileOptions, flags.parse());
    if (!tokens.empty()) {
      LLAMAC_ASSIGN_OR_RETURN(options.tokens, parseTokenIds(tokens));
    }
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openCheckpoint(model));
    LLAMAC_ASSIGN_OR_RETURN(const CheckReport report,
                            checkModel(checkpoint, compileOptions, options));
    print(report);
    for (const CheckedStep &step : report.steps)
      if (!step.passed())
        return accuracyError(verdict(step, report.culprit));
    return absl::OkStatus();
  }

  static void print(const CheckReport &report) {
    std::printf("%-22s %10s %10s  %-7s %s\n", "pass or target", "nmse", "max",
                "verdict", "worst at");
    for (const CheckedStep &step : report.steps)
      std::printf("%-22s %10.2e %10.2e  %-7s %s\n", step.name.c_str(),
                  step.difference.nmse, step.difference.maximum,
                  step.passed() ? "ok" : "WRONG", step.where.c_str());
    if (!report.culprit)
      return;
    for (const std::string &file : report.culprit->files)
      std::printf("wrote %s\n", file.c_str());
  }

  /// One line: what is wrong, and the first op of it when that is known.
  static std::string verdict(const CheckedStep &step,
                             const std::optional<Culprit> &culprit) {
    std::string text =
        absl::StrCat(step.name,
                     " is the first to leave the tolerance: expected a "
                     "normalised mean squared error of at most ",
                     step.tolerance, ", got ", step.difference.nmse);
    if (!culprit)
      return text;
    if (culprit->op.empty())
      return absl::StrCat(text, "; no op that has a name before and after the "
                                "pass differs");
    absl::StrAppend(&text, "; the first wrong op is ", culprit->op, " at ",
                    culprit->location);
    if (culprit->layer)
      absl::StrAppend(&text, " (layer ", *culprit->layer, ")");
    return absl::StrCat(text, " with ", culprit->difference.nmse);
  }
};

} // namespace

void addCheckCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<CheckCommand>();
  CLI::App *verb = app.add_subcommand(
      "check", "Compare every pass and target with the reference");
  verb->add_option("model", command->model, "A model directory or .gguf file")
      ->required();
  command->flags.addTo(*verb);
  verb->add_option("--tokens", command->tokens,
                   "Ids to compute logits of: 1,2,3 (default: 24 of the "
                   "vocabulary)");
  verb->add_option("--tolerance", command->options.tolerance,
                   "Normalised mean squared error a pass may cause");
  verb->add_option("--target-tolerance", command->options.targetTolerance,
                   "Normalised mean squared error a target may have");
  verb->add_flag("--bisect", command->options.bisect,
                 "Find the first wrong op of the first wrong pass, and write "
                 "the module before it and the op's inputs");
  verb->add_option("--reproducer", command->options.reproducerFolder,
                   "Folder for what --bisect writes");
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
