//===- CommandLine.cpp - Options that the tools share ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/CommandLine.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/cpu/IsaLevel.h"
#include "runtime/plan/PlanConfig.h"
#include "tools/ChatSettings.h"
#include "tools/CommandTree.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace llamac {

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

template <typename Number>
static CLI::Validator numberIn(Number least, Number most) {
  return {[=](const std::string &text) {
            Number value = 0;
            return absl::SimpleAtoi(text, &value) && value >= least &&
                           value <= most
                       ? ""
                       : absl::StrCat("expected ", least, " to ", most,
                                      ", got ", text);
          },
          ""};
}

CLI::Validator wholeNumber(int64_t least, int64_t most) {
  return numberIn(least, most);
}

/// Takes a number above 0, and at most 1.
static CLI::Validator shareOfOne() {
  return {[](const std::string &text) {
            double value = 0;
            return absl::SimpleAtod(text, &value) && value > 0 && value <= 1
                       ? ""
                       : absl::StrCat("expected a number above 0, at most 1, "
                                      "got ",
                                      text);
          },
          ""};
}

/// Adds --parallel. `what` runs at once, and `count` of them by default.
static void addParallel(const OptionGroup &group, int64_t &parallel,
                        const std::string &what, int64_t count) {
  group
      .add("--parallel,--max-num-seqs", parallel, "N",
           absl::StrCat(what, " that run at once (default: ", count,
                        "; on cuda as many as one step of decode takes)"))
      ->check(wholeNumber(1, mostSequences));
}

CLI::Validator outputFile() {
  return {
      [](const std::string &text) -> std::string {
        if (text == "-")
          return "expected a file, got -; /dev/stdout is stdout";
        const auto folder = std::filesystem::path(text).parent_path();
        std::error_code error;
        return folder.empty() || std::filesystem::is_directory(folder, error)
                   ? ""
                   : "expected a file in a folder that is there, got " + text;
      },
      ""};
}

CLI::Validator seedNumber() {
  return {[](std::string &text) -> std::string {
            uint64_t bits = 0;
            int64_t number = 0;
            if (absl::SimpleAtoi(text, &bits))
              return "";
            if (!absl::SimpleAtoi(text, &number))
              return absl::StrCat("expected ", INT64_MIN, " to ", UINT64_MAX,
                                  ", got ", text);
            // Fields of seeds have no sign.
            text = absl::StrCat(static_cast<uint64_t>(number));
            return "";
          },
          ""};
}

void addModelOptions(CLI::App &app, LoadOptions &options) {
  const OptionGroup group{app, "Execution"};
  group
      .add("-t,--threads", options.threads, "N",
           "Threads (default: one on each physical core)")
      ->check(wholeNumber(1, 1024));
  group
      .add("--isa", options.isa, "LEVEL",
           "Highest instruction-set level to use (also LLAMAC_ISA)")
      ->check(suggestedValues(isaLevelNames()));
  group
      .addDefault("--gpu-index", options.gpuIndex, "N",
                  "On cuda: index of the GPU to use")
      ->check(wholeNumber(0, 1023));
  group
      .add("--sim-schedule", options.simSchedule, "ORDER",
           "On sim: order of the threads: forward, reverse, random, "
           "random:SEED, stalled or stalled:SEED")
      ->check(suggestedValues("forward, reverse, random, stalled"));
  group
      .add("--random-weights", options.randomWeights, "SEED",
           "Use random weights of this seed in place of the plan's")
      ->transform(seedNumber());
  group.addFlag("!--no-tuned", options.tuned,
                "Use the default configs and not the tuned ones");
  group.addFlag("!--no-verify", options.verify,
                "Do not verify the plan's checksums");
  const OptionGroup output{app, "Output"};
  if (!app.get_option_no_throw("--quiet"))
    output.addFlag("-q,--quiet", options.quiet, "Print no progress");
  output
      .addFlag("-v,--verbose", options.verbose,
               "Print to stderr what was loaded and how long each part took")
      ->excludes("--quiet");
}

void addDraftOption(CLI::App &app, LoadOptions &options) {
  const OptionGroup group{app, "Execution"};
  group.add("--draft,--model-draft", options.draft, "MODEL",
            "Smaller model of the same vocabulary, or EAGLE-3 head of this "
            "one, which drafts answers to verify (see --speculative)");
}

void addRankOptions(CLI::App &app, LoadOptions &options) {
  const OptionGroup group{app, "Ranks (under mpirun)"};
  group
      .addDefault("--rank-timeout", options.rankTimeout, "SECONDS",
                  "Longest wait for another rank; then the run fails")
      ->check(CLI::Range(0.1, 1e6));
  group.addFlag(
      "--rank-copies", options.rankCopies,
      "Exchange by MPI even on one machine, and not by shared memory");
}

