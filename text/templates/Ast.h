//===- Ast.h - Syntax tree of a template ---------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The nodes belong to the Program and live as long as that; a null child is one
// that was left out. Scopes.cpp gives every name its variable.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_AST_H
#define LLAMAC_TEXT_TEMPLATES_AST_H

#include "text/templates/Value.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace llamac::chat {

enum class ExprKind : uint8_t {
  Constant,
  Name,
  NamespaceAttribute, ///< Only assigned to: NAME.TEXT.
  Tuple,
  List,
  Dict,        ///< Children: key, value, key, value, ...
  Conditional, ///< Children: test, value, other value or null.
  Not,
  Negative,
  Binary, ///< `text` is the operator; also of comparisons.
  And,
  Or,
  Attribute, ///< Child: object; `text` is the name.
  Item,      ///< Children: object, key.
  Slice,     ///< Children, or null: start, stop, step. A key of Item.
  Call,      ///< Children: callee and arguments.
  Filter,    ///< Children: input, or null for a block's text, and arguments.
  Test,      ///< Children: input, and arguments.
};

enum class NameContext : uint8_t { Load, Store, Parameter };

/// A variable: `index` in the frame `hops` frames out.
struct Slot {
  int hops = 0;
  int index = 0;
};

struct Expr {
  ExprKind kind;
  NameContext context = NameContext::Load;
  int line;
  int height = 1; ///< Levels of the tree from here.
  std::string text;
  Value constant;
  String string; ///< The text that `constant` points to.
  std::vector<Expr *> children;
  std::vector<std::string> names;     ///< Names of a call's last arguments.
  const Function *function = nullptr; ///< The filter or test; null: unknown.
  Slot slot;
};

/// How a variable gets its value when its scope is entered.
struct ScopeLoad {
  enum class Action : uint8_t {
    Parameter, ///< Nothing: it is assigned.
    Resolve,   ///< Gets the template's variable `name`.
    Alias,     ///< Gets the value of `source`.
    Clear,     ///< Is undefined.
  } action;
  int index;
  std::string name;
  Slot source;
};

/// Variables of a loop's body, a macro, a block.
struct Scope {
  std::vector<ScopeLoad> loads;
  uint64_t cost = 0; ///< Steps of entering it.
};

struct Stmt;
using Body = std::vector<Stmt *>;

struct MacroNode {
  std::string name;
  std::vector<Expr *> parameters;
  std::vector<Expr *> defaults; ///< The last parameters' defaults.
  Body body;
  Scope scope;
  int slots = 0; ///< Variables of its frame.
};

enum class StmtKind : uint8_t {
  Output,
  Set,
  Block, ///< Text of set, filter and generation.
  For,
  If,
  Macro,
  Break,
  Continue,
};

struct Stmt {
  StmtKind kind;
  int line;
  std::vector<Expr *> values; ///< Output's text and expressions.
  Expr *target = nullptr;     ///< Assigned by Set, For, Macro, or Block.
  /// The value of Set, the iterable of For; the filter of Block, or null.
  Expr *value = nullptr;
  Expr *test = nullptr;       ///< The `if` of a loop, or null.
  Expr *testTarget = nullptr; ///< The target as `test` sees it.
  std::vector<std::pair<Expr *, Body>> branches; ///< If: tests and bodies.
  Body body;
  Body otherwise; ///< else of If and For.
  MacroNode *macro = nullptr;
  Scope scope, testScope, elseScope;
  int loopSlot = -1; ///< The variable `loop`, when it is used.
};

struct Program {
  Body body;
  Scope scope;
  int slots = 0;
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::deque<MacroNode> macros;
};

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_AST_H
