//===- GgufWriter.h - Writer of GGUF files -------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of version 3, in the layout that GgufReader.h describes.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_GGUF_GGUFWRITER_H
#define LLAMAC_FRONTENDS_GGUF_GGUFWRITER_H

#include "frontends/TensorFiles.h"
#include "frontends/gguf/GgufReader.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <string>
#include <type_traits>

namespace llamac {

/// Appends a number, a flag or, with its length ahead of it, a text.
template <class T> void putGguf(std::string &out, T value) {
  if constexpr (std::is_same_v<T, absl::string_view>) {
    putGguf<uint64_t>(out, value.size());
    out.append(value.data(), value.size());
  } else {
    out.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
}

/// Metadata in the form that a file has it, each key of which is added once. A
/// value's T is uint32_t, int32_t, float, bool or absl::string_view.
class GgufMetadata {
public:
  template <class T> void add(absl::string_view key, T value) {
    begin(key, typeOf<T>());
    putGguf(text, value);
  }
  template <class T>
  void addArray(absl::string_view key, absl::Span<const T> values) {
    beginArray(key, typeOf<T>(), values.size());
    for (T value : values)
      putGguf(text, value);
  }
  /// Adds a value of another file as it is.
  void copy(const GgufValue &value);

  uint64_t size() const { return count; } ///< The number of keys.
  const std::string &bytes() const { return text; }

private:
  template <class T> static constexpr GgufType typeOf() {
    return std::is_same_v<T, uint32_t>  ? GgufType::UInt32
           : std::is_same_v<T, int32_t> ? GgufType::Int32
           : std::is_same_v<T, float>   ? GgufType::Float32
           : std::is_same_v<T, bool>    ? GgufType::Bool
                                        : GgufType::String;
  }
  void begin(absl::string_view key, GgufType type);
  void beginArray(absl::string_view key, GgufType type, uint64_t size);

  std::string text;
  uint64_t count = 0;
};

/// Writes `metadata` and then `tensors`, whose types are GGML's, to the file
/// `path`, which is replaced at the end.
absl::Status writeGguf(absl::string_view path, const GgufMetadata &metadata,
                       absl::Span<const TensorStream> tensors);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_GGUF_GGUFWRITER_H
