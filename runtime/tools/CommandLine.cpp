//===- CommandLine.cpp - Options that the tools share ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tools/CommandLine.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include <cstdio>
#include <iostream>

namespace llamac {

void addModelOptions(CLI::App &app, ModelOptions &options) {
  app.add_option("-t,--threads", options.threads,
                 "Threads; one on each physical core when not given")
      ->check(CLI::Range(1, 1024));
  app.add_option("--isa", options.isa,
                 "Best instruction-set level to use (also LLAMAC_ISA)");
  app.add_option("--gpu-index", options.gpuIndex,
                 "On cuda: which GPU of the machine to use")
      ->capture_default_str();
  app.add_option("--sim-schedule", options.simSchedule,
                 "Order of the threads on sim: forward, reverse, random or "
                 "random:SEED");
  app.add_option("--random-weights", options.randomWeights,
                 "Make weights up by this seed in place of the plan's");
  app.add_flag("!--no-tuned", options.tuned,
               "Run the plan's own tiles, whatever was tuned");
  app.add_flag("!--no-verify", options.verify,
               "Skip the checksums of the plan");
}

void addRunOptions(CLI::App &app, RunOptions &options) {
  CLI::Option *text =
      app.add_option("-p,--prompt", options.prompt, "The prompt as text");
  app.add_option("--tokens", options.tokens, "The prompt as ids: 1,2,3")
      ->excludes(text);
  app.add_flag("--special", options.special,
               "Names of special tokens in the prompt stand for them");
  GenerateOptions &generate = options.generate;
  app.add_option("-n,--predict", generate.maxTokens,
                 "Tokens to generate at most; -1 for as many as fit");
  app.add_option("--temp", options.temperature,
                 "Temperature; 0 takes the likeliest token (default: what the "
                 "model's makers advise, else 0)");
  app.add_option("--top-k", options.topK,
                 "Draw from the k likeliest tokens; 0 for all");
  app.add_option("--top-p", options.topP,
                 "Draw from the likeliest tokens of this total probability");
  app.add_option("-s,--seed", generate.sampling.seed,
                 "Seed of the draws; a random one is printed");
  app.add_option("--stop", generate.stopStrings,
                 "Text that ends the answer; may be given more than once")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("!--ignore-eos", generate.stopAtStopIds,
               "Go on after a stop token");
  app.add_flag("--print-ids", options.printIds, "Print ids instead of text");
  app.add_flag("--json", options.json, "Timings as JSON");
  app.add_flag("-q,--quiet", options.quiet, "No timings");
  app.add_flag("--profile", options.profile,
               "Time, bytes and share of bandwidth of each kernel on stderr");
  app.add_option("--trace", options.trace,
                 "A file for the time of each launch, for chrome://tracing");
}

void addBenchOptions(CLI::App &app, BenchOptions &options) {
  app.add_option("--prompt-tokens", options.promptTokens,
                 "Tokens of the prompt; several, comma separated, are "
                 "measured one after the other")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--gen-tokens", options.genTokens, "Tokens decoded after it")
      ->capture_default_str();
  app.add_option("--batch", options.batch,
                 "Sequences that run together; several, comma separated")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--warm-ups", options.warmUps, "Runs before those measured")
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Runs whose median is printed")
      ->capture_default_str();
  CLI::Option *kernels = app.add_flag(
      "--kernels", options.kernels,
      "Time, bandwidth and operations of each kernel, and their shares "
      "of what is measured to be possible");
  app.add_flag("--compare-untuned", options.compareUntuned,
               "Run with and without what was tuned in turn, and print how "
               "many times as fast it is")
      ->excludes(kernels);
  app.add_flag("--json", options.json, "Print a JSON object for each");
}

void addLogitsOptions(CLI::App &app, LogitsOptions &options) {
  app.add_option("--tokens", options.tokens, "Ids: 1,2,3")->required();
  app.add_option("-o,--output", options.output, "The .npy file to write")
      ->required();
  app.add_option("--chunk", options.chunk,
                 "Tokens of one step at most; 0 for as many as fit")
      ->capture_default_str();
}

void addPerplexityOptions(CLI::App &app, PerplexityOptions &options) {
  app.add_option("FILE", options.file, "A text file")->required();
  app.add_option("--window", options.window, "Tokens of a window")
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON object");
}

void addTuneOptions(CLI::App &app, TuneCommandOptions &options) {
  app.add_option("--budget", options.budget, "Seconds to take at most")
      ->capture_default_str();
  app.add_option("--candidates", options.candidates,
                 "Tiles to try for each kernel in a turn, in the first those "
                 "that the model takes for the best")
      ->capture_default_str();
  app.add_flag("--tiles-only", options.tilesOnly,
               "Try other tiles of kernels, but no other ways to run a step");
  app.add_option("--turns", options.turns,
                 "Turns at most; from the second on, while half of the time is "
                 "left, with what differs from the fastest in one tile")
      ->capture_default_str();
  app.add_flag("--list", options.list,
               "Print the tiles of each kernel and the time that the model "
               "gives them, and do nothing else");
  app.add_flag("--explain-kernels", options.explain,
               "Print the pick of each kernel, its predicted and measured "
               "time, the limit and the runner-up, and do nothing else");
  app.add_flag("--json", options.json, "Print all that was measured as JSON");
  app.add_option("--export", options.exportTo,
                 "A file to write all that is kept to, for other machines");
  app.add_option("--import", options.importFrom,
                 "A file of --export to take entries from; with a model, its "
                 "picks are compiled");
}

std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError &error) {
    // Help and version end well and go to stdout.
    if (error.get_exit_code() == 0)
      return app.exit(error, std::cout, std::cerr);
    return reportStatus(app.get_name(), usageError(absl::StrFormat(
                                            "%s; see --help", error.what())));
  }
}

int reportStatus(absl::string_view tool, const absl::Status &status) {
  if (status.ok())
    return 0;
  absl::FPrintF(stderr, "%s: error: %s\n", tool,
                absl::StrReplaceAll(status.message(), {{"\n", " "}}));
  return static_cast<int>(exitCode(status));
}

} // namespace llamac
