//===- RandomWeights.h - Random weights made at load ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_WEIGHTS_RANDOMWEIGHTS_H
#define LLAMAC_RUNTIME_WEIGHTS_RANDOMWEIGHTS_H

#include "runtime/weights/WeightPacker.h"

#include <cstdint>

namespace llamac {

/// Random rows of part `part` of `weight`, whose whole depends on `seed` and
/// its name alone and is the same on every machine: uniform numbers of mean 0
/// and variance 1 / cols for a matrix, which preserve the size of activations,
/// and from 0.9 to 1.1 for a norm's gain. Block formats have one scale, and
/// those of GGUF that have others within it random ones.
RowSource randomRows(const schema::WeightT &weight, int64_t part,
                     uint64_t seed);

} // namespace llamac

#endif // LLAMAC_RUNTIME_WEIGHTS_RANDOMWEIGHTS_H
