//===- TensorStream.h - Tensors made as they are written ------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_TENSORSTREAM_H
#define LLAMAC_FRONTENDS_TENSORSTREAM_H

#include "runtime/base/DataType.h"

#include "absl/status/status.h"
#include "absl/types/span.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace llamac {

/// Takes the next bytes of a tensor.
using ByteSink = std::function<absl::Status(absl::Span<const uint8_t>)>;

/// A tensor for a writer, which asks for its bytes when their turn comes: no
/// model is ever whole in memory.
struct TensorStream {
  std::string name;
  DataType type = DataType::F32; ///< F32, F16 or BF16.
  std::vector<uint64_t> shape;   ///< Outermost size first.
  /// Gives all bytes in row-major order to the sink, in pieces.
  std::function<absl::Status(const ByteSink &)> produce;

  uint64_t elements() const {
    uint64_t product = 1;
    for (uint64_t size : shape)
      product *= size;
    return product;
  }
  uint64_t bytes() const { return dataTypeBytes(type, elements()); }
};

} // namespace llamac

#endif // LLAMAC_FRONTENDS_TENSORSTREAM_H
