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
  const Function *const function = globals().find(name);
  return function ? Value::of(Kind::Function, const_cast<Function *>(function))
                  : Value::missing();
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

// Text that is kept counts as memory, like a value's.
absl::Status Interpreter::write(const Value &value) {
  const size_t before = output->size();
  LLAMAC_RETURN_IF_ERROR(appendText(heap, value, *output));
  return heap.reserve(output->size() - before);
}

Interpreter::FlowOr Interpreter::capture(const Body &body, std::string &text) {
  std::string *const outer = std::exchange(output, &text);
  FlowOr flow = run(body);
  output = outer;
  if (flow.ok())
    heap.release(text.size());
  return flow;
}

absl::StatusOr<std::string> Interpreter::run() {
  LLAMAC_ASSIGN_OR_RETURN(frame, makeFrame(program.slots, nullptr));
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
  case StmtKind::Block:
    return runBlock(stmt);
  case StmtKind::For:
    return runFor(stmt);
  case StmtKind::If:
    return runIf(stmt);
  case StmtKind::Macro:
    LLAMAC_RETURN_IF_ERROR(runMacro(stmt));
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

Interpreter::FlowOr Interpreter::runBlock(const Stmt &stmt) {
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
  if (stmt.target)
    LLAMAC_RETURN_IF_ERROR(assign(*stmt.target, value));
  leave(stmt.scope);
  if (!stmt.target)
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

absl::Status Interpreter::runMacro(const Stmt &stmt) {
  frame->isCaptured = true;
  LLAMAC_ASSIGN_OR_RETURN(const Value macro,
                          heap.object(Kind::Macro, Macro{stmt.macro, frame}));
  return assign(*stmt.target, macro);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Iterator::Item Interpreter::peek(Loop &loop) {
  if (std::exchange(loop.peeked, true))
    return loop.after;
  // It may be called from the body of a macro that was given the loop.
  Frame *const caller = std::exchange(frame, loop.frame);
  const auto find = [&]() -> Iterator::Item {
    while (true) {
      LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item,
                              loop.rest->next(heap));
      if (!item || !loop.stmt->test)
        return item;
      LLAMAC_RETURN_IF_ERROR(assign(*loop.stmt->testTarget, *item));
      LLAMAC_ASSIGN_OR_RETURN(const Value holds, eval(loop.stmt->test));
      if (isTrue(holds))
        return item;
    }
  };
  Iterator::Item found = find();
  frame = caller;
  LLAMAC_ASSIGN_OR_RETURN(loop.after, std::move(found));
  return loop.after;
}

Iterator::Item Interpreter::nextItem(Loop &loop) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> following, peek(loop));
  if (!following)
    return following;
  loop.peeked = false;
  ++loop.index0;
  loop.before = std::exchange(loop.item, *following);
  return following;
}

Interpreter::FlowOr Interpreter::runFor(const Stmt &stmt) {
  LLAMAC_ASSIGN_OR_RETURN(const Value over, eval(stmt.value));
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const rest, iterate(heap, over));
  Loop loop{.stmt = &stmt, .frame = frame, .rest = rest};
  if (stmt.test) {
    frame->isCaptured = true;
    LLAMAC_RETURN_IF_ERROR(enter(stmt.testScope));
  } else {
    loop.length = lengthOf(over);
  }
  if (stmt.loopSlot < 0)
    return runLoop(loop, Value());
  LLAMAC_ASSIGN_OR_RETURN(const Value value, heap.object(Kind::Loop, loop));
  return runLoop(value.loop(), value);
}

Interpreter::FlowOr Interpreter::runLoop(Loop &loop, const Value &loopValue) {
  // The `else` of a loop runs unless the body has once come to its end, as in
  // Jinja: break and continue leave it before.
  const Stmt &stmt = *loop.stmt;
  bool finishedOne = false;
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, nextItem(loop));
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

} // namespace llamac::chat
