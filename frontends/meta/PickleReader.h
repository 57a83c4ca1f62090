//===- PickleReader.h - data.pkl as pure data -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pickle is a program for a stack machine, and unpickling runs it: it may
// call anything it can import. This reader runs only the instructions that
// build data, and knows six names, none of which is called:
// collections.OrderedDict, torch._utils._rebuild_tensor_v2 and
// _rebuild_parameter, torch.{BFloat16,Half,Float}Storage. The result is the
// list of tensors of a state dict. There is no fallback.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_META_PICKLEREADER_H
#define LLAMAC_FRONTENDS_META_PICKLEREADER_H

#include "runtime/base/DataType.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace llamac {

/// One tensor of a state dict; contiguous and row-major. Texts refer to the
/// pickle.
struct PickledTensor {
  absl::string_view name;
  DataType type = DataType::F32;
  absl::string_view packedType = {}; ///< See StoredTensor.
  absl::string_view storage;         ///< Key of the storage: entry data/KEY.
  uint64_t storageElements = 0;      ///< Elements of the whole storage.
  uint64_t firstElement = 0; ///< Index of the tensor's first element in its
                             ///< storage.
  uint64_t elements = 0;     ///< The product of shape.
  std::vector<uint64_t> shape;
  uint64_t position = 0; ///< Position of the tensor in the file, for messages.
};

/// Runs the pickle `bytes`, which lie at `base` in `file`, and returns the
/// tensors of the state dict it builds, in its order. Extents were checked
/// against the storage's number of elements. Tensors of integers and bools,
/// which no model has, are an error unless `takesPacked`.
absl::StatusOr<std::vector<PickledTensor>>
readPickledStateDict(absl::string_view file, absl::Span<const uint8_t> bytes,
                     uint64_t base, bool takesPacked = false);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_META_PICKLEREADER_H
