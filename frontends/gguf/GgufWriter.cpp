//===- GgufWriter.cpp - Writer of GGUF files ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufWriter.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"

#include <memory>

namespace llamac {

void GgufMetadata::begin(absl::string_view key, GgufType type) {
  putGguf(text, key);
  putGguf(text, static_cast<uint32_t>(type));
  ++count;
}

void GgufMetadata::beginArray(absl::string_view key, GgufType type,
                              uint64_t size) {
  begin(key, GgufType::Array);
  putGguf(text, static_cast<uint32_t>(type));
  putGguf(text, size);
}

void GgufMetadata::copy(const GgufValue &value) {
  if (value.isArray)
    beginArray(value.key, value.type, value.count);
  else
    begin(value.key, value.type);
  text.append(reinterpret_cast<const char *>(value.bytes.data()),
              value.bytes.size());
}

absl::Status writeGguf(absl::string_view path, const GgufMetadata &metadata,
                       absl::Span<const TensorStream> tensors) {
  std::string header;
  putGguf(header, ggufMagic);
  putGguf<uint32_t>(header, 3); // The version.
  putGguf<uint64_t>(header, tensors.size());
  putGguf(header, metadata.size());
  header += metadata.bytes();
  uint64_t offset = 0;
  for (const TensorStream &tensor : tensors) {
    const std::optional<uint32_t> type = ggmlTypeNumber(tensor.type);
    if (!type)
      return internalError(absl::StrCat(tensor.name, ": GGML has no type ",
                                        dataTypeName(tensor.type)));
    putGguf<absl::string_view>(header, tensor.name);
    putGguf(header, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      putGguf(header, *size);
    putGguf(header, *type);
    putGguf(header, offset);
    offset = (offset + tensor.bytes() + ggufAlignment - 1) / ggufAlignment *
             ggufAlignment;
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(path));
  LLAMAC_RETURN_IF_ERROR(file->write(header));
  LLAMAC_RETURN_IF_ERROR(file->alignTo(ggufAlignment));
  for (const TensorStream &tensor : tensors) {
    LLAMAC_RETURN_IF_ERROR(writeTensor(tensor, *file));
    LLAMAC_RETURN_IF_ERROR(file->alignTo(ggufAlignment));
  }
  return file->commit();
}

} // namespace llamac
