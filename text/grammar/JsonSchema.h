//===- JsonSchema.h - Grammars of JSON schemas ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_JSONSCHEMA_H
#define LLAMAC_TEXT_GRAMMAR_JSONSCHEMA_H

#include "text/grammar/GrammarWork.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>

namespace llamac {

/// Characters between two tokens of JSON at most: lines of deep records fit,
/// and a model cannot go on with spaces for ever.
inline constexpr int maxJsonSpace = 16;

/// Rules, as XGrammar's EBNF, for JSON that is valid by the schema `text`
/// (draft 2020-12), all of whose keywords hold together.
///
/// All that they match is valid, but not all that is valid matches: an object
/// has its properties in the schema's order, and others only where
/// additionalProperties or a pattern allows them or none are named; an array
/// with prefixItems alone has no others; a schema without a "type" has values
/// of the types that its keywords speak of; a string that a keyword restricts
/// has no needless escapes; numbers are as addNumbers() says. Formats are
/// those of draft 2020-12, of which some strings are left out; others say
/// nothing.
///
/// Usage error, with the place as a JSON pointer, for what is no schema, for
/// what is not supported, and where no value is valid; and that of `work`.
absl::StatusOr<std::string> jsonSchemaGrammar(absl::string_view text,
                                              GrammarWork &work);

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_JSONSCHEMA_H
