//===- RunCommand.cpp - Completes a prompt --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/RunCommand.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Interrupts.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonText.h"
#include "text/request/RequestJson.h"
#include "tools/AnswerPrinter.h"
#include "tools/Conversation.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

namespace llamac {

absl::StatusOr<std::vector<int32_t>> parseTokenIds(absl::string_view text,
                                                   absl::string_view name) {
  std::vector<int32_t> ids;
  for (absl::string_view part :
       absl::StrSplit(text, absl::ByAnyChar(", \t\n"), absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(part, &ids.emplace_back()) || ids.back() < 0)
      return usageError(
          absl::StrCat(name, ": expected ids such as 1,2,3, got ", part));
  }
  if (ids.empty())
    return usageError(
        absl::StrCat(name, ": expected ids such as 1,2,3, got none"));
  return ids;
}

absl::Status prepareRun(RunOptions &options, std::FILE *in) {
  LLAMAC_RETURN_IF_ERROR(takeText(options.prompt, options.file,
                                  options.tokens.has_value(), in, "prompt",
                                  "TEXT, -f FILE, -p TEXT or --tokens IDS",
                                  "; the verb chat asks for messages"));
  if (options.tokens)
    LLAMAC_RETURN_IF_ERROR(parseTokenIds(*options.tokens).status());
  LLAMAC_RETURN_IF_ERROR(prepareChat(options.chat));
  return prepareAnswer(options);
}

static double rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string rateText(int64_t count, double seconds) {
  return count > 0 && seconds > 0
             ? absl::StrFormat(" at %.1f tok/s", rate(count, seconds))
             : "";
}

/// 0 where no token came.
static double decodeSeconds(const AnswerEnd &end) {
  return end.firstTokenSeconds > 0 ? end.seconds - end.firstTokenSeconds : 0;
}

/// Steps of one token after the prompt; a stop id took one, too.
static int64_t decodeSteps(const AnswerPart &answer) {
  const auto count = static_cast<int64_t>(answer.tokens.size());
  return std::max<int64_t>(count - (answer.end->reason != StopReason::StopId),
                           0);
}

/// One line for people.
static void printTimes(double loadSeconds, const AnswerPart &answer,
                       std::FILE *log) {
  const AnswerEnd &end = *answer.end;
  const double first = end.firstTokenSeconds;
  const std::string decodeRate =
      rateText(decodeSteps(answer), decodeSeconds(end));
  absl::FPrintF(
      log, "load %.2f s, prompt %d tokens%s%s, answer %d tokens%s, %s%s\n",
      loadSeconds, end.promptTokens, rateText(end.promptTokens, first),
      first > 0
          ? absl::StrFormat(", time to first token %.2f s", loadSeconds + first)
          : "",
      answer.tokens.size(),
      decodeRate.empty() ? "" : absl::StrCat(", decode", decodeRate),
      end.reason == StopReason::Cancelled
          ? "interrupted"
          : absl::StrCat("stopped by ", stopReasonName(end.reason)),
      draftsText(end.draftTokens, end.acceptedTokens));
}

/// A line for each token: its logprob, rank and text, then the alternatives.
static void printLogprobs(const Tokenizer *tokenizer,
                          const std::vector<TokenLogprobs> &tokens,
                          std::FILE *log) {
  auto named = [&](const TokenLogprob &token) {
    return absl::StrFormat(
        "%.4f %d \"%s\"", token.logprob, token.id,
        tokenizer
            ? absl::CHexEscape(tokenizer->tokenBytes(token.id).value_or(""))
            : "");
  };
  for (const TokenLogprobs &token : tokens)
    absl::FPrintF(
        log, "logprob %s, rank %d%s%s\n", named(token.chosen), token.rank,
        token.alternatives.empty() ? "" : ": ",
        absl::StrJoin(token.alternatives, ", ",
                      [&](std::string *out, const TokenLogprob &other) {
                        absl::StrAppend(out, named(other));
                      }));
}

/// One JSON object for programs: the answer, its text unless ids are asked for,
/// and the times.
static std::string answerJson(double loadSeconds, const AnswerPart &answer,
                              const RunOptions &options, bool asMessage,
                              const Tokenizer *tokenizer) {
  const AnswerEnd &end = *answer.end;
  nlohmann::ordered_json json;
  if (options.printIds)
    json["ids"] = answer.tokens;
  else
    json["text"] = answer.text;
  json.update({{"load_s", loadSeconds},
               {"chat_template", asMessage},
               {"prompt_tokens", end.promptTokens},
               {"prefill_s", end.firstTokenSeconds},
               {"prefill_tok_s", rate(end.promptTokens, end.firstTokenSeconds)},
               {"first_token_s", loadSeconds + end.firstTokenSeconds},
               {"generated_tokens", answer.tokens.size()},
               {"decode_s", decodeSeconds(end)},
               {"decode_tok_s", rate(decodeSteps(answer), decodeSeconds(end))},
               {"draft_tokens", end.draftTokens},
               {"accepted_tokens", end.acceptedTokens},
               {"stop", std::string(stopReasonName(end.reason))},
               {"seed", end.seed}});
  if (options.request.options.sampling.logprobs >= 0)
    json["logprobs"] = logprobsJson(answer.logprobs, tokenizer);
  return jsonText(json);
}

/// Whether the prompt is a message. Usage error for a system message that
/// nothing is made of.
static absl::StatusOr<bool> isMessage(const RunSubject &subject,
                                      const RunOptions &options) {
  if (options.raw || options.tokens || !subject.tokenizer)
    return false;
  const bool result = hasChatTemplate(*subject.tokenizer, options.chat);
  if (options.chat.system && !result)
    return usageError(absl::StrCat(
        subject.path, ": --system: expected a model with a chat template, got "
                      "one without; give one by --chat-template"));
  return result;
}

/// The ids of the prompt as a message, or those that it is.
static absl::StatusOr<std::vector<int32_t>> promptIds(const RunSubject &subject,
                                                      const RunOptions &options,
                                                      bool isMessage) {
  if (options.tokens)
    return parseTokenIds(*options.tokens);
  const std::string text = options.prompt.value_or("");
  if (!isMessage)
    return subject.encode(text, options.special);
  LLAMAC_ASSIGN_OR_RETURN(
      const std::unique_ptr<const ChatFormat> format,
      chatFormatOf(subject.path, subject.tokenizer, options.chat));
  Conversation conversation;
  conversation.setSystem(options.chat.system);
  conversation.add("user", text);
  return format->prompt(
      {.messages = conversation.json(), .addGenerationPrompt = true});
}

/// Says, where nobody asked for it, what the prompt became.
static void printForm(const RunOptions &options, bool isMessage,
                      std::FILE *log) {
  if (isMessage)
    absl::FPrintF(log, "prompt: by %s chat template; --raw leaves it out\n",
                  options.chat.templateFile.empty() ? "the model's"
                                                    : "the given");
  else if (!options.raw && !options.tokens)
    absl::FPrintF(log, "prompt: as it is; the model has no chat template\n");
}

absl::Status runPrompt(const RunSubject &subject, const RunOptions &options,
                       std::FILE *out, std::FILE *log) {
  LLAMAC_ASSIGN_OR_RETURN(const bool asMessage, isMessage(subject, options));
  absl::StatusOr<std::vector<int32_t>> prompt =
      promptIds(subject, options, asMessage);
  if (!prompt.ok())
    return asMessage ? remade(prompt.status(), prompt.status().code(),
                              absl::StrCat(prompt.status().message(),
                                           "; --raw leaves the chat template "
                                           "out"))
                     : prompt.status();
  if (!options.printIds)
    LLAMAC_RETURN_IF_ERROR(checkHasText(subject.path, subject.tokenizer));

  if (!options.quiet && !options.json)
    printForm(options, asMessage, log);
  Request request{
      .prompt = *std::move(prompt),
      .options = {.sampling = advisedSampling(subject.sampling),
                  .maxTokens = asMessage ? mostChatTokens : mostRawTokens},
      .wantsText = !options.printIds};
  options.applyTo(request);
  fitAnswer(request, subject.mostTokens);
  SamplingOptions &sampling = request.options.sampling;
  if (request.grammar) {
    LLAMAC_ASSIGN_OR_RETURN(
        sampling.grammar,
        compileGrammar(options, subject.path, subject.grammars));
  }
  const bool isRandom = sampling.temperature > 0;
  AnswerPrinter printer(out);
  AnswerPart answer; // All parts.
  auto take = [&](const AnswerPart &part) -> absl::Status {
    if (!options.json && options.printIds)
      for (size_t i = 0; i < part.tokens.size(); ++i)
        LLAMAC_RETURN_IF_ERROR(writeOutput(
            out, absl::StrCat(answer.tokens.empty() && i == 0 ? "" : " ",
                              part.tokens[i])));
    else if (!options.json && !part.text.empty())
      LLAMAC_RETURN_IF_ERROR(printer.write(part.text));
    append(answer, part);
    return absl::OkStatus();
  };
  Interrupts interrupts;
  LLAMAC_RETURN_IF_ERROR(subject.answer(
      std::move(request), [&] { return interrupts.signal() != 0; }, take));
  LLAMAC_RETURN_IF_ERROR(answer.end->status);
  LLAMAC_RETURN_IF_ERROR(writeOutput(
      out, options.json ? answerJson(subject.loadSeconds, answer, options,
                                     asMessage, subject.tokenizer) +
                              "\n"
                        : "\n"));
  if (!options.json)
    printLogprobs(subject.tokenizer, answer.logprobs, log);
  if (!options.quiet && !options.json) {
    if (isRandom)
      absl::FPrintF(log, "seed %d\n", answer.end->seed);
    printTimes(subject.loadSeconds, answer, log);
  }
  if (interrupts.signal() != 0)
    interrupts.endProcess();
  return absl::OkStatus();
}

absl::Status runCommand(const std::shared_ptr<const Model> &model,
                        const RunOptions &options, std::FILE *out,
                        std::FILE *log) {
  Profile profile(model->plan());
  SchedulerOptions scheduling{.cachesPrefixes = false};
  if (options.profile || !options.trace.empty())
    scheduling.profile = &profile;
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Scheduler> scheduler,
                          Scheduler::create(model, scheduling));
  auto encode = [&](absl::string_view text, bool special) {
    return model->encode(text, {.special = special, .addBos = true});
  };
  auto answer =
      [&](Request request, absl::FunctionRef<bool()> isInterrupted,
          absl::FunctionRef<absl::Status(const AnswerPart &)> callback) {
        absl::Status status;
        LLAMAC_ASSIGN_OR_RETURN(
            const Scheduler::RequestId id,
            scheduler->submit(std::move(request), [&](const AnswerPart &part) {
              if (status.ok())
                status = callback(part);
            }));
        while (!scheduler->isIdle()) {
          scheduler->step(isInterrupted);
          if (!status.ok() || isInterrupted())
            scheduler->cancel(id);
        }
        return status;
      };
  LLAMAC_RETURN_IF_ERROR(
      runPrompt({model->name(), model->tokenizer(), encode, answer,
                 scheduler->mostTokens(), model->plan().sampling.get(),
                 model->grammars(), model->loadTimes().all()},
                options, out, log));
  if (options.profile) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceLimits> limits,
                            model->loaded().measureLimits());
    printText(log, profile.table(limits));
  }
  return options.trace.empty()
             ? absl::OkStatus()
             : writeFileAtomically(options.trace, profile.trace());
}

} // namespace llamac
