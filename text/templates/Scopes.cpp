//===- Scopes.cpp - Variables of a template -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Jinja decides while it compiles which variable a name stands for. Loops,
// macros and blocks have scopes; `if` has none. In a
// scope,
//
// - a name that is assigned is the scope's own variable for all of the scope.
//   It starts with the value of the variable of that name outside, if there is
//   one, and what is assigned to it does not reach outside;
// - a name that is only read is the variable of the nearest scope outside that
//   knows it, or else what the caller of the template passed.
//
// Which scopes know a name depends on all of their statements, also on those
// that follow. A scope is therefore analysed as a whole, before the names in it
// and in the scopes inside of it are resolved. Branches of an `if` are analysed
// one by one: a variable that not all of them assign starts with the value from
// outside.
//
// Macros run in frames of their own. A name of a scope outside is found some
// frames out; a macro keeps the frame that it was made in.
//
//===----------------------------------------------------------------------===//

#include "text/templates/Scopes.h"

#include "text/templates/Lexer.h"
#include "text/templates/Tables.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

#include <map>
#include <memory>
#include <set>

namespace llamac::chat {

namespace {

// Entries of tables of names that are copied for the branches of ifs; more make
// a template too complex.
constexpr size_t maxCopies = 10'000'000;

// The names of a scope. Copies, for branches, share the slots.
struct Symbols {
  const Symbols *parent = nullptr;
  int frame = 0;             ///< How many frames are outside of its own.
  int *frameSlots = nullptr; ///< How many variables that has.
  std::shared_ptr<std::map<std::string, int>> slots;
  std::map<std::string, int> refs;
  std::map<int, ScopeLoad> loads; ///< `source` counts hops from here.
  std::set<std::string> stores;

  static Symbols root(int &frameSlots) {
    Symbols symbols;
    symbols.frameSlots = &frameSlots;
    symbols.slots = std::make_shared<std::map<std::string, int>>();
    return symbols;
  }
  // Inside of this scope; with a count of variables, in a frame of its own.
  Symbols inner(int *own = nullptr) const {
    Symbols symbols = root(own ? *own : *frameSlots);
    symbols.parent = this;
    symbols.frame = frame + (own != nullptr);
    return symbols;
  }

  int define(const std::string &name, ScopeLoad::Action action,
             Slot source = {}) {
    const auto [at, isNew] = slots->emplace(name, *frameSlots);
    *frameSlots += isNew;
    refs[name] = at->second;
    loads[at->second] = {action, at->second, name, source};
    return at->second;
  }
  // The variable of `name`, as a scope in frame number `from` names it.
  std::optional<Slot> find(const std::string &name, int from) const {
    for (const Symbols *scope = this; scope; scope = scope->parent)
      if (const auto at = scope->refs.find(name); at != scope->refs.end())
        return Slot{from - scope->frame, at->second};
    return std::nullopt;
  }
  std::optional<Slot> find(const std::string &name) const {
    return find(name, frame);
  }

