//===- RequestJson.h - Requests as JSON has them ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and meanings are those of OpenAI's interface, and vLLM's where that has
// none. A field that is not known is an error, so that none is ignored.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_REQUESTJSON_H
#define LLAMAC_RUNTIME_ENGINE_REQUESTJSON_H

#include "runtime/engine/Request.h"
#include "runtime/io/JsonReader.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace llamac {

/// The ids of a prompt that is text.
using PromptEncoder = absl::FunctionRef<absl::StatusOr<std::vector<int32_t>>(
    absl::string_view text)>;

/// What the fields of a request are read with.
struct RequestContext {
  /// What the object was parsed from.
  absl::string_view text;
  /// Fields that the caller reads itself.
  absl::Span<const absl::string_view> others = {};
  /// Null where there is no tokenizer.
  GrammarCompiler *grammars = nullptr;
};

/// Sets what the fields of `object` say in `request`, whose other values stay.
/// What is null counts as absent. Usage error, with the place, for an unknown
/// field, a wrong type or a number out of the range of its type, and for a
/// grammar those of GrammarCompiler; Scheduler::check() has the others.
absl::Status readRequestFields(const JsonObject &object,
                               const RequestContext &context, Request &request);

/// The names that readRequestFields() knows.
std::vector<absl::string_view> requestFieldNames();

/// Sets the prompt, by one of the fields `prompt`, text or ids, and `tokens`,
/// ids. Usage error for both or neither, a wrong type, and those of `encode`.
absl::Status readPrompt(const JsonObject &object, PromptEncoder encode,
                        Request &request);

/// OpenAI's finish_reason: "stop", or "length" where the answer was cut off;
/// vLLM's "abort" where somebody ended it.
absl::string_view finishReason(StopReason reason);

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_REQUESTJSON_H
