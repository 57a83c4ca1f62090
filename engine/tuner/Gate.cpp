//===- Gate.cpp - Does a variant compute the same? ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/Gate.h"

#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace llamac {

/// The layer whose cache `launch` has as an operand; null when it has none.
static const schema::Operand *poolOf(const schema::LaunchT &launch) {
  const auto pool = std::ranges::find(launch.operands, schema::OperandKind::Kv,
                                      &schema::Operand::kind);
  return pool == launch.operands.end() ? nullptr : &*pool;
}

absl::StatusOr<std::vector<uint8_t>>
readMemory(StepMemory &memory, const schema::Operand &operand, uint64_t size) {
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                          memory.read(operand, 0, size, staging));
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

absl::StatusOr<LaunchMemory> readLaunch(const schema::ProgramT &program,
                                        const schema::LaunchT &launch,
                                        const Engine &engine,
                                        StepMemory &memory) {
  const schema::KernelT &kernel = *engine.model().plan().kernels[launch.kernel];
  LaunchMemory copy;
  LLAMAC_ASSIGN_OR_RETURN(copy.arena,
                          readMemory(memory, arenaAt(0), program.arenaBytes));
  const size_t workspace =
      std::ranges::find(kernel.params, schema::ParamRole::Workspace) -
      kernel.params.begin();
  if (workspace != kernel.params.size())
    std::fill_n(&copy.arena[launch.operands[workspace].offset()],
                kernel.geometry->workspaceBytes *
                    static_cast<uint64_t>(maxRowsOf(launch, program)),
                uint8_t{0});
  if (const schema::Operand *pool = poolOf(launch)) {
    LLAMAC_ASSIGN_OR_RETURN(
        copy.pool, readMemory(memory, *pool,
                              engine.stepMemory().pool(pool->index()).size()));
  }
  return copy;
}

absl::Status writeLaunch(const schema::LaunchT &launch,
                         const LaunchMemory &from, StepMemory &memory) {
  LLAMAC_RETURN_IF_ERROR(memory.write(arenaAt(0), 0, from.arena));
  const schema::Operand *pool = poolOf(launch);
  return pool ? memory.write(*pool, 0, from.pool) : absl::OkStatus();
}

static std::vector<float> valuesOf(DataType type,
                                   const std::vector<uint8_t> &bytes) {
  std::vector<float> values(bytes.size() / dataTypeBytes(type, 1));
  dequantizeRow(type, bytes.data(), static_cast<int64_t>(values.size()),
                values.data());
  return values;
}

static std::string compare(const std::vector<uint8_t> &before,
                           const std::vector<uint8_t> &expected,
                           const std::vector<uint8_t> &got, DataType type,
                           double tolerance, const char *what) {
  if (tolerance == 0 || isBlockFormat(type)) {
    const auto differ = std::ranges::mismatch(expected, got).in1;
    return differ == expected.end()
               ? ""
               : absl::StrCat(what, " differs from byte ",
                              differ - expected.begin(), " on");
  }
  // Written elements are compared as a whole and in parts, none of which may be
  // much worse.
  constexpr size_t partElements = 256;
  constexpr double partFactor = 16;
  std::vector<double> errors = {0}; // Errors by part.
  double squares = 1e-30;
  size_t count = 0;
  const std::vector<float> references = valuesOf(type, expected);
  const std::vector<float> values = valuesOf(type, got);
  const size_t size = dataTypeBytes(type, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t at = i * size;
    if (std::memcmp(&before[at], &expected[at], size) == 0 &&
        std::memcmp(&before[at], &got[at], size) == 0)
      continue; // Untouched.
    const double reference = references[i], value = values[i];
    if (!std::isfinite(reference))
      continue;
    if (!std::isfinite(value))
      return absl::StrCat(what, " at byte ", at, ": expected ", reference,
                          ", got ", value);
    if (count++ % partElements == 0)
      errors.push_back(0);
    errors.back() += (value - reference) * (value - reference);
    squares += reference * reference;
  }
  // Each of the two may be off by the tolerance, in opposite directions.
  const double allowed = 4 * tolerance;
  const double parts = std::max(1.0, static_cast<double>(count) / partElements);
  const double ofAll =
      std::accumulate(errors.begin(), errors.end(), 0.0) / squares;
  const double ofWorst = *std::ranges::max_element(errors) * parts / squares;
  if (ofAll <= allowed && ofWorst <= partFactor * allowed)
    return "";
  return absl::StrCat(what, ": a normalised mean squared error of ", ofAll,
                      ", and of ", ofWorst, " of some ", partElements,
                      " elements, against the default config, where ", allowed,
                      " and ", partFactor * allowed, " are rounding");
}

std::string compareLaunches(const LaunchMemory &before,
                            const LaunchMemory &expected,
                            const LaunchMemory &got, schema::DataType poolType,
                            double tolerance) {
  std::string wrong = compare(before.arena, expected.arena, got.arena,
                              DataType::F32, tolerance, "the arena");
  return wrong.empty() ? compare(before.pool, expected.pool, got.pool,
                                 fromPlan(poolType), tolerance, "the cache")
                       : wrong;
}

} // namespace llamac