  void load(const std::string &name) {
    if (!find(name))
      define(name, ScopeLoad::Action::Resolve);
  }
  void store(const std::string &name) {
    stores.insert(name);
    if (refs.count(name))
      return;
    if (const auto outside = parent ? parent->find(name, frame) : std::nullopt)
      define(name, ScopeLoad::Action::Alias, *outside);
    else
      define(name, ScopeLoad::Action::Clear);
  }
  int parameter(const std::string &name) {
    stores.insert(name);
    return define(name, ScopeLoad::Action::Parameter);
  }
  void join(const std::vector<Symbols> &branches) {
    std::set<std::string> assigned;
    for (const Symbols &branch : branches)
      assigned.insert(branch.stores.begin(), branch.stores.end());
    for (const std::string &name : stores)
      assigned.erase(name);
    for (const Symbols &branch : branches) {
      for (const auto &[name, slot] : branch.refs)
        refs[name] = slot;
      for (const auto &[slot, load] : branch.loads)
        loads[slot] = load;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const std::string &name : assigned) {
      const auto outside = parent ? parent->find(name, frame) : std::nullopt;
      define(name,
             outside ? ScopeLoad::Action::Alias : ScopeLoad::Action::Resolve,
             outside.value_or(Slot()));
    }
  }
  Scope scope() const {
    Scope result;
    for (const auto &[slot, load] : loads) {
      result.loads.push_back(load);
      result.cost += 1 + load.name.size() / 16;
    }
    return result;
  }
};

using OnName = absl::FunctionRef<void(Expr &)>;

void visitNames(Expr *expr, OnName onName) {
  if (!expr)
    return;
  if (expr->kind == ExprKind::Name)
    onName(*expr);
  for (Expr *child : expr->children)
    visitNames(child, onName);
}

// All names below `body`, in the order in which Jinja visits them.
void visitNames(const Body &body, OnName onName) {
  for (Stmt *stmt : body) {
    if (stmt->kind != StmtKind::Macro)
      visitNames(stmt->target, onName);
    visitNames(stmt->value, onName);
    for (Expr *value : stmt->values)
      visitNames(value, onName);
    for (const auto &[test, branch] : stmt->branches) {
      visitNames(test, onName);
      visitNames(branch, onName);
    }
    if (stmt->macro) {
      for (Expr *parameter : stmt->macro->parameters)
        visitNames(parameter, onName);
      for (Expr *value : stmt->macro->defaults)
        visitNames(value, onName);
      visitNames(stmt->macro->body, onName);
    }
    visitNames(stmt->body, onName);
    visitNames(stmt->otherwise, onName);
    visitNames(stmt->test, onName);
  }
}

// The names, among `names`, that `body` reads before it assigns them.
std::set<std::string> readsOf(const Body &body, std::set<std::string> names) {
  std::set<std::string> found;
  visitNames(body, [&](Expr &name) {
    if (name.context == NameContext::Load && names.count(name.text))
      found.insert(name.text);
    else
      names.erase(name.text);
  });
  return found;
}

class Resolver {
public:
  explicit Resolver(Program &program) : program(program) {}

  absl::Status run() {
    Symbols root = Symbols::root(program.slots);
    LLAMAC_RETURN_IF_ERROR(analyze(program.body, root));
    program.scope = root.scope();
    return resolve(program.body, root, false);
  }

private:
  // First pass, of one scope: which names it reads and assigns.
  absl::Status analyze(const Body &body, Symbols &symbols);
  absl::Status analyzeIf(const Stmt &stmt, Symbols &symbols);
  void analyze(Expr *expr, Symbols &symbols, bool asParameters = false);
  absl::Status analyzeMacro(MacroNode &macro, Symbols &symbols);

  // Second pass: the variables of names, and the scopes inside. `soft`: below
  // an if of the same scope.
  absl::Status resolve(const Body &body, const Symbols &symbols, bool soft);
  absl::Status resolve(Stmt &stmt, const Symbols &symbols, bool soft);
  absl::Status resolve(Expr *expr, const Symbols &symbols, bool soft);
  absl::Status resolveFor(Stmt &stmt, const Symbols &symbols, bool soft);
  absl::Status resolveMacro(MacroNode &macro, const Symbols &symbols);
  absl::Status checkFunctionBody(const Body &body, int line,
                                 absl::Span<Expr *const> parameters);

  Expr *clone(const Expr *target) {
    Expr &copy = program.exprs.emplace_back(*target);
    for (Expr *&child : copy.children)
      child = clone(child);
    return &copy;
  }

