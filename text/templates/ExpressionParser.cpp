//===- ExpressionParser.cpp - Expressions of a template -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Parser.h"
#include "text/templates/Tables.h"
#include "text/templates/Text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

// Expressions with commas between them are a tuple, which ends where a tag or a
// bracket does.
Parser::ExprOr Parser::parseTuple(bool withConditional, bool parenthesized) {
  const int line = current().line;
  std::vector<Expr *> items;
  bool isTuple = false;
  while (current().kind != TokenKind::EndExpression &&
         current().kind != TokenKind::EndStatement &&
         !current().isOperator(")")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const item,
                            withConditional ? parseExpression() : parseOr());
    items.push_back(item);
    if (!skipOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple && !items.empty())
    return items[0];
  if (!isTuple && !parenthesized)
    return unexpected("an expression");
  return make(ExprKind::Tuple, line, std::move(items));
}

// VALUE if TEST else OTHER
Parser::ExprOr Parser::parseExpression() {
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  const int line = current().line;
  LLAMAC_ASSIGN_OR_RETURN(Expr * value, parseOr());
  while (skipName("if")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const test, parseOr());
    Expr *other = nullptr;
    if (skipName("else")) {
      LLAMAC_ASSIGN_OR_RETURN(other, parseExpression());
    }
    LLAMAC_ASSIGN_OR_RETURN(
        value, make(ExprKind::Conditional, line, {test, value, other}));
  }
  return value;
}

Parser::ExprOr Parser::parseOr() {
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  LLAMAC_ASSIGN_OR_RETURN(Expr * left, parseAnd());
  while (skipName("or")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const right, parseAnd());
    LLAMAC_ASSIGN_OR_RETURN(left,
                            make(ExprKind::Or, right->line, {left, right}));
  }
  return left;
}

Parser::ExprOr Parser::parseAnd() {
  LLAMAC_ASSIGN_OR_RETURN(Expr * left, parseNot());
  while (skipName("and")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const right, parseNot());
    LLAMAC_ASSIGN_OR_RETURN(left,
                            make(ExprKind::And, right->line, {left, right}));
  }
  return left;
}

Parser::ExprOr Parser::parseNot() {
  const int line = current().line;
  if (!skipName("not"))
    return parseCompare();
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  LLAMAC_ASSIGN_OR_RETURN(Expr *const operand, parseNot());
  return make(ExprKind::Not, line, {operand});
}

Parser::ExprOr Parser::parseCompare() {
  const int line = current().line;
  // The name of the comparison that comes, which it skips.
  const auto comparison = [this]() -> std::string {
    for (const char *name : {"==", "!=", "<", "<=", ">", ">="})
      if (skipOperator(name))
        return name;
    if (skipName("in"))
      return "in";
    if (!current().isName("not") || !ahead().isName("in"))
      return "";
    next();
    next();
    return "not in";
  };
  LLAMAC_ASSIGN_OR_RETURN(Expr *const left, parseSum());
  std::string op = comparison();
  if (op.empty())
    return left;
  LLAMAC_ASSIGN_OR_RETURN(Expr *const right, parseSum());
  if (!comparison().empty())
    return refuse(
        "a chain of comparisons is not supported; join them by 'and'");
  return make(ExprKind::Binary, line, {left, right}, std::move(op));
}

Parser::ExprOr Parser::parseLeft(Names names, ExprOr (Parser::*operand)()) {
  LLAMAC_ASSIGN_OR_RETURN(Expr * left, (this->*operand)());
  while (true) {
    std::string name;
    for (const absl::string_view each : names)
      if (name.empty() && skipOperator(each))
        name = std::string(each);
    if (name.empty())
      return left;
    LLAMAC_ASSIGN_OR_RETURN(Expr *const right, (this->*operand)());
    if (name == "/" || name == "**" ||
        (name == "%" && left->kind == ExprKind::Constant &&
         left->constant.isString()))
      return refuse(absl::StrCat("the operator '", name, "' of ",
                                 name == "%" ? "texts" : "numbers",
                                 " is not supported; there are +, -, *, //, "
                                 "% of integers, ~ and .format()"));
    LLAMAC_ASSIGN_OR_RETURN(
        left, make(ExprKind::Binary, right->line, {left, right}, name));
  }
}

Parser::ExprOr Parser::parseSum() {
  return parseLeft({"+", "-"}, &Parser::parseConcat);
}

