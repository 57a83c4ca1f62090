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

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

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
  case ExprKind::Not:
  case ExprKind::Negative:
  case ExprKind::Positive:
    return evalUnary(*expr);
  case ExprKind::Conditional:
  case ExprKind::And:
  case ExprKind::Or:
    return evalChoice(*expr);
  case ExprKind::Binary:
    return evalBinary(*expr);
  case ExprKind::Compare:
    return evalCompare(*expr);
  case ExprKind::Concat:
    return evalConcat(*expr);
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

Interpreter::ValueOr Interpreter::evalUnary(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr.children[0]));
  if (expr.kind == ExprKind::Not)
    return Value::boolean(!isTrue(value));
  const bool negative = expr.kind == ExprKind::Negative;
  if (value.is(Kind::Float))
    return Value::real(negative ? -value.real() : value.real());
  if (!value.isInt())
    return value.isUndefined() ? undefinedError(value)
                               : templateError(absl::StrCat(
                                     "a ", typeName(value), " has no sign"));
  int64_t result = value.integer();
  if (negative && __builtin_sub_overflow(int64_t{0}, result, &result))
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

Interpreter::ValueOr Interpreter::evalBinary(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(const Value a, eval(expr.children[0]));
  LLAMAC_ASSIGN_OR_RETURN(const Value b, eval(expr.children[1]));
  return binary(expr.text, a, b);
}

