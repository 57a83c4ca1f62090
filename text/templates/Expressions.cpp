//===- Expressions.cpp - Expressions of a template, run -------------------===//
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
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <cmath>

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Interpreter::ValueOr Interpreter::eval(const Expr *expr) {
  const Depth nested(*this);
  currentLine = expr->line;
  LLAMAC_RETURN_IF_ERROR(deeper());
  switch (expr->kind) {
  case ExprKind::Constant:
    return expr->constant;
  case ExprKind::Name: {
    const Value &value = variable(expr->slot);
    return value.is(Kind::Missing) ? Value::undefined(&expr->text) : value;
  }
  case ExprKind::Tuple:
  case ExprKind::List:
    return evalSequence(*expr);
  case ExprKind::Dict:
    return evalDict(*expr);
  case ExprKind::Not: {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr->children[0]));
    return Value::boolean(!isTrue(value));
  }
  case ExprKind::Negative:
    return evalNegative(*expr);
  case ExprKind::Conditional:
  case ExprKind::And:
  case ExprKind::Or:
    return evalChoice(*expr);
  case ExprKind::Binary: {
    LLAMAC_ASSIGN_OR_RETURN(const Value a, eval(expr->children[0]));
    LLAMAC_ASSIGN_OR_RETURN(const Value b, eval(expr->children[1]));
    return binary(expr->text, a, b);
  }
  case ExprKind::Attribute:
  case ExprKind::Item:
    return evalItem(*expr);
  case ExprKind::Call:
    return evalCall(*expr);
  case ExprKind::Filter:
  case ExprKind::Test:
    return evalFilter(*expr);
  case ExprKind::NamespaceAttribute:
  case ExprKind::Slice:
    break;
  }
  return internalError("a node that is no expression");
}

Interpreter::ValueOr Interpreter::evalSequence(const Expr &expr) {
  std::vector<Value> items;
  for (const Expr *child : expr.children) {
    LLAMAC_ASSIGN_OR_RETURN(const Value item, eval(child));
    items.push_back(item);
  }
  return heap.sequence(expr.kind == ExprKind::List ? Kind::List : Kind::Tuple,
                       std::move(items));
}

Interpreter::ValueOr Interpreter::evalDict(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(const Value dict, heap.dict());
  for (size_t i = 0; i < expr.children.size(); i += 2) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, eval(expr.children[i]));
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr.children[i + 1]));
    LLAMAC_RETURN_IF_ERROR(heap.set(dict, key, value));
  }
  return dict;
}

Interpreter::ValueOr Interpreter::evalNegative(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr.children[0]));
  if (value.is(Kind::Float))
    return Value::real(-value.real());
  if (!value.isInt())
    return value.isUndefined() ? undefinedError(value)
                               : templateError(absl::StrCat(
                                     "a ", typeName(value), " has no sign"));
  int64_t result;
  if (__builtin_sub_overflow(int64_t{0}, value.integer(), &result))
    return integerOverflow();
  return Value::integer(result);
}

Interpreter::ValueOr Interpreter::evalChoice(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(const Value first, eval(expr.children[0]));
  const bool holds = isTrue(first);
  if (expr.kind == ExprKind::And)
    return holds ? eval(expr.children[1]) : ValueOr(first);
  if (expr.kind == ExprKind::Or)
    return holds ? ValueOr(first) : eval(expr.children[1]);
  const Expr *const chosen = expr.children[holds ? 1 : 2];
  return chosen ? eval(chosen) : ValueOr(Value());
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static absl::Status wrongOperands(absl::string_view op, const Value &a,
                                  const Value &b) {
  for (const Value &value : {a, b})
    if (value.isUndefined())
      return undefinedError(value);
  return templateError(
      absl::StrCat("'", op, "' joins no ", typeName(a), " with ", typeName(b)));
}

// Python rounds quotients down.
static absl::StatusOr<Value> divide(absl::string_view op, int64_t a,
                                    int64_t b) {
  if (b == 0)
    return templateError("division by zero");
  if (a == INT64_MIN && b == -1)
    return op == "%" ? absl::StatusOr<Value>(Value::integer(0))
                     : integerOverflow();
  const int64_t rest = a % b;
  const bool corrects = rest != 0 && (rest < 0) != (b < 0);
  return Value::integer(op == "%" ? rest + (corrects ? b : 0)
                                  : a / b - corrects);
}

Interpreter::ValueOr Interpreter::arithmetic(absl::string_view op,
                                             const Value &a, const Value &b) {
  if (a.isInt() && b.isInt()) {
    const int64_t x = a.integer(), y = b.integer();
    int64_t result;
    if (op == "//" || op == "%")
      return divide(op, x, y);
    if (op == "+"   ? __builtin_add_overflow(x, y, &result)
        : op == "-" ? __builtin_sub_overflow(x, y, &result)
                    : __builtin_mul_overflow(x, y, &result))
      return integerOverflow();
    return Value::integer(result);
  }
  if (op == "//" || op == "%")
    return templateError(
        absl::StrCat("'", op, "' of numbers with a point is not supported"));
  const double x = a.real(), y = b.real();
  const double result = op == "+" ? x + y : op == "-" ? x - y : x * y;
  return std::isfinite(result) ? ValueOr(Value::real(result))
                               : templateError("a number that is too large");
}

// Escapes HTML's special characters, as Python's markupsafe does.
static std::string escapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"'", "&#39;"},
                                    {"\"", "&#34;"}});
}

