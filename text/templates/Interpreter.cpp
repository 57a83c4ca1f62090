//===- Interpreter.cpp - Statements of a template, run --------------------===//
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

#include <algorithm>

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// Frames and variables
//===----------------------------------------------------------------------===//

absl::Status Interpreter::deeper() {
  LLAMAC_RETURN_IF_ERROR(heap.spend(1));
  return depth > heap.limits.depth
             ? templateError("macros, loops or expressions are nested too "
                             "deeply")
             : absl::OkStatus();
}

static uint64_t frameBytes(uint64_t slots) {
  return sizeof(Frame) + slots * sizeof(Value);
}

absl::StatusOr<Frame *> Interpreter::makeFrame(int slots, Frame *outside) {
  LLAMAC_RETURN_IF_ERROR(
      heap.reserve(frameBytes(static_cast<uint64_t>(slots))));
  LLAMAC_RETURN_IF_ERROR(heap.spend(static_cast<uint64_t>(slots)));
  frames.push_back(std::make_unique<Frame>());
  Frame *const made = frames.back().get();
  made->outside = outside;
  made->slots.assign(static_cast<size_t>(slots), Value::missing());
  return made;
}

// Frames are made and dropped in the order of calls, so one that no macro needs
// is the last.
void Interpreter::dropFrame(Frame *made) {
  if (made->isCaptured || frames.back().get() != made)
    return;
  heap.release(frameBytes(made->slots.size()));
  frames.pop_back();
}

Value &Interpreter::variable(const Slot &slot) {
  Frame *at = frame;
  for (int i = 0; i < slot.hops; ++i)
    at = at->outside;
  return at->slots[static_cast<size_t>(slot.index)];
}

Value Interpreter::global(const std::string &name) const {
  if (const Value *const passed = variables.dict().find(name))
    return *passed;
  for (const Function &function : globalFunctions())
    if (name == function.name)
      return Value::of(Kind::Function, const_cast<Function *>(&function));
  return Value::missing();
}

absl::Status Interpreter::enter(const Scope &scope) {
  LLAMAC_RETURN_IF_ERROR(heap.spend(scope.cost));
  for (const ScopeLoad &load : scope.loads) {
    Value &slot = frame->slots[static_cast<size_t>(load.index)];
    switch (load.action) {
    case ScopeLoad::Action::Parameter:
      break;
    case ScopeLoad::Action::Resolve:
      slot = global(load.name);
      break;
    case ScopeLoad::Action::Alias:
      slot = variable(load.source);
      break;
    case ScopeLoad::Action::Clear:
      slot = Value::missing();
      break;
    }
  }
  return absl::OkStatus();
}

void Interpreter::leave(const Scope &scope) {
  for (const ScopeLoad &load : scope.loads)
    frame->slots[static_cast<size_t>(load.index)] = Value::missing();
}

