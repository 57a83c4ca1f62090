//===- MachineLimits.h - What the cores can do at most ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two limits of a roofline, measured with the threads that run kernels;
// each is the best of a few tries.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_MACHINELIMITS_H
#define LLAMAC_RUNTIME_CPU_MACHINELIMITS_H

#include "runtime/cpu/CpuDevice.h"

namespace llamac {

/// Bytes a second that all threads together read from memory: each takes its
/// part of a gibibyte in four streams, as products read panels. Memory error
/// when that is not free.
absl::StatusOr<double> readBandwidth(CpuDevice &device);

/// Operations a second of fused multiply-adds in f32, two each, in registers of
/// the widest vectors that the device's level allows.
absl::StatusOr<double> f32Rate(CpuDevice &device);

/// Operations a second of products of integers of 8 bits and their sums, by the
/// instructions that kernels of the device's level have for them.
absl::StatusOr<double> int8Rate(CpuDevice &device);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_MACHINELIMITS_H
