//===- Gate.cpp - Does a variant compute the same? ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Gate.h"

#include "runtime/base/Status.h"
#include "runtime/io/FloatBits.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llamac {

//===----------------------------------------------------------------------===//
// The memory of a launch
//===----------------------------------------------------------------------===//

static schema::Operand arenaStart() {
  return {schema::OperandKind::Arena, 0, 0};
}

/// The layer whose cache `launch` has as an operand; null when it has none.
static const schema::Operand *poolOf(const schema::LaunchT &launch) {
  auto pool = std::find_if(launch.operands.begin(), launch.operands.end(),
                           [](const schema::Operand &operand) {
                             return operand.kind() == schema::OperandKind::Kv;
                           });
  return pool == launch.operands.end() ? nullptr : &*pool;
}

absl::Status readLaunch(const schema::ProgramT &program,
                        const schema::LaunchT &launch, size_t poolBytes,
                        StepMemory &memory, LaunchMemory &copy) {
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(
      absl::Span<const uint8_t> bytes,
      memory.read(arenaStart(), 0, program.arenaBytes, staging));
  copy.arena.assign(bytes.begin(), bytes.end());
  std::fill_n(copy.arena.begin() +
                  static_cast<ptrdiff_t>(launch.workspaceOffset),
              launch.workspaceBytes, uint8_t{0});
  copy.pool.clear();
  if (const schema::Operand *pool = poolOf(launch)) {
    LLAMAC_ASSIGN_OR_RETURN(bytes, memory.read(*pool, 0, poolBytes, staging));
    copy.pool.assign(bytes.begin(), bytes.end());
  }
  return absl::OkStatus();
}

absl::Status writeLaunch(const schema::LaunchT &launch,
                         const LaunchMemory &from, StepMemory &memory) {
  LLAMAC_RETURN_IF_ERROR(memory.write(arenaStart(), 0, from.arena));
  if (const schema::Operand *pool = poolOf(launch))
    LLAMAC_RETURN_IF_ERROR(memory.write(*pool, 0, from.pool));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// The element of `type` at `bits`.
static float valueOf(schema::DataType type, const uint8_t *bits) {
  if (type == schema::DataType::F32) {
    float value;
    std::memcpy(&value, bits, sizeof value);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, bits, sizeof half);
  return type == schema::DataType::F16 ? f16ToF32(half) : bf16ToF32(half);
}

static std::string compare(const std::vector<uint8_t> &before,
                           const std::vector<uint8_t> &expected,
                           const std::vector<uint8_t> &got,
                           schema::DataType type, double tolerance,
                           const char *what) {
  if (tolerance == 0 || type == schema::DataType::Q8_0) {
    const auto differ =
        std::mismatch(expected.begin(), expected.end(), got.begin());
    return differ.first == expected.end()
               ? ""
               : absl::StrCat(what, " differs from byte ",
                              differ.first - expected.begin(), " on");
  }
  // What was written is looked at in parts, that may not be wrong on their own.
  constexpr size_t partElements = 256;
  constexpr double partRoom = 16;
  double error = 0, squares = 0, ofPart = 0, worst = 0;
  size_t count = 0;
  const size_t size = type == schema::DataType::F32 ? 4 : 2;
  for (size_t at = 0; at + size <= expected.size(); at += size) {
    if (std::memcmp(&before[at], &expected[at], size) == 0 &&
        std::memcmp(&before[at], &got[at], size) == 0)
      continue; // Untouched.
    const double reference = valueOf(type, &expected[at]);
    const double value = valueOf(type, &got[at]);
    if (!std::isfinite(reference))
      continue;
    if (!std::isfinite(value))
      return absl::StrCat(what, " at byte ", at, ": expected ", reference,
                          ", got ", value);
    const double difference = (value - reference) * (value - reference);
    if (count++ % partElements == 0)
      ofPart = 0;
    error += difference;
    squares += reference * reference;
    ofPart += difference;
    worst = std::max(worst, ofPart);
  }
  // Each of the two may be off by the tolerance, in opposite directions.
  const double allowed = 4 * tolerance;
  const double parts = std::max(1.0, static_cast<double>(count) / partElements);
  const double ofAll = error / std::max(squares, 1e-30);
  const double ofWorst = worst * parts / std::max(squares, 1e-30);
  if (ofAll <= allowed && ofWorst <= partRoom * allowed)
    return "";
  return absl::StrCat(what, ": a normalised mean squared error of ", ofAll,
                      ", and of ", ofWorst, " of some ", partElements,
                      " elements, against the default config, where ", allowed,
                      " and ", partRoom * allowed, " are rounding");
}

std::string compareLaunches(const LaunchMemory &before,
                            const LaunchMemory &expected,
                            const LaunchMemory &got, schema::DataType poolType,
                            double tolerance) {
  std::string wrong = compare(before.arena, expected.arena, got.arena,
                              schema::DataType::F32, tolerance, "the arena");
  return wrong.empty() ? compare(before.pool, expected.pool, got.pool, poolType,
                                 tolerance, "the cache")
                       : wrong;
}

} // namespace llamac
