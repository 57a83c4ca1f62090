//===- DataType.cpp - Element types of tensors ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/DataType.h"

#include <iterator>

namespace llamac {

// In the order of the enumeration.
static constexpr DataTypeInfo infos[] = {
    {DataType::F32, "f32", 1, 4},       {DataType::F16, "f16", 1, 2},
    {DataType::BF16, "bf16", 1, 2},     {DataType::Q8_0, "q8_0", 32, 34},
    {DataType::Q4_0, "q4_0", 32, 18},   {DataType::Q4_1, "q4_1", 32, 20},
    {DataType::Q5_0, "q5_0", 32, 22},   {DataType::Q5_1, "q5_1", 32, 24},
    {DataType::Q4_K, "q4_k", 256, 144}, {DataType::Q5_K, "q5_k", 256, 176},
    {DataType::Q6_K, "q6_k", 256, 210}, {DataType::MXFP8, "mxfp8", 32, 33},
};
static_assert(std::size(infos) == numDataTypes);

const DataTypeInfo &dataTypeInfo(DataType type) {
  return infos[static_cast<size_t>(type)];
}

std::optional<DataType> parseDataType(absl::string_view name) {
  for (const DataTypeInfo &info : infos)
    if (info.name == name)
      return info.type;
  return std::nullopt;
}

} // namespace llamac
