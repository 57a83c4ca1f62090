//===- EngineApi.cpp - llamac_engine_ and llamac_answer_ functions --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/AnswerObject.h"
#include "capi/EngineObject.h"
#include "capi/Errors.h"
#include "capi/Handles.h"
#include "capi/ModelObject.h"
#include "capi/Options.h"
#include "runtime/base/FieldError.h"
#include "text/request/ChatTurn.h"
#include "text/request/RequestJson.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace llamac {

#define LLAMAC_SAME_REASON(C, CXX)                                             \
  static_assert(LLAMAC_##C == static_cast<int>(StopReason::CXX))
LLAMAC_SAME_REASON(LENGTH, Length);
LLAMAC_SAME_REASON(CONTEXT, Context);
LLAMAC_SAME_REASON(STOP_ID, StopId);
LLAMAC_SAME_REASON(STOP_STRING, StopString);
LLAMAC_SAME_REASON(CANCELLED, Cancelled);
LLAMAC_SAME_REASON(DEADLINE, Deadline);
#undef LLAMAC_SAME_REASON

void AnswerObject::viewLogprobs() {
  logprobs.clear();
  alternatives.clear();
  // Their addresses are final once all are there.
  for (const TokenLogprobs &token : part->logprobs)
    for (const TokenLogprob &other : token.alternatives)
      alternatives.push_back({other.id, other.logprob});
  const llamac_logprob *next = alternatives.data();
  for (const TokenLogprobs &token : part->logprobs) {
    logprobs.push_back({{token.chosen.id, token.chosen.logprob},
                        token.rank,
                        next,
                        token.alternatives.size()});
    next += token.alternatives.size();
  }
  if (!logprobs.empty())
    view.logprobs = logprobs.data();
}

absl::StatusOr<const llamac_part *> AnswerObject::next(double seconds) {
  const std::unique_lock lock(taking, std::try_to_lock);
  if (!lock)
    return usageError("answer: another thread waits for its next part");
  part = stream->next(seconds);
  if (!part)
    return nullptr;
  AnswerReader &reader = readers[static_cast<size_t>(part->answer)];
  pieces = reader.take(*part);
  calls.clear();
  for (const ToolCallPart &call : pieces.calls)
    calls.push_back({call.call, call.name.c_str(), call.arguments.c_str(),
                     call.arguments.size()});
  view = {.answer = part->answer,
          .tokens = part->tokens.data(),
          .token_count = part->tokens.size(),
          .text = pieces.content.c_str(),
          .text_size = pieces.content.size(),
          .end = nullptr,
          .logprobs = nullptr,
          .calls = calls.data(),
          .call_count = calls.size()};
  viewLogprobs();
  if (!part->end)
    return &view;
  const AnswerEnd &ended = *part->end;
  message = std::string(ended.status.message());
  end = {.code = static_cast<llamac_code>(exitCode(ended.status)),
         .message = message.c_str(),
         .reason = static_cast<llamac_reason>(ended.reason),
         // Literals.
         .reason_name =
             ended.status.ok() ? stopReasonName(ended.reason).data() : "error",
         .seed = ended.seed,
         .prompt_tokens = ended.promptTokens,
         .cached_tokens = ended.cachedTokens,
         .answer_tokens = ended.answerTokens,
         .preemptions = ended.preemptions,
         .queue_seconds = ended.queueSeconds,
         .first_token_seconds = ended.firstTokenSeconds,
         .seconds = ended.seconds,
         .draft_tokens = ended.draftTokens,
         .accepted_tokens = ended.acceptedTokens,
         .finish_reason = ended.status.ok()
                              ? reader.finishReason(ended.reason).data()
                              : "error"};
  view.end = &end;
  return &view;
}

/// A request with `options`, which may be null, over what the model advises,
/// and without a prompt. `addsBos`: the option add_special_tokens where nobody
/// sets it.
static absl::StatusOr<Request> requestOf(const Model &model,
                                         const llamac_options *options,
                                         bool addsBos = true) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, optionalObjectOf(options));
  Request request;
  request.encoding.addBos = addsBos;
  request.options.sampling = advisedSampling(model.plan().sampling.get());
  if (given) {
    LLAMAC_RETURN_IF_ERROR(given->apply(request));
    drawWhereAsked(given->names(), request);
  }
  return request;
}

