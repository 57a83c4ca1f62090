//===- Tables.cpp - Tests, functions, and how tables are used -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Tables.h"

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <ctime>

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

const Function *Table::find(absl::string_view name) const {
  for (const Function &function : functions)
    if (name == function.name)
      return &function;
  return nullptr;
}

bool Table::refuses(absl::string_view name) const {
  return absl::c_linear_search(absl::StrSplit(refused, ' ', absl::SkipEmpty()),
                               name);
}

std::string Table::refusal(absl::string_view name) const {
  std::vector<absl::string_view> names;
  for (const Function &function : functions)
    if (function.call)
      names.push_back(function.name);
  const std::string there =
      names.empty() ? ""
                    : absl::StrCat("; there are ", absl::StrJoin(names, ", "));
  return refuses(name) ? absl::StrCat("the ", what, " '", name,
                                      "' is not supported", there)
                       : absl::StrCat("no ", what, " is named '",
                                      name.substr(0, 60), "'", there);
}

absl::Status checkArguments(const Function &function, size_t positional,
                            absl::Span<const std::string> named) {
  if (function.isVariadic)
    return absl::OkStatus();
  const absl::Span<const char *const> parameters(
      function.parameters.data(),
      static_cast<size_t>(absl::c_find(function.parameters, nullptr) -
                          function.parameters.begin()));
  const size_t required = static_cast<size_t>(function.required);
  const auto refused = [&](const std::string &with) {
    std::vector<absl::string_view> names;
    for (const absl::string_view name : parameters)
      if (!name.empty())
        names.push_back(name);
    return templateError(absl::StrCat(
        "with ", with, " is not supported; it takes ",
        required < parameters.size() ? absl::StrCat(required, " to ") : "",
        parameters.size(), names.empty() ? "" : ": ",
        absl::StrJoin(names, ", ")));
  };
  const std::string all = absl::StrCat(positional + named.size(), " arguments");
  if (positional > parameters.size())
    return refused(all);
  for (const std::string &name : named) {
    const auto at = absl::c_find(parameters, name);
    if (at == parameters.end())
      return refused(absl::StrCat("an argument '", name, "'"));
    if (static_cast<size_t>(at - parameters.begin()) < positional)
      return refused(absl::StrCat("two arguments '", name, "'"));
  }
  for (size_t i = positional; i < required; ++i)
    if (!absl::c_linear_search(named, parameters[i]))
      return refused(all);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

namespace test {

using ValueOr = absl::StatusOr<Value>;

template <Kind... kinds>
static ValueOr isOf(Interpreter &, const Value &self, CallArguments &) {
  return Value::boolean((self.is(kinds) || ...));
}

static ValueOr isDefined(Interpreter &, const Value &self, CallArguments &) {
  return Value::boolean(!self.isUndefined());
}

template <bool value>
static ValueOr isJust(Interpreter &, const Value &self, CallArguments &) {
  return Value::boolean(self.is(Kind::Bool) && self.boolean() == value);
}

template <bool negated>
static ValueOr equal(Interpreter &in, const Value &self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const bool same, equals(in.heap, self, args[0]));
  return Value::boolean(same != negated);
}

static ValueOr isIn(Interpreter &in, const Value &self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const bool found, in.contains(args[0], self));
  return Value::boolean(found);
}

#define TEST_OF(name, ...) {name, isOf<__VA_ARGS__>, {}, 0, false, true}
static constexpr Function table[] = {
    {"!=", equal<true>, {"b"}, 1, false, true},
    {"==", equal<false>, {"b"}, 1, false, true},
    TEST_OF("boolean", Kind::Bool),
    {"defined", isDefined, {}, 0, false, true},
    {"eq", equal<false>, {"b"}, 1, false, true},
    {"equalto", equal<false>, {"b"}, 1, false, true},
    {"false", isJust<false>, {}, 0, false, true},
    TEST_OF("float", Kind::Float),
    {"in", isIn, {"seq"}, 1, false, true},
    TEST_OF("integer", Kind::Int),
    TEST_OF("iterable", Kind::String, Kind::List, Kind::Tuple, Kind::Dict,
            Kind::View, Kind::Range, Kind::Generator, Kind::Loop,
            Kind::Undefined),
    TEST_OF("mapping", Kind::Dict),
    {"ne", equal<true>, {"b"}, 1, false, true},
    TEST_OF("none", Kind::None),
    TEST_OF("number", Kind::Bool, Kind::Int, Kind::Float),
    TEST_OF("sequence", Kind::String, Kind::List, Kind::Tuple, Kind::Dict,
            Kind::Range, Kind::Undefined),
    TEST_OF("string", Kind::String),
    {"true", isJust<true>, {}, 0, false, true},
    TEST_OF("undefined", Kind::Undefined),
};
#undef TEST_OF

} // namespace test

