//===- SafetensorsWriter.cpp - Writer of .safetensors files ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/TensorFiles.h"
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <nlohmann/json.hpp>

namespace llamac {

absl::Status writeSafetensors(absl::string_view path,
                              absl::Span<const TensorStream> tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  uint64_t end = 0;
  for (const TensorStream &tensor : tensors) {
    const uint64_t begin = end;
    end += tensor.bytes();
    header[tensor.name] = {
        {"dtype", absl::AsciiStrToUpper(dataTypeName(tensor.type))},
        {"shape", tensor.shape},
        {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t headerBytes = text.size();

  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(path));
  LLAMAC_RETURN_IF_ERROR(file->write(absl::Span<const uint8_t>(
      reinterpret_cast<const uint8_t *>(&headerBytes), sizeof(headerBytes))));
  LLAMAC_RETURN_IF_ERROR(file->write(text));
  for (const TensorStream &tensor : tensors) {
    const uint64_t before = file->size();
    LLAMAC_RETURN_IF_ERROR(tensor.produce(
        [&](absl::Span<const uint8_t> bytes) { return file->write(bytes); }));
    if (file->size() - before != tensor.bytes())
      return internalError(absl::StrCat(tensor.name, ": ", tensor.bytes(),
                                        " bytes promised, ",
                                        file->size() - before, " given"));
  }
  return file->commit();
}

} // namespace llamac
