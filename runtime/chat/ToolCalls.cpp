//===- ToolCalls.cpp - Calls of tools in a model's answer -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/ToolCalls.h"

#include "runtime/io/JsonReader.h"
#include "runtime/io/JsonText.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace llamac {

using nlohmann::ordered_json;

// Qwen 2.5 and 3, SmolLM3 and others write as Nous Research's Hermes does;
// Llama 3.1 to 3.3 as https://www.llama.com/docs (JSON based tool calling) has
// it.
static constexpr ToolCallSyntax syntaxes[] = {
    {"hermes", "<tool_call>", "<tool_call>", "</tool_call>", "arguments"},
    {"llama3", "\"parameters\"", "", "", "parameters"},
};

absl::Span<const ToolCallSyntax> toolCallSyntaxes() { return syntaxes; }

//===----------------------------------------------------------------------===//
// The head of a call
//===----------------------------------------------------------------------===//

namespace {

/// Reads the beginning of a JSON text that may not be there to its end.
class HeadReader {
public:
  explicit HeadReader(absl::string_view text) : text(text) {}

  /// Whether `symbol` comes next; sets one of the outcomes below if not.
  bool takes(char symbol) {
    skipSpace();
    if (at == text.size())
      return needsMore = true, false;
    if (text[at] != symbol)
      return false;
    ++at;
    return true;
  }

  /// The string that comes next, decoded.
  std::optional<std::string> string() {
    skipSpace();
    const size_t begin = at;
    if (!takes('"'))
      return std::nullopt;
    while (at < text.size() && text[at] != '"')
      at += text[at] == '\\' ? 2 : 1;
    if (at >= text.size()) {
      needsMore = true;
      return std::nullopt;
    }
    ++at;
    const ordered_json value =
        ordered_json::parse(text.substr(begin, at - begin), nullptr, false);
    if (!value.is_string())
      return std::nullopt;
    return value.get<std::string>();
  }

  void skipSpace() {
    while (at < text.size() && absl::ascii_isspace(text[at]))
      ++at;
  }

  absl::string_view text;
  size_t at = 0;
  bool needsMore = false; ///< It ended where it might go on well.
};

/// The head of a call: {"name": "...", "arguments": {
struct CallHead {
  std::string name;
  size_t size; ///< Up to the bracket of the arguments.
};

} // namespace

/// The members that may hold arguments: models mix them up.
static bool isArguments(absl::string_view member) {
  return std::ranges::any_of(syntaxes, [&](const ToolCallSyntax &syntax) {
    return member == syntax.arguments;
  });
}

/// The head that `reader` begins with.
static std::optional<CallHead> readHead(HeadReader &reader) {
  if (!reader.takes('{') || reader.string() != "name" || !reader.takes(':'))
    return std::nullopt;
  std::optional<std::string> name = reader.string();
  if (!name || !reader.takes(','))
    return std::nullopt;
  const std::optional<std::string> member = reader.string();
  if (!member || !isArguments(*member) || !reader.takes(':') ||
      !reader.takes('{'))
    return std::nullopt;
  return CallHead{*std::move(name), reader.at - 1};
}

//===----------------------------------------------------------------------===//
// The parser
//===----------------------------------------------------------------------===//

ToolCallPieces ToolCallParser::add(absl::string_view text) {
  absl::StrAppend(&pending, text);
  ToolCallPieces pieces;
  while (step(pieces)) {
  }
  return pieces;
}

ToolCallPieces ToolCallParser::end() {
  atEnd = true;
  return add("");
}

/// Goes on from one state to the next; false when more text is needed.
bool ToolCallParser::step(ToolCallPieces &to) {
  switch (state) {
  case State::Start:
    if (!atEnd && absl::StripLeadingAsciiWhitespace(pending).empty())
      return false;
    state = absl::StartsWith(absl::StripLeadingAsciiWhitespace(pending), "{")
                ? State::Head
                : State::Plain;
    return true;
  case State::Text:
    return stepText(to);
  case State::Plain:
    to.content += std::exchange(pending, {});
    return false;
  case State::Head:
    return stepHead(to);
  case State::Whole:
    return stepWhole(to);
  case State::Arguments:
    return stepArguments(to);
  case State::Tail:
    return stepTail();
  }
  return false;
}

