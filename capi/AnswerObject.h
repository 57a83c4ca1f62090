//===- AnswerObject.h - The answers to a request as C holds them *- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CAPI_ANSWEROBJECT_H
#define LLAMAC_CAPI_ANSWEROBJECT_H

#include "capi/QueueObject.h"
#include "engine/scheduler/AsyncEngine.h"
#include "llamac/llamac.h"
#include "text/request/ChatTurn.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

class AnswerObject {
public:
  AnswerObject(std::unique_ptr<AnswerStream> stream,
               std::shared_ptr<Notifier> notifier,
               std::vector<AnswerReader> readers)
      : stream(std::move(stream)), news(std::move(notifier)),
        readers(std::move(readers)) {}

  Notifier &notifier() const { return *news; }

  /// See llamac_answer_next(). Usage error while another thread waits.
  absl::StatusOr<const llamac_part *> next(double seconds);
  bool done() const { return stream->done(); }
  void cancel() { stream->cancel(); }

private:
  void viewLogprobs();

  const std::unique_ptr<AnswerStream> stream;
  const std::shared_ptr<Notifier> news;
  std::vector<AnswerReader> readers; ///< One for each answer.
  std::mutex taking;
  std::optional<AnswerPart> part; ///< The part that `view` points into.
  ToolCallPieces pieces;          ///< The text and calls of `part`.
  std::string message;
  std::vector<llamac_token_logprobs> logprobs;
  /// The alternatives of all `logprobs`, in a row.
  std::vector<llamac_logprob> alternatives;
  std::vector<llamac_call_part> calls;
  llamac_part view = {};
  llamac_end end = {};
};

} // namespace llamac

#endif // LLAMAC_CAPI_ANSWEROBJECT_H