void printLoaded(const Model &model) {
  const LoadTimes &times = model.loadTimes();
  absl::FPrintF(stderr,
                "loaded %s on %s, %s: context %d, %d sequences; plan %.2f s, "
                "device %.2f s, kernels %.2f s, memory %.2f s, weights %.2f s, "
                "tokenizer %.2f s\n",
                printable(model.planReader()->path()),
                printable(model.loaded().describe()),
                printable(model.code().isa()), model.context(),
                model.plan().kv->maxSequences, times.plan, times.device,
                times.kernels, times.memory, times.weights, times.tokenizer);
}

static void addChatTemplateOptions(CLI::App &app, ChatOptions &options) {
  const OptionGroup group{app, "Prompt"};
  group.add("--system,--system-prompt", options.system, "TEXT",
            "System message that the conversation begins with");
  group.add("--chat-template,--chat-template-file", options.templateFile,
            "FILE",
            "Write messages by this template in place of the model's "
            "(docs/chat-templates.md)");
}

/// Reads "ID=VALUE".
static bool parseWeight(absl::string_view text, TokenWeights &to) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  auto &[id, value] = to.emplace_back();
  return absl::SimpleAtoi(parts.first, &id) &&
         absl::SimpleAtof(parts.second, &value);
}

// Each of these sets the field of an option to what a command line gives.
static void assign(Inverse to, bool value) { *to.value = !value; }
static void assign(GrammarField to, const std::string &text) {
  *to.source = GrammarSource{to.kind, text};
}
static void assign(TokenWeights *to, const std::vector<std::string> &texts) {
  for (const std::string &text : texts)
    parseWeight(text, *to);
}
template <typename Field, typename Value>
static void assign(Field *to, const Value &value) {
  *to = value;
}

namespace {

/// Adds the flag of an option of requests, as the type of its field wants it.
struct RequestFlag {
  const OptionGroup &group;
  const NamedOption<Request> &option;
  AnswerOptions &to;
  std::string help;

  CLI::Option *operator()(bool *) { return flag<bool *>(true); }
  CLI::Option *operator()(Inverse) { return flag<Inverse>(true); }

  CLI::Option *operator()(GrammarField grammar) {
    if (grammar.kind == GrammarSource::JsonObject)
      return flag<GrammarField>(std::string());
    if (grammar.kind == GrammarSource::JsonSchema)
      help += ": {...}, or a file";
    if (grammar.kind == GrammarSource::Ebnf)
      help += ": these, or a file";
    return value<GrammarField, std::string>();
  }

  CLI::Option *operator()(std::optional<uint64_t> *) {
    return value<std::optional<uint64_t> *, uint64_t>()->transform(
        seedNumber());
  }

  CLI::Option *operator()(TokenWeights *) {
    return repeated<TokenWeights *, std::string>()->check(
        {[](const std::string &text) {
           TokenWeights weights;
           return parseWeight(text, weights)
                      ? ""
                      : "expected ID=VALUE such as 13=-1.5, got " + text;
         },
         ""});
  }

  template <typename Item> CLI::Option *operator()(std::vector<Item> *) {
    return repeated<std::vector<Item> *, Item>();
  }

  template <typename Number> CLI::Option *operator()(Number *) {
    CLI::Option *added = value<Number *, Number>();
    // Counts are those of a context at most.
    if (std::is_integral_v<Number> && flagOf(option).second == "N")
      added->check(wholeNumber(static_cast<int64_t>(option.range.least),
                               static_cast<int64_t>(std::min<double>(
                                   option.range.most, mostTokens))));
    return added;
  }

private:
  template <typename Field, typename Given>
  CLI::Option *flag(const Given &given) const {
    return group.app
        .add_flag_callback(
            flagOf(option).first,
            [&option = option, &to = to, given] {
              assign(std::get<Field>(to.set(option)), given);
            },
            help)
        ->group(group.heading);
  }

  template <typename Field, typename Given> CLI::Option *value() const {
    CLI::Option *added = group.app.add_option_function<Given>(
        flagOf(option).first,
        [&option = option, &to = to](const Given &given) {
          assign(std::get<Field>(to.set(option)), given);
        },
        help);
    if (const std::string text = defaultText(option); text != "none")
      added->default_str(text);
    return added->type_name(flagOf(option).second)->group(group.heading);
  }

