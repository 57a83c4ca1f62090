//===- MemoryNeeds.cpp - The memory that a plan runs in -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/MemoryNeeds.h"

#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/cuda/Collectives.h"
#include "runtime/load/StepInputs.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace llamac {

uint64_t arenaBytes(const schema::PlanT &plan) {
  uint64_t most = 0;
  for (const auto &program : plan.programs)
    most = std::max(most, program->arenaBytes);
  return most;
}

/// Bytes of the pools of all layers.
static uint64_t poolsBytes(const schema::KvLayoutT &kv, int64_t limit) {
  uint64_t bytes = 0;
  for (size_t layer = 0; layer < kv.layerGroups.size(); ++layer)
    bytes += reservedBytes(kvPoolBytes(kv, static_cast<int64_t>(layer), limit));
  return bytes;
}

/// Bytes of the cache for a context of `pages` pages.
static uint64_t contextBytes(schema::KvLayoutT kv, int64_t pages) {
  for (schema::KvGroup &group : kv.groups)
    group = schema::KvGroup(group.window(), std::min(group.pages(), pages));
  return poolsBytes(kv, 0);
}

/// The largest number up to `most` for which `bytesOf` gives at most `bytes`; 0
/// for none.
static int64_t largestWithin(uint64_t bytes, int64_t most,
                             absl::FunctionRef<uint64_t(int64_t)> bytesOf) {
  int64_t fits = 0, tooMany = most + 1;
  while (tooMany - fits > 1) {
    const int64_t count = fits + (tooMany - fits) / 2;
    (bytesOf(count) <= bytes ? fits : tooMany) = count;
  }
  return fits;
}

uint64_t kvPoolsBytes(const schema::PlanT &plan, int64_t pages) {
  return poolsBytes(*plan.kv, pages);
}

int64_t kvPagesWithin(const schema::PlanT &plan, uint64_t bytes) {
  int64_t most = 0;
  for (const schema::KvGroup &group : plan.kv->groups)
    most = std::max(most, poolPages(*plan.kv, group, /*limit=*/0));
  return largestWithin(
      bytes, most, [&](int64_t pages) { return poolsBytes(*plan.kv, pages); });
}

/// A context below this would hold no conversation.
static int64_t leastContext(const schema::PlanT &plan) {
  return std::min<int64_t>(plan.context, 256);
}

int64_t leastKvPages(const schema::PlanT &plan) {
  return (leastContext(plan) + plan.kv->pageTokens - 1) / plan.kv->pageTokens;
}

MemoryNeeds memoryNeeds(const schema::PlanT &plan) {
  MemoryNeeds needs;
  for (const auto &weight : plan.weights)
    needs.weights += reservedBytes(packedBytes(*weight));
  needs.kv = kvPoolsBytes(plan);
  needs.arena = reservedBytes(arenaBytes(plan));
  needs.inputs = reservedBytes(InputLayout(plan).totalBytes());
  needs.counters = reservedBytes(counterBytes(plan));
  needs.exchange = reservedBytes(plan.exchangeBytes);
  if (plan.ranks > 1)
    needs.inputs += reservedBytes(sizeof(int32_t)); // The number of the rank.
  if (plan.ranks > 1 && plan.target == "cuda")
    needs.gathered = reservedBytes(GatherLayout(plan).bytes());
  return needs;
}

MemoryNeeds memoryNeeds(const PlanReader &reader) {
  MemoryNeeds needs = memoryNeeds(reader.plan());
  for (const PlanSection &section : reader.sections())
    if (section.kind == SectionKind::Constants)
      needs.constants += reservedBytes(section.size);
  return needs;
}

/// Bytes that the weights would take if the matrices were of `type`, as far as
/// that makes them smaller.
static uint64_t weightBytesAs(const schema::PlanT &plan,
                              schema::DataType type) {
  uint64_t bytes = 0;
  for (const auto &weight : plan.weights) {
    uint64_t size = packedBytes(*weight);
    schema::WeightT other;
    other.type = type;
    other.rows = weight->rows;
    other.cols = weight->cols;
    other.layout = weight->layout;
    if (weight->rows > 1 &&
        weight->cols % dataTypeInfo(fromPlan(type)).blockElements == 0)
      size = std::min(size, packedBytes(other));
    bytes += reservedBytes(size);
  }
  return bytes;
}

/// The largest context whose cache takes at most `bytes`; 0 for none.
static int64_t contextWithin(const schema::PlanT &plan,
                             const schema::KvLayoutT &kv, uint64_t bytes) {
  const int64_t pages =
      largestWithin(bytes, kv.pagesPerSequence,
                    [&](int64_t count) { return contextBytes(kv, count); });
  return std::min(plan.context, pages * kv.pageTokens);
}

std::string memoryAdvice(const schema::PlanT &plan, const MemoryNeeds &needs,
                         uint64_t free, int64_t ranks, int64_t sequences) {
  schema::KvLayoutT kv = *plan.kv;
  if (sequences != 0)
    kv.maxSequences = sequences;
  auto contextBeside = [&](uint64_t weights) -> int64_t {
    const uint64_t fixed = weights + needs.rest();
    return fixed < free ? contextWithin(plan, kv, free - fixed) : 0;
  };
  const int64_t least = leastContext(plan);
  std::vector<std::string> choices;
  if (const int64_t context = contextBeside(needs.weights); context >= least)
    choices.push_back(absl::StrCat("-c ", context));
  for (const WeightRounding &rounding : weightRoundings()) {
    const uint64_t weights = weightBytesAs(plan, toPlan(rounding.type));
    const int64_t context = contextBeside(weights);
    if (weights >= needs.weights || context < least)
      continue;
    const bool isWhole = context == plan.context;
    if (!isWhole && !choices.empty())
      continue;
    choices.push_back(
        absl::StrCat("--weights ", dataTypeName(rounding.type),
                     isWhole ? "" : absl::StrCat(" -c ", context)));
    break;
  }
  if (ranks != 0)
    choices.push_back(absl::StrCat("--ranks ", ranks));
  if (choices.empty())
    return "no -c and no --weights makes it fit";
  const std::string last = std::move(choices.back());
  choices.pop_back();
  return absl::StrCat("compile with ", absl::StrJoin(choices, ", "),
                      choices.empty() ? "" : " or ", last, ", which would fit");
}

absl::Status checkMemory(const PlanReader &plan,
                         const std::optional<DeviceMemory> &memory,
                         bool sharesPages) {
  MemoryNeeds needs = memoryNeeds(plan);
  if (sharesPages)
    needs.kv = std::min(needs.kv,
                        kvPoolsBytes(plan.plan(), leastKvPages(plan.plan())));
  if (!memory || needs.total() <= memory->free)
    return absl::OkStatus();
  return memoryError(absl::StrCat(
      plan.path(), ": expected ", formatBytes(needs.total()),
      " of memory of the device (weights ", formatBytes(needs.weights),
      ", KV cache ", formatBytes(needs.kv), ", the rest ",
      formatBytes(needs.rest()), "), got ", formatBytes(memory->free),
      " free of ", formatBytes(memory->total), ", ",
      formatBytes(needs.total() - memory->free), " missing; ",
      memoryAdvice(plan.plan(), needs, memory->free, /*ranks=*/0,
                   sharesPages ? 1 : 0)));
}

} // namespace llamac