  Program &program;
  size_t copies = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Analysis of a scope
//===----------------------------------------------------------------------===//

void Resolver::analyze(Expr *expr, Symbols &symbols, bool asParameters) {
  visitNames(expr, [&](Expr &name) {
    if (asParameters || name.context == NameContext::Parameter)
      symbols.parameter(name.text);
    else if (name.context == NameContext::Store)
      symbols.store(name.text);
    else
      symbols.load(name.text);
  });
}

absl::Status Resolver::analyzeIf(const Stmt &stmt, Symbols &symbols) {
  analyze(stmt.branches[0].first, symbols);
  const auto copy = [&]() -> absl::StatusOr<Symbols> {
    copies +=
        symbols.refs.size() + symbols.loads.size() + symbols.stores.size() + 1;
    if (copies > maxCopies)
      return syntaxError(stmt.line, "too many variables and branches");
    return symbols;
  };
  // The elifs are analysed as nested ifs one after another, as Jinja does.
  std::vector<Symbols> branches;
  LLAMAC_ASSIGN_OR_RETURN(Symbols first, copy());
  LLAMAC_RETURN_IF_ERROR(analyze(stmt.branches[0].second, first));
  branches.push_back(std::move(first));
  LLAMAC_ASSIGN_OR_RETURN(Symbols elifs, copy());
  for (size_t i = 1; i < stmt.branches.size(); ++i) {
    const auto &[test, body] = stmt.branches[i];
    analyze(test, elifs);
    copies += elifs.refs.size() + elifs.loads.size() + elifs.stores.size() + 1;
    if (copies > maxCopies)
      return syntaxError(stmt.line, "too many variables and branches");
    Symbols inner = elifs;
    LLAMAC_RETURN_IF_ERROR(analyze(body, inner));
    std::vector<Symbols> one;
    one.push_back(std::move(inner));
    elifs.join(one);
  }
  branches.push_back(std::move(elifs));
  LLAMAC_ASSIGN_OR_RETURN(Symbols last, copy());
  LLAMAC_RETURN_IF_ERROR(analyze(stmt.otherwise, last));
  branches.push_back(std::move(last));
  symbols.join(branches);
  return absl::OkStatus();
}

absl::Status Resolver::analyze(const Body &body, Symbols &symbols) {
  for (Stmt *stmt : body)
    switch (stmt->kind) {
    case StmtKind::Output:
      for (Expr *value : stmt->values)
        analyze(value, symbols);
      break;
    case StmtKind::Set:
      analyze(stmt->value, symbols);
      analyze(stmt->target, symbols);
      break;
    case StmtKind::Block:
      analyze(stmt->target ? stmt->target : stmt->value, symbols);
      break;
    case StmtKind::For:
      analyze(stmt->value, symbols);
      break;
    case StmtKind::If:
      LLAMAC_RETURN_IF_ERROR(analyzeIf(*stmt, symbols));
      break;
    case StmtKind::Macro:
      symbols.store(stmt->macro->name);
      break;
    case StmtKind::Break:
    case StmtKind::Continue:
      break;
    }
  return absl::OkStatus();
}

absl::Status Resolver::analyzeMacro(MacroNode &macro, Symbols &symbols) {
  for (Expr *parameter : macro.parameters)
    analyze(parameter, symbols);
  for (Expr *value : macro.defaults)
    analyze(value, symbols);
  return analyze(macro.body, symbols);
}

//===----------------------------------------------------------------------===//
// Resolution
//===----------------------------------------------------------------------===//

absl::Status Resolver::resolve(Expr *expr, const Symbols &symbols, bool soft) {
  if (!expr)
    return absl::OkStatus();
  if (expr->kind == ExprKind::Name) {
    const std::optional<Slot> slot = symbols.find(expr->text);
    if (!slot)
      return syntaxError(expr->line,
                         absl::StrCat("'", expr->text, "' is not known here"));
    expr->slot = *slot;
  }
  soft |= expr->kind == ExprKind::Conditional;
  const bool isFilter = expr->kind == ExprKind::Filter;
  if ((isFilter || expr->kind == ExprKind::Test) && !expr->function && !soft)
    return syntaxError(expr->line,
                       (isFilter ? filters() : tests()).refusal(expr->text));
  for (Expr *child : expr->children)
    LLAMAC_RETURN_IF_ERROR(resolve(child, symbols, soft));
  return absl::OkStatus();
}

absl::Status Resolver::resolve(const Body &body, const Symbols &symbols,
                               bool soft) {
  for (Stmt *stmt : body)
    LLAMAC_RETURN_IF_ERROR(resolve(*stmt, symbols, soft));
  return absl::OkStatus();
}

// In the body of a function, which that of a generation is too, jinja2 knows
// three more names.
absl::Status Resolver::checkFunctionBody(const Body &body, int line,
                                         absl::Span<Expr *const> parameters) {
  std::set<std::string> special = {"caller", "kwargs", "varargs"};
  for (const Expr *parameter : parameters)
    special.erase(parameter->text);
  special = readsOf(body, special);
  return special.empty()
             ? absl::OkStatus()
             : refusal(line, absl::StrCat("'", *special.begin(),
                                          "' in a macro is not supported; "
                                          "give it a parameter"));
}

absl::Status Resolver::resolveMacro(MacroNode &macro, const Symbols &symbols) {
  Symbols inner = symbols.inner(&macro.slots);
  LLAMAC_RETURN_IF_ERROR(analyzeMacro(macro, inner));
  macro.scope = inner.scope();
  for (Expr *parameter : macro.parameters)
    LLAMAC_RETURN_IF_ERROR(resolve(parameter, inner, false));
  for (Expr *value : macro.defaults)
    LLAMAC_RETURN_IF_ERROR(resolve(value, inner, false));
  return resolve(macro.body, inner, false);
}

absl::Status Resolver::resolveFor(Stmt &stmt, const Symbols &symbols,
                                  bool soft) {
  Symbols body = symbols.inner();
  Symbols otherwise = symbols.inner();
  if (!readsOf(stmt.body, {"loop"}).empty())
    stmt.loopSlot = body.parameter("loop");
  analyze(stmt.target, body, true);
  LLAMAC_RETURN_IF_ERROR(analyze(stmt.body, body));
  LLAMAC_RETURN_IF_ERROR(analyze(stmt.otherwise, otherwise));
  stmt.scope = body.scope();
  stmt.elseScope = otherwise.scope();

  bool assignsLoop = false;
  const auto check = [&](Expr &name) {
    assignsLoop |= name.context == NameContext::Store && name.text == "loop";
  };
  visitNames(stmt.target, check);
  visitNames(stmt.body, check);
  visitNames(stmt.otherwise, check);
  if (assignsLoop)
    return syntaxError(stmt.line, "'loop' cannot be assigned in a loop");

  LLAMAC_RETURN_IF_ERROR(resolve(stmt.value, symbols, soft));
  LLAMAC_RETURN_IF_ERROR(resolve(stmt.target, body, false));
  if (stmt.test) {
    // The test has variables of its own: it may be ahead of the body.
    stmt.testTarget = clone(stmt.target);
    Symbols test = symbols.inner();
    analyze(stmt.testTarget, test, true);
    analyze(stmt.test, test);
    stmt.testScope = test.scope();
    LLAMAC_RETURN_IF_ERROR(resolve(stmt.testTarget, test, false));
    LLAMAC_RETURN_IF_ERROR(resolve(stmt.test, test, false));
  }
  LLAMAC_RETURN_IF_ERROR(resolve(stmt.body, body, false));
  return resolve(stmt.otherwise, otherwise, false);
}

absl::Status Resolver::resolve(Stmt &stmt, const Symbols &symbols, bool soft) {
  switch (stmt.kind) {
  case StmtKind::Output:
    for (Expr *value : stmt.values)
      LLAMAC_RETURN_IF_ERROR(resolve(value, symbols, soft));
    return absl::OkStatus();
  case StmtKind::Set:
    LLAMAC_RETURN_IF_ERROR(resolve(stmt.value, symbols, soft));
    return resolve(stmt.target, symbols, soft);
  case StmtKind::Block: {
    if (!stmt.target && !stmt.value)
      LLAMAC_RETURN_IF_ERROR(checkFunctionBody(stmt.body, stmt.line, {}));
    Symbols inner = symbols.inner();
    LLAMAC_RETURN_IF_ERROR(analyze(stmt.body, inner));
    analyze(stmt.value, inner);
    stmt.scope = inner.scope();
    LLAMAC_RETURN_IF_ERROR(resolve(stmt.body, inner, false));
    LLAMAC_RETURN_IF_ERROR(resolve(stmt.value, inner, false));
    return resolve(stmt.target, symbols, soft);
  }
  case StmtKind::For:
    return resolveFor(stmt, symbols, soft);
  case StmtKind::If:
    for (const auto &[test, body] : stmt.branches) {
      LLAMAC_RETURN_IF_ERROR(resolve(test, symbols, true));
      LLAMAC_RETURN_IF_ERROR(resolve(body, symbols, true));
    }
    return resolve(stmt.otherwise, symbols, true);
  case StmtKind::Macro:
    LLAMAC_RETURN_IF_ERROR(
        checkFunctionBody(stmt.macro->body, stmt.line, stmt.macro->parameters));
    LLAMAC_RETURN_IF_ERROR(resolveMacro(*stmt.macro, symbols));
    return resolve(stmt.target, symbols, soft);
  case StmtKind::Break:
  case StmtKind::Continue:
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status resolveScopes(Program &program) { return Resolver(program).run(); }

} // namespace llamac::chat
