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

#include "absl/strings/str_cat.h"

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

// Expressions with commas between them are a tuple, which ends where a tag, a
// bracket or the name `end` does.
Parser::ExprOr Parser::parseTuple(absl::string_view end, bool withConditional,
                                  bool parenthesized) {
  const int line = current().line;
  std::vector<Expr *> items;
  bool isTuple = false;
  while (true) {
    if (!items.empty())
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
    if (current().kind == TokenKind::EndExpression ||
        current().kind == TokenKind::EndStatement ||
        current().isOperator(")") || (!end.empty() && current().isName(end)))
      break;
    LLAMAC_ASSIGN_OR_RETURN(Expr *const item,
                            withConditional ? parseExpression() : parseOr());
    items.push_back(item);
    if (!current().isOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple && !items.empty())
    return items[0];
  if (!isTuple && !parenthesized)
    return unexpected("an expression");
  return finish(make(ExprKind::Tuple, line, std::move(items)));
}

Parser::ExprOr Parser::parseExpression() { return parseConditional(); }

Parser::ExprOr Parser::parseConditional() {
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  const int line = current().line;
  LLAMAC_ASSIGN_OR_RETURN(Expr * value, parseOr());
  while (skipName("if")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const test, parseOr());
    Expr *other = nullptr;
    if (skipName("else")) {
      LLAMAC_ASSIGN_OR_RETURN(other, parseConditional());
    }
    LLAMAC_ASSIGN_OR_RETURN(
        value, finish(make(ExprKind::Conditional, line, {test, value, other})));
  }
  return value;
}

Parser::ExprOr Parser::parseOr() {
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  LLAMAC_ASSIGN_OR_RETURN(Expr * left, parseAnd());
  while (skipName("or")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const right, parseAnd());
    LLAMAC_ASSIGN_OR_RETURN(
        left, finish(make(ExprKind::Or, right->line, {left, right})));
  }
  return left;
}

Parser::ExprOr Parser::parseAnd() {
  LLAMAC_ASSIGN_OR_RETURN(Expr * left, parseNot());
  while (skipName("and")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const right, parseNot());
    LLAMAC_ASSIGN_OR_RETURN(
        left, finish(make(ExprKind::And, right->line, {left, right})));
  }
  return left;
}

Parser::ExprOr Parser::parseNot() {
  if (!current().isName("not"))
    return parseCompare();
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  const int line = current().line;
  next();
  LLAMAC_ASSIGN_OR_RETURN(Expr *const operand, parseNot());
  return finish(make(ExprKind::Not, line, {operand}));
}

Parser::ExprOr Parser::parseCompare() {
  static constexpr absl::string_view names[] = {"==", "!=", "<",
                                                "<=", ">",  ">="};
  const int line = current().line;
  LLAMAC_ASSIGN_OR_RETURN(Expr *const first, parseSum());
  std::vector<Expr *> operands = {first};
  std::vector<std::string> found;
  while (true) {
    std::string name;
    for (const absl::string_view each : names)
      if (current().isOperator(each))
        name = std::string(each);
    if (current().isName("in"))
      name = "in";
    if (current().isName("not") && ahead().isName("in")) {
      name = "not in";
      next();
    }
    if (name.empty())
      break;
    next();
    LLAMAC_ASSIGN_OR_RETURN(Expr *const operand, parseSum());
    operands.push_back(operand);
    found.push_back(std::move(name));
  }
  if (found.empty())
    return first;
  Expr *const compare = make(ExprKind::Compare, line, std::move(operands));
  compare->operators = std::move(found);
  return finish(compare);
}

Parser::ExprOr Parser::parseLeft(Names names, ExprOr (Parser::*operand)()) {
  LLAMAC_ASSIGN_OR_RETURN(Expr * left, (this->*operand)());
  while (true) {
    std::string name;
    for (const absl::string_view each : names)
      if (current().isOperator(each))
        name = std::string(each);
    if (name.empty())
      return left;
    next();
    LLAMAC_ASSIGN_OR_RETURN(Expr *const right, (this->*operand)());
    left = make(ExprKind::Binary, right->line, {left, right});
    left->text = std::move(name);
    LLAMAC_RETURN_IF_ERROR(finish(left).status());
  }
}

Parser::ExprOr Parser::parseSum() {
  return parseLeft({"+", "-"}, &Parser::parseConcat);
}

Parser::ExprOr Parser::parseConcat() {
  const int line = current().line;
  LLAMAC_ASSIGN_OR_RETURN(Expr *const first, parseProduct());
  std::vector<Expr *> parts = {first};
  while (skipOperator("~")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const part, parseProduct());
    parts.push_back(part);
  }
  return parts.size() == 1
             ? first
             : finish(make(ExprKind::Concat, line, std::move(parts)));
}

Parser::ExprOr Parser::parseProduct() {
  return parseLeft({"*", "/", "//", "%"}, &Parser::parsePower);
}