// a < b < c is a < b and b < c.
Interpreter::ValueOr Interpreter::evalCompare(const Expr &expr) {
  LLAMAC_ASSIGN_OR_RETURN(Value left, eval(expr.children[0]));
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    const std::string &op = expr.operators[i];
    LLAMAC_ASSIGN_OR_RETURN(const Value right, eval(expr.children[i + 1]));
    bool holds;
    if (op == "in" || op == "not in") {
      LLAMAC_ASSIGN_OR_RETURN(holds, contains(right, left));
      holds ^= op == "not in";
    } else if (op == "==" || op == "!=") {
      LLAMAC_ASSIGN_OR_RETURN(holds, equals(heap, left, right));
      holds ^= op == "!=";
    } else {
      LLAMAC_ASSIGN_OR_RETURN(holds, compareOrder(heap, op, left, right));
    }
    if (!holds)
      return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

Interpreter::ValueOr Interpreter::evalConcat(const Expr &expr) {
  std::vector<Value> parts;
  for (const Expr *child : expr.children) {
    LLAMAC_ASSIGN_OR_RETURN(const Value part, eval(child));
    parts.push_back(part);
  }
  std::string text;
  for (const Value &part : parts)
    LLAMAC_RETURN_IF_ERROR(appendText(heap, part, text));
  return heap.string(std::move(text));
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

Interpreter::ValueOr Interpreter::loopAttribute(const Value &value,
                                                const std::string &name) {
  Loop &loop = value.loop();
  if (name == "index0")
    return Value::integer(loop.index0);
  if (name == "index")
    return Value::integer(loop.index0 + 1);
  if (name == "first")
    return Value::boolean(loop.index0 == 0);
  if (name == "depth0")
    return Value::integer(loop.depth0);
  if (name == "depth")
    return Value::integer(loop.depth0 + 1);
  if (name == "previtem")
    return loop.index0 == 0 ? Value::undefined(nullptr) : loop.before;
  if (name == "last" || name == "nextitem") {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> following, loop.peek());
    return name == "last" ? Value::boolean(!following)
                          : following.value_or(Value::undefined(nullptr));
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    LLAMAC_ASSIGN_OR_RETURN(const int64_t count, loop.count());
    return Value::integer(name == "length"     ? count
                          : name == "revindex" ? count - loop.index0
                                               : count - loop.index0 - 1);
  }
  return Value::missing();
}

Interpreter::ValueOr Interpreter::member(const Value &object,
                                         const std::string &name) {
  if (const Function *const method = findMethod(object, name)) {
    if (!method->call)
      return Value::undefined(&name);
    return heap.object(Kind::Method, BoundMethod{object, method});
  }
  switch (object.kind()) {
  case Kind::Namespace: {
    const Value *const found = object.dict().find(name);
    return found ? *found : Value::missing();
  }
  case Kind::Loop:
    return loopAttribute(object, name);
  case Kind::Cycler:
    if (name == "current")
      return object.cycler().items[object.cycler().position];
    return Value::missing();
  case Kind::Macro:
    if (name == "name") {
      const std::string *const of = object.macro().node->name;
      return of ? heap.string(*of) : ValueOr(Value::none());
    }
    return Value::missing();
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
  // What cannot be a key is only looked for as an attribute, as in Jinja.
  if (object.is(Kind::Dict)) {
    const absl::StatusOr<const Value *> value =
        lookUp(heap, object.dict(), key);
    if (value.ok() && *value)
      return **value;
    LLAMAC_RETURN_IF_ERROR(heap.spend(0));
  } else if (key.isInt() && (object.isSequence() || object.isString() ||
                             object.is(Kind::Range))) {
    const int64_t size = *lengthOf(object);
    int64_t index = key.integer();
    if (index < 0)
      index += size;
    if (index < 0 || index >= size)
      return Value::undefined(nullptr);
    if (object.isSequence())
      return object.sequence().items[static_cast<size_t>(index)];
    if (object.is(Kind::Range))
      return object.range().at(index);
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
  if (!object.isSequence() && !object.isString() && !object.is(Kind::Range))
    return templateError(
        absl::StrCat("a ", typeName(object), " cannot be sliced"));
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
  if (object.is(Kind::Range)) {
    const Range &range = object.range();
    int64_t wide = range.step;
    if (__builtin_mul_overflow(wide, by, &wide))
      wide = by < 0 ? INT64_MIN : INT64_MAX;
    const int64_t first = count ? range.start + from * range.step : range.start;
    return heap.object(
        Kind::Range, Range{first, range.start + to * range.step, wide, count});
  }
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
  std::string result;
  if (by == 1 && count > 0) {
    const size_t begin = byteOf(text, static_cast<size_t>(from));
    const absl::string_view rest = text.substr(begin);
    result =
        std::string(rest.substr(0, byteOf(rest, static_cast<size_t>(count))));
  } else if (count > 0) {
    std::vector<size_t> begins;
    for (size_t at = 0; at < text.size(); decode(text, at))
      begins.push_back(at);
    begins.push_back(text.size());
    for (int64_t i = 0; i < count; ++i) {
      const size_t at = static_cast<size_t>(from + i * by);
      absl::StrAppend(&result,
                      text.substr(begins[at], begins[at + 1] - begins[at]));
    }
  }
  return heap.string(std::move(result), string.markup);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

absl::Status Interpreter::unpackNamed(const Value &mapping,
                                      CallArguments &arguments) {
  if (!mapping.is(Kind::Dict))
    return templateError(
        absl::StrCat("arguments after ** are a dict, got ", typeName(mapping)));
  for (const auto &[key, value] : mapping.dict().entries) {
    if (!key.isString())
      return templateError("names of arguments are strings");
    for (const auto &[name, other] : arguments.named)
      if (name == key.text())
        return templateError(absl::StrCat("two arguments '", name, "'"));
    LLAMAC_RETURN_IF_ERROR(heap.spend(1 + arguments.named.size()));
    arguments.named.emplace_back(key.text(), value);
  }
  return absl::OkStatus();
}

absl::Status Interpreter::evalArguments(const Expr &expr,
                                        CallArguments &arguments) {
  for (size_t i = 1; i < expr.children.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr.children[i]));
    arguments.positional.push_back(value);
  }
  if (expr.unpacked) {
    LLAMAC_ASSIGN_OR_RETURN(const Value list, eval(expr.unpacked));
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> more, items(heap, list));
    arguments.positional.insert(arguments.positional.end(), more.begin(),
                                more.end());
  }
  for (const auto &[name, child] : expr.named) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(child));
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(name.size()));
    arguments.named.emplace_back(name, value);
  }
  if (expr.unpackedNamed) {
    LLAMAC_ASSIGN_OR_RETURN(const Value mapping, eval(expr.unpackedNamed));
    LLAMAC_RETURN_IF_ERROR(unpackNamed(mapping, arguments));
  }
  return absl::OkStatus();
}

