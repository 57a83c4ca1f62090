//===- Parser.cpp - Statements of a template ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Parser.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

bool Parser::skipName(absl::string_view name) {
  const bool found = current().isName(name);
  if (found)
    next();
  return found;
}

bool Parser::skipOperator(absl::string_view name) {
  const bool found = current().isOperator(name);
  if (found)
    next();
  return found;
}

bool Parser::atName(Names names) const {
  return std::any_of(names.begin(), names.end(), [this](absl::string_view n) {
    return current().isName(n);
  });
}

absl::Status Parser::unexpected(absl::string_view expected) const {
  static constexpr const char *kinds[] = {"text", "'{{'", "'}}'",     "'{%'",
                                          "'%}'", "",     "a string", "",
                                          "",     "",     "the end"};
  const Token &token = current();
  const std::string got =
      *kinds[static_cast<int>(token.kind)]
          ? kinds[static_cast<int>(token.kind)]
          : absl::StrCat("'", token.text.substr(0, 60), "'");
  return fail(absl::StrCat("expected ", expected, ", got ", got));
}

absl::Status Parser::expectOperator(absl::string_view name) {
  return skipOperator(name) ? absl::OkStatus()
                            : unexpected(absl::StrCat("'", name, "'"));
}

absl::Status Parser::expect(TokenKind kind, absl::string_view name) {
  if (current().kind != kind)
    return unexpected(absl::StrCat("'", name, "'"));
  next();
  return absl::OkStatus();
}

