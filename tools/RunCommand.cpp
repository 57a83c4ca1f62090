//===- RunCommand.cpp - Completes a prompt --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/RunCommand.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonText.h"
#include "runtime/io/MappedFile.h"
#include "text/request/RequestJson.h"
#include "tools/Conversation.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace llamac {

absl::StatusOr<std::vector<int32_t>> parseTokenIds(absl::string_view text) {
  std::vector<int32_t> ids;
  for (absl::string_view part :
       absl::StrSplit(text, absl::ByAnyChar(", \t\n"), absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(part, &ids.emplace_back()) || ids.back() < 0)
      return usageError(
          absl::StrCat("--tokens: expected ids such as 1,2,3, got ", part));
  }
  if (ids.empty())
    return usageError("--tokens: expected ids such as 1,2,3, got none");
  return ids;
}

absl::Status prepareRun(RunOptions &options, std::FILE *in) {
  if (options.prompt.has_value() == options.tokens.has_value())
    return usageError(absl::StrCat("prompt: expected -p TEXT or --tokens IDS, "
                                   "got ",
                                   options.prompt ? "both" : "neither"));
  if (options.tokens)
    LLAMAC_RETURN_IF_ERROR(parseTokenIds(*options.tokens).status());
  if (options.prompt == "-") {
    options.prompt->clear();
    std::array<char, 1 << 16> piece;
    while (const size_t size = std::fread(piece.data(), 1, piece.size(), in))
      options.prompt->append(piece.data(), size);
    if (absl::EndsWith(*options.prompt, "\n"))
      options.prompt->pop_back();
  }
  if (options.prompt)
    LLAMAC_RETURN_IF_ERROR(checkUtf8("prompt", *options.prompt));
  LLAMAC_RETURN_IF_ERROR(prepareChat(options.chat));
  return prepareAnswer(options);
}

static double rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

/// One line for people.
static void printTimes(double loadSeconds, const GenerateResult &result,
                       std::FILE *log) {
  const GenerateTimes &times = result.times;
  absl::FPrintF(log,
                "load %.2f s, prompt %d tokens at %.1f tok/s, time to first "
                "token %.2f s, decode %d tokens at %.1f tok/s, stopped by %s\n",
                loadSeconds, times.promptTokens,
                rate(times.promptTokens, times.prefillSeconds),
                loadSeconds + times.prefillSeconds, times.decodeSteps,
                rate(times.decodeSteps, times.decodeSeconds),
                stopReasonName(result.reason));
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

/// One JSON object for programs: the answer, `text` unless ids are asked for,
/// and the times.
static std::string answerJson(double loadSeconds, const GenerateResult &result,
                              const RunOptions &options, bool asMessage,
                              const Tokenizer *tokenizer,
                              const std::string &text) {
  const GenerateTimes &times = result.times;
  nlohmann::ordered_json answer;
  if (options.printIds)
    answer["ids"] = result.ids;
  else
    answer["text"] = text;
  answer.update(
      {{"load_s", loadSeconds},
       {"chat_template", asMessage},
       {"prompt_tokens", times.promptTokens},
       {"prefill_s", times.prefillSeconds},
       {"prefill_tok_s", rate(times.promptTokens, times.prefillSeconds)},
       {"first_token_s", loadSeconds + times.prefillSeconds},
       {"generated_tokens", result.ids.size()},
       {"decode_s", times.decodeSeconds},
       {"decode_tok_s", rate(times.decodeSteps, times.decodeSeconds)},
       {"stop", std::string(stopReasonName(result.reason))},
       {"seed", result.seed}});
  if (options.generate.sampling.logprobs >= 0)
    answer["logprobs"] = logprobsJson(result.logprobs, tokenizer);
  return jsonText(answer);
}

/// Whether the prompt is a message. Usage error for a system message that
/// nothing is made of.
static absl::StatusOr<bool> isMessage(const RunSubject &subject,
                                      const RunOptions &options) {
  const Tokenizer *tokenizer = subject.decoder.tokenizer();
  if (options.raw || options.tokens || !tokenizer)
    return false;
  const bool result = hasChatTemplate(*tokenizer, options.chat);
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
      chatFormatOf(subject.path, subject.decoder.tokenizer(), options.chat));
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

absl::Status runDecoder(const RunSubject &subject, const RunOptions &options,
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
    LLAMAC_RETURN_IF_ERROR(
        checkHasText(subject.path, subject.decoder.tokenizer()));

  if (!options.quiet && !options.json)
    printForm(options, asMessage, log);
  GenerateOptions generation = options.generate;
  generation.maxTokens =
      options.maxTokens.value_or(asMessage ? mostChatTokens : mostRawTokens);
  generation.sampling = samplingOf(options, subject.sampling);
  if (options.grammar) {
    LLAMAC_ASSIGN_OR_RETURN(
        generation.sampling.grammar,
        compileGrammar(options, subject.path, subject.grammars));
  }
  std::string answer; // What is printed when done.
  bool first = true;
  absl::Status written;
  auto print = [&](absl::string_view text) {
    written = writeOutput(out, text);
    return written.ok();
  };
  GenerateCallbacks callbacks;
  if (options.printIds && !options.json)
    callbacks.onToken = [&](int32_t id) {
      const bool isFirst = std::exchange(first, false);
      return print(absl::StrCat(isFirst ? "" : " ", id));
    };
  else if (!options.printIds)
    callbacks.onText = [&](absl::string_view text) {
      if (!options.json)
        return print(text);
      absl::StrAppend(&answer, text);
      return true;
    };

  LLAMAC_ASSIGN_OR_RETURN(
      const GenerateResult result,
      generate(subject.decoder, *prompt, generation, callbacks));
  if (options.json)
    answer = answerJson(subject.loadSeconds, result, options, asMessage,
                        subject.decoder.tokenizer(), answer);
  if (!written.ok() || !print(answer + "\n"))
    return written;
  if (!options.json)
    printLogprobs(subject.decoder.tokenizer(), result.logprobs, log);
  if (options.quiet || options.json)
    return absl::OkStatus();
  if (generation.sampling.temperature > 0)
    absl::FPrintF(log, "seed %d\n", result.seed);
  printTimes(subject.loadSeconds, result, log);
  return absl::OkStatus();
}

absl::Status runCommand(const std::shared_ptr<const Model> &model,
                        const RunOptions &options, std::FILE *out,
                        std::FILE *log) {
  Profile profile(model->plan());
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::create(model));
  if (options.profile || !options.trace.empty())
    engine->setProfile(&profile);
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder,
                          newDecoder(*engine));
  auto encode = [&](absl::string_view text, bool special) {
    return model->encode(text, {.special = special, .addBos = true});
  };
  LLAMAC_RETURN_IF_ERROR(
      runDecoder({*decoder, model->path(), encode, model->plan().sampling.get(),
                  model->grammars(), model->loadTimes().all()},
                 options, out, log));
  if (options.profile) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceLimits> limits,
                            model->device().measureLimits());
    printText(log, profile.table(limits));
  }
  return options.trace.empty()
             ? absl::OkStatus()
             : writeFileAtomically(options.trace, profile.trace());
}

} // namespace llamac
