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

namespace llamac {

/// Metadata in the form that a file has it, each key of which is added once.
class GgufMetadata {
public:
  void addInteger(absl::string_view key, int64_t value); ///< Writes a uint32.
  void addNumber(absl::string_view key, double value);   ///< Writes a float32.
  void addFlag(absl::string_view key, bool value);
  void addText(absl::string_view key, absl::string_view value);
  void addIntegers(absl::string_view key, absl::Span<const int32_t> values);
  void addNumbers(absl::string_view key, absl::Span<const float> values);
  void addFlags(absl::string_view key, absl::Span<const bool> values);
  void addTexts(absl::string_view key,
                absl::Span<const absl::string_view> values);
  /// Adds a value of another file as it is.
  void copy(const GgufValue &value);

  uint64_t size() const { return count; } ///< The number of keys.
  const std::string &bytes() const { return text; }

private:
  void put(absl::string_view value);
  template <class T> void put(T value);
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
