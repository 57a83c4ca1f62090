//===- LlamacRunTest.cpp - The binary as scripts see it -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/engine/toy/ToyModel.h"

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
                   const std::string &mention) const {
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
  expectError("inspect " + plan.path(), 2,
              "inspect: expected a plan or one of chat, bench, ");
  expectError(plan.path(), 2, "-p TEXT or --tokens");
  expectError(run + "-p text", 2, "-p: expected no --tokens beside it");
  expectError(run + "--frobnicate", 2, "--frobnicate");
  expectError(run + "-n few", 2, "few");
  expectError(run + "-n -2", 2, "-2");
  expectError(run + "-n 99999999999", 2, "-1 to 1048576, got 99999999999");
  expectError(run + "-s 18446744073709551616", 2, "got 18446744073709551616");
  expectError(run + "--random-weights 18446744073709551616", 2,
              "got 18446744073709551616");
  expectError(plan.path() + " -p \"$(printf 'ab\\377')\"", 2, "UTF-8");
  expectError(run + "--temp -1", 2, "error: --temp: expected a number");
  expectError(run + "--temp nan", 2, "error: --temp: expected a number");
  expectError(run + "--top-p 1.5", 2, "error: --top-p: expected a number");
  expectError(run + "--top-k -3", 2, "error: --top-k: expected -1 or more");
  expectError(run + "--repeat-penalty 0", 2, "error: --repeat-penalty: ");
  expectError(run + "--logit-bias 5=200", 2, "error: --logit-bias: ");
  expectError(run + "-t 0", 2, "-t: expected 1 to 1024, got 0");
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
  expectError(other + " --tokens 5", 5, "another kind of file");
}

TEST_F(LlamacRunTest, SaysWhatAFileIsAndWhatMakesAPlanOfIt) {
  const std::string model = plan.path() + ".gguf";
  const std::pair<std::string, const char *> kinds[] = {
      {"GGUF", "a GGUF model"},
      {"PK", "a PyTorch checkpoint"},
      {std::string(8, '\1') + "{", "a safetensors file"}};
  for (const auto &[bytes, kind] : kinds) {
    std::ofstream(model) << bytes << std::string(100, ' ');
    expectError(model + " --tokens 5", 5, kind);
    expectError(model + " --tokens 5", 5, "llamac compile " + model + " -o ");
  }
  expectError("/tmp --tokens 5", 5, "llamac compile /tmp -o ");
  std::ofstream(model) << "text" << std::string(100, ' ');
  expectError(model + " --tokens 5", 5,
              "expected a plan or a model, got another kind of file");
}

TEST_F(LlamacRunTest, WrongWordsGetASuggestion) {
  const std::string run = plan.path() + " --tokens 5 ";
  expectError(run + "--promt x", 2, "option --promt; did you mean --prompt?");
  expectError(run + "--temperatur=1", 2, "did you mean --temperature?");
  expectError("bench " + plan.path() + " --prompt-token 5", 2,
              "did you mean --prompt-tokens?; see llamac-run bench --help");
  expectError(run + "first", 2, "--tokens: expected no PROMPT beside it");
  expectError(run + "first second", 2, "unexpected argument second");
  expectError("benhc " + plan.path(), 2,
              "unknown verb benhc; did you mean bench?");
}

TEST_F(LlamacRunTest, OutputThatIsLostEndsWith6) {
  for (const char *to : {" >/dev/full", " >&-"})
    for (const std::string &arguments :
         {plan.path() + " --tokens 5 -n 1 --print-ids",
          plan.path() + " --tokens 5 -n 1 --print-ids --json",
          "bench " + plan.path() + " --prompt-tokens 2 --gen-tokens 2 --json",
          std::string("--help"), std::string("--version")})
      expectError(arguments + to, 6, "cannot");
}

TEST_F(LlamacRunTest, AClosedStdoutIsNoFilesNumber) {
  // The file that is written must not be the one that takes descriptor 1.
  const std::string path = plan.path() + ".npy";
  EXPECT_EQ(
      run("logits " + plan.path() + " --tokens 5 -o " + path + " >&-").code, 0);
  EXPECT_EQ(std::filesystem::file_size(path) % 64, 0u);
}

TEST_F(LlamacRunTest, EscapesNamesThatCommandTheTerminal) {
  expectError("\"$(printf '/nowhere/\\033[2J.plan')\" --tokens 5", 3,
              "/nowhere/\\x1b[2J.plan");
  const toy::ToyPlanFile other(
      [](toy::ToyPlan &toy) { toy.plan.target = "\033[2Jtpu"; });
  expectError(other.path() + " --tokens 5", 7, "got \\x1b[2Jtpu");
}

TEST_F(LlamacRunTest, WritesLogits) {
  const std::string path = plan.path() + ".npy";
  const Outcome outcome =
      run("logits " + plan.path() + " --tokens 5 -o " + path);
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(std::filesystem::file_size(path) % 64, 0u);
}

#ifdef NDEBUG
// A machine that only runs plans needs no more than this binary.
TEST(LlamacRunBinaryTest, IsSmall) {
  EXPECT_LT(std::filesystem::file_size(LLAMAC_RUN), 10'000'000u);
}
#endif

} // namespace
} // namespace llamac
