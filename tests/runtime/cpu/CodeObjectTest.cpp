//===- CodeObjectTest.cpp - Kernels opened from memory --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CodeObject.h"

#include "runtime/base/Status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace llamac {
namespace {

using testing::HasSubstr;

static std::string toyKernels() {
  std::ifstream file(LLAMAC_TOY_KERNELS, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

static absl::StatusOr<std::unique_ptr<CodeObject>>
open(const std::string &elf) {
  return CodeObject::open(
      {reinterpret_cast<const uint8_t *>(elf.data()), elf.size()}, "section 3");
}

TEST(CodeObjectTest, FindsKernels) {
  const auto object = open(toyKernels());
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_TRUE((*object)->kernel("toyHash").ok());
  const auto missing = (*object)->kernel("toyHush");
  EXPECT_EQ(exitCode(missing.status()), ExitCode::BadPlan);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("section 3: expected a kernel toyHush"));
}

TEST(CodeObjectTest, TwoCopiesAreApart) {
  const std::string elf = toyKernels();
  const auto one = open(elf);
  const auto two = open(elf);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(*(*one)->kernel("toyHash"), *(*two)->kernel("toyHash"));
}

TEST(CodeObjectTest, WhatIsNoObjectIsRefused) {
  const std::string elf = toyKernels();
  for (const std::string &bytes :
       {std::string(), std::string("#!/bin/sh"), elf.substr(0, 100),
        std::string(elf.size(), '\0')}) {
    const auto object = open(bytes);
    EXPECT_EQ(exitCode(object.status()), ExitCode::BadPlan);
    EXPECT_THAT(std::string(object.status().message()),
                HasSubstr("section 3: expected a shared object"));
  }
}

} // namespace
} // namespace llamac