// a + b of texts and of sequences.
Interpreter::ValueOr Interpreter::sum(const Value &a, const Value &b) {
  if (a.isString() && b.isString()) {
    const bool markup = a.string().markup || b.string().markup;
    const auto shown = [markup](const Value &value) {
      return markup && !value.string().markup ? escapeHtml(value.text())
                                              : std::string(value.text());
    };
    return heap.string(shown(a) + shown(b), markup);
  }
  if (a.isSequence() && a.kind() == b.kind()) {
    std::vector<Value> all = a.sequence().items;
    const std::vector<Value> &more = b.sequence().items;
    LLAMAC_RETURN_IF_ERROR(
        heap.wouldFit(all.size() + more.size(), sizeof(Value)));
    all.insert(all.end(), more.begin(), more.end());
    return heap.sequence(a.kind(), std::move(all));
  }
  return wrongOperands("+", a, b);
}

// A text or sequence as many times as an integer says.
Interpreter::ValueOr Interpreter::product(const Value &a, const Value &b) {
  const Value &many = a.isInt() ? b : a;
  const Value &times = a.isInt() ? a : b;
  if (!times.isInt() || !(many.isString() || many.isSequence()))
    return wrongOperands("*", a, b);
  const uint64_t count =
      static_cast<uint64_t>(std::max<int64_t>(0, times.integer()));
  if (many.isString()) {
    LLAMAC_RETURN_IF_ERROR(heap.wouldFit(count, many.text().size()));
    std::string text;
    if (!many.text().empty())
      for (uint64_t i = 0; i < count; ++i)
        absl::StrAppend(&text, many.text());
    return heap.string(std::move(text), many.string().markup);
  }
  const std::vector<Value> &items = many.sequence().items;
  uint64_t bytes = items.size() * sizeof(Value);
  LLAMAC_RETURN_IF_ERROR(heap.wouldFit(count, bytes));
  std::vector<Value> all;
  if (!items.empty())
    for (uint64_t i = 0; i < count; ++i)
      all.insert(all.end(), items.begin(), items.end());
  return heap.sequence(many.kind(), std::move(all));
}

absl::StatusOr<Value> Interpreter::binary(absl::string_view op, const Value &a,
                                          const Value &b) {
  if (op == "==" || op == "!=") {
    LLAMAC_ASSIGN_OR_RETURN(const bool same, equals(heap, a, b));
    return Value::boolean(same == (op == "=="));
  }
  if (op == "in" || op == "not in") {
    LLAMAC_ASSIGN_OR_RETURN(const bool found, contains(b, a));
    return Value::boolean(found == (op == "in"));
  }
  if (op[0] == '<' || op[0] == '>') {
    LLAMAC_ASSIGN_OR_RETURN(const int order, compareOrder(heap, op, a, b));
    const bool holds = op[0] == '<' ? order < 0 : order > 0;
    return Value::boolean(holds || (order == 0 && op.size() == 2));
  }
  if (op == "~") {
    LLAMAC_ASSIGN_OR_RETURN(std::string text, textOf(heap, a));
    LLAMAC_RETURN_IF_ERROR(appendText(heap, b, text));
    return heap.string(std::move(text));
  }
  if (a.isNumber() && b.isNumber())
    return arithmetic(op, a, b);
  if (op == "+")
    return sum(a, b);
  if (op == "*")
    return product(a, b);
  if (op == "%" && a.isString())
    return templateError("'%' of texts is not supported; there is .format()");
  return wrongOperands(op, a, b);
}

