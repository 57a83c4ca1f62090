//===- ToolCalls.cpp - Calls of tools in a model's answer -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/ToolCalls.h"

#include "runtime/io/JsonReader.h"
#include "runtime/io/JsonText.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <nlohmann/json.hpp>

#include <algorithm>
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
  const size_t size = reader.at - 1;
  if (!reader.takes('"') && (reader.needsMore || !reader.takes('}')))
    return std::nullopt;
  return CallHead{*std::move(name), size};
}

//===----------------------------------------------------------------------===//
// The end of an object
//===----------------------------------------------------------------------===//

/// Whether JSON has `c` outside of strings.
static bool isOfJson(char c) {
  return absl::ascii_isspace(c) || absl::ascii_isdigit(c) ||
         absl::StrContains("{}[],:\"+-.E", c) ||
         absl::StrContains("truefalsn", c);
}

size_t JsonExtent::read(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      inString = afterBackslash || c != '"';
      afterBackslash = !afterBackslash && c == '\\';
      continue;
    }
    if (!isOfJson(c) || (depth == 0 && c != '{' && !absl::ascii_isspace(c))) {
      now = State::Broken;
      return i;
    }
    inString = c == '"';
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth == 0 && (c == '}' || c == ']')) {
      now = State::Ended;
      return i + 1;
    }
  }
  return text.size();
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
  case State::Rest:
    return stepRest();
  case State::Close:
    return stepClose();
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
  pending.erase(0, atEnd && !isFound ? size : kept);
  if (isFound) {
    mark = found - kept + open.size();
    state = State::Head;
  }
  return isFound;
}

/// Where what looked like a call is none.
void ToolCallParser::isNoCall(ToolCallPieces &to) {
  to.content += pending.substr(0, mark);
  pending.erase(0, std::exchange(mark, 0));
  state = *syntax->open ? State::Text : State::Plain;
}

bool ToolCallParser::stepHead(ToolCallPieces &to) {
  HeadReader reader(absl::string_view(pending).substr(mark));
  std::optional<CallHead> head = readHead(reader);
  extent = JsonExtent();
  scanned = 0;
  if (!head) {
    if (reader.needsMore && !atEnd)
      return false;
    state = State::Whole;
    return true;
  }
  to.calls.push_back({count++, std::move(head->name), ""});
  pending.erase(0, std::exchange(mark, 0) + head->size);
  state = State::Arguments;
  return true;
}

bool ToolCallParser::stepArguments(ToolCallPieces &to) {
  size_t size = extent.read(pending);
  // Bytes that are no JSON are passed on: the client, which has the name of the
  // call already, finds out.
  while (extent.state() == JsonExtent::State::Broken && size < pending.size()) {
    extent.skip();
    ++size;
    size += extent.read(absl::string_view(pending).substr(size));
  }
  if (size > 0) {
    if (to.calls.empty())
      to.calls.push_back({count - 1, "", ""});
    to.calls.back().arguments += pending.substr(0, size);
    pending.erase(0, size);
  }
  if (extent.state() != JsonExtent::State::Ended)
    return false;
  extent = JsonExtent(1);
  state = State::Rest;
  return true;
}

/// Passes over what the object of the call has behind its arguments.
bool ToolCallParser::stepRest() {
  pending.erase(0, extent.read(pending));
  if (extent.state() == JsonExtent::State::Open)
    return false;
  state = State::Close;
  return true;
}

/// Where a call has ended.
void ToolCallParser::afterCall() {
  state = *syntax->open ? State::Text : State::Start;
}

bool ToolCallParser::stepClose() {
  const absl::string_view close = syntax->close;
  // Calls that follow each other without marks are separated by space or a
  // semicolon. Models may close more brackets than they have opened.
  const size_t begin = std::min(
      pending.find_first_not_of(close.empty() ? "} \t\r\n;" : "} \t\r\n"),
      pending.size());
  const absl::string_view text = absl::string_view(pending).substr(begin);
  if (absl::StartsWith(close, text) &&
      text.size() < std::max<size_t>(close.size(), 1)) {
    if (atEnd)
      pending.clear();
    return false;
  }
  if (absl::StartsWith(text, close))
    pending.erase(0, begin + close.size());
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
  const absl::string_view text = absl::string_view(pending).substr(mark);
  scanned += extent.read(text.substr(scanned));
  if (extent.state() == JsonExtent::State::Open && !atEnd)
    return false;
  if (extent.state() == JsonExtent::State::Ended &&
      takeCall(text.substr(0, scanned), to)) {
    pending.erase(0, std::exchange(mark, 0) + scanned);
    state = State::Close;
  } else {
    isNoCall(to);
  }
  return true;
}

} // namespace llamac