Parser::ExprOr Parser::parsePower() {
  LLAMAC_ASSIGN_OR_RETURN(Expr * left, parseUnary());
  while (skipOperator("**")) {
    LLAMAC_ASSIGN_OR_RETURN(Expr *const right, parseUnary());
    left = make(ExprKind::Binary, right->line, {left, right});
    left->text = "**";
    LLAMAC_RETURN_IF_ERROR(finish(left).status());
  }
  return left;
}

Parser::ExprOr Parser::parseUnary(bool withFilter) {
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  const int line = current().line;
  Expr *expr = nullptr;
  if (current().isOperator("-") || current().isOperator("+")) {
    const ExprKind kind =
        current().isOperator("-") ? ExprKind::Negative : ExprKind::Positive;
    next();
    LLAMAC_ASSIGN_OR_RETURN(Expr *const operand, parseUnary(false));
    LLAMAC_ASSIGN_OR_RETURN(expr, finish(make(kind, line, {operand})));
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
  Expr *const expr = make(ExprKind::Constant, token.line);
  switch (token.kind) {
  case TokenKind::Name:
    next();
    if (token.text == "true" || token.text == "True") {
      expr->constant = Value::boolean(true);
    } else if (token.text == "false" || token.text == "False") {
      expr->constant = Value::boolean(false);
    } else if (token.text == "none" || token.text == "None") {
      expr->constant = Value::none();
    } else {
      expr->kind = ExprKind::Name;
      expr->text = token.text;
      if (withNamespace && skipOperator(".")) {
        LLAMAC_ASSIGN_OR_RETURN(std::string name, expectName());
        // The namespace is a child, the attribute is the text.
        Expr *const space = make(ExprKind::Name, token.line);
        space->text = token.text;
        expr->kind = ExprKind::NamespaceAttribute;
        expr->text = std::move(name);
        expr->children = {space};
        return finish(expr);
      }
    }
    return expr;
  case TokenKind::String:
    // Strings in a row are one.
    for (; current().kind == TokenKind::String; next())
      expr->string.bytes += current().text;
    expr->string.length = codePoints(expr->string.bytes);
    expr->constant = Value::of(Kind::String, &expr->string);
    return expr;
  case TokenKind::Integer:
    next();
    expr->constant = Value::integer(token.integer);
    return expr;
  case TokenKind::Float:
    next();
    expr->constant = Value::real(token.real);
    return expr;
  default:
    break;
  }
  if (token.isOperator("["))
    return parseList();
  if (token.isOperator("{"))
    return parseDict();
  if (!skipOperator("("))
    return unexpected("an expression");
  LLAMAC_ASSIGN_OR_RETURN(Expr *const inner, parseTuple("", true, true));
  LLAMAC_RETURN_IF_ERROR(expectOperator(")"));
  return inner;
}

Parser::ExprOr Parser::parseList() {
  const int line = current().line;
  next();
  std::vector<Expr *> items;
  while (!current().isOperator("]")) {
    if (!items.empty())
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
    if (current().isOperator("]"))
      break;
    LLAMAC_ASSIGN_OR_RETURN(Expr *const item, parseExpression());
    items.push_back(item);
  }
  next();
  return finish(make(ExprKind::List, line, std::move(items)));
}

Parser::ExprOr Parser::parseDict() {
  const int line = current().line;
  next();
  std::vector<Expr *> parts;
  while (!current().isOperator("}")) {
    if (!parts.empty())
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
    if (current().isOperator("}"))
      break;
    LLAMAC_ASSIGN_OR_RETURN(Expr *const key, parseExpression());
    LLAMAC_RETURN_IF_ERROR(expectOperator(":"));
    LLAMAC_ASSIGN_OR_RETURN(Expr *const value, parseExpression());
    parts.push_back(key);
    parts.push_back(value);
  }
  next();
  return finish(make(ExprKind::Dict, line, std::move(parts)));
}

//===----------------------------------------------------------------------===//
// What follows an operand
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
    if (token.kind == TokenKind::Name) {
      next();
      Expr *const attribute = make(ExprKind::Attribute, line, {expr});
      attribute->text = token.text;
      return finish(attribute);
    }
    if (token.kind != TokenKind::Integer)
      return unexpected("a name or a number");
    next();
    Expr *const index = make(ExprKind::Constant, line);
    index->constant = Value::integer(token.integer);
    return finish(make(ExprKind::Item, line, {expr, index}));
  }
  next();
  std::vector<Expr *> keys;
  while (!current().isOperator("]")) {
    if (!keys.empty())
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
    LLAMAC_ASSIGN_OR_RETURN(Expr *const key, parseSubscribed());
    keys.push_back(key);
  }
  next();
  Expr *key = keys.empty() ? nullptr : keys[0];
  if (keys.size() != 1) {
    for (const Expr *each : keys)
      if (each->kind == ExprKind::Slice)
        return syntaxError(line, "a slice among several keys");
    LLAMAC_ASSIGN_OR_RETURN(
        key, finish(make(ExprKind::Tuple, line, std::move(keys))));
  }
  return finish(make(ExprKind::Item, line, {expr, key}));
}

