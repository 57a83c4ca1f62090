//===- Globals.cpp - Functions of templates -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Interpreter.h"
#include "text/templates/Tables.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <ctime>

namespace llamac::chat {

namespace global {

using ValueOr = absl::StatusOr<Value>;

// jinja2's sandbox has this limit.
static constexpr uint64_t maxRange = 100'000;

static ValueOr range(Interpreter &in, Value, CallArguments &args) {
  const std::vector<Value> &given = args.positional;
  if (given.empty() || given.size() > 3 || !args.named.empty())
    return templateError("range takes one to three integers");
  for (const Value &value : given)
    if (!value.isInt())
      return value.isUndefined()
                 ? undefinedError(value)
                 : templateError(absl::StrCat("range takes integers, got ",
                                              typeName(value)));
  const int64_t start = given.size() > 1 ? given[0].integer() : 0;
  const int64_t stop = given[given.size() > 1].integer();
  const int64_t step = given.size() > 2 ? given[2].integer() : 1;
  if (step == 0)
    return templateError("the step of a range is zero");
  // The distance and the step without their signs always fit.
  const auto distance = [](int64_t from, int64_t to) {
    return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  };
  uint64_t count = 0;
  if (step > 0 && start < stop)
    count = (distance(start, stop) - 1) / static_cast<uint64_t>(step) + 1;
  else if (step < 0 && start > stop)
    count = (distance(stop, start) - 1) / (0 - static_cast<uint64_t>(step)) + 1;
  if (count > maxRange)
    return templateError(
        absl::StrCat("a range of more than ", maxRange, " integers"));
  return in.heap.object(Kind::Range,
                        Range{start, stop, step, static_cast<int64_t>(count)});
}

// dict() and namespace(): of a dictionary or of pairs, and of named arguments.
template <Kind kind>
static ValueOr makeDict(Interpreter &in, Value, CallArguments &args) {
  if (args.positional.size() > 1)
    return templateError("dict takes one argument without a name");
  LLAMAC_ASSIGN_OR_RETURN(const Value made, in.heap.dict(kind));
  if (!args.positional.empty()) {
    const Value &from = args.positional[0];
    if (from.is(Kind::Dict)) {
      for (const auto &[key, value] : from.dict().entries)
        LLAMAC_RETURN_IF_ERROR(in.heap.set(made, key, value));
    } else {
      LLAMAC_ASSIGN_OR_RETURN(const auto pairs, items(in.heap, from));
      for (const Value &pair : pairs) {
        LLAMAC_ASSIGN_OR_RETURN(const auto parts, items(in.heap, pair));
        if (parts.size() != 2)
          return templateError("a dict is made of pairs");
        LLAMAC_RETURN_IF_ERROR(in.heap.set(made, parts[0], parts[1]));
      }
    }
  }
  for (const auto &[name, value] : args.named) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, in.heap.string(name));
    LLAMAC_RETURN_IF_ERROR(in.heap.set(made, key, value));
  }
  return made;
}

static ValueOr cycler(Interpreter &in, Value, CallArguments &args) {
  if (args.positional.empty() || !args.named.empty())
    return templateError("cycler takes items");
  return in.heap.object(Kind::Cycler, Cycler{args.positional});
}

static ValueOr joiner(Interpreter &in, Value, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("joiner", args, {"sep"}));
  Value separator = bound[0];
  if (separator.is(Kind::Missing)) {
    LLAMAC_ASSIGN_OR_RETURN(separator, in.heap.string(", "));
  }
  return in.heap.object(Kind::Joiner, Joiner{separator});
}

static ValueOr raiseException(Interpreter &in, Value, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("raise_exception", args, {"message"}, 1));
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, bound[0]));
  return templateError(text);
}

// The time of no zone, as Python's datetime.now() has it.
static ValueOr strftimeNow(Interpreter &in, Value, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("strftime_now", args, {"format"}, 1));
  if (!bound[0].isString())
    return templateError("strftime_now takes a format");
  const absl::string_view given = bound[0].text();
  std::string format;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%' || i + 1 == given.size()) {
      format += given[i];
      continue;
    }
    const char c = given[++i];
    if (c == 'f')
      format += "000000";
    else if (c != 'z' && c != 'Z')
      absl::StrAppend(&format, "%", absl::string_view(&c, 1));
  }
  std::tm now{};
  if (in.now) {
    now = in.now();
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  if (absl::StrContains(format, '\0'))
    return templateError("a format of times with a zero byte");
  // Text before it, so that no result is a failure.
  format.insert(format.begin(), '.');
  std::string text(1024 + 16 * format.size(), '\0');
  const size_t size =
      std::strftime(text.data(), text.size(), format.c_str(), &now);
  if (size == 0)
    return templateError("a format of times that is too long");
  return in.heap.string(text.substr(1, size - 1));
}

static constexpr Function table[] = {
    {"cycler", cycler},
    {"dict", makeDict<Kind::Dict>},
    {"joiner", joiner},
    {"namespace", makeDict<Kind::Namespace>},
    {"raise_exception", raiseException},
    {"range", range},
    {"strftime_now", strftimeNow},
};

} // namespace global

absl::Span<const Function> globalFunctions() { return global::table; }

} // namespace llamac::chat
