//===- EngineApi.cpp - llamac_engine_ and llamac_answer_ functions --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/AnswerObject.h"
#include "capi/Errors.h"
#include "capi/Handles.h"
#include "capi/ModelObject.h"
#include "capi/Options.h"

#include <algorithm>
#include <cstring>
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
  view = {.answer = part->answer,
          .tokens = part->tokens.data(),
          .token_count = part->tokens.size(),
          .text = part->text.c_str(),
          .text_size = part->text.size(),
          .end = nullptr,
          .logprobs = nullptr};
  viewLogprobs();
  if (!part->end)
    return &view;
  const AnswerEnd &ended = *part->end;
  message = std::string(ended.status.message());
  end = {.code = static_cast<llamac_code>(exitCode(ended.status)),
         .message = message.c_str(),
         .reason = static_cast<llamac_reason>(ended.reason),
         // A literal.
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
         .accepted_tokens = ended.acceptedTokens};
  view.end = &end;
  return &view;
}

/// A request with `options`, which may be null, over what the model advises,
/// and without a prompt.
static absl::StatusOr<Request> requestOf(const Model &model,
                                         const llamac_options *options) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, optionalObjectOf(options));
  Request request;
  request.options.sampling = advisedSampling(model.plan().sampling.get());
  if (given)
    LLAMAC_RETURN_IF_ERROR(given->apply(request));
  return request;
}

static absl::StatusOr<llamac_answer *> submit(AsyncEngine &engine,
                                              Request request) {
  HandleTable &handles = HandleTable::get();
  const uint64_t number = handles.newNumber();
  auto notifier = std::make_shared<Notifier>(number);
  LLAMAC_ASSIGN_OR_RETURN(
      auto stream,
      engine.submit(std::move(request),
                    [notifier](const AnswerPart &) { notifier->notify(); }));
  handles.insert(
      number, HandleTraits<llamac_answer>::name,
      std::make_shared<AnswerObject>(std::move(stream), std::move(notifier)));
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
    AsyncEngineOptions chosen;
    if (given)
      LLAMAC_RETURN_IF_ERROR(given->apply(chosen));
    LLAMAC_ASSIGN_OR_RETURN(auto created,
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
    const llamac_counts now = countsOf(object->counts());
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
                            requestOf(object->model(), options));
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
    const Model &model = object->model();
    LLAMAC_ASSIGN_OR_RETURN(Request request, requestOf(model, options));
    LLAMAC_ASSIGN_OR_RETURN(request.prompt,
                            model.encode({text, size}, request.encoding));
    LLAMAC_ASSIGN_OR_RETURN(*answer, submit(*object, std::move(request)));
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
