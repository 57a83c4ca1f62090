//===- Gate.h - Does a variant compute the same? ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_TUNER_GATE_H
#define LLAMAC_ENGINE_TUNER_GATE_H

#include "engine/step/Engine.h"

#include <string>
#include <vector>

namespace llamac {

/// Bytes that a launch may write, at one time: of the arena, and of the KV pool
/// of its layer.
struct LaunchMemory {
  std::vector<uint8_t> arena;
  std::vector<uint8_t> pool; ///< Empty for a launch that has none.
};

inline schema::Operand arenaAt(uint64_t offset) {
  return {schema::OperandKind::Arena, 0, offset};
}

/// A copy of `size` bytes at `operand`.
absl::StatusOr<std::vector<uint8_t>>
readMemory(StepMemory &memory, const schema::Operand &operand, uint64_t size);

/// The memory that `launch` of `program` may write, but for its workspace,
/// which blocks leave each other.
absl::StatusOr<LaunchMemory> readLaunch(const schema::ProgramT &program,
                                        const schema::LaunchT &launch,
                                        const Engine &engine,
                                        StepMemory &memory);

/// Puts back what readLaunch() has read.
absl::Status writeLaunch(const schema::LaunchT &launch,
                         const LaunchMemory &from, StepMemory &memory);

/// The error in `got`, of a variant, against `expected`, of the default config;
/// empty when nothing is. Both began with `before`. The arena is of f32, the
/// pool of `poolType`, of which Q8_0 must be the same bytes. A tolerance of 0
/// asks for the same bytes of all; else it is a normalised mean squared error
/// that each of the two may have against the exact result.
std::string compareLaunches(const LaunchMemory &before,
                            const LaunchMemory &expected,
                            const LaunchMemory &got, schema::DataType poolType,
                            double tolerance);

} // namespace llamac

#endif // LLAMAC_ENGINE_TUNER_GATE_H
