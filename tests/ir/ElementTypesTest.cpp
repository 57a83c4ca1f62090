//===- ElementTypesTest.cpp - Element types by their names ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"
#include "runtime/base/DataType.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gtest/gtest.h>

#include <string>

namespace llamac {
namespace {

TEST(ElementTypesTest, EveryDataTypeHasAnElementTypeOfItsName) {
  mlir::MLIRContext context;
  for (const DataTypeInfo &info : dataTypes()) {
    const std::string name(info.name);
    SCOPED_TRACE(name);
    mlir::Type type = llama::elementTypeOf(context, info.type);
    ASSERT_TRUE(type);
    EXPECT_EQ(llama::dataTypeOf(type), info.type);
    EXPECT_EQ(llama::elementTypeName(type).str(), name);
    // The spelling of the IR.
    const std::string text =
        isBlockFormat(info.type) ? "!llama.quant<" + name + ">" : name;
    EXPECT_EQ(mlir::parseType(text, &context), type);
  }
}

TEST(ElementTypesTest, BlocksAreThoseOfTheRuntime) {
  mlir::MLIRContext context;
  for (const DataTypeInfo &info : dataTypes()) {
    const std::string name(info.name);
    SCOPED_TRACE(name);
    auto quant = mlir::dyn_cast<llama::QuantType>(
        llama::elementTypeOf(context, info.type));
    EXPECT_EQ(static_cast<bool>(quant), info.blockElements > 1);
    if (!quant)
      continue;
    EXPECT_EQ(quant.getBlockElements(), info.blockElements);
    EXPECT_EQ(quant.getBlockBytes(), info.blockBytes);
  }
}

} // namespace
} // namespace llamac