absl::StatusOr<bool> Interpreter::contains(const Value &container,
                                           const Value &value) {
  if (container.isString()) {
    if (!value.isString())
      return wrongOperands("in", value, container);
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(container.text().size()));
    return find(container.text(), value.text()) != absl::string_view::npos;
  }
  if (container.is(Kind::Dict)) {
    LLAMAC_ASSIGN_OR_RETURN(const Value *const found,
                            lookUp(heap, container.dict(), value));
    return found != nullptr;
  }
  if (container.is(Kind::View) &&
      (value.is(Kind::List) || value.is(Kind::Dict)))
    return templateError(absl::StrCat("'in' of a ", typeName(value), " and a ",
                                      typeName(container),
                                      " is not supported"));
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const iterator, iterate(heap, container));
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item,
                            iterator->next(heap));
    if (!item)
      return false;
    LLAMAC_ASSIGN_OR_RETURN(const bool same, equals(heap, *item, value));
    if (same)
      return true;
  }
}

//===----------------------------------------------------------------------===//
// Attributes and items
//===----------------------------------------------------------------------===//

Interpreter::ValueOr Interpreter::evalItem(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(const Value object, eval(expr.children[0]));
  if (expr.kind == ExprKind::Attribute)
    return attribute(object, expr.text);
  const Expr &key = *expr.children[1];
  if (key.kind != ExprKind::Slice) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(&key));
    return item(object, value);
  }
  Value parts[3] = {Value::none(), Value::none(), Value::none()};
  for (size_t i = 0; i < 3; ++i)
    if (key.children[i]) {
      LLAMAC_ASSIGN_OR_RETURN(parts[i], eval(key.children[i]));
    }
  return slice(object, parts[0], parts[1], parts[2]);
}

Interpreter::ValueOr Interpreter::loopAttribute(Loop &loop,
                                                const std::string &name) {
  if (name == "index0")
    return Value::integer(loop.index0);
  if (name == "index")
    return Value::integer(loop.index0 + 1);
  if (name == "first")
    return Value::boolean(loop.index0 == 0);
  if (name == "previtem")
    return loop.index0 == 0 ? Value() : loop.before;
  if (name == "last" || name == "nextitem") {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> following, peek(loop));
    return name == "last" ? Value::boolean(!following)
                          : following.value_or(Value());
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    if (!loop.length)
      return templateError(
          absl::StrCat("loop.", name,
                       " of a loop with a test or over what filters select "
                       "is not supported; make a list before"));
    return Value::integer(name == "length" ? *loop.length
                          : name == "revindex"
                              ? *loop.length - loop.index0
                              : *loop.length - loop.index0 - 1);
  }
  return Value::missing();
}

Interpreter::ValueOr Interpreter::member(const Value &object,
                                         const std::string &name) {
  const Table &known = methods(object.kind());
  if (const Function *const method = known.find(name)) {
    if (!method->call)
      return Value::undefined(&name);
    return heap.object(Kind::Method, BoundMethod{object, method});
  }
  if (known.refuses(name))
    return templateError(known.refusal(name));
  switch (object.kind()) {
  case Kind::Namespace: {
    const Value *const found = object.dict().find(name);
    return found ? *found : Value::missing();
  }
  case Kind::Loop:
    return loopAttribute(object.loop(), name);
  case Kind::Macro:
  case Kind::Generator:
  case Kind::Range:
  case Kind::View:
  case Kind::Function:
    return templateError(absl::StrCat("attributes of a ", typeName(object),
                                      ", such as '", name.substr(0, 60),
                                      "', are not supported"));
  default:
    return Value::missing();
  }
}

Interpreter::ValueOr Interpreter::attribute(const Value &object,
                                            const std::string &name) {
  if (object.isUndefined())
    return undefinedError(object);
  LLAMAC_RETURN_IF_ERROR(heap.spendBytes(name.size()));
  LLAMAC_ASSIGN_OR_RETURN(const Value found, member(object, name));
  if (!found.is(Kind::Missing))
    return found;
  if (object.is(Kind::Dict))
    if (const Value *const value = object.dict().find(name))
      return *value;
  return Value::undefined(&name);
}

