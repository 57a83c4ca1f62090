//===- SafetensorsReader.cpp - Reader of .safetensors files ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/huggingface/SafetensorsReader.h"

#include "frontends/ByteCursor.h"
#include "frontends/JsonReader.h"
#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <tuple>

namespace llamac {

static constexpr uint64_t maxHeaderBytes = 100'000'000;
static constexpr size_t maxRank = 8;

namespace {

// An entry of the header as it is written, before anything is checked but the
// grammar.
struct HeaderEntry {
  std::string name;
  uint64_t offset = 0; // Of the entry, for messages.
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> extent;
  bool hasShape = false;
};

// The header's grammar is so narrow that it is checked while it is parsed; a
// text of another form is refused at its first token that does not fit.
class HeaderEvents : public JsonEvents {
public:
  std::vector<HeaderEntry> entries;

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected("a boolean"); }
  bool number_integer(int64_t value) override {
    return fail(place(), "a number of at least 0", absl::StrCat(value));
  }
  bool number_float(double value, const std::string &text) override {
    return fail(place(), "an integer below 2^64", quoteForMessage(text));
  }
  bool binary(nlohmann::json::binary_t &value) override {
    return unexpected("binary data");
  }

  bool number_unsigned(uint64_t value) override {
    if (state == State::Shape) {
      if (entries.back().shape.size() == maxRank)
        return fail(place(), absl::StrCat("at most ", maxRank, " sizes"),
                    "more");
      entries.back().shape.push_back(value);
      return true;
    }
    if (state == State::Offsets) {
      if (entries.back().extent.size() == 2)
        return fail(place(), "two offsets", "more");
      entries.back().extent.push_back(value);
      return true;
    }
    return unexpected("a number");
  }

  bool string(std::string &value) override {
    if (state == State::MetadataText) {
      state = State::Metadata;
      return true;
    }
    if (state != State::Dtype)
      return unexpected("a string");
    entries.back().dtype = std::move(value);
    state = State::Entry;
    return true;
  }

  bool start_object(std::size_t count) override {
    if (state == State::Start)
      state = State::Names;
    else if (state == State::EntryStart)
      state = State::Entry;
    else if (state == State::MetadataStart)
      state = State::Metadata;
    else
      return unexpected("an object");
    return true;
  }

  bool end_object() override {
    if (state == State::Names) {
      state = State::End;
      return true;
    }
    if (state == State::Metadata) {
      state = State::Names;
      return true;
    }
    const HeaderEntry &entry = entries.back();
    if (entry.dtype.empty())
      return fail(quoteForMessage(entry.name), "a dtype", "none");
    if (!entry.hasShape)
      return fail(quoteForMessage(entry.name), "a shape", "none");
    if (entry.extent.size() != 2)
      return fail(quoteForMessage(entry.name), "two data_offsets",
                  absl::StrCat(entry.extent.size()));
    state = State::Names;
    return true;
  }

  bool start_array(std::size_t count) override {
    if (state == State::ShapeStart)
      state = State::Shape;
    else if (state == State::OffsetsStart)
      state = State::Offsets;
    else
      return unexpected("an array");
    return true;
  }

  bool end_array() override {
    state = State::Entry;
    return true;
  }

  bool key(std::string &name) override {
    switch (state) {
    case State::Names:
      if (!names.insert(name).second)
        return fail(quoteForMessage(name), "a name used once", "a duplicate");
      if (name == "__metadata__") {
        state = State::MetadataStart;
        return true;
      }
      entries.emplace_back();
      entries.back().offset = offset();
      entries.back().name = std::move(name);
      state = State::EntryStart;
      return true;
    case State::Metadata:
      state = State::MetadataText;
      return true;
    default:
      return entryKey(name);
    }
  }

private:
  enum class State {
    Start,
    Names,
    MetadataStart,
    Metadata,
    MetadataText,
    EntryStart,
    Entry,
    Dtype,
    ShapeStart,
    Shape,
    OffsetsStart,
    Offsets,
    End,
  };

  bool entryKey(const std::string &name) {
    HeaderEntry &entry = entries.back();
    if (name == "dtype" && entry.dtype.empty()) {
      state = State::Dtype;
    } else if (name == "shape" && !entry.hasShape) {
      entry.hasShape = true;
      state = State::ShapeStart;
    } else if (name == "data_offsets" && entry.extent.empty()) {
      state = State::OffsetsStart;
    } else {
      return fail(quoteForMessage(entry.name),
                  "dtype, shape and data_offsets once each",
                  quoteForMessage(name));
    }
    return true;
  }

  // What the parser is at, for messages.
  std::string place() const {
    switch (state) {
    case State::Start:
    case State::Names:
    case State::End:
      return "header";
    case State::MetadataStart:
    case State::Metadata:
    case State::MetadataText:
      return "__metadata__";
    case State::Dtype:
      return absl::StrCat(quoteForMessage(entries.back().name), " dtype");
    case State::ShapeStart:
    case State::Shape:
      return absl::StrCat(quoteForMessage(entries.back().name), " shape");
    case State::OffsetsStart:
    case State::Offsets:
      return absl::StrCat(quoteForMessage(entries.back().name),
                          " data_offsets");
    case State::EntryStart:
    case State::Entry:
      return quoteForMessage(entries.back().name);
    }
    return "header";
  }

