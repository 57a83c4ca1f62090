//===- PlanConfig.h - Hyperparameters in the plan's schema ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Model hyperparameters and element types, from the plan's schema to the rest
// of the program and back.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_PLANCONFIG_H
#define LLAMAC_RUNTIME_PLAN_PLANCONFIG_H

#include "runtime/base/DataType.h"
#include "runtime/base/ModelConfig.h"
#include "runtime/plan/plan_generated.h"

#include <memory>

namespace llamac {

std::unique_ptr<schema::ModelConfigT> toPlan(const ModelConfig &config);
ModelConfig fromPlan(const schema::ModelConfigT &config);

schema::DataType toPlan(DataType type);
DataType fromPlan(schema::DataType type);

/// The most sequences that a plan may be for.
inline constexpr int64_t mostSequences = 1024;

/// Rows and columns of all parts of `weight` together.
struct MatrixShape {
  int64_t rows, cols;
};
MatrixShape wholeShape(const schema::WeightT &weight);

/// The part of `weight` that `rank` of the plan's `ranks` holds.
int64_t partOf(const schema::WeightT &weight, int64_t rank, int64_t ranks);

/// Where a part of a weight begins in the whole.
struct PartOrigin {
  int64_t row, col;
};
PartOrigin originOf(const schema::WeightT &weight, int64_t part);

/// Bytes of a weight in its layout; its shape is one that the layout packs and
/// its row-major size has been checked.
uint64_t packedBytes(const schema::WeightT &weight);

/// Pages of a sequence whose rows see `window` keys, in steps of at most
/// `maxRows` rows, all of which are in the cache before the first is read for.
int64_t ringPages(int64_t window, int64_t maxRows, int64_t pageTokens);

/// Bytes of a token's key and value in one layer.
int64_t kvTokenBytes(const schema::KvLayoutT &kv);

/// Pages of `group`: as many as all sequences can use, and at most `limit`; 0:
/// no limit.
int64_t poolPages(const schema::KvLayoutT &kv, const schema::KvGroup &group,
                  int64_t limit);

/// Bytes of the pool of `layer`, with all pages that its sequences can use, and
/// at most `limit`; 0: no limit.
uint64_t kvPoolBytes(const schema::KvLayoutT &kv, int64_t layer,
                     int64_t limit = 0);

/// Bytes of the pools of all layers.
uint64_t kvPoolBytes(const schema::KvLayoutT &kv);

/// Bytes of the page table of one group.
uint64_t pageTableBytes(const schema::KvLayoutT &kv);

/// The bytes that a launch of a kernel reads and writes in memory, and the
/// operations that it computes, by its coefficients in the plan. All 0 for a
/// kernel without.
struct LaunchTotals {
  double weightBytes = 0, rowBytes = 0, keyBytes = 0;
  double operations = 0;

  double bytes() const { return weightBytes + rowBytes + keyBytes; }
  LaunchTotals &operator+=(const LaunchTotals &other);
};

/// The totals of a launch of `rows` rows in a step of sequences with `context`
/// tokens in all whose rows see `keys` keys in all.
LaunchTotals totalsOf(const schema::KernelT &kernel, double rows,
                      double context, double keys);

/// Bytes of a row of the result that parameter number `param` of `kernel` is.
uint64_t resultRowBytes(const schema::KernelT &kernel, size_t param);

/// The most sequences whose next tokens one step may choose.
int64_t maxSampledRows(const schema::PlanT &plan);

/// Whether `program` is made for prompts: its rows outnumber those of which it
/// gives logits.
bool isForPrompts(const schema::ProgramT &program);

/// Whether a step of `program` is one resident launch.
bool isResident(const schema::PlanT &plan, const schema::ProgramT &program);

/// Advice where a GPU does not run such a step, for messages.
inline constexpr const char *noResidentStepAdvice =
    "compile with --resident-step=off";

/// The number of the first of `plan`'s programs that holds a step of `rows`
/// rows, `outputs` of them with logits, and is made for its kinds of rows, or
/// of the last one.
size_t programFor(const schema::PlanT &plan, int64_t rows, int64_t outputs,
                  bool hasPrompts);

/// The most rows that `launch` of `program` may have.
int64_t maxRowsOf(const schema::LaunchT &launch,
                  const schema::ProgramT &program);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_PLANCONFIG_H
