//===- RequestJson.h - Requests as JSON has them ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fields are those of requestOptions(), and OpenAI's response_format. One
// that is not known is an error, so that none is ignored.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_REQUESTJSON_H
#define LLAMAC_TEXT_REQUEST_REQUESTJSON_H

#include "runtime/io/JsonReader.h"
#include "text/request/ChatFormat.h"
#include "text/request/Request.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace llamac {

/// The ids of a prompt that is text.
using PromptEncoder = absl::FunctionRef<absl::StatusOr<std::vector<int32_t>>(
    absl::string_view text)>;

/// Sets what the fields of `object`, which was parsed from `text`, say in
/// `request`, whose other values stay. The caller reads `others` itself. What
/// is null counts as absent. Usage error, with the place, for an unknown field,
/// a wrong type or a number out of the range of its type; Scheduler::prepare()
/// has the others.
absl::Status readRequestFields(const JsonObject &object, absl::string_view text,
                               absl::Span<const absl::string_view> others,
                               Request &request);

/// The token ids in `value`, which is member `key` of `object` or a part of it.
/// An error for what is no array of ids from 0 to `end` - 1.
absl::StatusOr<std::vector<int32_t>> readIds(const JsonObject &object,
                                             absl::string_view key,
                                             const nlohmann::json &value,
                                             int64_t end = int64_t{1} << 31);

/// Usage error for the options of prompts of text where `object` has none.
absl::Status checkNoTextOptions(const JsonObject &object);

/// The fields that readPrompt() reads.
std::vector<absl::string_view> promptFields();

/// Sets the prompt, by one of the fields `prompt`, text or ids, `tokens`, ids,
/// and `messages`, which `chat` writes with the others of chatRequestFields, of
/// `object`, which was parsed from `text`. Usage error for none or several, a
/// wrong type, and for those of readChatRequest(); that of `chat` where it is
/// needed; those of the encoder.
absl::Status
readPrompt(const JsonObject &object, absl::string_view text,
           PromptEncoder encode,
           const absl::StatusOr<std::unique_ptr<const ChatFormat>> &chat,
           Request &request);

/// The array that answers have for `tokens`: of each its id, its text where
/// `tokenizer` is not null, logprob, rank, and in top_logprobs its
/// alternatives.
nlohmann::ordered_json logprobsJson(absl::Span<const TokenLogprobs> tokens,
                                    const Tokenizer *tokenizer);

/// OpenAI's finish_reason: "stop", or "length" where the answer was cut off;
/// vLLM's "abort" where somebody ended it.
absl::string_view finishReason(StopReason reason);

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_REQUESTJSON_H
