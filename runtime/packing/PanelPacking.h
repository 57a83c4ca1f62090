//===- PanelPacking.h - Weights as the cpu kernels read them ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns rows as a checkpoint stores them into panels of 16 interleaved rows
// (runtime/packing/PanelLayout.h). No value changes: packing moves bytes, but
// that a NaN in a block of 8-bit floats makes the whole block NaN. Panels are
// independent, so ranges of them can be packed on any thread.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PACKING_PANELPACKING_H
#define LLAMAC_RUNTIME_PACKING_PANELPACKING_H

#include "runtime/base/DataType.h"
#include "runtime/packing/PanelLayout.h"

#include <cstdint>

namespace llamac {

/// The packed format of `type`.
inline PanelFormat panelFormat(DataType type) {
  return static_cast<PanelFormat>(type);
}

/// Whether rows of `cols` elements can be packed: a multiple of 8 and of the
/// type's block.
bool isPackable(DataType type, int64_t cols);

/// Bytes of a packed matrix, a multiple of 64.
int64_t packedBytes(DataType type, int64_t rows, int64_t cols);

/// Packs panels [firstPanel, firstPanel + numPanels) of a matrix [rows, cols].
/// `source` holds the stored bytes of their rows, from row 16 * firstPanel on
/// (fewer than 16 for a ragged last panel); `out` gets numPanels x
/// panelBytes(panelFormat(type), cols) bytes, missing rows and padding as zero.
void packRows(DataType type, int64_t rows, int64_t cols, int64_t firstPanel,
              int64_t numPanels, const uint8_t *source, uint8_t *out);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PACKING_PANELPACKING_H
