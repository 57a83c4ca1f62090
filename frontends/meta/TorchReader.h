//===- TorchReader.h - Reader of PyTorch's .pth files --------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Since PyTorch 1.6 torch.save writes a zip file ROOT/data.pkl (the pickled
// state dict), ROOT/data/KEY (the bytes of each storage), ROOT/version and,
// lately, ROOT/byteorder.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_META_TORCHREADER_H
#define LLAMAC_FRONTENDS_META_TORCHREADER_H

#include "runtime/base/DataType.h"
#include "runtime/io/MappedFile.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

struct TorchTensor {
  std::string name;
  DataType type = DataType::F32;
  std::vector<uint64_t> shape; ///< Contiguous and row-major.
  uint64_t offset = 0;         ///< Of the data, in the file.
  uint64_t size = 0;           ///< In bytes.
};

/// The tensors of the state dict in `file`. Tensors that share a storage have
/// extents that overlap. Errors: a malformed file; a file of the format before
/// PyTorch 1.6 (unsupported).
absl::StatusOr<std::vector<TorchTensor>>
readTorchFile(const std::shared_ptr<MappedFile> &file);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_META_TORCHREADER_H
