//===- TorchReader.cpp - Reader of PyTorch's .pth files -------------------===//
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

#include "frontends/TensorFiles.h"
#include "frontends/meta/PickleReader.h"
#include "frontends/meta/ZipReader.h"
#include "runtime/base/Status.h"
#include "runtime/io/ByteCursor.h"
#include "runtime/io/CheckedMath.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace llamac {

// The one entry ROOT/data.pkl.
static absl::StatusOr<const ZipEntry *> findPickle(const ZipReader &zip) {
  const ZipEntry *pickle = nullptr;
  for (const ZipEntry &entry : zip.entries()) {
    if (!absl::EndsWith(entry.name, "/data.pkl"))
      continue;
    if (pickle)
      return malformed(
          zip.file().path(), entry.record, "data.pkl",
          absl::StrCat("one entry, ", quoteForMessage(pickle->name)),
          quoteForMessage(entry.name));
    pickle = &entry;
  }
  if (!pickle)
    return malformed(zip.file().path(), 0, "data.pkl", "an entry ROOT/data.pkl",
                     "none");
  return pickle;
}

absl::StatusOr<std::vector<StoredTensor>>
readTorchFile(const MappedFile &file) {
  const std::string &path = file.path();
  if (file.size() >= 2 && file.data()[0] == 0x80 && file.data()[1] <= 5)
    return unsupportedError(malformed(path, 0, "format",
                                      "a zip file of PyTorch 1.6 or later",
                                      "a bare pickle of an earlier one")
                                .message());
  LLAMAC_ASSIGN_OR_RETURN(const ZipReader zip, ZipReader::open(file));
  LLAMAC_ASSIGN_OR_RETURN(const ZipEntry *pickle, findPickle(zip));
  const std::string root(absl::StripSuffix(pickle->name, "data.pkl"));
  if (const ZipEntry *order = zip.find(absl::StrCat(root, "byteorder"))) {
    LLAMAC_ASSIGN_OR_RETURN(absl::Span<const uint8_t> bytes,
                            zip.readChecked(*order));
    const absl::string_view text(reinterpret_cast<const char *>(bytes.data()),
                                 bytes.size());
    if (text != "little")
      return unsupportedError(malformed(path, order->offset, "byteorder",
                                        "\"little\"", quoteForMessage(text))
                                  .message());
  }
  LLAMAC_ASSIGN_OR_RETURN(absl::Span<const uint8_t> bytes,
                          zip.readChecked(*pickle));
  LLAMAC_ASSIGN_OR_RETURN(std::vector<PickledTensor> pickled,
                          readPickledStateDict(path, bytes, pickle->offset));

  std::vector<StoredTensor> tensors;
  tensors.reserve(pickled.size());
  for (PickledTensor &from : pickled) {
    const ZipEntry *entry = zip.find(absl::StrCat(root, "data/", from.storage));
    if (!entry)
      return malformed(path, from.position, quoteForMessage(from.name),
                       absl::StrCat("an entry ", root, "data/",
                                    quoteForMessage(from.storage)),
                       "none");
    const uint64_t elementBytes = dataTypeInfo(from.type).blockBytes;
    const std::optional<uint64_t> storageBytes =
        checkedMul(from.storageElements, elementBytes);
    if (!storageBytes || *storageBytes != entry->size)
      return malformed(path, from.position, quoteForMessage(from.name),
                       absl::StrCat("a storage of ", from.storageElements, " ",
                                    dataTypeName(from.type), " elements"),
                       absl::StrCat("an entry of ", entry->size, " bytes"));
    StoredTensor tensor;
    tensor.name = std::string(from.name);
    tensor.type = from.type;
    tensor.shape = std::move(from.shape);
    tensor.offset = entry->offset + from.firstElement * elementBytes;
    tensor.size = from.elements * elementBytes;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

} // namespace llamac