absl::Status Interpreter::assign(const Expr &target, const Value &value) {
  if (target.kind == ExprKind::Name) {
    variable(target.slot) = value;
    return absl::OkStatus();
  }
  if (target.kind == ExprKind::NamespaceAttribute) {
    const Value &space = variable(target.children[0]->slot);
    if (!space.is(Kind::Namespace))
      return templateError(absl::StrCat("'", target.children[0]->text, ".",
                                        target.text,
                                        "' is assigned, which is no attribute "
                                        "of a namespace"));
    LLAMAC_ASSIGN_OR_RETURN(const Value key, heap.string(target.text));
    return heap.set(space, key, value);
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> parts, items(heap, value));
  if (parts.size() != target.children.size())
    return templateError(absl::StrCat("expected ", target.children.size(),
                                      " values to assign, got ", parts.size()));
  for (size_t i = 0; i < parts.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(assign(*target.children[i], parts[i]));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

absl::Status Interpreter::written(size_t before) {
  pending += output->size() - before;
  if (pending > heap.limits.outputBytes)
    return templateError(absl::StrCat("the text has more than ",
                                      heap.limits.outputBytes, " bytes"));
  return absl::OkStatus();
}

absl::Status Interpreter::write(const Value &value) {
  const size_t before = output->size();
  LLAMAC_RETURN_IF_ERROR(appendText(heap, value, *output));
  return written(before);
}

Interpreter::FlowOr Interpreter::capture(const Body &body, std::string &text) {
  std::string *const outer = std::exchange(output, &text);
  FlowOr flow = run(body);
  pending -= std::min<uint64_t>(pending, text.size());
  output = outer;
  return flow;
}

absl::StatusOr<std::string> Interpreter::run() {
  LLAMAC_ASSIGN_OR_RETURN(frame, makeFrame(program.layout.slots, nullptr));
  std::string text;
  output = &text;
  LLAMAC_RETURN_IF_ERROR(enter(program.scope));
  LLAMAC_RETURN_IF_ERROR(run(program.body).status());
  return text;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

Interpreter::FlowOr Interpreter::run(const Body &body) {
  for (const Stmt *stmt : body) {
    LLAMAC_ASSIGN_OR_RETURN(const Flow flow, run(*stmt));
    if (flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

Interpreter::FlowOr Interpreter::run(const Stmt &stmt) {
  const Depth nested(*this);
  currentLine = stmt.line;
  LLAMAC_RETURN_IF_ERROR(deeper());
  switch (stmt.kind) {
  case StmtKind::Output:
    LLAMAC_RETURN_IF_ERROR(runOutput(stmt));
    return Flow::Next;
  case StmtKind::Set:
    LLAMAC_RETURN_IF_ERROR(runSet(stmt));
    return Flow::Next;
  case StmtKind::SetBlock:
    return runSetBlock(stmt);
  case StmtKind::FilterBlock:
    return runFilterBlock(stmt);
  case StmtKind::For:
    return runFor(stmt);
  case StmtKind::If:
    return runIf(stmt);
  case StmtKind::With:
    return runWith(stmt);
  case StmtKind::Macro:
    LLAMAC_RETURN_IF_ERROR(runMacro(stmt));
    return Flow::Next;
  case StmtKind::CallBlock:
  case StmtKind::Generation:
    LLAMAC_RETURN_IF_ERROR(runCallBlock(stmt));
    return Flow::Next;
  case StmtKind::Break:
    return Flow::Break;
  case StmtKind::Continue:
    return Flow::Continue;
  }
  return Flow::Next;
}

absl::Status Interpreter::runOutput(const Stmt &stmt) {
  for (const Expr *expr : stmt.values) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr));
    LLAMAC_RETURN_IF_ERROR(write(value));
  }
  return absl::OkStatus();
}

absl::Status Interpreter::runSet(const Stmt &stmt) {
  LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(stmt.value));
  return assign(*stmt.target, value);
}

Interpreter::FlowOr Interpreter::runSetBlock(const Stmt &stmt) {
  std::string text;
  LLAMAC_RETURN_IF_ERROR(enter(stmt.scope));
  LLAMAC_ASSIGN_OR_RETURN(const Flow flow, capture(stmt.body, text));
  if (flow != Flow::Next)
    return flow;
  Value value;
  if (stmt.value) {
    blockText = &text;
    LLAMAC_ASSIGN_OR_RETURN(value, eval(stmt.value));
  } else {
    LLAMAC_ASSIGN_OR_RETURN(value, heap.string(std::move(text)));
  }
  LLAMAC_RETURN_IF_ERROR(assign(*stmt.target, value));
  leave(stmt.scope);
  return Flow::Next;
}

Interpreter::FlowOr Interpreter::runFilterBlock(const Stmt &stmt) {
  std::string text;
  LLAMAC_RETURN_IF_ERROR(enter(stmt.scope));
  LLAMAC_ASSIGN_OR_RETURN(const Flow flow, capture(stmt.body, text));
  if (flow != Flow::Next)
    return flow;
  blockText = &text;
  LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(stmt.value));
  leave(stmt.scope);
  LLAMAC_RETURN_IF_ERROR(write(value));
  return Flow::Next;
}

Interpreter::FlowOr Interpreter::runIf(const Stmt &stmt) {
  for (const auto &[test, body] : stmt.branches) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(test));
    if (isTrue(value))
      return run(body);
  }
  return run(stmt.otherwise);
}

