//===- ChatCommand.cpp - A conversation with a model ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each answer is a request of its own whose prompt is the whole conversation:
// the prefix cache has what was computed for the turns before.
//
//===----------------------------------------------------------------------===//

#include "tools/ChatCommand.h"

#include "engine/scheduler/Scheduler.h"
#include "runtime/base/Interrupts.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/base/Terminal.h"
#include "tools/AnswerPrinter.h"
#include "tools/ChatSettings.h"
#include "tools/Conversation.h"
#include "tools/LineInput.h"
#include "tools/RunCommand.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include <csignal>
#include <filesystem>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

namespace llamac {

/// Encloses a message of several lines.
static constexpr absl::string_view fence = "\"\"\"";

namespace {

/// A conversation at a terminal or through pipes.
class Chat {
public:
  Chat(const Model &model, const ChatCommandOptions &options,
       std::unique_ptr<const ChatFormat> format,
       std::unique_ptr<Scheduler> scheduler, ChatSettings settings,
       std::FILE *out, std::FILE *log)
      : model(model), options(options), format(std::move(format)),
        scheduler(std::move(scheduler)), settings(std::move(settings)),
        printer(out), log(log) {}

  /// Answers what comes from `input`, which is a terminal or not. Gives the
  /// signal that is to end the process, or 0.
  absl::StatusOr<int> run(LineInput &input, bool isTerminal);

  /// Beginnings of commands, with a space behind them where more follows.
  static std::vector<std::string> completions();

private:
  /// A word that begins a line with a slash.
  struct Command {
    const char *name, *argument, *help;
    absl::Status (Chat::*execute)(const std::string &argument);
  };
  static const Command commands[];

  std::optional<std::string> readMessage(LineInput &input);
  absl::Status take(const std::string &text);
  absl::Status ask(std::string message);
  absl::Status answer();
  absl::StatusOr<Request> makeRequest() const;
  void say(absl::string_view line) const;
  /// Says how many messages the conversation in `file` has.
  void sayCount(const std::string &file) const;
  void sayHowItEnded(StopReason reason) const;

  absl::Status help(const std::string &argument);
  absl::Status system(const std::string &argument);
  absl::Status clear(const std::string &argument);
  absl::Status save(const std::string &argument);
  absl::Status load(const std::string &argument);
  absl::Status regenerate(const std::string &argument);
  absl::Status set(const std::string &argument);
  absl::Status stats(const std::string &argument);
  absl::Status exit(const std::string &argument);

