//===- BlockScales.h - Scales of blocks of random bits ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_FORMATS_BLOCKSCALES_H
#define LLAMAC_RUNTIME_FORMATS_BLOCKSCALES_H

#include "runtime/base/DataType.h"

#include <cstdint>

namespace llamac {

/// Whether blocks of `type` are scales and bits of which all are values: not
/// those of 8-bit floats, which may be no numbers.
bool takesRandomBits(DataType type);

/// Sets the scales of the block at `block`, whose other bits are random, so
/// that its values have about the mean 0 and the root mean square `rms`.
void setBlockScales(DataType type, float rms, uint8_t *block);

} // namespace llamac

#endif // LLAMAC_RUNTIME_FORMATS_BLOCKSCALES_H