  bool unexpected(absl::string_view got) {
    const bool array =
        state == State::ShapeStart || state == State::OffsetsStart;
    const bool number = state == State::Shape || state == State::Offsets;
    const bool text = state == State::Dtype || state == State::MetadataText;
    return fail(place(),
                array    ? "an array"
                : number ? "a number"
                : text   ? "a string"
                         : "an object",
                got);
  }

  State state = State::Start;
  absl::flat_hash_set<std::string> names;
};

} // namespace

// The tensor an entry describes; data starts at `dataStart` in the file.
static absl::StatusOr<SafetensorsTensor>
checkEntry(const MappedFile &file, uint64_t dataStart, HeaderEntry &entry) {
  const std::string field = quoteForMessage(entry.name);
  SafetensorsTensor tensor;
  if (entry.dtype == "F32")
    tensor.type = DataType::F32;
  else if (entry.dtype == "F16")
    tensor.type = DataType::F16;
  else if (entry.dtype == "BF16")
    tensor.type = DataType::BF16;
  else
    return unsupportedError(
        malformed(file.path(), entry.offset, absl::StrCat(field, " dtype"),
                  "F32, F16 or BF16", quoteForMessage(entry.dtype))
            .message());

  const uint64_t begin = entry.extent[0];
  const uint64_t end = entry.extent[1];
  if (begin > end || end > file.size() - dataStart)
    return malformed(file.path(), entry.offset,
                     absl::StrCat(field, " data_offsets"),
                     absl::StrCat("an extent within ", file.size() - dataStart,
                                  " bytes of data"),
                     absl::StrCat("[", begin, ", ", end, "]"));
  const std::optional<uint64_t> elements = checkedProduct(entry.shape);
  const std::optional<uint64_t> bytes =
      elements ? checkedMul(*elements, dataTypeInfo(tensor.type).blockBytes)
               : std::nullopt;
  if (!bytes || *bytes != end - begin)
    return malformed(
        file.path(), entry.offset, absl::StrCat(field, " shape"),
        absl::StrCat(end - begin, " bytes as data_offsets say"),
        absl::StrCat(entry.dtype, " [", absl::StrJoin(entry.shape, ", "), "]",
                     bytes ? absl::StrCat(" of ", *bytes, " bytes")
                           : std::string(" of 2^63 elements or more")));
  tensor.name = std::move(entry.name);
  tensor.shape = std::move(entry.shape);
  tensor.offset = dataStart + begin;
  tensor.size = *bytes;
  return tensor;
}

absl::StatusOr<std::vector<SafetensorsTensor>>
readSafetensors(const MappedFile &file) {
  ByteCursor cursor(file.path(), file.span());
  LLAMAC_ASSIGN_OR_RETURN(const uint64_t headerBytes,
                          cursor.read<uint64_t>("header length"));
  if (headerBytes > maxHeaderBytes || headerBytes > cursor.remaining())
    return malformed(
        file.path(), 0, "header length",
        absl::StrCat("at most ", std::min(maxHeaderBytes, cursor.remaining())),
        headerBytes);
  LLAMAC_ASSIGN_OR_RETURN(absl::string_view header,
                          cursor.takeText(headerBytes, "header"));
  const uint64_t dataStart = cursor.offset();

  HeaderEvents events;
  LLAMAC_RETURN_IF_ERROR(parseJsonEvents(
      file.path(), header, {.maxBytes = maxHeaderBytes, .maxDepth = 3}, events,
      sizeof(uint64_t)));
  std::vector<SafetensorsTensor> tensors;
  tensors.reserve(events.entries.size());
  for (HeaderEntry &entry : events.entries) {
    LLAMAC_ASSIGN_OR_RETURN(SafetensorsTensor tensor,
                            checkEntry(file, dataStart, entry));
    tensors.push_back(std::move(tensor));
  }

  // Empty tensors lie before the one that starts where they do.
  std::sort(tensors.begin(), tensors.end(),
            [](const SafetensorsTensor &a, const SafetensorsTensor &b) {
              return std::tie(a.offset, a.size, a.name) <
                     std::tie(b.offset, b.size, b.name);
            });
  uint64_t end = dataStart;
  for (const SafetensorsTensor &tensor : tensors) {
    if (tensor.offset != end)
      return malformed(
          file.path(), tensor.offset,
          absl::StrCat(quoteForMessage(tensor.name), " data_offsets"),
          absl::StrCat("data to follow the tensor before at ", end - dataStart,
                       " without hole or overlap"),
          tensor.offset - dataStart);
    end += tensor.size;
  }
  if (end != file.size())
    return malformed(file.path(), end, "data",
                     "the last tensor to end the file",
                     absl::StrCat(file.size() - end, " bytes more"));
  return tensors;
}

} // namespace llamac
