//===- SafetensorsReader.h - Reader of .safetensors files ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout: u64 length of the header; the header, a JSON object
//   {"name": {"dtype": "BF16", "shape": [r, c], "data_offsets": [begin, end]},
//    "__metadata__": {"key": "text"}}
// then the data, which the offsets count from. As the reference implementation
// does, the header is capped at 100 MB, and duplicate names, holes and overlaps
// in the data are refused.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_HUGGINGFACE_SAFETENSORSREADER_H
#define LLAMAC_FRONTENDS_HUGGINGFACE_SAFETENSORSREADER_H

#include "runtime/base/DataType.h"
#include "runtime/io/MappedFile.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

struct SafetensorsTensor {
  std::string name;
  DataType type = DataType::F32;
  std::vector<uint64_t> shape;
  uint64_t offset = 0; ///< From the file's start.
  uint64_t size = 0;   ///< In bytes: the product of shape and the type's size.
};

/// The tensors of `file` in the order of their data. Errors: a malformed file;
/// a dtype other than F32, F16 and BF16 (unsupported, by name).
absl::StatusOr<std::vector<SafetensorsTensor>>
readSafetensors(const MappedFile &file);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_HUGGINGFACE_SAFETENSORSREADER_H
