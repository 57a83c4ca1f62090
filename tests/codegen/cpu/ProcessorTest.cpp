//===- ProcessorTest.cpp - Tests of the processors' names -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace llamac {
namespace {

using testing::HasSubstr;

TEST(ProcessorTest, NamesReadBackAsThemselves) {
  for (Processor processor :
       {Processor::Generic, Processor::Zen3, Processor::Zen4}) {
    EXPECT_EQ(parseProcessor(processorName(processor)), processor);
    EXPECT_THAT(processorNames(),
                HasSubstr(std::string(processorName(processor))));
  }
  EXPECT_EQ(parseProcessor("znver"), std::nullopt);
  EXPECT_EQ(parseProcessor(""), std::nullopt);
}

TEST(ProcessorTest, TheHostsIsOfItsVendorAndInstructions) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find("vendor_id") == std::string::npos)
    GTEST_SKIP() << "/proc/cpuinfo names no vendor";
  const bool isAmd = text.find("AuthenticAMD") != std::string::npos;
  const bool hasAvx512 = text.find(" avx512f") != std::string::npos;
  EXPECT_EQ(hostProcessor(), !isAmd      ? Processor::Generic
                             : hasAvx512 ? Processor::Zen4
                                         : Processor::Zen3);
}

} // namespace
} // namespace llamac
