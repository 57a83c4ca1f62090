//===- Tests.cpp - Tests of templates -------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Interpreter.h"
#include "text/templates/Tables.h"
#include "text/templates/Text.h"

#include "absl/strings/str_cat.h"

namespace llamac::chat {

namespace test {

using ValueOr = absl::StatusOr<Value>;

// A test without arguments that cannot fail.
template <bool (*holds)(const Value &)>
static ValueOr plain(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("the test", args, {}).status());
  return Value::boolean(holds(input));
}

template <Kind... kinds> static bool isOf(const Value &value) {
  return (value.is(kinds) || ...);
}

static bool isDefined(const Value &value) { return !value.isUndefined(); }
static bool isTrueItself(const Value &value) {
  return value.is(Kind::Bool) && value.boolean();
}
static bool isFalseItself(const Value &value) {
  return value.is(Kind::Bool) && !value.boolean();
}
static bool isNumberTest(const Value &value) { return value.isNumber(); }
static bool isEscaped(const Value &value) {
  return value.isString() && value.string().markup;
}
static bool isFilterName(const Value &value) {
  return value.isString() && findFilter(value.text());
}
static bool isTestName(const Value &value) {
  return value.isString() && findTest(value.text());
}

// Whether the text of `value` has letters with case, all of which are `right`.
template <bool (*right)(int32_t), bool (*wrong)(int32_t)>
static ValueOr inCase(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("the test", args, {}).status());
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, input));
  bool found = false;
  for (size_t at = 0; at < text.size();) {
    const int32_t code = decode(text, at);
    if (wrong(code) || isTitle(code))
      return Value::boolean(false);
    found |= right(code);
  }
  return Value::boolean(found);
}

// Whether the rest of a division by an integer is `rest`.
static ValueOr leaves(Interpreter &in, const Value &input, const Value &by,
                      int64_t rest) {
  LLAMAC_ASSIGN_OR_RETURN(const Value left, in.binary("%", input, by));
  LLAMAC_ASSIGN_OR_RETURN(const bool same,
                          equals(in.heap, left, Value::integer(rest)));
  return Value::boolean(same);
}

template <int64_t rest>
static ValueOr parity(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("the test", args, {}).status());
  return leaves(in, input, Value::integer(2), rest);
}

static ValueOr divisibleBy(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("divisibleby", args, {"num"}, 1));
  return leaves(in, input, bound[0], 0);
}

template <bool negated>
static ValueOr equal(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("eq", args, {"b"}, 1));
  LLAMAC_ASSIGN_OR_RETURN(const bool same, equals(in.heap, input, bound[0]));
  return Value::boolean(same != negated);
}

enum class Order { Less, LessEqual, Greater, GreaterEqual };

template <Order order>
static ValueOr ordered(Interpreter &in, Value input, CallArguments &args) {
  static constexpr const char *names[] = {"<", "<=", ">", ">="};
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("the test", args, {"b"}, 1));
  LLAMAC_ASSIGN_OR_RETURN(
      const bool holds,
      compareOrder(in.heap, names[static_cast<int>(order)], input, bound[0]));
  return Value::boolean(holds);
}

static ValueOr isIn(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("in", args, {"seq"}, 1));
  LLAMAC_ASSIGN_OR_RETURN(const bool holds, in.contains(bound[0], input));
  return Value::boolean(holds);
}

// Python's `is`; texts and numbers that are equal count as one object.
static ValueOr sameAs(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("sameas", args, {"other"}, 1));
  const Value &other = bound[0];
  if (input.kind() != other.kind() || input.isUndefined())
    return Value::boolean(false);
  if (input.isNumber() || input.isString() || input.is(Kind::None)) {
    LLAMAC_ASSIGN_OR_RETURN(const bool same, equals(in.heap, input, other));
    return Value::boolean(same);
  }
  return Value::boolean(input.address() == other.address());
}

static constexpr Function table[] = {
    {"!=", equal<true>},
    {"<", ordered<Order::Less>},
    {"<=", ordered<Order::LessEqual>},
    {"==", equal<false>},
    {">", ordered<Order::Greater>},
    {">=", ordered<Order::GreaterEqual>},
    {"boolean", plain<isOf<Kind::Bool>>},
    {"callable", plain<isOf<Kind::Macro, Kind::Method, Kind::Function,
                            Kind::Loop, Kind::Joiner, Kind::Undefined>>},
    {"defined", plain<isDefined>},
    {"divisibleby", divisibleBy},
    {"eq", equal<false>},
    {"equalto", equal<false>},
    {"escaped", plain<isEscaped>},
    {"even", parity<0>},
    {"false", plain<isFalseItself>},
    {"filter", plain<isFilterName>},
    {"float", plain<isOf<Kind::Float>>},
    {"ge", ordered<Order::GreaterEqual>},
    {"greaterthan", ordered<Order::Greater>},
    {"gt", ordered<Order::Greater>},
    {"in", isIn},
    {"integer", plain<isOf<Kind::Int>>},
    {"iterable",
     plain<
         isOf<Kind::String, Kind::List, Kind::Tuple, Kind::Dict, Kind::DictView,
              Kind::Range, Kind::Generator, Kind::Loop, Kind::Undefined>>},
    {"le", ordered<Order::LessEqual>},
    {"lessthan", ordered<Order::Less>},
    {"lower", inCase<isLower, isUpper>},
    {"lt", ordered<Order::Less>},
    {"mapping", plain<isOf<Kind::Dict>>},
    {"ne", equal<true>},
    {"none", plain<isOf<Kind::None>>},
    {"number", plain<isNumberTest>},
    {"odd", parity<1>},
    {"sameas", sameAs},
    {"sequence", plain<isOf<Kind::String, Kind::List, Kind::Tuple, Kind::Dict,
                            Kind::Range, Kind::Undefined>>},
    {"string", plain<isOf<Kind::String>>},
    {"test", plain<isTestName>},
    {"true", plain<isTrueItself>},
    {"undefined", plain<isOf<Kind::Undefined>>},
    {"upper", inCase<isUpper, isLower>},
};

} // namespace test

const Function *findTest(absl::string_view name) {
  return findIn(test::table, name);
}

} // namespace llamac::chat
