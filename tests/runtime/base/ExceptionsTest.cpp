//===- ExceptionsTest.cpp - Where exceptions of libraries end -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Exceptions.h"
#include "runtime/base/FatalEvents.h"

#include "absl/status/statusor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace llamac {
namespace {

/// A string that there is no memory for, or that is longer than any.
absl::StatusOr<size_t> sizeOfString(size_t size) {
  return withoutExceptions([&]() -> absl::StatusOr<size_t> {
    const auto text = std::make_unique<std::string>(size, 'a');
    return text->size();
  });
}

constexpr size_t tooMuch = size_t{1} << 60;

TEST(ExceptionsTest, WhatALibraryThrowsIsAnError) {
  EXPECT_EQ(*sizeOfString(3), 3u);
  EXPECT_EQ(exitCode(sizeOfString(tooMuch).status()), ExitCode::Memory);
  EXPECT_EQ(exitCode(sizeOfString(std::string::npos).status()),
            ExitCode::Internal);
}

TEST(ExceptionsTest, MemoryThatIsLackingEndsAToolElsewhereAlone) {
  EXPECT_EXIT(
      {
        installFatalHandlers("tool");
        if (exitCode(sizeOfString(tooMuch).status()) != ExitCode::Memory)
          endProcess(ExitCode::Internal);
        const auto text = std::make_unique<std::string>(tooMuch, 'a');
        endProcess(text->back() == 'a' ? ExitCode::Ok : ExitCode::Usage);
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::Memory)),
      "tool: error: not enough memory");
}

} // namespace
} // namespace llamac
