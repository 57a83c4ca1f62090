//===- LlamacRunTest.cpp - The binary as scripts see it -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/runtime/engine/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>

namespace llamac {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string out;
  std::string error;
};

class LlamacRunTest : public testing::Test {
protected:
  Outcome run(const std::string &arguments) const {
    const std::string error = plan.path() + ".stderr";
    const std::string command =
        std::string(LLAMAC_RUN) + " " + arguments + " 2>" + error;
    std::FILE *pipe = popen(command.c_str(), "r");
    Outcome outcome;
    for (int byte; (byte = std::fgetc(pipe)) != EOF;)
      outcome.out += static_cast<char>(byte);
    outcome.code = WEXITSTATUS(pclose(pipe));
    std::ifstream file(error);
    std::ostringstream text;
    text << file.rdbuf();
    outcome.error = text.str();
    return outcome;
  }

  /// Checks an exit code and one line on stderr that has `mention`.
  void expectError(const std::string &arguments, int code,
                   const char *mention) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.error;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1);
    EXPECT_THAT(outcome.error, HasSubstr(mention));
  }

  toy::ToyPlanFile plan;
};

TEST_F(LlamacRunTest, GeneratesFromIds) {
  const std::vector<int> prompt = toy::cleanTokens(3, 20, 5);
  std::string ids;
  for (int id : prompt)
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  std::string expected;
  for (int id : toy::greedyAfter(prompt, 5))
    expected += (expected.empty() ? "" : " ") + std::to_string(id);
  const Outcome outcome =
      run(plan.path() + " --tokens " + ids + " -n 5 --temp 0 -t 2 --print-ids");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.out, expected + "\n");
  EXPECT_THAT(outcome.error, HasSubstr("tok/s"));
}

TEST_F(LlamacRunTest, HelpAndVersionEndWell) {
  for (const char *arguments : {"--help", "--version", "bench --help"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out, "");
    EXPECT_EQ(outcome.error, "");
  }
}

TEST_F(LlamacRunTest, WrongUsageEndsWith2) {
  const std::string run = plan.path() + " --tokens 5 ";
  expectError("", 2, "PLAN");
  expectError(plan.path(), 2, "-p TEXT or --tokens");
  expectError(run + "-p text", 2, "--prompt");
  expectError(run + "--frobnicate", 2, "--frobnicate");
  expectError(run + "-n few", 2, "few");
  expectError(run + "-n -2", 2, "-2");
  expectError(run + "--temp -1", 2, "temperature");
  expectError(run + "--temp nan", 2, "temperature");
  expectError(run + "--top-p 1.5", 2, "top-p");
  expectError(run + "--top-k -3", 2, "top-k");
  expectError(run + "-t 0", 2, "threads");
  expectError(run + "--isa z80", 2, "z80");
  expectError(plan.path() + " --tokens 1,two", 2, "two");
  expectError(plan.path() + " --tokens 96", 2, "got 96");
  expectError(plan.path() + " --tokens ''", 2, "--tokens");
  expectError("bench " + plan.path() + " --prompt-tokens 99", 2, "99");
}

TEST_F(LlamacRunTest, FilesThatAreNoPlans) {
  expectError("/nowhere/x.plan --tokens 5", 3, "/nowhere/x.plan");
  const std::string other = plan.path() + ".other";
  std::ofstream(other) << "no plan at all";
  expectError(other + " --tokens 5", 5, "compile it again");
}

TEST_F(LlamacRunTest, TextThatIsNotUtf8IsNoReasonToFail) {
  const Outcome outcome = run(plan.path() + " -p \"$(printf 'ab\\377')\" -n 1");
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 8) << outcome.error;
}

TEST_F(LlamacRunTest, WritesLogits) {
  const std::string path = plan.path() + ".npy";
  const Outcome outcome =
      run("logits " + plan.path() + " --tokens 5 -o " + path);
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(std::filesystem::file_size(path) % 64, 0u);
}

#ifdef NDEBUG
// What a machine that only runs plans needs.
TEST(LlamacRunBinaryTest, IsSmall) {
  EXPECT_LT(std::filesystem::file_size(LLAMAC_RUN), 10'000'000u);
}
#endif

} // namespace
} // namespace llamac
