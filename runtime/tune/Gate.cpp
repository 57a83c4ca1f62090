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

/// The layer whose cache `launch` has as an operand; none when it has none.
static const schema::Operand *poolOf(const schema::LaunchT &launch) {
  auto pool = std::find_if(launch.operands.begin(), launch.operands.end(),
                           [](const schema::Operand &operand) {
                             return operand.kind() == schema::OperandKind::Kv;
                           });
  return pool == launch.operands.end() ? nullptr : &*pool;
}

static schema::Operand arenaStart() {
  return {schema::OperandKind::Arena, 0, 0};
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

namespace {

/// Elements of `size` bytes, and the number that the bits of one stand for.
struct Elements {
  size_t size;
  float (*value)(const uint8_t *bits);
};

/// The squares of some elements, and of their differences.
struct Squares {
  double error = 0;
  double expected = 0;
  size_t count = 0;
};

} // namespace

template <typename Bits> static Bits bitsAt(const uint8_t *at) {
  Bits bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

static Elements elementsOf(schema::DataType type) {
  switch (type) {
  case schema::DataType::F16:
    return {2,
            [](const uint8_t *at) { return f16ToF32(bitsAt<uint16_t>(at)); }};
  case schema::DataType::BF16:
    return {2,
            [](const uint8_t *at) { return bf16ToF32(bitsAt<uint16_t>(at)); }};
  default:
    return {4, [](const uint8_t *at) { return bitsAt<float>(at); }};
  }
}

/// A part of what a launch wrote that may not be wrong on its own.
static constexpr size_t partElements = 256;
/// The error of a part, by that of all.
static constexpr double partRoom = 16;

static std::string compareBytes(absl::Span<const uint8_t> expected,
                                absl::Span<const uint8_t> got,
                                absl::string_view what) {
  const auto differ =
      std::mismatch(expected.begin(), expected.end(), got.begin());
  if (differ.first == expected.end())
    return {};
  return absl::StrCat(what, " differs from byte ",
                      differ.first - expected.begin(), " on");
}

static std::string compareElements(absl::Span<const uint8_t> before,
                                   absl::Span<const uint8_t> expected,
                                   absl::Span<const uint8_t> got,
                                   const Elements &elements, double tolerance,
                                   absl::string_view what) {
  Squares all, part;
  double worst = 0;
  size_t worstAt = 0;
  auto endPart = [&] {
    if (part.error > worst)
      worst = part.error;
    part = {};
  };
  for (size_t at = 0; at + elements.size <= expected.size();
       at += elements.size) {
    const bool isUntouched =
        std::memcmp(&before[at], &expected[at], elements.size) == 0 &&
        std::memcmp(&before[at], &got[at], elements.size) == 0;
    if (isUntouched)
      continue;
    const double reference = elements.value(&expected[at]);
    const double value = elements.value(&got[at]);
    if (!std::isfinite(value) && std::isfinite(reference))
      return absl::StrCat(what, " at byte ", at, ": expected ", reference,
                          ", got ", value);
    if (!std::isfinite(reference))
      continue;
    const double error = (value - reference) * (value - reference);
    if (part.error == 0 && error > 0 && worst == 0)
      worstAt = at;
    for (Squares *sum : {&all, &part}) {
      sum->error += error;
      sum->expected += reference * reference;
      ++sum->count;
    }
    if (part.count == partElements)
      endPart();
  }
  endPart();
  // Each of the two may be off by the tolerance, in opposite directions.
  const double allowed = 4 * tolerance;
  if (all.error > allowed * all.expected)
    return absl::StrCat(what, ": a normalised mean squared error of ",
                        all.error / std::max(all.expected, 1e-30),
                        " against the plan's own kernel, at most ", allowed,
                        " is rounding");
  const double share = static_cast<double>(std::min(partElements, all.count)) /
                       static_cast<double>(std::max<size_t>(1, all.count));
  const double ofPart = all.expected * share;
  if (worst > partRoom * allowed * ofPart)
    return absl::StrCat(what, ": some ", partElements,
                        " elements, the first that differs at byte ", worstAt,
                        ", are off by ", worst / std::max(ofPart, 1e-30),
                        ", normalised and squared; at most ",
                        partRoom * allowed, " is rounding");
  return {};
}

std::string compareValues(absl::Span<const uint8_t> before,
                          absl::Span<const uint8_t> expected,
                          absl::Span<const uint8_t> got, schema::DataType type,
                          double tolerance, absl::string_view what) {
  if (tolerance == 0 || type == schema::DataType::Q8_0)
    return compareBytes(expected, got, what);
  return compareElements(before, expected, got, elementsOf(type), tolerance,
                         what);
}

std::string compareLaunches(const LaunchMemory &before,
                            const LaunchMemory &expected,
                            const LaunchMemory &got, schema::DataType poolType,
                            double tolerance) {
  std::string wrong =
      compareValues(before.arena, expected.arena, got.arena,
                    schema::DataType::F32, tolerance, "the arena");
  return wrong.empty() ? compareValues(before.pool, expected.pool, got.pool,
                                       poolType, tolerance, "the cache")
                       : wrong;
}

} // namespace llamac
