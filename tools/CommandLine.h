//===- CommandLine.h - Options that the tools share -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_COMMANDLINE_H
#define LLAMAC_TOOLS_COMMANDLINE_H

#include "tools/BenchCommand.h"
#include "tools/ChatCommand.h"
#include "tools/GenerateCommand.h"
#include "tools/LogitsCommand.h"
#include "tools/PerplexityCommand.h"
#include "tools/RunCommand.h"
#include "tools/ServeCommand.h"
#include "tools/TuneCommand.h"

#include "absl/functional/function_ref.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <type_traits>

namespace llamac {

/// Makes `option`, each time that it is given, take one value: the parser lets
/// one of several values take all arguments up to the next option.
inline CLI::Option *takeOneValue(CLI::Option *option) {
  return option->allow_extra_args(false);
}

/// Takes a file to write in a folder that is there: a mistake is told before
/// any work. "-" is none, as what is written so is not for stdout.
CLI::Validator outputFile();

/// Options under one heading of a verb's help.
struct OptionGroup {
  CLI::App &app;
  std::string heading = "Options";

  /// An option with a value of `type`: "FILE".
  template <typename Value>
  CLI::Option *add(const std::string &names, Value &value,
                   const std::string &type, const std::string &text) const {
    CLI::Option *option =
        app.add_option(names, value, text)->type_name(type)->group(heading);
    return option->get_positional() ? option : takeOneValue(option);
  }
  /// An option with a value, whose help shows the default.
  template <typename Value>
  CLI::Option *addDefault(const std::string &names, Value &value,
                          const std::string &type,
                          const std::string &text) const {
    return add(names, value, type, text)->capture_default_str();
  }
  /// One that may be given more than once, each time with a value.
  CLI::Option *addRepeated(const std::string &names,
                           std::vector<std::string> &values,
                           const std::string &type,
                           const std::string &text) const {
    return add(names, values, type, text + "; may be given more than once");
  }
  CLI::Option *addFlag(const std::string &names, bool &value,
                       const std::string &text) const {
    return app.add_flag(names, value, text)->group(heading);
  }
};

/// Adds the argument that names a model or, by the name PLAN, a plan, once or
/// more often; other programs have it as an option.
template <typename Value>
CLI::Option *addModelArgument(CLI::App &app, Value &value,
                              const std::string &text,
                              const std::string &name = "MODEL") {
  return OptionGroup{app, "Model"}
      .add(name + ",-m,--model", value, name, text)
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

/// Tokens that a context may be asked to hold.
inline constexpr int64_t mostTokens = int64_t{1} << 20;

/// How a tool loads the plan that it runs.
struct LoadOptions : ModelOptions {
  bool verbose = false; ///< Whether printLoaded() is due.
};

/// One line on stderr: what `model` is, what runs it, and where the time of its
/// loading went.
void printLoaded(const Model &model);

// Each declares the flags of one structure, with its defaults; where the plan
// or model comes from is the tool's own.
/// Last of a verb's, as --quiet may be the verb's own.
void addModelOptions(CLI::App &app, LoadOptions &options);
/// Only verbs whose answers are the model's own have this.
template <typename Options>
inline constexpr bool answersRequests =
    std::is_same_v<Options, RunOptions> ||
    std::is_same_v<Options, BenchOptions> ||
    std::is_same_v<Options, ChatCommandOptions> ||
    std::is_same_v<Options, GenerateCommandOptions> ||
    std::is_same_v<Options, ServeOptions>;
void addDraftOption(CLI::App &app, LoadOptions &options);
/// Only tools whose ranks may be processes have these.
void addRankOptions(CLI::App &app, LoadOptions &options);
void addRunOptions(CLI::App &app, RunOptions &options);
void addBenchOptions(CLI::App &app, BenchOptions &options);
void addChatOptions(CLI::App &app, ChatCommandOptions &options);
void addGenerateOptions(CLI::App &app, GenerateCommandOptions &options);
void addServeOptions(CLI::App &app, ServeOptions &options);
void addLogitsOptions(CLI::App &app, LogitsOptions &options);
void addTuneOptions(CLI::App &app, TuneCommandOptions &options);
void addPerplexityOptions(CLI::App &app, PerplexityOptions &options);

/// Takes whole numbers from `least` to `most`.
CLI::Validator wholeNumber(int64_t least, int64_t most);

/// Takes what an unsigned 64-bit number may be; a sign is refused.
CLI::Validator seedNumber();

/// Gives `app`, and the verbs that are added to it later, help that is wrapped
/// at 80 columns.
void formatHelp(CLI::App &app);

/// Parses the command line. When the tool is to end at once (help, version, or
/// a wrong flag, which is named on stderr) the exit code it ends with.
std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv);

/// main() of the tool of this name: gives what `body` does, and ends in one
/// line whatever happens (FatalEvents.h); an exception, too, becomes an error.
int runTool(const char *tool, absl::FunctionRef<int()> body);

/// Last in main: prints an error as `tool: error: message`, one line on stderr,
/// and gives the exit code. Output that cannot be written is an error too.
int finishTool(absl::string_view tool, const absl::Status &status);

} // namespace llamac

#endif // LLAMAC_TOOLS_COMMANDLINE_H
