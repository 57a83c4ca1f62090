//===- Text.h - Code points of UTF-8 -------------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Templates see text as Python does: a sequence of Unicode code points. Strings
// here are well-formed UTF-8, which isUtf8() says of those from outside.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_TEXT_H
#define LLAMAC_TEXT_TEMPLATES_TEXT_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac::chat {

bool isUtf8(absl::string_view text);

/// The number of code points.
size_t codePoints(absl::string_view text);

/// The code point at byte `at`, which moves past it.
int32_t decode(absl::string_view text, size_t &at);

/// Appends `code`, which is no surrogate.
void encode(int32_t code, std::string &to);

/// The byte at which code point `index` begins; the size when there are fewer.
size_t byteOf(absl::string_view text, size_t index);

/// Python's str.isspace, isdecimal and isprintable of one code point.
bool isSpace(int32_t code);
bool isDecimal(int32_t code);
bool isPrintable(int32_t code);

/// Python's str.upper, lower and capitalize; jinja2's `title`, whose words
/// begin after spaces and -({[<. Errors: a capital sigma, whose lower case
/// depends on its word; a first letter whose title case is several, as that of
/// a ligature.
absl::StatusOr<std::string> upper(absl::string_view text);
absl::StatusOr<std::string> lower(absl::string_view text);
absl::StatusOr<std::string> capitalize(absl::string_view text);
absl::StatusOr<std::string> titleWords(absl::string_view text);

/// Without the code points of `chars` (white space when there are none) at its
/// beginning and its end.
absl::string_view strip(absl::string_view text,
                        std::optional<absl::string_view> chars, bool left,
                        bool right);

/// Where `part` is in `text` from byte `from` on, in linear time; npos when it
/// is not.
size_t find(absl::string_view text, absl::string_view part, size_t from = 0);

/// `text` with `to` for the first `count` of `from`, which is not empty; for
/// all when negative. Fails, with nothing, where it would have more than
/// `limit` bytes.
std::optional<std::string> replace(absl::string_view text,
                                   absl::string_view from, absl::string_view to,
                                   int64_t count, uint64_t limit);

/// The lines of `text`, as Python's str.splitlines cuts them.
std::vector<absl::string_view> linesOf(absl::string_view text);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_TEXT_H
