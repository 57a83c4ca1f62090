//===- IsaLevelTest.cpp - Levels of the host's instruction set ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/IsaLevel.h"

#include "runtime/base/Status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace llamac {
namespace {

using testing::HasSubstr;

TEST(IsaLevelTest, NamesComeBack) {
  for (IsaLevel level : isaLevels())
    EXPECT_EQ(parseIsaLevel(isaLevelName(level)), level);
  EXPECT_EQ(parseIsaLevel("x86-64-v3 "), std::nullopt);
  EXPECT_EQ(parseIsaLevel(""), std::nullopt);
}

TEST(IsaLevelTest, TheBestOneUpToTheLimitIsChosen) {
  const std::vector<std::string> names = {"portable", "x86-64-v4-bf16", "newer",
                                          "x86-64-v3"};
  EXPECT_EQ(*chooseIsaLevel(names, IsaLevel::X86V4Bf16), 1u);
  EXPECT_EQ(*chooseIsaLevel(names, IsaLevel::X86V4Vnni), 3u);
  EXPECT_EQ(*chooseIsaLevel(names, IsaLevel::X86V3), 3u);
  EXPECT_EQ(*chooseIsaLevel(names, IsaLevel::Portable), 0u);
}

TEST(IsaLevelTest, NothingFittingNamesBothSides) {
  const auto choice =
      chooseIsaLevel({"x86-64-v4-vnni", "x86-64-v4-bf16"}, IsaLevel::X86V3);
  EXPECT_EQ(exitCode(choice.status()), ExitCode::Device);
  const std::string message(choice.status().message());
  EXPECT_THAT(message, HasSubstr("x86-64-v3 or less"));
  EXPECT_THAT(message, HasSubstr("x86-64-v4-vnni, x86-64-v4-bf16"));
}

// The kernel's own list of the processor's features is the oracle.
TEST(IsaLevelTest, TheHostsLevelIsWhatTheKernelLists) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::set<std::string> flags;
  while (flags.empty() && std::getline(file, line)) {
    if (line.rfind("flags", 0) != 0)
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      flags.insert(word);
  }
  if (flags.empty())
    GTEST_SKIP() << "no flags in /proc/cpuinfo";
  auto has = [&](std::initializer_list<const char *> names) {
    for (const char *name : names)
      if (!flags.count(name))
        return false;
    return true;
  };
  IsaLevel expected = IsaLevel::Portable;
  if (has({"avx2", "fma", "f16c", "bmi1", "bmi2"})) {
    expected = IsaLevel::X86V3;
    if (has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl",
             "avx512_vnni"}))
      expected = !has({"avx512_bf16"})            ? IsaLevel::X86V4Vnni
                 : !has({"amx_tile", "amx_int8"}) ? IsaLevel::X86V4Bf16
                                                  : IsaLevel::X86V4Amx;
  }
  EXPECT_EQ(isaLevelName(hostIsaLevel()), isaLevelName(expected));
}

} // namespace
} // namespace llamac
