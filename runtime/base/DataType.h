//===- DataType.h - Element types of tensors --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types a checkpoint or a plan can hold: plain floats, GGUF's
// block formats, and MXFP8 of the OCP Microscaling specification v1.0 with
// elements in E4M3. A block format stores `blockElements` consecutive elements
// of a row in `blockBytes` bytes; plain types are blocks of one element.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_DATATYPE_H
#define LLAMAC_RUNTIME_BASE_DATATYPE_H

#include "absl/strings/string_view.h"

#include <cstdint>
#include <optional>

namespace llamac {

enum class DataType : uint8_t {
  F32,
  F16,
  BF16,
  Q8_0,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q4_K,
  Q5_K,
  Q6_K,
  MXFP8,
};

/// How many there are.
constexpr int numDataTypes = static_cast<int>(DataType::MXFP8) + 1;

struct DataTypeInfo {
  DataType type;
  absl::string_view name; ///< Lower case, as users type it: "q4_1".
  uint32_t blockElements;
  uint32_t blockBytes;
};

/// Facts of `type`, from one table.
const DataTypeInfo &dataTypeInfo(DataType type);

/// The type whose lower-case name is `name`, if there is one.
std::optional<DataType> parseDataType(absl::string_view name);

inline absl::string_view dataTypeName(DataType type) {
  return dataTypeInfo(type).name;
}

inline bool isBlockFormat(DataType type) {
  return dataTypeInfo(type).blockElements > 1;
}

/// Bytes of `elements` consecutive elements; `elements` is a multiple of the
/// block, and the caller has checked that the product does not overflow.
inline uint64_t dataTypeBytes(DataType type, uint64_t elements) {
  const DataTypeInfo &info = dataTypeInfo(type);
  return elements / info.blockElements * info.blockBytes;
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_DATATYPE_H