  const Model &model;
  const ChatCommandOptions &options;
  std::unique_ptr<const ChatFormat> format;
  std::unique_ptr<Scheduler> scheduler;
  ChatSettings settings;
  AnswerPrinter printer;
  std::FILE *log;
  bool isTerminal = false;
  int signal = 0; ///< Ends the process.
  bool isDone = false;
  Conversation conversation;
  std::optional<AnswerEnd> last; ///< How the last answer ended.
};

} // namespace

const Chat::Command Chat::commands[] = {
    {"/help", "", "this list", &Chat::help},
    {"/system", "TEXT",
     "set the system message; \"\" removes it, nothing shows it",
     &Chat::system},
    {"/clear", "", "begin a new conversation, with the same system message",
     &Chat::clear},
    {"/save", "FILE", "write the conversation, as JSON", &Chat::save},
    {"/load", "FILE", "go on with a conversation that was written",
     &Chat::load},
    {"/regenerate", "", "answer the last message anew", &Chat::regenerate},
    {"/set", "NAME VALUE",
     "set an option of answers: temp 0.7; VALUE default sets it back; without "
     "any, all are listed",
     &Chat::set},
    {"/stats", "", "tokens and speed of the last answer, and the context left",
     &Chat::stats},
    {"/exit", "", "end; Ctrl-D and a second Ctrl-C do, too", &Chat::exit},
};

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Prints a line for people.
void Chat::say(absl::string_view line) const {
  absl::FPrintF(log, "%s\n", printable(line));
}

/// The next message or command, of one line or several; none at the end.
std::optional<std::string> Chat::readMessage(LineInput &input) {
  using Outcome = LineInput::Outcome;
  bool wasInterrupted = false; // Just before, with nothing typed.
  for (;;) {
    std::string line, text;
    Outcome outcome = input.next("> ", line);
    const bool isFenced = absl::StartsWith(line, fence);
    if (isFenced)
      line.erase(0, fence.size());
    for (;; outcome = input.next("... ", line)) {
      if (outcome != Outcome::Line)
        break;
      const bool goesOn =
          isFenced ? !absl::EndsWith(line, fence) : absl::EndsWith(line, "\\");
      if (!isFenced && goesOn)
        line.pop_back();
      else if (isFenced && !goesOn)
        line.resize(line.size() - fence.size());
      text += line;
      if (!goesOn)
        break;
      text += '\n';
    }
    if (isFenced)
      text =
          std::string(absl::StripPrefix(absl::StripSuffix(text, "\n"), "\n"));
    if (outcome == Outcome::End)
      return absl::StripAsciiWhitespace(text).empty() ? std::nullopt
                                                      : std::optional(text);
    if (outcome == Outcome::Interrupted) {
      const bool isEmpty = text.empty() && line.empty();
      if (isEmpty && wasInterrupted)
        return std::nullopt;
      if (isEmpty)
        say("Ctrl-C again, or Ctrl-D, ends");
      wasInterrupted = isEmpty;
      continue;
    }
    wasInterrupted = false;
    if (!absl::StripAsciiWhitespace(text).empty())
      return text;
  }
}

absl::StatusOr<int> Chat::run(LineInput &input, bool atTerminal) {
  isTerminal = atTerminal;
  if (options.chat.system)
    conversation.setSystem(options.chat.system);
  if (!options.load.empty())
    LLAMAC_RETURN_IF_ERROR(load(options.load));
  if (isTerminal && !options.quiet)
    say(absl::StrCat(model.name(), ", context of ", model.context(),
                     " tokens; /help lists the commands"));
  while (!isDone) {
    const std::optional<std::string> text = readMessage(input);
    if (!text)
      break;
    input.remember(*text);
    const absl::Status status = take(*text);
    // An error that the user can mend does not end the conversation.
    const ExitCode code = exitCode(status);
    if (code != ExitCode::Ok && code != ExitCode::Usage &&
        code != ExitCode::BadFile && code != ExitCode::Accuracy)
      return status;
    if (!status.ok())
      say(absl::StrCat("error: ", status.message()));
  }
  return signal;
}

/// Executes a command, or asks the model.
absl::Status Chat::take(const std::string &text) {
  LLAMAC_RETURN_IF_ERROR(checkUtf8("message", text));
  if (!absl::StartsWith(text, "/"))
    return ask(text);
  if (absl::StartsWith(text, "//"))
    return ask(text.substr(1));
  const size_t space = std::min(text.find_first_of(" \t\n"), text.size());
  std::string name = text.substr(0, space);
  const std::string argument(
      absl::StripAsciiWhitespace(absl::string_view(text).substr(space)));
  // The words of other programs.
  if (name == "/bye" || name == "/quit")
    name = "/exit";
  if (name == "/?")
    name = "/help";
  std::vector<std::string> names;
  for (const Command &command : commands) {
    names.emplace_back(command.name);
    if (command.name != name)
      continue;
    if (!argument.empty() && !*command.argument)
      return usageError(absl::StrCat(name, ": expected nothing after it, got ",
                                     quoteForMessage(argument)));
    return (this->*command.execute)(argument);
  }
  return usageError(absl::StrCat(
      name, ": unknown command", suggestion(name, names),
      "; /help lists them, and // begins a message that starts with /"));
}

/// Adds `message` and its answer to the conversation, or neither.
absl::Status Chat::ask(std::string message) {
  conversation.add("user", std::move(message));
  const size_t before = conversation.messages().size();
  const absl::Status status = answer();
  if (conversation.messages().size() == before)
    conversation.removeLast();
  return status;
}

/// The whole conversation as a prompt.
absl::StatusOr<Request> Chat::makeRequest() const {
  Request request = settings.request();
  LLAMAC_ASSIGN_OR_RETURN(request.prompt,
                          format->prompt({.messages = conversation.json(),
                                          .addGenerationPrompt = true}));
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t most = scheduler->mostTokens();
  if (prompt > most)
    return usageError(absl::StrCat(
        "the context is full: the conversation has ", prompt,
        " tokens with this message, and ", most,
        " fit; /clear begins a new one, a plan compiled with a larger -c "
        "holds more"));
  fitAnswer(request, most);
  return request;
}

/// Answers the conversation and adds what came, if anything did. Ctrl-C ends
/// the answer; another signal, or Ctrl-C without a terminal, the process.
absl::Status Chat::answer() {
  Interrupts interrupts(isTerminal ? Interrupts::SecondCtrlC::Ignored
                                   : Interrupts::SecondCtrlC::Ends);
  const auto isInterrupted = [&] { return interrupts.signal() != 0; };
  LLAMAC_ASSIGN_OR_RETURN(Request request, makeRequest());
  std::string piece, text;
  std::optional<AnswerEnd> end;
  LLAMAC_ASSIGN_OR_RETURN(
      const Scheduler::RequestId id,
      scheduler->submit(std::move(request), [&](const AnswerPart &part) {
        piece += part.text;
        if (part.end)
          end = part.end;
      }));
  absl::Status written;
  while (!end) {
    scheduler->step(isInterrupted);
    text += piece;
    written.Update(printer.write(std::exchange(piece, "")));
    if (isInterrupted() || !written.ok())
      scheduler->cancel(id);
  }
  written.Update(printer.write("\n"));
  LLAMAC_RETURN_IF_ERROR(written);
  if (isInterrupted() && !(isTerminal && interrupts.signal() == SIGINT)) {
    signal = interrupts.signal();
    isDone = true;
    return absl::OkStatus();
  }
  LLAMAC_RETURN_IF_ERROR(end->status);
  last = end;
  sayHowItEnded(end->reason);
  if (!text.empty())
    conversation.add("assistant", std::move(text));
  return absl::OkStatus();
}

/// Says why an answer ended where the model did not end it.
void Chat::sayHowItEnded(StopReason reason) const {
  switch (reason) {
  case StopReason::Length:
    say(absl::StrCat("cut at max_tokens ", settings.request().options.maxTokens,
                     "; /set max_tokens N allows more"));
    break;
  case StopReason::Context:
    say(absl::StrCat("cut: the context of ", scheduler->mostTokens(),
                     " tokens is full, with ", last->promptTokens,
                     " of the conversation and ",
                     // The last token was not run.
                     std::min(last->answerTokens,
                              scheduler->mostTokens() - last->promptTokens),
                     " of the answer; /clear begins a new conversation"));
    break;
  case StopReason::Deadline:
    say("cut by time_limit");
    break;
  case StopReason::Cancelled:
    say("stopped");
    break;
  case StopReason::StopId:
  case StopReason::StopString:
    break;
  }
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

std::vector<std::string> Chat::completions() {
  std::vector<std::string> lines;
  for (const Command &command : commands)
    lines.push_back(absl::StrCat(command.name, *command.argument ? " " : ""));
  for (const NamedOption<Request> &option : requestOptions())
    if (isOfChats(option))
      lines.push_back(absl::StrCat("/set ", option.name, " "));
  return lines;
}

absl::Status Chat::help(const std::string &) {
  for (const Command &command : commands)
    absl::FPrintF(log, "  %-18s %s\n",
                  absl::StrCat(command.name, " ", command.argument),
                  command.help);
  absl::FPrintF(log,
                "A message of several lines is between two lines with "
                "%s, or its lines end with \\.\n",
                fence);
  return absl::OkStatus();
}

absl::Status Chat::system(const std::string &argument) {
  if (argument == "\"\"")
    conversation.setSystem(std::nullopt);
  else if (!argument.empty())
    conversation.setSystem(argument);
  if (argument.empty() || isTerminal)
    say(conversation.system().value_or("there is no system message"));
  return absl::OkStatus();
}

absl::Status Chat::clear(const std::string &) {
  conversation.clear();
  last.reset();
  return absl::OkStatus();
}

/// Usage error where `name` has no argument that names a file.
static absl::Status checkFile(const char *name, const std::string &argument) {
  return argument.empty()
             ? usageError(absl::StrCat(name, ": expected a file, got none"))
             : absl::OkStatus();
}

absl::Status Chat::save(const std::string &argument) {
  LLAMAC_RETURN_IF_ERROR(checkFile("/save", argument));
  std::error_code error;
  if (std::filesystem::is_regular_file(argument, error) &&
      !Conversation::load(argument, *format).ok())
    return usageError(absl::StrCat("/save: expected a new file or one of a "
                                   "conversation, got ",
                                   argument));
  LLAMAC_RETURN_IF_ERROR(withContext(conversation.save(argument), "/save"));
  sayCount(argument);
  return absl::OkStatus();
}

void Chat::sayCount(const std::string &file) const {
  if (!options.quiet)
    say(absl::StrCat(file, ": ", conversation.messages().size(), " messages"));
}

absl::Status Chat::load(const std::string &argument) {
  LLAMAC_RETURN_IF_ERROR(checkFile("/load", argument));
  LLAMAC_ASSIGN_OR_RETURN(Conversation loaded,
                          Conversation::load(argument, *format));
  conversation = std::move(loaded);
  last.reset();
  sayCount(argument);
  return absl::OkStatus();
}

absl::Status Chat::regenerate(const std::string &) {
  const auto &messages = conversation.messages();
  if (messages.size() < 2 || messages.back()["role"] != "assistant" ||
      messages[messages.size() - 2]["role"] != "user")
    return usageError("/regenerate: expected an answer before it, got none");
  if (settings.request().options.sampling.temperature == 0)
    say("temperature 0 gives the same answer; /set temperature 1 draws others");
  const Conversation before = conversation;
  conversation.removeLast();
  const absl::Status status = answer();
  if (messages.size() < before.messages().size())
    conversation = before;
  return status;
}

/// Checks the options of `request`, whose prompt is still to come, and compiles
/// its grammar. Errors: those of Scheduler::prepare().
static absl::Status prepareOptions(const Scheduler &scheduler,
                                   Request &request) {
  // With the shortest of prompts, so that only options can be wrong.
  Request probe = request;
  probe.prompt = {0};
  probe.options.maxTokens = std::min(request.options.maxTokens, int64_t{1});
  LLAMAC_RETURN_IF_ERROR(scheduler.prepare(probe));
  request.options.sampling.grammar = probe.options.sampling.grammar;
  return absl::OkStatus();
}

absl::Status Chat::set(const std::string &argument) {
  const size_t space = std::min(argument.find(' '), argument.size());
  const std::string name = argument.substr(0, space);
  const std::string value(
      absl::StripAsciiWhitespace(absl::string_view(argument).substr(space)));
  if (name.empty()) {
    printText(log, settings.list());
    return absl::OkStatus();
  }
  if (!value.empty())
    LLAMAC_RETURN_IF_ERROR(settings.set(name, value, [&](Request &request) {
      return prepareOptions(*scheduler, request);
    }));
  if (value.empty() || isTerminal) {
    LLAMAC_ASSIGN_OR_RETURN(const std::string line, settings.show(name));
    say(line);
  }
  return absl::OkStatus();
}

absl::Status Chat::stats(const std::string &) {
  if (!last) {
    say("no answer yet");
    return absl::OkStatus();
  }
  const double first = last->firstTokenSeconds;
  std::string line = absl::StrFormat(
      "prompt %d tokens, %d of them cached; %sanswer %d tokens%s",
      last->promptTokens, last->cachedTokens,
      first > 0 ? absl::StrFormat("first token after %.2f s; ", first) : "",
      last->answerTokens,
      rateText(last->answerTokens - 1, last->seconds - first));
  if (settings.request().options.sampling.temperature > 0)
    absl::StrAppend(&line, "; seed ", last->seed);
  line += draftsText(last->draftTokens, last->acceptedTokens);
  say(line);
  // The last token of an answer that fills it was not run.
  const int64_t maxTokens = scheduler->mostTokens();
  absl::FPrintF(log, "context %d of %d tokens\n",
                std::min(last->promptTokens + last->answerTokens, maxTokens),
                maxTokens);
  return absl::OkStatus();
}

absl::Status Chat::exit(const std::string &) {
  isDone = true;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

absl::Status prepareChatCommand(ChatCommandOptions &options) {
  LLAMAC_RETURN_IF_ERROR(prepareChat(options.chat));
  return prepareAnswer(options);
}

absl::Status chatCommand(const std::shared_ptr<const Model> &model,
                         const ChatCommandOptions &options, std::FILE *in,
                         std::FILE *out, std::FILE *log) {
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<const ChatFormat> format,
      chatFormatOf(model->name(), model->tokenizer(), options.chat));
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Scheduler> scheduler,
                          Scheduler::create(model));
  Request request;
  request.options = {.sampling = advisedSampling(model->plan().sampling.get()),
                     .maxTokens = mostChatTokens};
  options.applyTo(request);
  if (request.grammar) {
    LLAMAC_ASSIGN_OR_RETURN(
        request.options.sampling.grammar,
        compileGrammar(options, model->name(), model->grammars()));
    LLAMAC_RETURN_IF_ERROR(prepareOptions(*scheduler, request));
  }
  const bool isTerminal = isatty(fileno(in)) && isatty(fileno(out));
  std::unique_ptr<LineInput> input;
  if (isTerminal) {
    std::string history;
    if (options.keepsHistory) {
      absl::StatusOr<std::string> file = stateFile("chat_history");
      if (file.ok())
        history = *std::move(file);
      else
        printWarning(
            absl::StrCat(file.status().message(), "; the history is not kept"));
    }
    LLAMAC_ASSIGN_OR_RETURN(input,
                            editedLines(in, out, history, Chat::completions()));
  } else {
    input = plainLines(in);
  }
  LLAMAC_ASSIGN_OR_RETURN(const int signal,
                          Chat(*model, options, std::move(format),
                               std::move(scheduler),
                               ChatSettings(std::move(request)), out, log)
                              .run(*input, isTerminal));
  input.reset(); // The terminal is as it was.
  if (signal != 0)
    std::raise(signal);
  return absl::OkStatus();
}

} // namespace llamac
