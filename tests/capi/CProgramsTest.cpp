//===- CProgramsTest.cpp - Programs in C with libllamac.so ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"

#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace llamac {
namespace {

using testing::HasSubstr;

struct ProgramResult {
  int code;
  std::string output; ///< stdout and stderr.
};

/// `command`, in a shell.
ProgramResult run(const std::string &command) {
  ProgramResult result{-1, ""};
  std::FILE *pipe = popen(absl::StrCat(command, " 2>&1").c_str(), "r");
  if (!pipe)
    return result;
  char piece[4096];
  while (const size_t size = std::fread(piece, 1, sizeof(piece), pipe))
    result.output.append(piece, size);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

constexpr int answerTokens = 8;

/// The letter of a prompt, behind the begin-of-sequence token, that is answered
/// by whole characters alone.
int promptToken() {
  const auto isPlain = [](int id) { return id >= 2 && id < 29; };
  for (int token = 2; token < 28; ++token) {
    std::vector<int> all = {0, token};
    const std::vector<int> answer = toy::greedyAfter(all, answerTokens);
    all.insert(all.end(), answer.begin(), answer.end());
    if (!toy::isPoisoned(all) && std::ranges::all_of(answer, [&](int id) {
          return isPlain(id) || id > 32;
        }))
      return token;
  }
  ADD_FAILURE() << "the toy model has no such prompt";
  return 2;
}

/// The text of a greedy answer to that prompt.
std::string answerText(int tokens) {
  std::string text;
  for (const int id : toy::greedyAfter({0, promptToken()}, tokens))
    text += toy::tokenText(id);
  return text;
}

TEST(CProgramsTest, TheHeaderIsC11AndEveryFunctionIsThere) {
  const toy::ToyPlanFile plan;
  const ProgramResult result =
      run(absl::StrCat(CAPI_HEADER_TEST, " ", plan.path()));
  EXPECT_EQ(result.code, 0) << result.output;
}

TEST(CProgramsTest, TheFirstExampleCompletesAPrompt) {
  const toy::ToyPlanFile plan;
  const std::string prompt = toy::tokenText(promptToken());
  const ProgramResult result = run(
      absl::StrCat(EXAMPLE_COMPLETE, " ", plan.path(), " '", prompt, "' 3"));
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output,
            absl::StrCat(answerText(3), "\n3 tokens, ended by length\n"));
}

TEST(CProgramsTest, AnErrorOfTheLibraryIsOneOfTheProgram) {
  const ProgramResult result =
      run(absl::StrCat(EXAMPLE_COMPLETE, " no-such.plan x"));
  EXPECT_EQ(result.code, static_cast<int>(ExitCode::BadFile));
  EXPECT_THAT(result.output, HasSubstr("no-such.plan"));
}

TEST(CProgramsTest, AnEventLoopTakesManyAnswers) {
  const toy::ToyPlanFile plan;
  const std::string prompt = toy::tokenText(promptToken());
  std::string command = absl::StrCat(EXAMPLE_MANY, " ", plan.path());
  for (int i = 0; i < 10; ++i)
    absl::StrAppend(&command, " '", prompt, "'");
  const ProgramResult result = run(command);
  EXPECT_EQ(result.code, 0);
  std::string expected;
  for (int i = 0; i < 10; ++i)
    absl::StrAppend(&expected, prompt, " ->", answerText(answerTokens), "\n");
  EXPECT_EQ(result.output, expected);
}

} // namespace
} // namespace llamac
