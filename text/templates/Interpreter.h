//===- Interpreter.h - Runs a template ------------------------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_INTERPRETER_H
#define LLAMAC_TEXT_TEMPLATES_INTERPRETER_H

#include "text/templates/Ast.h"
#include "text/templates/Value.h"

#include "absl/types/span.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llamac::chat {

/// The arguments of a call. A function that is not variadic gets one value for
/// each of its parameters: what was not given is Missing.
struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  const Value &operator[](size_t i) const { return positional[i]; }
  bool has(size_t i) const { return !positional[i].is(Kind::Missing); }
  /// Whether an argument was given and is true.
  bool isSet(size_t i) const { return has(i) && isTrue(positional[i]); }
};

/// The variables of a body that runs.
struct Frame {
  Frame *outside;
  std::vector<Value> slots;
  bool isCaptured = false; ///< A macro was made in it: it has to stay.
};

/// `loop`.
struct Loop {
  const Stmt *stmt;
  Frame *frame;                       ///< Where it runs.
  Iterator *rest;                     ///< The items to come.
  std::optional<int64_t> length = {}; ///< The number of all items, if known.
  int64_t index0 = -1;
  Value before = Value::missing(), item = Value::missing();
  // The item after this one, once it was asked for.
  bool peeked = false;
  std::optional<Value> after = {};
};

struct Table;

/// Runs one program once.
class Interpreter {
public:
  /// `variables` is a dictionary: what the caller passes.
  Interpreter(const Program &program, Heap &heap, Value variables,
              const std::function<std::tm()> &now)
      : heap(heap), now(now), program(program), variables(variables) {}

  absl::StatusOr<std::string> run();

  /// The line of the node that is being evaluated.
  int line() const { return currentLine; }

  absl::StatusOr<Value> call(const Value &callee, CallArguments &arguments);
  /// Calls a filter, test, method or function with the value that it is of.
  absl::StatusOr<Value> call(const Function &function, const Value &self,
                             CallArguments &arguments);
  /// Python's a + b and so on, for the operators of ExprKind::Binary.
  absl::StatusOr<Value> binary(absl::string_view op, const Value &a,
                               const Value &b);
  absl::StatusOr<bool> contains(const Value &container, const Value &value);
  /// object.name and object[key], undefined when there is no such thing.
  absl::StatusOr<Value> attribute(const Value &object, const std::string &name);
  /// The attribute or method that Python's getattr finds, or Missing.
  absl::StatusOr<Value> member(const Value &object, const std::string &name);
  absl::StatusOr<Value> item(const Value &object, const Value &key);
  absl::StatusOr<Value> slice(const Value &object, const Value &start,
                              const Value &stop, const Value &step);
  /// The filter or test of that name in `table`, as `map` and `select` call
  /// them.
  absl::StatusOr<Value> apply(const Table &table, const Value &name,
                              const Value &input, CallArguments arguments);

  Heap &heap;
  const std::function<std::tm()> &now;

private:
  enum class Flow { Next, Break, Continue };
  using FlowOr = absl::StatusOr<Flow>;
  using ValueOr = absl::StatusOr<Value>;

  // Statements.
  FlowOr run(const Body &body);
  FlowOr run(const Stmt &stmt);
  absl::Status runOutput(const Stmt &stmt);
  absl::Status runSet(const Stmt &stmt);
  FlowOr runBlock(const Stmt &stmt);
  FlowOr runIf(const Stmt &stmt);
  absl::Status runMacro(const Stmt &stmt);
  FlowOr runFor(const Stmt &stmt);
  FlowOr runLoop(Loop &loop, const Value &loopValue);
  /// The next item of a loop for which its test holds, unless it was taken
  /// already; peek() leaves it there.
  Iterator::Item nextItem(Loop &loop);
  Iterator::Item peek(Loop &loop);
  /// Runs `body` with its output in a text of its own.
  FlowOr capture(const Body &body, std::string &text);
  absl::Status write(const Value &value);

  // Expressions.
  ValueOr eval(const Expr *expr);
  ValueOr evalDict(const Expr &expr);
  ValueOr evalSequence(const Expr &expr);
  ValueOr evalNegative(const Expr &expr);
  ValueOr evalChoice(const Expr &expr);
  ValueOr evalItem(const Expr &expr);
  ValueOr evalCall(const Expr &expr);
  ValueOr evalFilter(const Expr &expr);
  absl::StatusOr<CallArguments> evalArguments(const Expr &expr);
  ValueOr callMacro(const Macro &macro, CallArguments &arguments);
  ValueOr loopAttribute(Loop &loop, const std::string &name);
  ValueOr arithmetic(absl::string_view op, const Value &a, const Value &b);
  ValueOr sum(const Value &a, const Value &b);
  ValueOr product(const Value &a, const Value &b);

  // Variables.
  Value &variable(const Slot &slot);
  absl::Status assign(const Expr &target, const Value &value);
  absl::Status enter(const Scope &scope);
  void leave(const Scope &scope);
  Value global(const std::string &name) const;
  absl::StatusOr<Frame *> makeFrame(int slots, Frame *outside);
  void dropFrame(Frame *made);

  /// Counts one step. Error: too many nested evaluations.
  absl::Status deeper();

  /// Counts an evaluation that is being done.
  class Depth {
  public:
    explicit Depth(Interpreter &interpreter) : interpreter(interpreter) {
      ++interpreter.depth;
    }
    ~Depth() { --interpreter.depth; }

  private:
    Interpreter &interpreter;
  };

  /// Makes a frame the current one.
  class InFrame {
  public:
    InFrame(Interpreter &interpreter, Frame *frame)
        : interpreter(interpreter),
          outer(std::exchange(interpreter.frame, frame)) {}
    ~InFrame() {
      interpreter.dropFrame(interpreter.frame);
      interpreter.frame = outer;
    }

  private:
    Interpreter &interpreter;
    Frame *outer;
  };

  const Program &program;
  const Value variables;
  std::deque<std::unique_ptr<Frame>> frames;
  Frame *frame = nullptr;
  std::string *output = nullptr;
  const std::string *blockText = nullptr; ///< Input of a block's filter.
  int depth = 0;
  int currentLine = 1;
};

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_INTERPRETER_H