absl::StatusOr<std::string> Parser::expectName() {
  if (current().kind != TokenKind::Name)
    return unexpected("a name");
  std::string name = current().text;
  next();
  return name;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Parser::ExprOr Parser::make(ExprKind kind, int line,
                            std::vector<Expr *> children, std::string text) {
  Expr &expr = program.exprs.emplace_back();
  expr.kind = kind;
  expr.line = line;
  expr.text = std::move(text);
  expr.children = std::move(children);
  for (const Expr *child : expr.children)
    if (child)
      expr.height = std::max(expr.height, child->height + 1);
  if (expr.height > maxHeight)
    return syntaxError(line, "nested too deeply");
  return &expr;
}

Expr *Parser::makeConstant(int line, const Value &value) {
  Expr &expr = program.exprs.emplace_back();
  expr.kind = ExprKind::Constant;
  expr.line = line;
  expr.constant = value;
  return &expr;
}

Stmt *Parser::makeStmt(StmtKind kind) {
  Stmt &stmt = program.stmts.emplace_back();
  stmt.kind = kind;
  stmt.line = current().line;
  return &stmt;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

absl::Status Parser::parse() {
  LLAMAC_ASSIGN_OR_RETURN(program.body, parseBody({}));
  return absl::OkStatus();
}

// Up to the statement, whose name is the current token, that `ends` names; to
// the end of the template when there are no ends.
absl::StatusOr<Body> Parser::parseBody(Names ends) {
  const Nesting nesting(*this);
  LLAMAC_RETURN_IF_ERROR(nesting.check());
  Body body;
  // Text and expressions in a row are one node.
  const auto output = [&]() -> Stmt & {
    if (body.empty() || body.back()->kind != StmtKind::Output)
      body.push_back(makeStmt(StmtKind::Output));
    return *body.back();
  };
  while (true) {
    const Token &token = current();
    switch (token.kind) {
    case TokenKind::Data: {
      Expr *const data = makeConstant(token.line, Value());
      data->string = {token.text, 0};
      data->constant = Value::of(Kind::String, &data->string);
      output().values.push_back(data);
      next();
      break;
    }
    case TokenKind::BeginExpression: {
      next();
      LLAMAC_ASSIGN_OR_RETURN(Expr *const value, parseTuple(true));
      LLAMAC_RETURN_IF_ERROR(expect(TokenKind::EndExpression, "}}"));
      output().values.push_back(value);
      break;
    }
    case TokenKind::BeginStatement: {
      next();
      if (atName(ends))
        return body;
      LLAMAC_ASSIGN_OR_RETURN(Stmt *const stmt, parseStatement());
      body.push_back(stmt);
      LLAMAC_RETURN_IF_ERROR(expect(TokenKind::EndStatement, "%}"));
      break;
    }
    default: // The end.
      if (ends.size() == 0)
        return body;
      return unexpected(absl::StrCat("{% ", *(ends.end() - 1), " %}"));
    }
  }
}

// Parses the end of the opening statement, then the body as parseBody() does.
absl::StatusOr<Body> Parser::parseBlock(Names ends) {
  skipOperator(":");
  LLAMAC_RETURN_IF_ERROR(expect(TokenKind::EndStatement, "%}"));
  return parseBody(ends);
}

// Parses a block as parseBlock() does, and the name of its end.
absl::StatusOr<Body> Parser::parseWholeBlock(absl::string_view end) {
  LLAMAC_ASSIGN_OR_RETURN(Body body, parseBlock({end}));
  next();
  return body;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

Parser::StmtOr Parser::parseStatement() {
  struct Tag {
    absl::string_view name;
    StmtOr (Parser::*parse)();
  };
  static constexpr Tag tags[] = {
      {"break", &Parser::parseLoopControl},
      {"continue", &Parser::parseLoopControl},
      {"filter", &Parser::parseFilterBlock},
      {"for", &Parser::parseFor},
      {"generation", &Parser::parseGeneration},
      {"if", &Parser::parseIf},
      {"macro", &Parser::parseMacro},
      {"set", &Parser::parseSet},
  };
  if (current().kind != TokenKind::Name)
    return unexpected("the name of a tag");
  for (const Tag &tag : tags)
    if (current().isName(tag.name))
      return (this->*tag.parse)();
  static constexpr absl::string_view there =
      "; there are break, continue, filter, for, generation, if, macro and set";
  if (atName({"autoescape", "block", "call", "extends", "from", "import",
              "include", "print", "with"}))
    return refuse(
        absl::StrCat("the tag '", current().text, "' is not supported", there));
  return fail(
      absl::StrCat("unknown tag '", current().text.substr(0, 60), "'", there));
}

Parser::StmtOr Parser::parseLoopControl() {
  Stmt *const stmt = makeStmt(current().isName("break") ? StmtKind::Break
                                                        : StmtKind::Continue);
  if (loops == 0)
    return fail(absl::StrCat("'", current().text, "' outside of a loop"));
  next();
  return stmt;
}

Parser::StmtOr Parser::parseSet() {
  Stmt *const stmt = makeStmt(StmtKind::Set);
  next();
  LLAMAC_ASSIGN_OR_RETURN(stmt->target, parseTarget(true));
  if (skipOperator("=")) {
    LLAMAC_ASSIGN_OR_RETURN(stmt->value, parseTuple(true));
    return stmt;
  }
  stmt->kind = StmtKind::Block;
  LLAMAC_ASSIGN_OR_RETURN(stmt->value, parseFilters(nullptr));
  LLAMAC_ASSIGN_OR_RETURN(stmt->body, parseWholeBlock("endset"));
  return stmt;
}

Parser::StmtOr Parser::parseFor() {
  Stmt *const stmt = makeStmt(StmtKind::For);
  next();
  LLAMAC_ASSIGN_OR_RETURN(stmt->target, parseTarget(false));
  if (!skipName("in"))
    return unexpected("'in'");
  LLAMAC_ASSIGN_OR_RETURN(stmt->value, parseTuple(false));
  if (skipName("if")) {
    LLAMAC_ASSIGN_OR_RETURN(stmt->test, parseExpression());
  }
  if (current().isName("recursive"))
    return refuse("a recursive loop is not supported; write a macro");
  ++loops;
  LLAMAC_ASSIGN_OR_RETURN(stmt->body, parseBlock({"else", "endfor"}));
  --loops;
  const bool hasElse = current().isName("else");
  next();
  if (hasElse) {
    LLAMAC_ASSIGN_OR_RETURN(stmt->otherwise, parseWholeBlock("endfor"));
  }
  return stmt;
}

Parser::StmtOr Parser::parseIf() {
  Stmt *const stmt = makeStmt(StmtKind::If);
  do {
    next();
    LLAMAC_ASSIGN_OR_RETURN(Expr *const test, parseTuple(false));
    LLAMAC_ASSIGN_OR_RETURN(Body body, parseBlock({"elif", "else", "endif"}));
    stmt->branches.emplace_back(test, std::move(body));
  } while (current().isName("elif"));
  const bool hasElse = current().isName("else");
  next();
  if (hasElse) {
    LLAMAC_ASSIGN_OR_RETURN(stmt->otherwise, parseWholeBlock("endif"));
  }
  return stmt;
}

absl::Status Parser::parseSignature(MacroNode &macro) {
  LLAMAC_RETURN_IF_ERROR(expectOperator("("));
  while (!current().isOperator(")")) {
    if (!macro.parameters.empty())
      LLAMAC_RETURN_IF_ERROR(expectOperator(","));
    LLAMAC_ASSIGN_OR_RETURN(Expr *const parameter, parseName());
    parameter->context = NameContext::Parameter;
    if (parameter->text == "caller")
      return refuse("a parameter 'caller' is not supported");
    for (const Expr *other : macro.parameters)
      if (other->text == parameter->text)
        return fail(absl::StrCat("two parameters '", other->text, "'"));
    macro.parameters.push_back(parameter);
    if (skipOperator("=")) {
      LLAMAC_ASSIGN_OR_RETURN(Expr *const value, parseExpression());
      macro.defaults.push_back(value);
    } else if (!macro.defaults.empty()) {
      return fail("a parameter without a default follows one that has one");
    }
  }
  return expectOperator(")");
}

// A macro is a function of its own, which no loop outside goes through.
absl::StatusOr<Body> Parser::parseFunctionBody(absl::string_view end) {
  const int outside = std::exchange(loops, 0);
  LLAMAC_ASSIGN_OR_RETURN(Body body, parseWholeBlock(end));
  loops = outside;
  return body;
}

Parser::StmtOr Parser::parseMacro() {
  Stmt *const stmt = makeStmt(StmtKind::Macro);
  stmt->macro = &program.macros.emplace_back();
  next();
  LLAMAC_ASSIGN_OR_RETURN(stmt->target, parseName());
  stmt->macro->name = stmt->target->text;
  LLAMAC_RETURN_IF_ERROR(parseSignature(*stmt->macro));
  LLAMAC_ASSIGN_OR_RETURN(stmt->macro->body, parseFunctionBody("endmacro"));
  return stmt;
}

Parser::StmtOr Parser::parseGeneration() {
  Stmt *const stmt = makeStmt(StmtKind::Block);
  next();
  LLAMAC_ASSIGN_OR_RETURN(stmt->body, parseFunctionBody("endgeneration"));
  return stmt;
}

Parser::StmtOr Parser::parseFilterBlock() {
  Stmt *const stmt = makeStmt(StmtKind::Block);
  next();
  LLAMAC_ASSIGN_OR_RETURN(Expr *const first, parseFilter(nullptr));
  LLAMAC_ASSIGN_OR_RETURN(stmt->value, parseFilters(first));
  LLAMAC_ASSIGN_OR_RETURN(stmt->body, parseWholeBlock("endfilter"));
  return stmt;
}

// A name to be assigned to.
Parser::ExprOr Parser::parseName() {
  const int line = current().line;
  LLAMAC_ASSIGN_OR_RETURN(std::string name, expectName());
  LLAMAC_ASSIGN_OR_RETURN(Expr *const target,
                          make(ExprKind::Name, line, {}, std::move(name)));
  LLAMAC_RETURN_IF_ERROR(makeTarget(*target));
  return target;
}

// NAME, NAME.NAME or a tuple of them, to be assigned to.
Parser::ExprOr Parser::parseTarget(bool withNamespace) {
  const int line = current().line;
  std::vector<Expr *> parts;
  bool isTuple = false;
  do {
    if (current().kind == TokenKind::EndStatement ||
        current().isOperator(")") || current().isName("in"))
      break;
    LLAMAC_ASSIGN_OR_RETURN(Expr *const part, parsePrimary(withNamespace));
    parts.push_back(part);
    isTuple |= current().isOperator(",");
  } while (skipOperator(","));
  if (parts.empty())
    return unexpected("a name to assign to");
  Expr *target = parts[0];
  if (isTuple) {
    LLAMAC_ASSIGN_OR_RETURN(target,
                            make(ExprKind::Tuple, line, std::move(parts)));
  }
  LLAMAC_RETURN_IF_ERROR(makeTarget(*target));
  return target;
}

absl::Status Parser::makeTarget(Expr &expr) {
  static constexpr absl::string_view constants[] = {"true", "false", "none",
                                                    "True", "False", "None"};
  expr.context = NameContext::Store;
  if (expr.kind == ExprKind::NamespaceAttribute)
    return absl::OkStatus();
  if (expr.kind == ExprKind::Tuple) {
    for (Expr *part : expr.children)
      LLAMAC_RETURN_IF_ERROR(makeTarget(*part));
    return absl::OkStatus();
  }
  if (expr.kind != ExprKind::Name ||
      std::find(std::begin(constants), std::end(constants), expr.text) !=
          std::end(constants))
    return syntaxError(expr.line, "cannot assign to an expression");
  return absl::OkStatus();
}

} // namespace llamac::chat