/// Gives content up to the next call, but not what may be before or in its
/// mark.
bool ToolCallParser::stepText(ToolCallPieces &to) {
  const absl::string_view open = syntax->open;
  const absl::string_view all = pending;
  const size_t found = all.find(open);
  const bool isFound = found != std::string::npos;
  size_t size = isFound ? found : pending.size();
  if (!isFound && !atEnd) {
    size_t held = std::min(open.size() - 1, pending.size());
    while (!absl::EndsWith(pending, open.substr(0, held)))
      --held;
    size -= held;
  }
  const absl::string_view text = all.substr(0, size);
  const size_t kept = absl::StripTrailingAsciiWhitespace(text).size();
  absl::StrAppend(&to.content,
                  isFound || !atEnd || count > 0 ? text.substr(0, kept) : text);
  pending.erase(0, isFound ? found + open.size() : atEnd ? size : kept);
  if (isFound)
    state = State::Head;
  return isFound;
}

bool ToolCallParser::stepHead(ToolCallPieces &to) {
  HeadReader reader(pending);
  std::optional<CallHead> head = readHead(reader);
  if (!head) {
    if (reader.needsMore && !atEnd)
      return false;
    state = State::Whole;
    return true;
  }
  to.calls.push_back({count++, std::move(head->name), ""});
  pending.erase(0, head->size);
  depth = 0;
  inString = afterBackslash = false;
  state = State::Arguments;
  return true;
}

/// The number of bytes of the JSON value that `text` begins with; none where
/// it goes on.
static std::optional<size_t> sizeOfValue(absl::string_view text, int &depth,
                                         bool &inString, bool &afterBackslash) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      inString = afterBackslash || c != '"';
      afterBackslash = !afterBackslash && c == '\\';
      continue;
    }
    inString = c == '"';
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth == 0 && (c == '}' || c == ']'))
      return i + 1;
  }
  return std::nullopt;
}

bool ToolCallParser::stepArguments(ToolCallPieces &to) {
  const std::optional<size_t> size =
      sizeOfValue(pending, depth, inString, afterBackslash);
  const std::string text = pending.substr(0, size.value_or(pending.size()));
  pending.erase(0, text.size());
  if (!text.empty()) {
    if (to.calls.empty())
      to.calls.push_back({count - 1, "", ""});
    to.calls.back().arguments += text;
  }
  if (size)
    state = State::Tail;
  return size.has_value();
}

/// Where a call has ended.
void ToolCallParser::afterCall() {
  state = *syntax->open ? State::Text : State::Start;
}

bool ToolCallParser::stepTail() {
  if (*syntax->close) {
    const size_t found = pending.find(syntax->close);
    if (found == std::string::npos)
      return false;
    pending.erase(0, found + std::strlen(syntax->close));
    afterCall();
    return true;
  }
  // Calls that follow each other are separated by space or a semicolon.
  const size_t begin = pending.find_first_not_of("} \t\r\n;");
  pending.erase(0, begin);
  if (begin == std::string::npos)
    return false;
  afterCall();
  return true;
}

/// Gives the call that `text` is, if it is one.
bool ToolCallParser::takeCall(absl::string_view text, ToolCallPieces &to) {
  if (!checkJsonLimits("call", text, {}).ok())
    return false;
  const ordered_json call = ordered_json::parse(text, nullptr, false);
  if (!call.is_object() || !call.contains("name") || !call["name"].is_string())
    return false;
  for (const auto &[member, value] : call.items())
    if (isArguments(member)) {
      to.calls.push_back(
          {count++, call["name"].get<std::string>(),
           value.is_string() ? value.get<std::string>() : jsonText(value)});
      return true;
    }
  return false;
}

bool ToolCallParser::stepWhole(ToolCallPieces &to) {
  const absl::string_view close = syntax->close;
  size_t size = pending.size(), behind = pending.size();
  if (!close.empty()) {
    const size_t found = absl::string_view(pending).find(close);
    if (found == std::string::npos && !atEnd)
      return false;
    if (found != std::string::npos) {
      size = found;
      behind = found + close.size();
    }
  } else {
    int open = 0;
    bool isText = false, isEscaped = false;
    const std::optional<size_t> end =
        sizeOfValue(pending, open, isText, isEscaped);
    if (!end && !atEnd)
      return false;
    size = behind = end.value_or(size);
  }
  const absl::string_view text = absl::string_view(pending).substr(0, size);
  if (takeCall(text, to)) {
    pending.erase(0, behind);
    state = close.empty() ? State::Tail : State::Text;
    return true;
  }
  absl::StrAppend(&to.content, syntax->open, pending.substr(0, behind));
  pending.erase(0, behind);
  state = close.empty() ? State::Plain : State::Text;
  return true;
}

} // namespace llamac
