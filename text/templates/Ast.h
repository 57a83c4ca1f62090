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
  Positive,
  Binary, ///< `text` is the operator.
  And,
  Or,
  Compare, ///< Children: operands; operators between them.
  Concat,
  Attribute, ///< Child: object; `text` is the name.
  Item,      ///< Children: object, key.
  Slice,     ///< Children, or null: start, stop, step. A key of Item.
  Call,      ///< Children: callee and positional arguments.
  Filter,    ///< Children: input, or null for a block's text, and arguments.
  Test,      ///< As Filter.
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
  int height = 1; ///< Of the tree below it.
  std::string text;
  Value constant;
  String string; ///< What `constant` points to.
  std::vector<Expr *> children;
  std::vector<std::string> operators;
  // Arguments beside the positional ones.
  std::vector<std::pair<std::string, Expr *>> named;
  Expr *unpacked = nullptr;           ///< *list
  Expr *unpackedNamed = nullptr;      ///< **dict
  const Function *function = nullptr; ///< Of Filter and Test, when known.
  Slot slot;
};

/// What happens to a variable when its scope is entered.
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

/// A body that runs in a frame of its own.
struct FrameLayout {
  int slots = 0;
};

struct Stmt;
using Body = std::vector<Stmt *>;

struct MacroNode {
  const std::string *name = nullptr; ///< Null for a call block.
  std::vector<Expr *> parameters;
  std::vector<Expr *> defaults; ///< Of the last parameters.
  Body body;
  Scope scope;
  FrameLayout layout;
  // Parameters that are there when the body uses them: their variables, or -1.
  int caller = -1, named = -1, unnamed = -1;
  bool explicitCaller = false; ///< A parameter of that name.
};

enum class StmtKind : uint8_t {
  Output,
  Set,
  SetBlock,
  For,
  If,
  With,
  Macro,
  CallBlock,
  Generation,
  FilterBlock,
  Break,
  Continue,
};

struct Stmt {
  StmtKind kind;
  int line;
  int height = 1;
  std::vector<Expr *> values;  ///< Of Output and With.
  std::vector<Expr *> targets; ///< Of With.
  Expr *target = nullptr;      ///< Of Set, SetBlock and For.
  /// Of Set; what a loop is over; the call of a call block; the filter of
  /// SetBlock (or null) and FilterBlock.
  Expr *value = nullptr;
  Expr *test = nullptr;       ///< The `if` of a loop, or null.
  Expr *testTarget = nullptr; ///< What it sees as the target.
  bool recursive = false;
  std::vector<std::pair<Expr *, Body>> branches; ///< Of If.
  Body body;
  Body otherwise; ///< else of If and For.
  MacroNode *macro = nullptr;
  Scope scope, testScope, elseScope;
  int loopSlot = -1;  ///< The variable `loop`, when it is used.
  Slot slot;          ///< Of a macro's name.
  FrameLayout layout; ///< Of a recursive loop.
};

struct Program {
  Body body;
  Scope scope;
  FrameLayout layout;
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::deque<MacroNode> macros;
};

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_AST_H
