//===- Lexer.h - Tokens of a template ------------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_LEXER_H
#define LLAMAC_TEXT_TEMPLATES_LEXER_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llamac::chat {

enum class TokenKind : uint8_t {
  Data, ///< Text between tags, white space control applied.
  BeginExpression,
  EndExpression,
  BeginStatement,
  EndStatement,
  Name,
  String, ///< `text` has escapes replaced.
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text; ///< The source text; of Data and String, the value.
  int64_t integer = 0;
  double real = 0;

  bool is(TokenKind of, absl::string_view as) const {
    return kind == of && text == as;
  }
  bool isName(absl::string_view as) const { return is(TokenKind::Name, as); }
  bool isOperator(absl::string_view as) const {
    return is(TokenKind::Operator, as);
  }
};

/// The tokens of `source`, which is UTF-8, as jinja2 cuts it with trim_blocks
/// and lstrip_blocks; the last is End. Comments are left out, raw blocks are
/// Data. Error: `chat template, line N: ...`.
absl::StatusOr<std::vector<Token>> tokenize(absl::string_view source);

/// The error of a template as written.
absl::Status syntaxError(int line, absl::string_view message);

/// The error of what jinja2 has and templates of models do not use.
absl::Status refusal(int line, absl::string_view message);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_LEXER_H
