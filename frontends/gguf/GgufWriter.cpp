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

template <class T> static void append(std::string &out, T value) {
  out.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

static void appendText(std::string &out, absl::string_view text) {
  append<uint64_t>(out, text.size());
  absl::StrAppend(&out, text);
}

template <class T> void GgufMetadata::put(T value) { append(text, value); }
void GgufMetadata::put(absl::string_view value) { appendText(text, value); }

void GgufMetadata::begin(absl::string_view key, GgufType type) {
  put(key);
  put(static_cast<uint32_t>(type));
  ++count;
}

void GgufMetadata::beginArray(absl::string_view key, GgufType type,
                              uint64_t size) {
  begin(key, GgufType::Array);
  put(static_cast<uint32_t>(type));
  put(size);
}

void GgufMetadata::addInteger(absl::string_view key, int64_t value) {
  begin(key, GgufType::UInt32);
  put(static_cast<uint32_t>(value));
}

void GgufMetadata::addNumber(absl::string_view key, double value) {
  begin(key, GgufType::Float32);
  put(static_cast<float>(value));
}

void GgufMetadata::addFlag(absl::string_view key, bool value) {
  begin(key, GgufType::Bool);
  put(value);
}

void GgufMetadata::addText(absl::string_view key, absl::string_view value) {
  begin(key, GgufType::String);
  put(value);
}

void GgufMetadata::addIntegers(absl::string_view key,
                               absl::Span<const int32_t> values) {
  beginArray(key, GgufType::Int32, values.size());
  for (int32_t value : values)
    put(value);
}

void GgufMetadata::addNumbers(absl::string_view key,
                              absl::Span<const float> values) {
  beginArray(key, GgufType::Float32, values.size());
  for (float value : values)
    put(value);
}

void GgufMetadata::addFlags(absl::string_view key,
                            absl::Span<const bool> values) {
  beginArray(key, GgufType::Bool, values.size());
  for (bool value : values)
    put(value);
}

void GgufMetadata::addTexts(absl::string_view key,
                            absl::Span<const absl::string_view> values) {
  beginArray(key, GgufType::String, values.size());
  for (absl::string_view value : values)
    put(value);
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
  append(header, ggufMagic);
  append<uint32_t>(header, 3); // The version.
  append<uint64_t>(header, tensors.size());
  append(header, metadata.size());
  header += metadata.bytes();
  uint64_t offset = 0;
  for (const TensorStream &tensor : tensors) {
    const std::optional<uint32_t> type = ggmlTypeNumber(tensor.type);
    if (!type)
      return internalError(absl::StrCat(tensor.name, ": GGML has no type ",
                                        dataTypeName(tensor.type)));
    appendText(header, tensor.name);
    append(header, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      append(header, *size);
    append(header, *type);
    append(header, offset);
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