Interpreter::FlowOr Interpreter::runWith(const Stmt &stmt) {
  // The values are those outside: none sees the targets.
  std::vector<Value> values;
  for (const Expr *expr : stmt.values) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, eval(expr));
    values.push_back(value);
  }
  LLAMAC_RETURN_IF_ERROR(enter(stmt.scope));
  for (size_t i = 0; i < values.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(assign(*stmt.targets[i], values[i]));
  LLAMAC_ASSIGN_OR_RETURN(const Flow flow, run(stmt.body));
  leave(stmt.scope);
  return flow;
}

absl::Status Interpreter::runMacro(const Stmt &stmt) {
  frame->isCaptured = true;
  LLAMAC_ASSIGN_OR_RETURN(const Value macro,
                          heap.object(Kind::Macro, Macro{stmt.macro, frame}));
  return assign(*stmt.target, macro);
}

absl::Status Interpreter::runCallBlock(const Stmt &stmt) {
  frame->isCaptured = true;
  LLAMAC_ASSIGN_OR_RETURN(const Value block,
                          heap.object(Kind::Macro, Macro{stmt.macro, frame}));
  if (stmt.kind == StmtKind::CallBlock) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value, evalCall(*stmt.value, &block));
    return write(value);
  }
  CallArguments none;
  LLAMAC_ASSIGN_OR_RETURN(const Value value, callMacro(block.macro(), none));
  return write(value);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

absl::StatusOr<std::optional<Value>> Loop::peek() {
  if (!peeked) {
    LLAMAC_ASSIGN_OR_RETURN(after, next());
    peeked = true;
  }
  return after;
}

absl::StatusOr<std::optional<Value>> Loop::advance() {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> following, peek());
  if (!following)
    return following;
  peeked = false;
  after.reset();
  ++index0;
  before = std::exchange(item, *following);
  return following;
}

absl::StatusOr<int64_t> Loop::count() {
  if (length)
    return *length;
  if (!stmt->test)
    if (const std::optional<int64_t> known = lengthOf(over)) {
      length = known;
      return *known;
    }
  // What is left has to be read to count it.
  auto rest = std::make_shared<std::vector<Value>>();
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
    if (!item)
      break;
    rest->push_back(*item);
  }
  length = static_cast<int64_t>(rest->size()) + index0 + 1 +
           (peeked && after.has_value());
  next = [rest,
          i = size_t{0}]() mutable -> absl::StatusOr<std::optional<Value>> {
    if (i == rest->size())
      return std::nullopt;
    return (*rest)[i++];
  };
  return *length;
}

// The items for which the loop's test holds.
absl::StatusOr<NextItem> Interpreter::filtered(const Stmt &stmt,
                                               NextItem next) {
  Frame *const home = frame;
  home->isCaptured = true;
  LLAMAC_RETURN_IF_ERROR(enter(stmt.testScope));
  return NextItem(
      [this, &stmt, home,
       next = std::move(next)]() -> absl::StatusOr<std::optional<Value>> {
        // It may be called from the body of a macro that was given the loop.
        Frame *const caller = std::exchange(frame, home);
        absl::StatusOr<std::optional<Value>> found;
        while (true) {
          found = next();
          if (!found.ok() || !*found)
            break;
          absl::Status status = heap.spend(1);
          if (status.ok())
            status = assign(*stmt.testTarget, **found);
          absl::StatusOr<Value> holds =
              status.ok() ? eval(stmt.test) : absl::StatusOr<Value>(status);
          if (!holds.ok()) {
            found = holds.status();
            break;
          }
          if (isTrue(*holds))
            break;
        }
        frame = caller;
        return found;
      });
}