Interpreter::ValueOr Interpreter::item(const Value &object, const Value &key) {
  if (object.isUndefined())
    return undefinedError(object);
  // A value that cannot be a key here is only looked for as an attribute, as in
  // Jinja.
  if (object.is(Kind::Dict)) {
    LLAMAC_RETURN_IF_ERROR(
        heap.spendBytes(key.isString() ? key.text().size() : 0));
    if (const Value *const value = object.dict().find(key))
      return *value;
  } else if (key.isInt() && (object.isSequence() || object.isString() ||
                             object.is(Kind::Range))) {
    const int64_t size = *lengthOf(object);
    int64_t index = key.integer();
    if (index < 0)
      index += size;
    if (index < 0 || index >= size)
      return Value::undefined(nullptr);
    if (!object.isString())
      return object.sequence().items[static_cast<size_t>(index)];
    const String &string = object.string();
    const absl::string_view text = string.bytes;
    size_t begin = static_cast<size_t>(index);
    if (!string.isAscii()) {
      LLAMAC_RETURN_IF_ERROR(heap.spendBytes(text.size()));
      begin = byteOf(text, begin);
    }
    size_t end = begin;
    decode(text, end);
    return heap.string(std::string(text.substr(begin, end - begin)),
                       string.markup);
  }
  if (!key.isString())
    return Value::undefined(nullptr);
  const std::string &name = key.string().bytes;
  LLAMAC_ASSIGN_OR_RETURN(const Value found, member(object, name));
  return found.is(Kind::Missing) ? Value::undefined(&name) : found;
}

Interpreter::ValueOr Interpreter::slice(const Value &object, const Value &start,
                                        const Value &stop, const Value &step) {
  if (object.isUndefined())
    return undefinedError(object);
  if (!object.isSequence() && !object.isString())
    return templateError(
        absl::StrCat("a slice of a ", typeName(object), " is not supported"));
  for (const Value &bound : {start, stop, step})
    if (!bound.isInt() && !bound.is(Kind::None))
      return templateError(absl::StrCat("the bounds of a slice are integers, "
                                        "got ",
                                        typeName(bound)));
  const int64_t size = *lengthOf(object);
  const int64_t by = step.isInt() ? step.integer() : 1;
  if (by == 0)
    return templateError("the step of a slice is zero");
  // Bounds count from the end when negative, and are cut to what is there.
  const auto bound = [&](const Value &value, int64_t otherwise) {
    if (!value.isInt())
      return otherwise;
    int64_t at = value.integer();
    if (at < 0)
      at = std::max<int64_t>(at + size, by < 0 ? -1 : 0);
    return std::min(at, by < 0 ? size - 1 : size);
  };
  const int64_t from = bound(start, by < 0 ? size - 1 : 0);
  const int64_t to = bound(stop, by < 0 ? -1 : size);
  int64_t count = 0;
  if (by > 0 && from < to)
    count = (to - from - 1) / by + 1;
  else if (by < 0 && from > to)
    count = by == INT64_MIN ? 1 : (from - to - 1) / -by + 1;
  LLAMAC_RETURN_IF_ERROR(heap.spend(1 + static_cast<uint64_t>(count) / 4));
  if (object.isSequence()) {
    std::vector<Value> items;
    items.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      items.push_back(
          object.sequence().items[static_cast<size_t>(from + i * by)]);
    return heap.sequence(object.kind(), std::move(items));
  }
  const String &string = object.string();
  const absl::string_view text = string.bytes;
  LLAMAC_RETURN_IF_ERROR(heap.spendBytes(text.size()));
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size(); decode(text, at))
    begins.push_back(at);
  begins.push_back(text.size());
  std::string result;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(from + i * by);
    absl::StrAppend(&result,
                    text.substr(begins[at], begins[at + 1] - begins[at]));
  }
  return heap.string(std::move(result), string.markup);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

absl::StatusOr<CallArguments> Interpreter::evalArguments(const Expr &expr) {
  CallArguments arguments;
  const size_t firstNamed = expr.children.size() - expr.names.size();
  for (size_t i = 1; i < expr.children.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr.children[i]));
    if (i < firstNamed)
      arguments.positional.push_back(value);
    else
      arguments.named.emplace_back(expr.names[i - firstNamed], value);
  }
  return arguments;
}

Interpreter::ValueOr Interpreter::evalCall(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(const Value callee, eval(expr.children[0]));
  LLAMAC_ASSIGN_OR_RETURN(CallArguments arguments, evalArguments(expr));
  currentLine = expr.line;
  return call(callee, arguments);
}

Interpreter::ValueOr Interpreter::call(const Value &callee,
                                       CallArguments &arguments) {
  const Depth nested(*this);
  LLAMAC_RETURN_IF_ERROR(deeper());
  switch (callee.kind()) {
  case Kind::Macro:
    return callMacro(callee.macro(), arguments);
  case Kind::Method:
    return call(*callee.method().function, callee.method().receiver, arguments);
  case Kind::Function:
    return call(callee.function(), Value(), arguments);
  case Kind::Undefined:
    return undefinedError(callee);
  default:
    return templateError(
        absl::StrCat("a ", typeName(callee), " cannot be called"));
  }
}

