//===- JsonSchema.h - Schemas that grammars can follow ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_JSONSCHEMA_H
#define LLAMAC_RUNTIME_ENGINE_JSONSCHEMA_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>

namespace llamac {

/// A JSON schema (draft 2020-12) that says all that `text` does in the way that
/// XGrammar reads it. Of several constraints side by side XGrammar follows one
/// and leaves out the rest, so what would be left out is refused.
///
/// Values that the result allows are valid by `text`, but not all that are: an
/// object has its properties in the schema's order, and none that are not named
/// unless additionalProperties or the absence of all names allows them; an
/// array with prefixItems alone has no others; a constraint without a "type" is
/// one of the type that it is about. "format" is followed for the formats that
/// XGrammar knows, and else says nothing.
///
/// Usage error for text that is no JSON, with its offset, and, with the place
/// as a JSON pointer, for what is no schema, and for keywords, or combinations
/// of them, that are not supported.
absl::StatusOr<std::string> prepareJsonSchema(absl::string_view text);

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_JSONSCHEMA_H
