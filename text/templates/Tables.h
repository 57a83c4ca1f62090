//===- Tables.h - Filters, tests, methods and functions ------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A template may call what is in these tables. They also name what jinja2 and
// Python have beyond that, which is refused by name. docs/decisions/0053 says
// what was counted.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_TABLES_H
#define LLAMAC_TEXT_TEMPLATES_TABLES_H

#include "text/templates/Interpreter.h"
#include "text/templates/Text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llamac::chat {

/// The names of one sort.
struct Table {
  const char *what; ///< "filter", in messages.
  absl::Span<const Function> functions;
  absl::string_view refused; ///< Separated by spaces.

  const Function *find(absl::string_view name) const;
  bool refuses(absl::string_view name) const;
  /// Says that `name` is refused, or unknown, and what there is.
  std::string refusal(absl::string_view name) const;
};

const Table &filters();
const Table &tests();
const Table &globals(); ///< The functions that every template may call.

/// The methods of values of a kind. Those that would change a list or a
/// dictionary have no call: they are undefined in the sandbox.
const Table &methods(Kind kind);

/// Whether a call of the method `name` is refused whatever the value is: the
/// message, or an empty text.
std::string methodRefusal(absl::string_view name, size_t positional,
                          absl::Span<const std::string> named);

/// Error when `function` takes no such arguments: so many without names, and
/// `named`.
absl::Status checkArguments(const Function &function, size_t positional,
                            absl::Span<const std::string> named);

/// Error where strftime_now() does not take `format`.
absl::Status checkTimeFormat(absl::string_view format);
/// The pieces of a format between its fields {}.
absl::StatusOr<std::vector<std::string>> formatPieces(absl::string_view format);

// Filters and methods of a text alike. Of another value, a filter takes the
// text.

template <absl::StatusOr<std::string> (*change)(absl::string_view)>
absl::StatusOr<Value> changeText(Interpreter &in, const Value &self,
                                 CallArguments &) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, self));
  LLAMAC_ASSIGN_OR_RETURN(std::string result, change(text));
  return in.heap.string(std::move(result));
}

/// Takes a text of characters, which are cut off at both ends, or one.
template <bool left, bool right>
absl::StatusOr<Value> stripText(Interpreter &in, const Value &self,
                                CallArguments &args) {
  std::optional<absl::string_view> chars;
  if (args[0].isString())
    chars = args[0].text();
  else if (args.has(0) && !args[0].is(Kind::None))
    return templateError(absl::StrCat("characters to strip are a text, got ",
                                      typeName(args[0])));
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, self));
  LLAMAC_RETURN_IF_ERROR(
      in.heap.spend(text.size() / 16 * (1 + (chars ? chars->size() : 0))));
  return in.heap.string(std::string(strip(text, chars, left, right)));
}

/// Takes the text to replace, what to put there, and how often.
absl::StatusOr<Value> replaceText(Interpreter &in, const Value &self,
                                  CallArguments &args);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_TABLES_H