const Table &tests() {
  static constexpr Table table = {
      "test", test::table,
      "< <= > >= callable divisibleby escaped even filter ge greaterthan gt le "
      "lessthan lower lt odd sameas test upper"};
  return table;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace global {

using ValueOr = absl::StatusOr<Value>;

// jinja2's sandbox has this limit.
static constexpr uint64_t maxRange = 100'000;

static ValueOr range(Interpreter &in, const Value &, CallArguments &args) {
  for (size_t i = 0; i < 3; ++i)
    if (args.has(i) && !args[i].isInt())
      return args[i].isUndefined()
                 ? undefinedError(args[i])
                 : templateError(absl::StrCat("range takes integers, got ",
                                              typeName(args[i])));
  const int64_t start = args.has(1) ? args[0].integer() : 0;
  const int64_t stop = args[args.has(1)].integer();
  const int64_t step = args.has(2) ? args[2].integer() : 1;
  if (step == 0)
    return templateError("the step of a range is zero");
  std::vector<Value> all;
  int64_t next = start;
  bool isOver = false;
  while (!isOver && (step > 0 ? next < stop : next > stop)) {
    if (all.size() == maxRange)
      return templateError(
          absl::StrCat("a range of more than ", maxRange, " integers"));
    all.push_back(Value::integer(next));
    isOver = __builtin_add_overflow(next, step, &next);
  }
  return in.heap.sequence(Kind::Range, std::move(all));
}

static ValueOr makeNamespace(Interpreter &in, const Value &,
                             CallArguments &args) {
  if (!args.positional.empty())
    return templateError("namespace takes arguments with names");
  LLAMAC_ASSIGN_OR_RETURN(const Value made, in.heap.dict(Kind::Namespace));
  for (const auto &[name, value] : args.named) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, in.heap.string(name));
    LLAMAC_RETURN_IF_ERROR(in.heap.set(made, key, value));
  }
  return made;
}

static ValueOr raiseException(Interpreter &in, const Value &,
                              CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, args[0]));
  return templateError(text);
}

static ValueOr strftimeNow(Interpreter &in, const Value &,
                           CallArguments &args) {
  if (!args[0].isString())
    return templateError("strftime_now takes a format");
  LLAMAC_RETURN_IF_ERROR(checkTimeFormat(args[0].text()));
  std::tm now{};
  if (in.now) {
    now = in.now();
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  // A letter makes at most a name of a month or a year.
  LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(16, args[0].text().size()));
  std::string text(32 + 16 * args[0].text().size(), '\0');
  text.resize(std::strftime(text.data(), text.size(),
                            std::string(args[0].text()).c_str(), &now));
  return in.heap.string(std::move(text));
}

static constexpr Function table[] = {
    {"namespace", makeNamespace, {}, 0, true},
    {"raise_exception", raiseException, {"message"}, 1},
    {"range", range, {"", "", ""}, 1},
    {"strftime_now", strftimeNow, {"format"}, 1},
};

} // namespace global

absl::Status checkTimeFormat(absl::string_view format) {
  for (size_t at = 0; at < format.size();) {
    const absl::string_view piece =
        format.substr(at, format[at] == '%' ? 2 : 1);
    at += piece.size();
    if (piece[0] == '%' ? piece.size() < 2 ||
                              !absl::StrContains("aAbBdHIjmMpSyY%", piece[1])
                        : piece[0] == '\0')
      return templateError(
          absl::StrCat("strftime_now does not support '", absl::CEscape(piece),
                       "'; there are %a %A %b %B %d %H %I %j %m %M %p %S %y %Y "
                       "and %%"));
  }
  return absl::OkStatus();
}

const Table &globals() {
  static constexpr Table table = {"function", global::table,
                                  "cycler dict joiner lipsum"};
  return table;
}

} // namespace llamac::chat