  template <typename Field, typename Item> CLI::Option *repeated() {
    help += "; may be given more than once";
    return takeOneValue(value<Field, std::vector<Item>>());
  }
};

} // namespace

/// Adds all flags of requests, or of those of chats alone. `defaultTokens` says
/// what the default of -n is.
static void addAnswerOptions(CLI::App &app, AnswerOptions &options, bool isChat,
                             const std::string &defaultTokens) {
  const OptionGroup generation{app, "Generation"},
      grammars{app, "Grammar of the answer"};
  for (const NamedOption<Request> &option : requestOptions()) {
    if (!*option.flag || (isChat && !isOfChats(option)))
      continue;
    const OptionField field = option.field(options.request);
    const bool isGrammar = std::holds_alternative<GrammarField>(field);
    std::string help = option.help;
    help.front() = absl::ascii_toupper(help.front());
    std::visit(RequestFlag{isGrammar ? grammars : generation, option, options,
                           std::move(help)},
               field);
  }
  app.get_option("--predict")->default_str(defaultTokens);
}

void addRunOptions(CLI::App &app, RunOptions &options) {
  const OptionGroup prompt{app, "Prompt"};
  CLI::Option *text =
      prompt.add("-p,--prompt", options.prompt, "TEXT",
                 "Prompt as text: a message if the model has a chat template; "
                 "-: read it from stdin, without the last line feed");
  CLI::Option *tokens =
      prompt
          .add("--tokens", options.tokens, "IDS", "Prompt as token ids: 1,2,3")
          ->excludes(text);
  CLI::Option *raw =
      prompt.addFlag("--raw", options.raw,
                     "Complete the text as it is, without a chat template");
  addChatTemplateOptions(app, options.chat);
  for (const char *name : {"--system", "--chat-template"})
    app.get_option(name)->excludes(raw)->excludes(tokens);
  CLI::Option *file =
      prompt
          .add("-f,--file", options.file, "FILE",
               "File with the prompt, without its last line feed; -: stdin")
          ->excludes(text)
          ->excludes(tokens);
  prompt
      .add("PROMPT", options.prompt, "PROMPT", "Prompt as text, as -p has it")
      ->excludes(text)
      ->excludes(tokens)
      ->excludes(file)
      ->check({[](const std::string &argument) {
                 std::error_code error;
                 return std::filesystem::exists(argument, error)
                            ? absl::StrCat("unexpected argument ", argument,
                                           ", which is no text but a file; -f "
                                           "reads a prompt from one")
                            : "";
               },
               ""});
  prompt.addFlag("--special", options.special,
                 "Read names of special tokens in a --raw text as those "
                 "tokens; in a message they always are");

  addAnswerOptions(app, options, /*isChat=*/false,
                   absl::StrCat(mostChatTokens, " for an answer to a message, ",
                                mostRawTokens, " for a completion"));
  const OptionGroup output{app, "Output"};
  output.addFlag("--print-ids", options.printIds, "Print ids instead of text");
  output.addFlag("--json", options.json,
                 "Print one JSON object when done: the answer and the timings");
  output.addFlag("-q,--quiet", options.quiet,
                 "Print no progress and no timings");
  output.addFlag(
      "--profile", options.profile,
      "Print each kernel's time, bytes and share of bandwidth to stderr");
  output
      .add("--trace", options.trace, "FILE",
           "Write the time of each launch to FILE, for chrome://tracing")
      ->check(outputFile());
}

void addChatOptions(CLI::App &app, ChatCommandOptions &options) {
  addChatTemplateOptions(app, options.chat);
  addAnswerOptions(app, options, /*isChat=*/true, absl::StrCat(mostChatTokens));
  const OptionGroup group{app, "Conversation"};
  group.add("--load", options.load, "FILE",
            "Continue a conversation that /save wrote");
  group.addFlag("!--no-history", options.keepsHistory,
                "Do not save what is typed for the next session");
  const OptionGroup output{app, "Output"};
  output.addFlag("-q,--quiet", options.quiet, "Print only errors to stderr");
}

static void addBatchInvariant(const OptionGroup &group, bool &value) {
  group.addFlag(
      "--batch-invariant", value,
      "On cuda and sim: give a row the same bits in a step of any size, by one "
      "program for all prompts and one for all decode steps (default: the "
      "fastest program for each step); on the cpu this is always so");
}

