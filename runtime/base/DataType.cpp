//===- DataType.cpp - Element types of tensors ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/DataType.h"

#include "absl/strings/str_cat.h"

#include <iterator>

namespace llamac {

static constexpr DataTypeInfo infos[] = {
#define LLAMAC_ELEMENT_TYPE(ID, NAME, BLOCK, BYTES, ...)                       \
  {DataType::ID, NAME, #ID, BLOCK, BYTES},
#include "runtime/base/ElementTypes.def"
};

absl::Span<const DataTypeInfo> dataTypes() { return infos; }

std::optional<DataType> parseDataType(absl::string_view name) {
  for (const DataTypeInfo &info : infos)
    if (info.name == name)
      return info.type;
  return std::nullopt;
}

static constexpr WeightRounding roundings[] = {{DataType::BF16, 1e-3},
                                               {DataType::Q8_0, 1e-2},
                                               {DataType::FP8, 1e-1},
                                               {DataType::MXFP8, 1e-1},
                                               {DataType::Q4_0, 5e-1}};

absl::Span<const WeightRounding> weightRoundings() { return roundings; }

const WeightRounding *findWeightRounding(absl::string_view name) {
  for (const WeightRounding &rounding : roundings)
    if (dataTypeName(rounding.type) == name)
      return &rounding;
  return nullptr;
}

std::string weightOptionNames() {
  std::string names = "keep";
  for (const WeightRounding &rounding : roundings)
    absl::StrAppend(&names,
                    &rounding == std::end(roundings) - 1 ? " or " : ", ",
                    dataTypeName(rounding.type));
  return names;
}

} // namespace llamac