Interpreter::ValueOr Interpreter::evalCall(const Expr &expr,
                                           const Value *caller) {
  LLAMAC_ASSIGN_OR_RETURN(const Value callee, eval(expr.children[0]));
  CallArguments arguments;
  LLAMAC_RETURN_IF_ERROR(evalArguments(expr, arguments));
  if (caller) {
    for (const auto &[name, value] : arguments.named)
      if (name == "caller")
        return templateError("two arguments 'caller'");
    arguments.named.emplace_back("caller", *caller);
  }
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
    return callee.method().function->call(*this, callee.method().receiver,
                                          arguments);
  case Kind::Function:
    return callee.function().call(*this, Value(), arguments);
  case Kind::Loop: {
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> bound,
                            bind("loop", arguments, {"iterable"}, 1));
    const Loop &loop = callee.loop();
    if (!loop.closure)
      return templateError("a loop that calls itself must be 'recursive'");
    return runRecursive(*loop.stmt, loop.closure, bound[0], loop.depth0 + 1);
  }
  case Kind::Joiner: {
    LLAMAC_RETURN_IF_ERROR(bind("joiner", arguments, {}).status());
    Joiner &joiner = callee.joiner();
    if (std::exchange(joiner.used, true))
      return joiner.separator;
    return heap.string("");
  }
  case Kind::Undefined:
    return undefinedError(callee);
  default:
    return templateError(
        absl::StrCat("a ", typeName(callee), " cannot be called"));
  }
}

static std::optional<Value> take(CallArguments &arguments,
                                 absl::string_view name) {
  for (auto at = arguments.named.begin(); at != arguments.named.end(); ++at)
    if (at->first == name) {
      const Value value = at->second;
      arguments.named.erase(at);
      return value;
    }
  return std::nullopt;
}

// Puts the arguments into the variables of the macro's frame, the current one.
absl::Status Interpreter::bindMacro(const MacroNode &node,
                                    CallArguments &arguments) {
  static const std::string callerName = "caller";
  const absl::string_view name =
      node.name ? absl::string_view(*node.name) : "caller";
  std::vector<Value> &slots = frame->slots;
  const size_t count = node.parameters.size();
  bool foundCaller = node.explicitCaller;
  // Each parameter is looked for among the named arguments.
  LLAMAC_RETURN_IF_ERROR(heap.spend(count * (1 + arguments.named.size())));
  for (size_t i = 0; i < count; ++i) {
    Value &slot = slots[static_cast<size_t>(node.parameters[i]->slot.index)];
    if (i < arguments.positional.size())
      slot = arguments.positional[i];
    else if (const auto given = take(arguments, node.parameters[i]->text))
      slot = *given;
  }
  if (node.caller >= 0 && !foundCaller)
    slots[static_cast<size_t>(node.caller)] =
        take(arguments, "caller").value_or(Value::undefined(&callerName));
  if (node.named >= 0) {
    LLAMAC_ASSIGN_OR_RETURN(const Value rest, heap.dict());
    for (const auto &[key, value] : arguments.named) {
      LLAMAC_ASSIGN_OR_RETURN(const Value text, heap.string(key));
      LLAMAC_RETURN_IF_ERROR(heap.set(rest, text, value));
    }
    slots[static_cast<size_t>(node.named)] = rest;
  } else if (!arguments.named.empty()) {
    return templateError(absl::StrCat("macro '", name, "' has no parameter '",
                                      arguments.named[0].first, "'"));
  }
  std::vector<Value> rest;
  if (arguments.positional.size() > count)
    rest.assign(arguments.positional.begin() + static_cast<ptrdiff_t>(count),
                arguments.positional.end());
  if (node.unnamed >= 0) {
    LLAMAC_ASSIGN_OR_RETURN(slots[static_cast<size_t>(node.unnamed)],
                            heap.tuple(std::move(rest)));
  } else if (!rest.empty()) {
    return templateError(absl::StrCat("macro '", name, "' has ", count,
                                      " parameters, got ",
                                      arguments.positional.size()));
  }
  return absl::OkStatus();
}

