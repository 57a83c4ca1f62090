//===- ValueTrace.h - The values on both sides of a pass --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the first op whose result a pass changed. Every op has the name of what
// it came from as its location, and one that a pass fused has several; it
// should give what the last of them gave before. An op with several results,
// such as kernel.rope_append, stands for several ops: each result should be
// that of one of them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_CHECK_VALUETRACE_H
#define LLAMAC_COMPILER_CHECK_VALUETRACE_H

#include "compiler/check/CheckReport.h"
#include "compiler/reference/Interpreter.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// An op that gives another value than before.
struct ValueMismatch {
  std::string op;
  std::string location;
  std::optional<int64_t> layer;
  Difference difference;
  /// Operands by their number.
  std::vector<std::pair<unsigned, reference::ValuePtr>> inputs;
};

class ValueTrace {
public:
  /// Called after each op; `step` is the first position of the step it runs in.
  using Callback =
      std::function<void(int64_t step, mlir::Operation &op,
                         llvm::ArrayRef<reference::ValuePtr> results)>;

  explicit ValueTrace(double tolerance) : tolerance(tolerance) {}

  // Both refer to the trace. The recorder sees the run before the pass,
  // then the comparer that after it, in the same steps.
  Callback recorder();
  Callback comparer();

  /// The first op after the pass, in the order they run, whose result is
  /// outside the tolerance; null when there is none.
  const ValueMismatch *first() const { return mismatch ? &*mismatch : nullptr; }

private:
  struct Recorded {
    std::string name;
    bool isState;
    std::vector<float> values;
  };

  void compare(int64_t step, mlir::Operation &op,
               llvm::ArrayRef<reference::ValuePtr> results);

  double tolerance;
  std::deque<Recorded> recorded; ///< In the order of the run.
  /// Numbers in `recorded`, ascending, by step and name.
  std::map<std::pair<int64_t, std::string>, std::vector<size_t>> byName;
  llvm::DenseMap<mlir::Value, reference::ValuePtr> current;
  std::optional<ValueMismatch> mismatch;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_CHECK_VALUETRACE_H
