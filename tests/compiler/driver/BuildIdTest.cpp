//===- BuildIdTest.cpp - Which build of llamac this is --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/BuildId.h"
#include "runtime/base/BuildId.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace llamac {
namespace {

int inThisProgram;

TEST(BuildId, IsThatOfTheObjectAnAddressLiesIn) {
  const std::string id = compilerBuildId();
  EXPECT_EQ(id.size(), 16u);
  // The compiler is linked to this test, and the C library is not.
  EXPECT_EQ(buildIdAt(&inThisProgram), id);
  const std::string other = buildIdAt(reinterpret_cast<const void *>(&::atoi));
  EXPECT_EQ(other.size(), 16u);
  EXPECT_NE(other, id);
  EXPECT_EQ(buildIdAt(reinterpret_cast<const void *>(&::strtol)), other);
}

TEST(BuildId, IsNoneOutsideOfObjects) {
  const int onTheStack = 0;
  EXPECT_EQ(buildIdAt(&onTheStack), "");
}

} // namespace
} // namespace llamac