/// How conversations with `model` are written: by the template `source`, or by
/// the model's where that is empty.
static absl::StatusOr<std::unique_ptr<const ChatFormat>>
chatFormatOf(const Model &model, const std::string &source) {
  const Tokenizer *tokenizer = model.tokenizer();
  if (!tokenizer)
    return usageError(absl::StrCat(
        model.name(), ": expected a model with a tokenizer, got one without"));
  return source.empty()
             ? ChatFormat::create(*tokenizer)
             : ChatFormat::create(*tokenizer, source, "option chat_template");
}

/// Sets what `text`, JSON of a conversation, says in `request`.
static absl::StatusOr<CallForm>
readChat(const EngineObject &engine, absl::string_view text, Request &request) {
  LLAMAC_RETURN_IF_ERROR(engine.chat.status());
  const Model &model = engine.requests->model();
  // Callers mostly make it of values of their own: its bytes are no places.
  LLAMAC_ASSIGN_OR_RETURN(
      const JsonDocument document,
      parseJson("", text, {.maxBytes = std::numeric_limits<uint64_t>::max()}));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::root(document));
  LLAMAC_RETURN_IF_ERROR(
      readRequestFields(object, text, conversationFields(), request));
  LLAMAC_ASSIGN_OR_RETURN(CallForm form,
                          readConversation(object, text, **engine.chat,
                                           *model.tokenizer(), request));
  if (request.encoding.addBos)
    request.prompt = model.withBos(std::move(request.prompt));
  return form;
}

static absl::StatusOr<llamac_answer *>
submit(const EngineObject &engine, Request request, const CallForm &form = {}) {
  HandleTable &handles = HandleTable::get();
  const uint64_t number = handles.newNumber();
  auto notifier = std::make_shared<Notifier>(number);
  // Before the request is moved; one of a wrong number is refused.
  std::vector<AnswerReader> readers(
      static_cast<size_t>(std::clamp(request.answers, 0, mostAnswers)),
      AnswerReader(form));
  LLAMAC_ASSIGN_OR_RETURN(
      auto stream, engine.requests->submit(
                       std::move(request),
                       [notifier](const AnswerPart &) { notifier->notify(); }));
  handles.insert(number, HandleTraits<llamac_answer>::name,
                 std::make_shared<AnswerObject>(std::move(stream),
                                                std::move(notifier),
                                                std::move(readers)));
  return handleOf<llamac_answer>(number);
}

static llamac_counts countsOf(const SchedulerCounts &counts) {
  return {.running = counts.running,
          .waiting = counts.waiting,
          .steps = counts.steps,
          .preemptions = counts.preemptions,
          .prompt_tokens = counts.promptTokens,
          .cached_tokens = counts.cachedTokens,
          .answer_tokens = counts.answerTokens,
          .finished = counts.finished,
          .failed = counts.failed,
          .pages = counts.pages,
          .free_pages = counts.freePages,
          .loaded_tokens = counts.loadedTokens,
          .draft_tokens = counts.draftTokens,
          .accepted_tokens = counts.acceptedTokens()};
}

} // namespace llamac

using namespace llamac;

