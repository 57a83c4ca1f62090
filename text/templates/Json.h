//===- Json.h - JSON to values and back ----------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_JSON_H
#define LLAMAC_TEXT_TEMPLATES_JSON_H

#include "text/templates/Value.h"

#include <optional>
#include <string>

namespace llamac::chat {

/// The value of the JSON `text`; of a key that is there twice the last value
/// counts. Usage error, which begins with `name`: no JSON, an integer of more
/// than 64 bits, or beyond a limit.
absl::StatusOr<Value> parseJsonValue(Heap &heap, absl::string_view name,
                                     absl::string_view text);

/// The arguments of Python's json.dumps.
struct JsonStyle {
  std::optional<std::string> indent; ///< Put before lines once a level.
  std::string itemSeparator = ", ";
  std::string keySeparator = ": ";
  bool ascii = false; ///< Other characters are escaped.
};

/// Appends `value` to `to`. Error: a value that JSON has not.
absl::Status appendJson(Heap &heap, const Value &value, const JsonStyle &style,
                        std::string &to, int depth = 0);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_JSON_H