/// `promptRows` says what the default of --prompt-rows is.
static void addSchedulerOptions(const OptionGroup &group,
                                SchedulerOptions &options,
                                const std::string &promptRows) {
  CLI::Option *pages =
      group
          .add("--kv-pages", options.kvPages, "N",
               "Pages of the KV cache that sequences share (default: on cuda "
               "as many as --kv-memory holds, else as many as all of them can "
               "use)")
          ->check(wholeNumber(1, mostTokens));
  group
      .add("--kv-memory", options.kvMemory, "SHARE",
           absl::StrCat(
               "On cuda: share of the memory left after loading the model that "
               "pages may take, up to what all sequences can use (default: ",
               defaultKvMemory, ")"))
      ->check(shareOfOne())
      ->excludes(pages);
  group
      .add("--prompt-rows", options.promptRows, "N",
           "Most prompt tokens in a step that also decodes answers (default: " +
               promptRows + ")")
      ->check(wholeNumber(1, mostTokens));
  group.addFlag("!--no-prefix-cache", options.cachesPrefixes,
                "Compute each prompt as a whole, without reusing keys and "
                "values of shared prefixes");
  addBatchInvariant(group, options.batchInvariant);
}

void addBenchOptions(CLI::App &app, BenchOptions &options) {
  const OptionGroup group{app};
  group
      .addDefault(
          "-p,--prompt-tokens", options.promptTokens, "N",
          "Tokens of the prompt; comma separated: one measurement for each")
      ->delimiter(',');
  group.addDefault("-n,--gen-tokens", options.genTokens, "N",
                   "Tokens to decode after the prompt");
  group
      .addDefault("--batch", options.batch, "N",
                  "Sequences that run together; comma separated: one "
                  "measurement for each")
      ->delimiter(',')
      ->check(wholeNumber(1, mostSequences));
  group.addDefault("--warm-ups", options.warmUps, "N",
                   "Runs before the measured ones; with --kernels at least "
                   "one");
  group.addDefault("--repeat", options.repeat, "N",
                   "Runs whose median is printed");
  CLI::Option *kernels =
      group.addFlag("--kernels", options.kernels,
                    "Print each kernel's time, bandwidth and operations, and "
                    "their shares of the measured peaks");
  group
      .addFlag("--compare-untuned", options.compareUntuned,
               "Run tuned and default configs in turn, and print the speedup")
      ->excludes(kernels);
  group.addFlag("--json", options.json,
                "Print a JSON object for each measurement");

  const OptionGroup serving{app, "Requests that come and go"};
  serving.add("--requests", options.requests, "N",
              "Run N requests of random tokens, --batch of them at once while "
              "the others wait");
  serving.add("--rate", options.rate, "R",
              "Requests that arrive per second, a Poisson process (default: "
              "all at once)");
  serving.add("--trace", options.trace, "FILE",
              "Run the requests in FILE, one JSON object a line: {\"arrival\": "
              "seconds, "
              "\"prompt_tokens\": N, \"gen_tokens\": N}");
  serving.add("--shared-prefix", options.sharedPrefix, "N",
              "Length of a prefix that all prompts share, in tokens");
  serving.add(
      "--long-prompt", options.longPrompt, "N",
      "Measure the time between tokens of --batch streams, alone and while "
      "a prompt of N tokens comes in");
  serving
      .addDefault("--speculative", options.speculative, "N",
                  "Most tokens that a step verifies of a draft, as in run; "
                  "prompts are random, so that without --draft only what "
                  "answers repeat is drafted")
      ->check(wholeNumber(-2, mostDrafts));
  addSchedulerOptions(serving, options.scheduler,
                      "as many as delay them little");
}

void addGenerateOptions(CLI::App &app, GenerateCommandOptions &options) {
  const OptionGroup files{app, "Files"};
  files
      .add("FILE,--prompts", options.prompts, "FILE",
           "File of requests, one JSON object a line (docs/generate.md); -: "
           "stdin")
      ->required();
  files
      .add("-o,--output", options.output, "FILE",
           "File to append answers to, one a line; requests that it already "
           "answers are skipped; -: stdout")
      ->required();
  files.addFlag("--overwrite", options.overwrite,
                "Overwrite an output file that already has answers");

  const OptionGroup generation{app, "Generation"};
  addParallel(generation, options.parallel, "Sequences",
              GenerateCommandOptions::hostParallel);
  addSchedulerOptions(generation, options.scheduler, "as many as fit");
  generation
      .add(
          "--prefix-cache", options.scheduler.prefixFile, "FILE",
          "File of the prefix cache: read if it exists, and written at the end")
      ->excludes(app.get_option("--no-prefix-cache"));
  generation
      .addDefault(flagsOf("max_tokens"), options.maxTokens, "N",
                  "Most tokens of an answer whose request has no max_tokens; "
                  "-1: until the context is full")
      ->check(wholeNumber(-1, mostTokens));

  const OptionGroup printing{app, "Output"};
  printing.addFlag("--print-ids", options.printIds,
                   "Write ids only; for plans without a tokenizer");
  printing.addFlag("--json", options.json,
                   "Print the summary as one JSON object");
  printing.addFlag("--strict", options.strict,
                   "End with exit code 2 where a request is wrong");
  printing.addFlag("-q,--quiet", options.quiet,
                   "Print no progress and no summary");
}