llamac_code llamac_engine_new(const llamac_model *model,
                              const llamac_options *options,
                              llamac_engine **engine) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(engine, "engine"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(model));
    LLAMAC_ASSIGN_OR_RETURN(const auto given, optionalObjectOf(options));
    ChatEngineOptions chosen;
    if (given)
      LLAMAC_RETURN_IF_ERROR(given->apply(chosen));
    auto created = std::make_shared<EngineObject>();
    created->chat = chatFormatOf(*object->model(), chosen.chatTemplate);
    if (!chosen.chatTemplate.empty())
      LLAMAC_RETURN_IF_ERROR(asUsageError(created->chat.status()));
    LLAMAC_ASSIGN_OR_RETURN(created->requests,
                            AsyncEngine::create(object->model(), chosen));
    *engine = openHandle<llamac_engine>(std::move(created));
    return absl::OkStatus();
  });
}

llamac_code llamac_engine_free(llamac_engine *engine) {
  return callFromC([&] { return closeHandle(engine).status(); });
}

llamac_code llamac_engine_count(const llamac_engine *engine,
                                llamac_counts *counts, size_t size) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(checkNotNull(counts, "counts"));
    std::memset(counts, 0, size);
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(engine));
    const llamac_counts now = countsOf(object->requests->counts());
    std::memcpy(counts, &now, std::min(size, sizeof(now)));
    return absl::OkStatus();
  });
}

llamac_code llamac_engine_submit(llamac_engine *engine, const int32_t *tokens,
                                 size_t count, const llamac_options *options,
                                 llamac_answer **answer) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(answer, "answer"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(engine));
    LLAMAC_RETURN_IF_ERROR(checkArray(tokens, count, "tokens"));
    LLAMAC_ASSIGN_OR_RETURN(Request request,
                            requestOf(object->requests->model(), options));
    request.prompt.assign(tokens, tokens + count);
    LLAMAC_ASSIGN_OR_RETURN(*answer, submit(*object, std::move(request)));
    return absl::OkStatus();
  });
}

llamac_code llamac_engine_submit_text(llamac_engine *engine, const char *text,
                                      size_t size,
                                      const llamac_options *options,
                                      llamac_answer **answer) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(answer, "answer"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(engine));
    LLAMAC_RETURN_IF_ERROR(checkArray(text, size, "text"));
    const Model &model = object->requests->model();
    LLAMAC_ASSIGN_OR_RETURN(Request request, requestOf(model, options));
    LLAMAC_ASSIGN_OR_RETURN(request.prompt,
                            model.encode({text, size}, request.encoding));
    LLAMAC_ASSIGN_OR_RETURN(*answer, submit(*object, std::move(request)));
    return absl::OkStatus();
  });
}

llamac_code llamac_engine_submit_chat(llamac_engine *engine, const char *json,
                                      size_t size,
                                      const llamac_options *options,
                                      llamac_answer **answer) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(answer, "answer"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(engine));
    LLAMAC_RETURN_IF_ERROR(checkArray(json, size, "json"));
    LLAMAC_ASSIGN_OR_RETURN(
        Request request,
        requestOf(object->requests->model(), options, /*addsBos=*/false));
    const auto form = readChat(*object, {json, size}, request);
    if (!form.ok())
      return asUsageError(form.status());
    LLAMAC_ASSIGN_OR_RETURN(*answer,
                            submit(*object, std::move(request), *form));
    return absl::OkStatus();
  });
}

llamac_code llamac_answer_free(llamac_answer *answer) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const auto object, closeHandle(answer));
    if (object) // A thread may wait for it.
      object->cancel();
    return absl::OkStatus();
  });
}

llamac_code llamac_answer_next(llamac_answer *answer, double seconds,
                               const llamac_part **part) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(part, "part"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(answer));
    LLAMAC_ASSIGN_OR_RETURN(*part, object->next(seconds));
    return absl::OkStatus();
  });
}

llamac_code llamac_answer_done(const llamac_answer *answer, int *done) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(done, "done"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(answer));
    *done = object->done() ? 1 : 0;
    return absl::OkStatus();
  });
}

llamac_code llamac_answer_cancel(llamac_answer *answer) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(answer));
    object->cancel();
    return absl::OkStatus();
  });
}
