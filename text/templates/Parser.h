//===- Parser.h - Tokens to a syntax tree --------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_PARSER_H
#define LLAMAC_TEXT_TEMPLATES_PARSER_H

#include "text/templates/Ast.h"
#include "text/templates/Lexer.h"

#include <initializer_list>

namespace llamac::chat {

/// Recursive descent, one function for each rule of jinja2's grammar. Errors
/// are syntaxError()s, also for a tree of more levels than `maxHeight`.
class Parser {
public:
  Parser(std::vector<Token> tokens, int maxHeight, Program &program)
      : tokens(std::move(tokens)), maxHeight(maxHeight), program(program) {}

  absl::Status parse();

private:
  using ExprOr = absl::StatusOr<Expr *>;
  using StmtOr = absl::StatusOr<Stmt *>;
  using Names = std::initializer_list<absl::string_view>;

  // Statements.
  absl::StatusOr<Body> parseBody(Names ends);
  absl::StatusOr<Body> parseBlock(Names ends);
  absl::StatusOr<Body> parseWholeBlock(absl::string_view end);
  StmtOr parseStatement();
  StmtOr parseSet();
  StmtOr parseFor();
  StmtOr parseIf();
  StmtOr parseMacro();
  StmtOr parseGeneration();
  StmtOr parseFilterBlock();
  StmtOr parseLoopControl();
  absl::Status parseSignature(MacroNode &macro);
  absl::StatusOr<Body> parseFunctionBody(absl::string_view end);
  ExprOr parseName();
  ExprOr parseTarget(bool withNamespace);
  absl::Status makeTarget(Expr &expr);

  // Expressions, from the loosest binding to the tightest.
  ExprOr parseTuple(bool withConditional, bool parenthesized = false);
  ExprOr parseExpression();
  ExprOr parseOr();
  ExprOr parseAnd();
  ExprOr parseNot();
  ExprOr parseCompare();
  ExprOr parseSum();
  ExprOr parseConcat();
  ExprOr parseProduct();
  ExprOr parseOperand() { return parseUnary(true); }
  ExprOr parseUnary(bool withFilter);
  ExprOr parsePrimary(bool withNamespace = false);
  ExprOr parseList(int line);
  ExprOr parseDict(int line);
  ExprOr parsePostfix(Expr *expr);
  ExprOr parseFilterExpression(Expr *expr);
  ExprOr parseSubscript(Expr *expr);
  ExprOr parseSubscribed();
  ExprOr parseCall(Expr *callee);
  ExprOr parseFilters(Expr *input);
  ExprOr parseFilter(Expr *input);
  ExprOr parseTest(Expr *input);
  /// Appends the arguments in brackets, and the names of the last of them.
  absl::Status parseArguments(std::vector<Expr *> &all,
                              std::vector<std::string> &names);
  /// Operands joined by operators `names` from the left.
  ExprOr parseLeft(Names names, ExprOr (Parser::*operand)());

  // These refuse, by name, what jinja2 has and is not supported.
  absl::Status checkCall(const Expr &call) const;
  absl::Status checkFilter(const Expr &filter) const;

  /// Error: too high a tree.
  ExprOr make(ExprKind kind, int line, std::vector<Expr *> children,
              std::string text = "");
  Expr *makeConstant(int line, const Value &value);
  Stmt *makeStmt(StmtKind kind);

  // Tokens.
  const Token &current() const { return tokens[at]; }
  const Token &ahead() const {
    return tokens[at + 1 < tokens.size() ? at + 1 : at];
  }
  void next() { at += at + 1 < tokens.size(); }
  bool skipName(absl::string_view name);
  bool skipOperator(absl::string_view name);
  bool atName(Names names) const;
  absl::Status expectOperator(absl::string_view name);
  absl::Status expect(TokenKind kind, absl::string_view name);
  absl::StatusOr<std::string> expectName();
  absl::Status unexpected(absl::string_view expected) const;
  absl::Status fail(absl::string_view message) const {
    return syntaxError(current().line, message);
  }
  absl::Status refuse(absl::string_view message) const {
    return refusal(current().line, message);
  }

  std::vector<Token> tokens;
  const int maxHeight;
  Program &program;
  size_t at = 0;
  int depth = 0; ///< Nested rules being parsed.
  int loops = 0; ///< Loops that a break could leave.

  friend class Nesting;
};

/// Counts the rules that are being parsed, in one function.
class Nesting {
public:
  explicit Nesting(Parser &parser) : parser(parser) { ++parser.depth; }
  ~Nesting() { --parser.depth; }
  absl::Status check() const {
    return parser.depth > parser.maxHeight ? parser.fail("nested too deeply")
                                           : absl::OkStatus();
  }

private:
  Parser &parser;
};

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_PARSER_H
