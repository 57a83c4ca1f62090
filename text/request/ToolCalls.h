//===- ToolCalls.h - Calls of tools in a model's answer ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_TOOLCALLS_H
#define LLAMAC_TEXT_REQUEST_TOOLCALLS_H

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstddef>
#include <string>
#include <vector>

namespace llamac {

/// How models of a family write calls: JSON objects with the tool's name and
/// its arguments.
struct ToolCallSyntax {
  const char *name;
  const char *templateMark; ///< A text in their chat templates.
  /// Around each call; empty where the answer is nothing but calls.
  const char *open, *close;
  const char *arguments; ///< The member that has them.
};

/// The syntaxes that llamac knows. A model's is the first whose mark its chat
/// template contains.
absl::Span<const ToolCallSyntax> toolCallSyntaxes();

/// A part of a call: the name comes with the first one, then the arguments'
/// JSON text piece by piece, as the model wrote it.
struct ToolCallPart {
  int call = 0; ///< Its number in the answer.
  std::string name = {}, arguments = {};
};

/// The content and the parts of calls in a piece of an answer.
struct ToolCallPieces {
  std::string content = {};
  std::vector<ToolCallPart> calls = {};
};

/// Finds the end of a JSON object that comes piece by piece. It knows brackets
/// and strings, and which bytes no JSON has outside of strings.
class JsonExtent {
public:
  enum class State {
    Open,
    Ended,
    Broken, ///< At a byte that is not of JSON.
  };

  /// Before an object, or inside of `depth` brackets.
  explicit JsonExtent(int depth = 0) : depth(depth) {}

  /// Reads on. Returns how many bytes of `text` belong to the object.
  size_t read(absl::string_view text);

  State state() const { return now; }

  /// Goes on behind the byte at which it is broken, as if that were not there.
  void skip() { now = State::Open; }

private:
  State now = State::Open;
  int depth; ///< Brackets that are open.
  bool inString = false, afterBackslash = false;
};

/// Takes an answer piece by piece and tells calls from content. What it gives
/// in all does not depend on how the answer was cut. Nothing is given of what
/// may be a call before that is certain: when its name and the first byte
/// within its arguments have come. Text that only begins as a call does is
/// content, as it is; space around calls is dropped.
class ToolCallParser {
public:
  explicit ToolCallParser(const ToolCallSyntax &syntax)
      : syntax(&syntax), state(*syntax.open ? State::Text : State::Start) {}

  ToolCallPieces add(absl::string_view text);

  /// The answer ends here.
  ToolCallPieces end();

  int calls() const { return count; }

  /// Whether the last call goes on: at the end, whether it was cut off.
  bool isInArguments() const { return state == State::Arguments; }

private:
  enum class State {
    Start,     ///< Nothing but space has come, and the answer may be calls.
    Text,      ///< Content, up to `open`.
    Plain,     ///< Content to the end.
    Head,      ///< A call, before its arguments.
    Whole,     ///< A call whose arguments do not come last.
    Arguments, ///< Inside of them.
    Rest,      ///< Behind them, inside the call's object.
    Close,     ///< Behind that.
  };

  bool step(ToolCallPieces &to);
  bool stepText(ToolCallPieces &to);
  bool stepHead(ToolCallPieces &to);
  bool stepWhole(ToolCallPieces &to);
  bool stepArguments(ToolCallPieces &to);
  bool stepRest();
  bool stepClose();
  bool takeCall(absl::string_view text, ToolCallPieces &to);
  void isNoCall(ToolCallPieces &to);
  void afterCall();

  const ToolCallSyntax *syntax;
  State state;
  std::string pending;
  bool atEnd = false;
  int count = 0;
  size_t mark = 0; ///< Bytes of `pending` before what may be a call's object.
  size_t scanned = 0; ///< Bytes behind them that `extent` has read.
  JsonExtent extent;
};

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_TOOLCALLS_H
