//===- SourceDevice.h - What runs CUDA source -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The micro-kernels of Wrappers.cu run on every device of the table here: the
// simulator in its modes, and whatever else takes CUDA source.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_WRAPPERS_SOURCEDEVICE_H
#define LLAMAC_TESTS_CONFORMANCE_WRAPPERS_SOURCEDEVICE_H

#include "runtime/plan/SourceBundle.h"
#include "runtime/plan/TensorMap.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac::conformance {

using Words = std::vector<uint32_t>;

/// How a tensor map of `in`, 30 rows of 32 words, is copied.
struct MapBox {
  uint32_t columns = 32;
  uint32_t rows = 8;
  uint32_t swizzleBytes = 0;
};
inline TensorMapShape mapOfInput(const MapBox &box) {
  return {4, 32, 30, 128, box.columns, box.rows, box.swizzleBytes};
}

/// One block, or one cluster of blocks, of a kernel (uint32_t *out, const
/// uint32_t *in, int rows); with a map, (out, in, map, rows).
struct WordLaunch {
  std::string kernel;
  uint32_t threads = 32;
  uint32_t sharedBytes = 2048; ///< Dynamic shared memory.
  std::optional<MapBox> map = {};
  uint32_t cluster = 1;
};

/// Runs the kernels of one file of CUDA source.
class SourceDevice {
public:
  virtual ~SourceDevice() = default;

  /// Runs `launch` on `in` and gives the `outWords` words of out, which start
  /// as zeros. Unimplemented where the device lacks what the kernel uses.
  virtual absl::StatusOr<Words> run(const WordLaunch &launch, const Words &in,
                                    size_t outWords) = 0;
};

struct SourceDeviceRow {
  std::string name; ///< Letters, digits and underscores.
  /// Makes the device; `source` includes the device headers.
  std::function<absl::StatusOr<std::unique_ptr<SourceDevice>>(
      const SourceFile &source)>
      create;
};

/// Every device that runs CUDA source. A new one is a row here.
std::vector<SourceDeviceRow> sourceDevices();

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_WRAPPERS_SOURCEDEVICE_H
