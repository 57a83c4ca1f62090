//===- ElementTypesTest.cpp - Element types by their names ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"
#include "runtime/base/DataType.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace llamac {
namespace {

/// Every DataType, to its last enumerator.
std::vector<DataTypeInfo> allDataTypes() {
  std::vector<DataTypeInfo> types;
  for (int i = 0; i < numDataTypes; ++i)
    types.push_back(dataTypeInfo(static_cast<DataType>(i)));
  return types;
}

TEST(ElementTypesTest, EveryDataTypeHasAnElementTypeOfItsName) {
  mlir::MLIRContext context;
  for (const DataTypeInfo &info : allDataTypes()) {
    const std::string name(info.name);
    SCOPED_TRACE(name);
    mlir::Type type = llama::elementTypeNamed(context, name);
    ASSERT_TRUE(type);
    EXPECT_EQ(llama::elementTypeName(type).str(), name);
  }
}

TEST(ElementTypesTest, BlocksAreThoseOfTheRuntime) {
  mlir::MLIRContext context;
  for (const DataTypeInfo &info : allDataTypes()) {
    const std::string name(info.name);
    SCOPED_TRACE(name);
    auto quant = mlir::dyn_cast<llama::QuantType>(
        llama::elementTypeNamed(context, name));
    EXPECT_EQ(static_cast<bool>(quant), info.blockElements > 1);
    if (!quant)
      continue;
    EXPECT_EQ(quant.getBlockElements(), info.blockElements);
    EXPECT_EQ(quant.getBlockBytes(), info.blockBytes);
  }
}

TEST(ElementTypesTest, AnUnknownNameHasNoType) {
  mlir::MLIRContext context;
  EXPECT_FALSE(llama::elementTypeNamed(context, "q3_k"));
  EXPECT_FALSE(llama::elementTypeNamed(context, "F32"));
  EXPECT_FALSE(llama::elementTypeNamed(context, ""));
}

} // namespace
} // namespace llamac
