//===- TorchFile.cpp - PyTorch's .pth files -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Since PyTorch 1.6 torch.save writes a zip file ROOT/data.pkl (the pickled
// state dict), ROOT/data/KEY (the bytes of each storage), ROOT/version and,
// recently, ROOT/byteorder. The writer writes stored entries alone, data.pkl
// first. Local headers are written before their data is known, and get its CRC
// afterwards. Entries of 4 GiB or more, or after the first 4 GiB, have
// zip64 fields.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/TensorFiles.h"
#include "frontends/meta/PickleReader.h"
#include "frontends/meta/ZipReader.h"
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CheckedMath.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <memory>
#include <zlib.h>

namespace llamac {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

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

static absl::StatusOr<std::vector<StoredTensor>>
readTorchTensors(const MappedFile &file, bool takesPacked) {
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
  LLAMAC_ASSIGN_OR_RETURN(
      std::vector<PickledTensor> pickled,
      readPickledStateDict(path, bytes, pickle->offset, takesPacked));

  std::vector<StoredTensor> tensors;
  tensors.reserve(pickled.size());
  for (PickledTensor &from : pickled) {
    const ZipEntry *entry = zip.find(absl::StrCat(root, "data/", from.storage));
    if (!entry)
      return malformed(path, from.position, quoteForMessage(from.name),
                       absl::StrCat("an entry ", root, "data/",
                                    quoteForMessage(from.storage)),
                       "none");
    const absl::string_view typeName =
        from.packedType.empty() ? dataTypeName(from.type) : from.packedType;
    const uint64_t elementBytes = from.packedType.empty()
                                      ? dataTypeInfo(from.type).blockBytes
                                      : packedElementBytes(from.packedType);
    const std::optional<uint64_t> storageBytes =
        checkedMul(from.storageElements, elementBytes);
    if (!storageBytes || *storageBytes != entry->size)
      return malformed(path, from.position, quoteForMessage(from.name),
                       absl::StrCat("a storage of ", from.storageElements, " ",
                                    typeName, " elements"),
                       absl::StrCat("an entry of ", entry->size, " bytes"));
    StoredTensor tensor;
    tensor.name = std::string(from.name);
    tensor.type = from.type;
    tensor.packedType = std::string(from.packedType);
    tensor.shape = std::move(from.shape);
    tensor.offset = entry->offset + from.firstElement * elementBytes;
    tensor.size = from.elements * elementBytes;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<std::vector<StoredTensor>>
readTorchFile(const MappedFile &file) {
  return readTorchTensors(file, /*takesPacked=*/false);
}

absl::StatusOr<std::vector<StoredTensor>>
readPackedTorchFile(const MappedFile &file) {
  return readTorchTensors(file, /*takesPacked=*/true);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static constexpr uint64_t storageAlignment = 64;

namespace {

// Gathers little-endian fields.
class FieldWriter {
public:
  template <typename T>
  FieldWriter &put(std::initializer_list<uint64_t> values) {
    for (uint64_t value : values)
      for (size_t i = 0; i < sizeof(T); ++i)
        bytes.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  FieldWriter &text(absl::string_view value) {
    bytes.append(value.data(), value.size());
    return *this;
  }

  std::string bytes;
};

// Writes a zip file of stored entries, one after the other. The fields of its
// records are in the order of APPNOTE, chapter 4.3.
class ZipWriter {
public:
  explicit ZipWriter(AtomicFile &file) : file(file) {}

  /// Adds an entry of `size` bytes, which `produce` gives.
  absl::Status
  add(const std::string &name, uint64_t size,
      const std::function<absl::Status(const WriteBytes &)> &produce) {
    Entry entry{name, file.size(), size, 0};
    const bool isLarge = size >= zip64Field;
    // The local header ends with extra fields: sizes of 64 bits when they need
    // it, then a filler, named FB as torch names it, up to the alignment.
    FieldWriter extra;
    if (isLarge)
      extra.put<uint16_t>({0x0001, 16}).put<uint64_t>({size, size});
    const uint64_t unaligned =
        entry.header + 30 + name.size() + extra.bytes.size() + 4;
    const uint64_t fill =
        (storageAlignment - unaligned % storageAlignment) % storageAlignment;
    extra.text("FB").put<uint16_t>({fill}).text(std::string(fill, 'Z'));

    FieldWriter header; // The CRC is filled in below.
    header.put<uint32_t>({0x04034b50})
        .put<uint16_t>({isLarge ? 45U : 20U, 0, 0, 0, dosDate})
        .put<uint32_t>({/*crc=*/0, clamp32(size), clamp32(size)})
        .put<uint16_t>({name.size(), extra.bytes.size()})
        .text(name)
        .text(extra.bytes);
    LLAMAC_RETURN_IF_ERROR(file.write(header.bytes));

    const uint64_t start = file.size();
    uLong crc = crc32(0, nullptr, 0);
    LLAMAC_RETURN_IF_ERROR(produce([&](absl::Span<const uint8_t> bytes) {
      crc = crc32_z(crc, bytes.data(), bytes.size());
      return file.write(bytes);
    }));
    if (file.size() - start != size)
      return internalError(absl::StrCat(name, ": ", size, " bytes promised, ",
                                        file.size() - start, " given"));
    entry.crc = static_cast<uint32_t>(crc);
    LLAMAC_RETURN_IF_ERROR(file.overwrite(
        entry.header + 14,
        {reinterpret_cast<const uint8_t *>(&entry.crc), sizeof entry.crc}));
    entries.push_back(std::move(entry));
    return absl::OkStatus();
  }
  absl::Status addText(const std::string &name, absl::string_view text) {
    return add(name, text.size(), [&](const WriteBytes &write) {
      return write(
          {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
    });
  }

  /// Writes the central directory.
  absl::Status finish() {
    const uint64_t start = file.size();
    for (const Entry &entry : entries) {
      FieldWriter values;
      if (entry.size >= zip64Field)
        values.put<uint64_t>({entry.size, entry.size});
      if (entry.header >= zip64Field)
        values.put<uint64_t>({entry.header});
      FieldWriter extra;
      if (!values.bytes.empty())
        extra.put<uint16_t>({0x0001, values.bytes.size()}).text(values.bytes);
      const uint64_t version = values.bytes.empty() ? 20 : 45;
      const uint64_t size = clamp32(entry.size);
      FieldWriter record;
      record.put<uint32_t>({0x02014b50})
          .put<uint16_t>({version, version, 0, 0, 0, dosDate})
          .put<uint32_t>({entry.crc, size, size})
          .put<uint16_t>({entry.name.size(), extra.bytes.size(), 0, 0, 0})
          .put<uint32_t>({0, clamp32(entry.header)})
          .text(entry.name)
          .text(extra.bytes);
      LLAMAC_RETURN_IF_ERROR(file.write(record.bytes));
    }

    // torch's own files always have the zip64 end records; so has this one.
    const uint64_t end64 = file.size();
    const uint64_t size = end64 - start;
    const uint64_t count = entries.size();
    const uint64_t count16 = std::min<uint64_t>(count, 0xffff);
    FieldWriter end;
    end.put<uint32_t>({0x06064b50})
        .put<uint64_t>({44})
        .put<uint16_t>({45, 45})
        .put<uint32_t>({0, 0})
        .put<uint64_t>({count, count, size, start})
        .put<uint32_t>({0x07064b50, 0})
        .put<uint64_t>({end64})
        .put<uint32_t>({1})
        .put<uint32_t>({0x06054b50})
        .put<uint16_t>({0, 0, count16, count16})
        .put<uint32_t>({clamp32(size), clamp32(start)})
        .put<uint16_t>({0});
    return file.write(end.bytes);
  }

private:
  struct Entry {
    std::string name;
    uint64_t header = 0; // Offset of the local header.
    uint64_t size = 0;
    uint32_t crc = 0;
  };

  static uint64_t clamp32(uint64_t value) {
    return std::min<uint64_t>(value, zip64Field);
  }

  static constexpr uint64_t dosDate = 0x21; // 1980-01-01.

  AtomicFile &file;
  std::vector<Entry> entries;
};

} // namespace

namespace {

// Writes the pickle of a state dict, protocol 2, as torch does: persistent ids
// name storages, and everything else is built by two functions.
class StateDictPickler {
public:
  StateDictPickler() {
    text("\x80\x02");
    global("collections", "OrderedDict");
    text(")R("); // Called without arguments; a mark for the items.
  }

  void add(const std::string &name, const TensorStream &tensor,
           size_t storage) {
    unicode(name);
    global("torch._utils", "_rebuild_tensor_v2");
    text("((");
    unicode("storage");
    global("torch", tensor.type == DataType::BF16  ? "BFloat16Storage"
                    : tensor.type == DataType::F16 ? "HalfStorage"
                                                   : "FloatStorage");
    unicode(absl::StrCat(storage));
    unicode("cpu");
    integer(tensor.elements());
    text("tQ"); // The storage by its persistent id.
    integer(0);
    std::vector<uint64_t> strides(tensor.shape.size());
    uint64_t stride = 1;
    for (size_t i = strides.size(); i-- > 0; stride *= tensor.shape[i])
      strides[i] = stride;
    tuple(tensor.shape);
    tuple(strides);
    text("\x89"); // No gradient; no hooks.
    global("collections", "OrderedDict");
    text(")RtR");
  }

  std::string finish() {
    text("u.");
    return std::move(fields.bytes);
  }

private:
  void text(absl::string_view instructions) { fields.text(instructions); }
  void global(absl::string_view module, absl::string_view name) {
    text(absl::StrCat("c", module, "\n", name, "\n"));
  }
  void unicode(absl::string_view value) {
    text("X");
    fields.put<uint32_t>({value.size()}).text(value);
  }
  void integer(uint64_t value) {
    if (value < 256) {
      text("K");
      fields.put<uint8_t>({value});
    } else if (value <= 0x7fffffff) {
      text("J");
      fields.put<uint32_t>({value});
    } else {
      text("\x8a\x08"); // LONG1 of 8 bytes.
      fields.put<uint64_t>({value});
    }
  }
  void tuple(const std::vector<uint64_t> &values) {
    text("(");
    for (uint64_t value : values)
      integer(value);
    text("t");
  }

  FieldWriter fields;
};

} // namespace

absl::Status writeTorchFile(absl::string_view path,
                            absl::Span<const TensorStream> tensors,
                            absl::Span<const TensorAlias> aliases) {
  StateDictPickler pickler;
  for (size_t i = 0; i < tensors.size(); ++i)
    pickler.add(tensors[i].name, tensors[i], i);
  for (const TensorAlias &alias : aliases) {
    const auto *tensor =
        std::find_if(tensors.begin(), tensors.end(),
                     [&](const auto &t) { return t.name == alias.of; });
    if (tensor == tensors.end())
      return internalError(absl::StrCat("no tensor ", alias.of));
    pickler.add(alias.name, *tensor,
                static_cast<size_t>(tensor - tensors.begin()));
  }

  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(path));
  ZipWriter zip(*file);
  LLAMAC_RETURN_IF_ERROR(
      zip.addText("consolidated/data.pkl", pickler.finish()));
  LLAMAC_RETURN_IF_ERROR(zip.addText("consolidated/byteorder", "little"));
  for (size_t i = 0; i < tensors.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(zip.add(absl::StrCat("consolidated/data/", i),
                                   tensors[i].bytes(), tensors[i].produce));
  LLAMAC_RETURN_IF_ERROR(zip.addText("consolidated/version", "3\n"));
  LLAMAC_RETURN_IF_ERROR(zip.finish());
  return file->commit();
}

} // namespace llamac