Parser::ExprOr Parser::parseConcat() {
  return parseLeft({"~"}, &Parser::parseProduct);
}

Parser::ExprOr Parser::parseProduct() {
  return parseLeft({"*", "/", "//", "%", "**"},
                   static_cast<ExprOr (Parser::*)()>(&Parser::parseOperand));
}

// An operand with what follows it: filters and tests too, but not behind a
// sign's operand, which binds tighter than they do.
Parser::ExprOr Parser::parseUnary(bool withFilter) {
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  const int line = current().line;
  Expr *expr = nullptr;
  if (current().isOperator("+"))
    return refuse("the sign '+' is not supported; leave it out");
  if (skipOperator("-")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const operand, parseUnary(false));
    LLAMAC_ASSIGN_OR_RETURN(expr, make(ExprKind::Negative, line, {operand}));
  } else {
    LLAMAC_ASSIGN_OR_RETURN(expr, parsePrimary());
  }
  LLAMAC_ASSIGN_OR_RETURN(expr, parsePostfix(expr));
  return withFilter ? parseFilterExpression(expr) : ExprOr(expr);
}

//===----------------------------------------------------------------------===//
// Literals
//===----------------------------------------------------------------------===//

Parser::ExprOr Parser::parsePrimary(bool withNamespace) {
  const Token &token = current();
  const int line = token.line;
  switch (token.kind) {
  case TokenKind::Name: {
    next();
    if (token.text == "true" || token.text == "True")
      return makeConstant(line, Value::boolean(true));
    if (token.text == "false" || token.text == "False")
      return makeConstant(line, Value::boolean(false));
    if (token.text == "none" || token.text == "None")
      return makeConstant(line, Value::none());
    LLAMAC_ASSIGN_OR_RETURN(Expr *const name,
                            make(ExprKind::Name, line, {}, token.text));
    if (!withNamespace || !skipOperator("."))
      return name;
    // The namespace is a child, the attribute is the text.
    LLAMAC_ASSIGN_OR_RETURN(std::string attribute, expectName());
    return make(ExprKind::NamespaceAttribute, line, {name},
                std::move(attribute));
  }
  case TokenKind::String: {
    // Strings in a row are one.
    Expr *const expr = makeConstant(line, Value());
    for (; current().kind == TokenKind::String; next())
      expr->string.bytes += current().text;
    expr->string.length = codePoints(expr->string.bytes);
    expr->constant = Value::of(Kind::String, &expr->string);
    return expr;
  }
  case TokenKind::Integer:
    next();
    return makeConstant(line, Value::integer(token.integer));
  case TokenKind::Float:
    next();
    return makeConstant(line, Value::real(token.real));
  default:
    break;
  }
  if (skipOperator("["))
    return parseList(line);
  if (skipOperator("{"))
    return parseDict(line);
  if (!skipOperator("("))
    return unexpected("an expression");
  LLAMAC_ASSIGN_OR_RETURN(Expr *const inner, parseTuple(true, true));
  LLAMAC_RETURN_IF_ERROR(expectOperator(")"));
  return inner;
}

Parser::ExprOr Parser::parseList(int line) {
  std::vector<Expr *> items;
  while (!skipOperator("]")) {
    if (!items.empty()) {
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
      if (skipOperator("]"))
        break;
    }
    LLAMAC_ASSIGN_OR_RETURN(Expr *const item, parseExpression());
    items.push_back(item);
  }
  return make(ExprKind::List, line, std::move(items));
}

Parser::ExprOr Parser::parseDict(int line) {
  std::vector<Expr *> parts;
  while (!skipOperator("}")) {
    if (!parts.empty()) {
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
      if (skipOperator("}"))
        break;
    }
    LLAMAC_ASSIGN_OR_RETURN(Expr *const key, parseExpression());
    LLAMAC_RETURN_IF_ERROR(expectOperator(":"));
    LLAMAC_ASSIGN_OR_RETURN(Expr *const value, parseExpression());
    parts.push_back(key);
    parts.push_back(value);
  }
  return make(ExprKind::Dict, line, std::move(parts));
}

//===----------------------------------------------------------------------===//
// Subscripts, calls, filters and tests
//===----------------------------------------------------------------------===//

