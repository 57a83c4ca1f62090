//===- TensorFiles.h - Tensors in and out of files ------------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_TENSORFILES_H
#define LLAMAC_FRONTENDS_TENSORFILES_H

#include "runtime/base/DataType.h"
#include "runtime/io/MappedFile.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace llamac {

class AtomicFile;

/// A tensor in a file, contiguous and row-major.
struct StoredTensor {
  std::string name;
  DataType type = DataType::F32;
  /// The dtype of elements that are of no DataType, of which quantised matrices
  /// and tables are made: "I32".
  std::string packedType = {};
  std::vector<uint64_t> shape; ///< Outermost size first.
  uint64_t offset = 0;         ///< Offset of the data in the file.
  uint64_t size = 0;           ///< In bytes.
};

/// The tensors of a .safetensors file in the order of their data. Errors: a
/// malformed file; a dtype other than F32, F16 and BF16 (unsupported, by name).
absl::StatusOr<std::vector<StoredTensor>>
readSafetensors(const MappedFile &file);

/// Reads a file likewise whose dtypes may also be I8, U8, I32, I64, BOOL,
/// F8_E4M3 and F8_E8M0.
absl::StatusOr<std::vector<StoredTensor>>
readPackedSafetensors(const MappedFile &file);

/// The tensors of the state dict in a .pth file. Tensors that share a storage
/// have extents that overlap. Errors: a malformed file; a file of the format
/// before PyTorch 1.6 (unsupported).
absl::StatusOr<std::vector<StoredTensor>> readTorchFile(const MappedFile &file);

/// Reads a file likewise whose tensors may also be of I64 and BOOL.
absl::StatusOr<std::vector<StoredTensor>>
readPackedTorchFile(const MappedFile &file);

/// Bytes of an element of the packedType of a StoredTensor; 0 for an unknown
/// one.
uint64_t packedElementBytes(absl::string_view packedType);

/// Takes the next bytes of a tensor.
using WriteBytes = std::function<absl::Status(absl::Span<const uint8_t>)>;

/// A tensor for a writer, which pulls the bytes when it needs them: a model is
/// never in memory as a whole.
struct TensorStream {
  std::string name;
  DataType type = DataType::F32; ///< F32, F16 or BF16; in GGUF any of GGML's.
  std::vector<uint64_t> shape;   ///< Outermost size first.
  /// Gives all bytes in row-major order to its argument, in pieces.
  std::function<absl::Status(const WriteBytes &)> produce;

  uint64_t elements() const {
    uint64_t product = 1;
    for (uint64_t size : shape)
      product *= size;
    return product;
  }
  uint64_t bytes() const { return dataTypeBytes(type, elements()); }
};

/// Appends the bytes of `tensor` to `file`, and checks how many there are.
absl::Status writeTensor(const TensorStream &tensor, AtomicFile &file);

/// Writes `tensors` in their order to the .safetensors file `path`, which is
/// replaced at the end.
absl::Status writeSafetensors(absl::string_view path,
                              absl::Span<const TensorStream> tensors);

/// A second name in a state dict for the storage of another tensor.
struct TensorAlias {
  std::string name;
  std::string of; ///< The name of a tensor that is written.
};

/// Writes `tensors` and then `aliases` as the ordered state dict of a file that
/// torch.load(weights_only=True) reads, to `path`, which is replaced at the
/// end. Storages are stored entries aligned to 64 bytes, as torch's own.
absl::Status writeTorchFile(absl::string_view path,
                            absl::Span<const TensorStream> tensors,
                            absl::Span<const TensorAlias> aliases);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_TENSORFILES_H
