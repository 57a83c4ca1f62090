//===- ByteCursor.h - Checked reading of binary fields -------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every binary reader walks its file with a ByteCursor: each read is checked
// against the end, and each error has the one form
//   file:offset: field: expected ..., got ...
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_BYTECURSOR_H
#define LLAMAC_FRONTENDS_BYTECURSOR_H

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/CheckedMath.h"
#include "runtime/io/Malformed.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace llamac {

static_assert(std::endian::native == std::endian::little,
              "the readers take numbers as they lie in little-endian files");

/// Reads little-endian fields of a part of a file, front to back.
class ByteCursor {
public:
  /// `bytes` lie at `base` in `file`; both must outlive the cursor.
  ByteCursor(absl::string_view file, absl::Span<const uint8_t> bytes,
             uint64_t base = 0)
      : file(file), bytes(bytes), base(base) {}

  /// Where the next byte lies in the file.
  uint64_t offset() const { return base + position; }
  uint64_t remaining() const { return bytes.size() - position; }

  /// The next sizeof(T) bytes as a number.
  template <typename T> absl::StatusOr<T> read(absl::string_view field) {
    if (remaining() < sizeof(T))
      return tooShort(field, sizeof(T));
    T value;
    std::memcpy(&value, bytes.data() + position, sizeof(T));
    position += sizeof(T);
    return value;
  }

  /// The next `size` bytes.
  absl::StatusOr<absl::Span<const uint8_t>> take(uint64_t size,
                                                 absl::string_view field) {
    if (remaining() < size)
      return tooShort(field, size);
    absl::Span<const uint8_t> taken = bytes.subspan(position, size);
    position += size;
    return taken;
  }

  /// The next `size` bytes as text.
  absl::StatusOr<absl::string_view> takeText(uint64_t size,
                                             absl::string_view field) {
    LLAMAC_ASSIGN_OR_RETURN(absl::Span<const uint8_t> taken, take(size, field));
    return absl::string_view(reinterpret_cast<const char *>(taken.data()),
                             taken.size());
  }

private:
  absl::Status tooShort(absl::string_view field, uint64_t size) const {
    return malformed(file, offset(), field, absl::StrCat(size, " bytes"),
                     absl::StrCat(remaining(), " before the end"));
  }

  absl::string_view file;
  absl::Span<const uint8_t> bytes;
  uint64_t base;
  uint64_t position = 0;
};

} // namespace llamac

#endif // LLAMAC_FRONTENDS_BYTECURSOR_H