Parser::ExprOr Parser::parsePostfix(Expr *expr) {
  while (true) {
    if (current().isOperator(".") || current().isOperator("[")) {
      LLAMAC_ASSIGN_OR_RETURN(expr, parseSubscript(expr));
    } else if (current().isOperator("(")) {
      LLAMAC_ASSIGN_OR_RETURN(expr, parseCall(expr));
    } else {
      return expr;
    }
  }
}

Parser::ExprOr Parser::parseFilterExpression(Expr *expr) {
  while (true) {
    if (current().isOperator("|")) {
      LLAMAC_ASSIGN_OR_RETURN(expr, parseFilters(expr));
    } else if (current().isName("is")) {
      LLAMAC_ASSIGN_OR_RETURN(expr, parseTest(expr));
    } else if (current().isOperator("(")) {
      LLAMAC_ASSIGN_OR_RETURN(expr, parseCall(expr));
    } else {
      return expr;
    }
  }
}

Parser::ExprOr Parser::parseSubscript(Expr *expr) {
  const int line = current().line;
  if (skipOperator(".")) {
    const Token &token = current();
    next();
    if (token.kind == TokenKind::Integer)
      return make(ExprKind::Item, line,
                  {expr, makeConstant(line, Value::integer(token.integer))});
    if (token.kind != TokenKind::Name)
      return syntaxError(line, "expected a name or a number after '.'");
    if (expr->kind == ExprKind::Name && expr->text == "loop" &&
        methods(Kind::Loop).refuses(token.text))
      return refuse(methods(Kind::Loop).refusal(token.text));
    return make(ExprKind::Attribute, line, {expr}, token.text);
  }
  next();
  LLAMAC_ASSIGN_OR_RETURN(Expr *const key, parseSubscribed());
  if (current().isOperator(","))
    return refuse("several keys within [] are not supported");
  LLAMAC_RETURN_IF_ERROR(expectOperator("]"));
  return make(ExprKind::Item, line, {expr, key});
}

// A key, or START:STOP:STEP.
Parser::ExprOr Parser::parseSubscribed() {
  const int line = current().line;
  std::vector<Expr *> parts(3);
  size_t at = 0;
  while (!current().isOperator("]")) {
    if (current().isOperator(":")) {
      if (++at == parts.size())
        return unexpected("']'");
      next();
      continue;
    }
    if (parts[at])
      break;
    LLAMAC_ASSIGN_OR_RETURN(parts[at], parseExpression());
  }
  if (at > 0)
    return make(ExprKind::Slice, line, std::move(parts));
  return parts[0] ? ExprOr(parts[0]) : unexpected("a key");
}

absl::Status Parser::parseArguments(std::vector<Expr *> &all,
                                    std::vector<std::string> &names) {
  LLAMAC_RETURN_IF_ERROR(expectOperator("("));
  for (bool isFirst = true; !skipOperator(")"); isFirst = false) {
    if (!isFirst) {
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
      if (skipOperator(")"))
        break;
    }
    if (current().isOperator("*") || current().isOperator("**"))
      return refuse("arguments after '*' and '**' are not supported; write "
                    "them one by one");
    if (current().kind == TokenKind::Name && ahead().isOperator("=")) {
      if (std::find(names.begin(), names.end(), current().text) != names.end())
        return fail(absl::StrCat("two arguments '", current().text, "'"));
      names.push_back(current().text);
      next();
      next();
    } else if (!names.empty()) {
      return fail("an argument without a name follows one that has one");
    }
    LLAMAC_ASSIGN_OR_RETURN(Expr *const value, parseExpression());
    all.push_back(value);
  }
  return absl::OkStatus();
}

// The number of arguments of `call` that have no name.
static size_t positional(const Expr &call) {
  return call.children.size() - 1 - call.names.size();
}

static const String *constantText(const Expr *expr) {
  return expr->kind == ExprKind::Constant && expr->constant.isString()
             ? &expr->string
             : nullptr;
}

absl::Status Parser::checkCall(const Expr &call) const {
  const Expr &callee = *call.children[0];
  std::string message;
  absl::Status format;
  if (callee.kind == ExprKind::Attribute) {
    message = methodRefusal(callee.text, positional(call), call.names);
    if (const String *text = constantText(callee.children[0]);
        text && callee.text == "format")
      format = formatPieces(text->bytes).status();
  } else if (callee.kind == ExprKind::Name) {
    if (globals().refuses(callee.text))
      message = globals().refusal(callee.text);
    if (callee.text == "strftime_now" && call.children.size() == 2)
      if (const String *text = constantText(call.children[1]))
        format = checkTimeFormat(text->bytes);
  }
  if (!format.ok())
    message = std::string(format.message());
  return message.empty() ? absl::OkStatus() : refusal(call.line, message);
}