void addServeOptions(CLI::App &app, ServeOptions &options) {
  const OptionGroup network{app, "Network"};
  network.addDefault("--host", options.host, "ADDRESS",
                     "Address to listen on; one that other machines can reach "
                     "needs --api-key-file");
  network
      .addDefault("--port", options.port, "N",
                  "Port to listen on; 0: any free port")
      ->check(wholeNumber(0, UINT16_MAX));
  network.add("--tls-cert,--ssl-cert-file,--ssl-certfile", options.certificate,
              "FILE", "Serve HTTPS with this certificate, in PEM");
  network.add("--tls-key,--ssl-key-file,--ssl-keyfile", options.key, "FILE",
              "Private key of the certificate, in PEM");
  network.addRepeated("--cors", options.origins, "ORIGIN",
                      "Allow requests from pages of this origin; *: of any");
  CLI::Option *keys = network.add("--api-key-file", options.keyFile, "FILE",
                                  "Accept only requests with one of the keys "
                                  "in FILE, which has one a line");
  network
      .addFlag("!--no-auth", options.authenticates,
               "Serve without keys on an address that other machines can reach")
      ->excludes(keys);

  const OptionGroup serving{app, "Serving"};
  addParallel(serving, options.parallel, "Answers of a model",
              ServeOptions::hostParallel);
  serving
      .addDefault(
          "--max-queue", options.maxQueue, "N",
          "Most answers of a model that may wait; more are refused with 503")
      ->check(wholeNumber(1, mostTokens));
  addSchedulerOptions(serving, options.scheduler,
                      "as many as delay them little");
  serving
      .add("--prefix-cache", options.scheduler.prefixFile, "FILE",
           "File of the prefix cache, which is kept for the next start; for "
           "one model only")
      ->excludes(app.get_option("--no-prefix-cache"));
  serving.add("--chat-template,--chat-template-file", options.chatTemplate,
              "FILE", "Chat template to use in place of the model's own");
  serving.addDefault("--access-log", options.accessLog, "FILE",
                     "File to write a line of JSON to for each request; -: "
                     "stderr, \"\": none");
  serving
      .addDefault("--drain", options.drainSeconds, "SECONDS",
                  "Seconds that running answers have to end after SIGTERM")
      ->check(wholeNumber(0, 86400));
}

void addLogitsOptions(CLI::App &app, LogitsOptions &options) {
  const OptionGroup group{app};
  group.add("--tokens", options.tokens, "IDS", "Ids: 1,2,3")->required();
  group
      .add("-o,--output", options.output, "FILE",
           "File to write, in .npy format")
      ->required()
      ->check(outputFile());
  group.addDefault("--chunk", options.chunk, "N",
                   "Most tokens of a step; 0: as many as fit");
  addBatchInvariant(group, options.batchInvariant);
}

void addPerplexityOptions(CLI::App &app, PerplexityOptions &options) {
  const OptionGroup group{app};
  group.add("FILE,-f,--file", options.file, "FILE", "A text; -: stdin")
      ->required();
  group.add("--window", options.window, "N",
            "Tokens of a window (default: 512, or the context where that is "
            "less)");
  group.addFlag("--json", options.json, "Print one JSON object");
}

void addTuneOptions(CLI::App &app, TuneCommandOptions &options) {
  const OptionGroup group{app};
  group.addDefault("--budget", options.tune.budget, "SECONDS",
                   "Most seconds to take");
  group.addDefault("--candidates", options.tune.candidates, "N",
                   "Configs to try for each kernel besides its default");
  group.addFlag("--list", options.list,
                "Only print the configs of each kernel");
  group.addFlag("--explain-kernels", options.explain,
                "Only print each kernel's selected config and its measured "
                "time, the default's and the runner-up's");
  group.addFlag("--json", options.json, "Print all that was measured as JSON");
  group
      .add("--export", options.exportTo, "FILE",
           "Write all entries to FILE, for other machines")
      ->check(outputFile());
  group.add("--import", options.importFrom, "FILE",
            "Read entries from a file that --export wrote");
}

} // namespace llamac
