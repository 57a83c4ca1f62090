//===- TuneCommand.cpp - The verb tune ------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tools/TuneCommand.h"
#include "compiler/driver/KernelVariants.h"
#include "compiler/llamac/ModelCommand.h"
#include "runtime/base/Status.h"
#include "runtime/tools/CommandLine.h"

namespace llamac {

void addTuneCommand(CLI::App &app, absl::Status &status) {
  struct Command : ModelCommand {
    TuneCommandOptions options;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = command->addVerb(
      app, "tune", "Find the fastest configs for this machine and keep them",
      /*isRequired=*/false);
  addTuneOptions(*verb, command->options);
  command->addCommonOptions(*verb, "  llamac tune model.gguf --budget 60\n"
                                   "  llamac tune --export tuned.json");
  verb->callback([command, &status] {
    status = [&]() -> absl::Status {
      command->runtime.tuned = false;
      command->options.quiet = command->compile.quiet;
      const ClangVariantCompiler compiler;
      return tuneCommand(
          [&]() -> absl::StatusOr<std::shared_ptr<const Model>> {
            if (command->model.empty())
              return nullptr;
            return command->load(command->compile.quiet);
          },
          command->options, &compiler, stdout);
    }();
  });
}

} // namespace llamac