Parser::ExprOr Parser::parseCall(Expr *callee) {
  const int line = current().line;
  std::vector<Expr *> children = {callee};
  std::vector<std::string> names;
  LLAMAC_RETURN_IF_ERROR(parseArguments(children, names));
  LLAMAC_ASSIGN_OR_RETURN(Expr *const call,
                          make(ExprKind::Call, line, std::move(children)));
  call->names = std::move(names);
  LLAMAC_RETURN_IF_ERROR(checkCall(*call));
  return call;
}

// Any number of "| NAME(...)".
Parser::ExprOr Parser::parseFilters(Expr *input) {
  while (skipOperator("|")) {
    LLAMAC_ASSIGN_OR_RETURN(input, parseFilter(input));
  }
  return input;
}

// Checks a filter or test, and also one whose name is an argument, as map and
// select have it.
absl::Status Parser::checkFilter(const Expr &filter) const {
  const bool isTest = filter.kind == ExprKind::Test;
  const Table &table = isTest ? tests() : filters();
  if (table.refuses(filter.text))
    return refusal(filter.line, table.refusal(filter.text));
  if (!filter.function)
    return absl::OkStatus();
  if (const absl::Status taken =
          checkArguments(*filter.function, positional(filter), filter.names);
      !taken.ok())
    return refusal(filter.line,
                   absl::StrCat("the ", table.what, " '", filter.text, "' ",
                                taken.message()));
  if (isTest || !filter.function->isVariadic)
    return absl::OkStatus();
  const Table &inner = filter.text == "map" ? filters() : tests();
  const size_t at = absl::EndsWith(filter.text, "attr") ? 2 : 1;
  const String *const name =
      positional(filter) >= at ? constantText(filter.children[at]) : nullptr;
  return name && inner.refuses(name->bytes)
             ? refusal(filter.line, inner.refusal(name->bytes))
             : absl::OkStatus();
}

Parser::ExprOr Parser::parseFilter(Expr *input) {
  const int line = current().line;
  LLAMAC_ASSIGN_OR_RETURN(std::string name, expectName());
  std::vector<Expr *> children = {input};
  std::vector<std::string> names;
  if (current().isOperator("("))
    LLAMAC_RETURN_IF_ERROR(parseArguments(children, names));
  LLAMAC_ASSIGN_OR_RETURN(
      Expr *const filter,
      make(ExprKind::Filter, line, std::move(children), std::move(name)));
  filter->names = std::move(names);
  filter->function = filters().find(filter->text);
  LLAMAC_RETURN_IF_ERROR(checkFilter(*filter));
  return filter;
}

Parser::ExprOr Parser::parseTest(Expr *input) {
  const int line = current().line;
  next();
  const bool negated = skipName("not");
  LLAMAC_ASSIGN_OR_RETURN(std::string name, expectName());
  std::vector<Expr *> children = {input};
  std::vector<std::string> names;
  if (current().isOperator("(")) {
    LLAMAC_RETURN_IF_ERROR(parseArguments(children, names));
  } else if ((current().kind == TokenKind::Name &&
              !atName({"else", "or", "and"})) ||
             current().kind == TokenKind::String ||
             current().kind == TokenKind::Integer ||
             current().kind == TokenKind::Float || current().isOperator("[") ||
             current().isOperator("{")) {
    if (current().isName("is"))
      return fail("tests cannot be chained with 'is'");
    // One argument needs no brackets.
    LLAMAC_ASSIGN_OR_RETURN(Expr * argument, parsePrimary());
    LLAMAC_ASSIGN_OR_RETURN(argument, parsePostfix(argument));
    children.push_back(argument);
  }
  LLAMAC_ASSIGN_OR_RETURN(
      Expr *const test,
      make(ExprKind::Test, line, std::move(children), std::move(name)));
  test->names = std::move(names);
  test->function = tests().find(test->text);
  LLAMAC_RETURN_IF_ERROR(checkFilter(*test));
  return negated ? make(ExprKind::Not, line, {test}) : ExprOr(test);
}

} // namespace llamac::chat