// A key, or START:STOP:STEP.
Parser::ExprOr Parser::parseSubscribed() {
  const int line = current().line;
  std::vector<Expr *> parts(3);
  const auto ends = [this] {
    return current().isOperator("]") || current().isOperator(",");
  };
  if (!current().isOperator(":")) {
    LLAMAC_ASSIGN_OR_RETURN(parts[0], parseExpression());
    if (!current().isOperator(":"))
      return parts[0];
  }
  next();
  if (!current().isOperator(":") && !ends()) {
    LLAMAC_ASSIGN_OR_RETURN(parts[1], parseExpression());
  }
  if (skipOperator(":") && !ends()) {
    LLAMAC_ASSIGN_OR_RETURN(parts[2], parseExpression());
  }
  return finish(make(ExprKind::Slice, line, std::move(parts)));
}

absl::Status Parser::parseArguments(Expr &call) {
  const int line = current().line;
  const auto ensure = [line](bool holds) {
    return holds ? absl::OkStatus()
                 : syntaxError(line, "arguments are out of order");
  };
  LLAMAC_RETURN_IF_ERROR(expectOperator("("));
  bool first = true;
  while (!current().isOperator(")")) {
    if (!first) {
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
      if (current().isOperator(")"))
        break;
    }
    first = false;
    if (skipOperator("*")) {
      LLAMAC_RETURN_IF_ERROR(ensure(!call.unpacked && !call.unpackedNamed));
      LLAMAC_ASSIGN_OR_RETURN(call.unpacked, parseExpression());
    } else if (skipOperator("**")) {
      LLAMAC_RETURN_IF_ERROR(ensure(!call.unpackedNamed));
      LLAMAC_ASSIGN_OR_RETURN(call.unpackedNamed, parseExpression());
    } else if (current().kind == TokenKind::Name && ahead().isOperator("=")) {
      LLAMAC_RETURN_IF_ERROR(ensure(!call.unpackedNamed));
      std::string name = current().text;
      for (const auto &[other, value] : call.named)
        if (other == name)
          return syntaxError(line, absl::StrCat("two arguments '", name, "'"));
      next();
      next();
      LLAMAC_ASSIGN_OR_RETURN(Expr *const value, parseExpression());
      call.named.emplace_back(std::move(name), value);
    } else {
      LLAMAC_RETURN_IF_ERROR(
          ensure(!call.unpacked && !call.unpackedNamed && call.named.empty()));
      LLAMAC_ASSIGN_OR_RETURN(Expr *const value, parseExpression());
      call.children.push_back(value);
    }
  }
  next();
  return absl::OkStatus();
}

Parser::ExprOr Parser::parseCall(Expr *callee) {
  Expr *const call = make(ExprKind::Call, current().line, {callee});
  LLAMAC_RETURN_IF_ERROR(parseArguments(*call));
  return finish(call);
}

// Any number of "| NAME(...)".
Parser::ExprOr Parser::parseFilters(Expr *input) {
  while (skipOperator("|")) {
    LLAMAC_ASSIGN_OR_RETURN(input, parseFilter(input));
  }
  return input;
}

Parser::ExprOr Parser::parseFilter(Expr *input) {
  Expr *const filter = make(ExprKind::Filter, current().line, {input});
  LLAMAC_ASSIGN_OR_RETURN(filter->text, expectName());
  while (skipOperator(".")) {
    LLAMAC_ASSIGN_OR_RETURN(const std::string more, expectName());
    absl::StrAppend(&filter->text, ".", more);
  }
  if (current().isOperator("("))
    LLAMAC_RETURN_IF_ERROR(parseArguments(*filter));
  filter->function = findFilter(filter->text);
  return finish(filter);
}

Parser::ExprOr Parser::parseTest(Expr *input) {
  const int line = current().line;
  next();
  const bool negated = skipName("not");
  Expr *const test = make(ExprKind::Test, line, {input});
  LLAMAC_ASSIGN_OR_RETURN(test->text, expectName());
  while (skipOperator(".")) {
    LLAMAC_ASSIGN_OR_RETURN(const std::string more, expectName());
    absl::StrAppend(&test->text, ".", more);
  }
  if (current().isOperator("(")) {
    LLAMAC_RETURN_IF_ERROR(parseArguments(*test));
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
    test->children.push_back(argument);
  }
  test->function = findTest(test->text);
  LLAMAC_RETURN_IF_ERROR(finish(test).status());
  return negated ? finish(make(ExprKind::Not, line, {test})) : ExprOr(test);
}

} // namespace llamac::chat