Interpreter::FlowOr Interpreter::runFor(const Stmt &stmt) {
  LLAMAC_ASSIGN_OR_RETURN(const Value over, eval(stmt.value));
  if (stmt.recursive) {
    LLAMAC_ASSIGN_OR_RETURN(const Value text,
                            runRecursive(stmt, frame, over, 0));
    LLAMAC_RETURN_IF_ERROR(write(text));
    return Flow::Next;
  }
  LLAMAC_ASSIGN_OR_RETURN(NextItem next, iterate(heap, over));
  if (stmt.test) {
    LLAMAC_ASSIGN_OR_RETURN(next, filtered(stmt, std::move(next)));
  }
  if (stmt.loopSlot < 0) {
    Loop loop;
    loop.next = std::move(next);
    return runLoop(stmt, loop, Value());
  }
  LLAMAC_ASSIGN_OR_RETURN(const Value loop, heap.object(Kind::Loop, Loop{}));
  loop.loop().next = std::move(next);
  loop.loop().over = over;
  loop.loop().stmt = &stmt;
  return runLoop(stmt, loop.loop(), loop);
}

Interpreter::FlowOr Interpreter::runLoop(const Stmt &stmt, Loop &loop,
                                         const Value &loopValue) {
  // As in Jinja a loop is one with items once its body has come to its end:
  // break and continue leave it before.
  bool finishedOne = false;
  while (true) {
    LLAMAC_RETURN_IF_ERROR(heap.spend(1));
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, loop.advance());
    if (!item)
      break;
    LLAMAC_RETURN_IF_ERROR(assign(*stmt.target, *item));
    if (stmt.loopSlot >= 0)
      frame->slots[static_cast<size_t>(stmt.loopSlot)] = loopValue;
    LLAMAC_RETURN_IF_ERROR(enter(stmt.scope));
    LLAMAC_ASSIGN_OR_RETURN(const Flow flow, run(stmt.body));
    if (flow == Flow::Break)
      break;
    finishedOne |= flow == Flow::Next;
  }
  leave(stmt.scope);
  if (finishedOne || stmt.otherwise.empty())
    return Flow::Next;
  LLAMAC_RETURN_IF_ERROR(enter(stmt.elseScope));
  LLAMAC_ASSIGN_OR_RETURN(const Flow flow, run(stmt.otherwise));
  leave(stmt.elseScope);
  return flow;
}

// A recursive loop is a function: its text.
Interpreter::ValueOr Interpreter::runRecursive(const Stmt &stmt, Frame *closure,
                                               const Value &over,
                                               int64_t depth0) {
  const Depth nested(*this);
  LLAMAC_RETURN_IF_ERROR(deeper());
  LLAMAC_ASSIGN_OR_RETURN(Frame *const made,
                          makeFrame(stmt.layout.slots, closure));
  closure->isCaptured = true;
  made->isCaptured = true;
  const InFrame inside(*this, made);
  LLAMAC_ASSIGN_OR_RETURN(NextItem next, iterate(heap, over));
  if (stmt.test) {
    LLAMAC_ASSIGN_OR_RETURN(next, filtered(stmt, std::move(next)));
  }
  LLAMAC_ASSIGN_OR_RETURN(const Value loop, heap.object(Kind::Loop, Loop{}));
  loop.loop().next = std::move(next);
  loop.loop().over = over;
  loop.loop().stmt = &stmt;
  loop.loop().closure = closure;
  loop.loop().depth0 = depth0;
  std::string text;
  std::string *const outer = std::exchange(output, &text);
  const FlowOr flow = runLoop(stmt, loop.loop(), loop);
  pending -= std::min<uint64_t>(pending, text.size());
  output = outer;
  LLAMAC_RETURN_IF_ERROR(flow.status());
  return heap.string(std::move(text));
}

} // namespace llamac::chat