Interpreter::ValueOr Interpreter::callMacro(const Macro &macro,
                                            CallArguments &arguments) {
  const Depth nested(*this);
  LLAMAC_RETURN_IF_ERROR(deeper());
  const MacroNode &node = *macro.node;
  LLAMAC_ASSIGN_OR_RETURN(Frame *const made,
                          makeFrame(node.layout.slots, macro.closure));
  const InFrame inside(*this, made);
  LLAMAC_RETURN_IF_ERROR(bindMacro(node, arguments));
  LLAMAC_RETURN_IF_ERROR(enter(node.scope));
  const size_t undefaulted = node.parameters.size() - node.defaults.size();
  for (size_t i = 0; i < node.parameters.size(); ++i) {
    const Expr &parameter = *node.parameters[i];
    const size_t slot = static_cast<size_t>(parameter.slot.index);
    if (!frame->slots[slot].is(Kind::Missing))
      continue;
    Value value = Value::undefined(&parameter.text);
    if (i >= undefaulted) {
      LLAMAC_ASSIGN_OR_RETURN(value, eval(node.defaults[i - undefaulted]));
    }
    frame->slots[slot] = value;
  }
  std::string text;
  LLAMAC_RETURN_IF_ERROR(capture(node.body, text).status());
  return heap.string(std::move(text));
}

absl::StatusOr<std::vector<Value>>
bind(absl::string_view function, const CallArguments &arguments,
     absl::Span<const absl::string_view> names, size_t required) {
  if (arguments.positional.size() > names.size())
    return templateError(absl::StrCat(function, " takes at most ", names.size(),
                                      " arguments, got ",
                                      arguments.positional.size()));
  std::vector<Value> bound = arguments.positional;
  bound.resize(names.size(), Value::missing());
  for (const auto &[name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      return templateError(
          absl::StrCat(function, " has no argument '", name, "'"));
    Value &slot = bound[static_cast<size_t>(at - names.begin())];
    if (!slot.is(Kind::Missing))
      return templateError(
          absl::StrCat(function, " got two arguments '", name, "'"));
    slot = value;
  }
  for (size_t i = 0; i < required; ++i)
    if (bound[i].is(Kind::Missing))
      return templateError(
          absl::StrCat(function, " lacks the argument '", names[i], "'"));
  return bound;
}

//===----------------------------------------------------------------------===//
// Filters and tests
//===----------------------------------------------------------------------===//

static absl::Status unknown(absl::string_view what, absl::string_view name) {
  return templateError(absl::StrCat("no ", what, " is named '", name, "'"));
}

Interpreter::ValueOr Interpreter::evalFilter(const Expr &expr) {
  Value input;
  if (expr.children[0]) {
    LLAMAC_ASSIGN_OR_RETURN(input, eval(expr.children[0]));
  } else {
    LLAMAC_ASSIGN_OR_RETURN(input, heap.string(*blockText));
  }
  CallArguments arguments;
  LLAMAC_RETURN_IF_ERROR(evalArguments(expr, arguments));
  currentLine = expr.line;
  if (!expr.function)
    return unknown(expr.kind == ExprKind::Filter ? "filter" : "test",
                   expr.text);
  return expr.function->call(*this, input, arguments);
}

Interpreter::ValueOr Interpreter::applyFilter(const Value &name,
                                              const Value &input,
                                              CallArguments &arguments) {
  const Function *const filter =
      name.isString() ? findFilter(name.text()) : nullptr;
  if (!filter)
    return unknown("filter", name.isString() ? name.text() : typeName(name));
  const Depth nested(*this);
  LLAMAC_RETURN_IF_ERROR(deeper());
  return filter->call(*this, input, arguments);
}

absl::StatusOr<bool> Interpreter::applyTest(const Value &name,
                                            const Value &input,
                                            CallArguments &arguments) {
  const Function *const test =
      name.isString() ? findTest(name.text()) : nullptr;
  if (!test)
    return unknown("test", name.isString() ? name.text() : typeName(name));
  const Depth nested(*this);
  LLAMAC_RETURN_IF_ERROR(deeper());
  LLAMAC_ASSIGN_OR_RETURN(const Value holds,
                          test->call(*this, input, arguments));
  return isTrue(holds);
}

} // namespace llamac::chat
