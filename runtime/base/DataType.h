//===- DataType.h - Element types of tensors --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types a checkpoint or a plan can hold, of which ElementTypes.def
// is the list. A block format stores `blockElements` consecutive elements of a
// row in `blockBytes` bytes; plain types are blocks of one element.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_DATATYPE_H
#define LLAMAC_RUNTIME_BASE_DATATYPE_H

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <string>

namespace llamac {

enum class DataType : uint8_t {
#define LLAMAC_ELEMENT_TYPE(ID, ...) ID,
#include "runtime/base/ElementTypes.def"
};

struct DataTypeInfo {
  DataType type;
  absl::string_view name; ///< Lower case, as users type it: "q4_1".
  absl::string_view id;   ///< The enumerator's name: "Q4_1".
  uint32_t blockElements;
  uint32_t blockBytes;
};

/// All of them, in the order of DataType.
absl::Span<const DataTypeInfo> dataTypes();

inline const DataTypeInfo &dataTypeInfo(DataType type) {
  return dataTypes()[static_cast<size_t>(type)];
}

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

/// A format that a compile may round matrices to.
struct WeightRounding {
  DataType type;
  double logitsError; ///< The error that it may cost, relative to the largest
                      ///< logit.
};

/// All of them, the most exact first.
absl::Span<const WeightRounding> weightRoundings();

/// The one called `name`; null when there is none.
const WeightRounding *findWeightRounding(absl::string_view name);

/// The values of --weights, for people: "keep, bf16, q8_0, fp8, mxfp8 or
/// q4_0".
std::string weightOptionNames();

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_DATATYPE_H