Interpreter::ValueOr Interpreter::call(const Function &function,
                                       const Value &self,
                                       CallArguments &arguments) {
  const auto failed = [&](absl::string_view why) {
    return templateError(absl::StrCat("'", function.name, "' ", why));
  };
  std::vector<std::string> names;
  names.reserve(arguments.named.size());
  for (const auto &[name, value] : arguments.named)
    names.push_back(name);
  if (const absl::Status taken =
          checkArguments(function, arguments.positional.size(), names);
      !taken.ok())
    return failed(taken.message());
  if (self.isString() && self.string().markup && !function.takesMarkup)
    return failed("of a text that 'safe' returned is not supported");
  if (!function.isVariadic) {
    size_t count = 0;
    while (count < function.parameters.size() && function.parameters[count])
      ++count;
    arguments.positional.resize(count, Value::missing());
    for (size_t i = 0; i < count; ++i)
      for (const auto &[name, value] : arguments.named)
        if (name == function.parameters[i])
          arguments.positional[i] = value;
  }
  return function.call(*this, self, arguments);
}

Interpreter::ValueOr Interpreter::callMacro(const Macro &macro,
                                            CallArguments &arguments) {
  const MacroNode &node = *macro.node;
  const size_t count = node.parameters.size();
  if (arguments.positional.size() > count)
    return templateError(absl::StrCat("macro '", node.name, "' has ", count,
                                      " parameters, got ",
                                      arguments.positional.size()));
  LLAMAC_ASSIGN_OR_RETURN(Frame *const made,
                          makeFrame(node.slots, macro.closure));
  const InFrame inside(*this, made);
  // Each parameter is looked for among the named arguments.
  LLAMAC_RETURN_IF_ERROR(heap.spend(count * (1 + arguments.named.size())));
  const auto slotOf = [&](size_t i) -> Value & {
    return frame->slots[static_cast<size_t>(node.parameters[i]->slot.index)];
  };
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i < arguments.positional.size()) {
      slotOf(i) = arguments.positional[i];
      continue;
    }
    for (const auto &[name, value] : arguments.named)
      if (name == node.parameters[i]->text) {
        slotOf(i) = value;
        ++used;
      }
  }
  if (used < arguments.named.size())
    return templateError(absl::StrCat("macro '", node.name,
                                      "' has no parameters for all of the "
                                      "named arguments"));
  LLAMAC_RETURN_IF_ERROR(enter(node.scope));
  const size_t undefaulted = count - node.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    if (!slotOf(i).is(Kind::Missing))
      continue;
    Value value = Value::undefined(&node.parameters[i]->text);
    if (i >= undefaulted) {
      LLAMAC_ASSIGN_OR_RETURN(value, eval(node.defaults[i - undefaulted]));
    }
    slotOf(i) = value;
  }
  std::string text;
  LLAMAC_RETURN_IF_ERROR(capture(node.body, text).status());
  return heap.string(std::move(text));
}

//===----------------------------------------------------------------------===//
// Filters and tests
//===----------------------------------------------------------------------===//

Interpreter::ValueOr Interpreter::evalFilter(const Expr &expr) {
  Value input;
  if (expr.children[0]) {
    LLAMAC_ASSIGN_OR_RETURN(input, eval(expr.children[0]));
  } else {
    LLAMAC_ASSIGN_OR_RETURN(input, heap.string(*blockText));
  }
  LLAMAC_ASSIGN_OR_RETURN(CallArguments arguments, evalArguments(expr));
  currentLine = expr.line;
  const Table &table = expr.kind == ExprKind::Filter ? filters() : tests();
  if (!expr.function)
    return templateError(table.refusal(expr.text));
  return call(*expr.function, input, arguments);
}

Interpreter::ValueOr Interpreter::apply(const Table &table, const Value &name,
                                        const Value &input,
                                        CallArguments arguments) {
  const Function *const function =
      name.isString() ? table.find(name.text()) : nullptr;
  if (!function)
    return templateError(
        table.refusal(name.isString() ? name.text() : typeName(name)));
  const Depth nested(*this);
  LLAMAC_RETURN_IF_ERROR(deeper());
  return call(*function, input, arguments);
}

} // namespace llamac::chat
