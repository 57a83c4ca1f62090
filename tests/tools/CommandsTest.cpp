//===- CommandsTest.cpp - run, bench, logits and perplexity ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"
#include "tools/BenchCommand.h"
#include "tools/LogitsCommand.h"
#include "tools/PerplexityCommand.h"
#include "tools/RunCommand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using toy::cleanTokens;
using toy::greedyAfter;

static std::string join(const std::vector<int> &ids, const char *separator) {
  std::string out;
  for (int id : ids)
    out += (out.empty() ? "" : separator) + std::to_string(id);
  return out;
}

/// The field of a request's option, which is then given.
static OptionField givenField(AnswerOptions &options, const char *name) {
  for (const NamedOption<Request> &option : requestOptions())
    if (absl::string_view(option.name) == name)
      return options.set(option);
  ADD_FAILURE() << name;
  return {};
}

static std::string contents(std::FILE *file) {
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

class CommandsTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Model::load(file.path(), {.threads = 2});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model = *std::move(loaded);
    out = std::tmpfile();
    log = std::tmpfile();
  }

  toy::ToyPlanFile file;
  std::shared_ptr<const Model> model;
  std::FILE *out = nullptr;
  std::FILE *log = nullptr;
};

TEST(ParseTokenIdsTest, TakesIdsOnly) {
  EXPECT_THAT(*parseTokenIds("1,2,30"), ElementsAre(1, 2, 30));
  EXPECT_THAT(*parseTokenIds(" 7 8\n"), ElementsAre(7, 8));
  for (const char *bad :
       {"", " ", "a", "1,two", "-1", "1.5", "1;2", "99999999999", "0x10"})
    EXPECT_EQ(exitCode(parseTokenIds(bad).status()), ExitCode::Usage) << bad;
}

TEST_F(CommandsTest, RunPrintsTheTextAlone) {
  const std::vector<int> prompt = cleanTokens(5, 12, 6);
  RunOptions options;
  options.tokens = join(prompt, ",");
  *std::get<int64_t *>(givenField(options, "max_tokens")) = 6;
  ASSERT_TRUE(runCommand(model, options, out, log).ok());
  std::string expected;
  for (int id : greedyAfter(prompt, 6))
    expected += toy::tokenText(id);
  EXPECT_EQ(contents(out), expected + "\n");
  EXPECT_THAT(contents(log), HasSubstr("prompt 5 tokens"));
}

TEST_F(CommandsTest, RunPrintsIds) {
  const std::vector<int> prompt = cleanTokens(5, 12, 6);
  RunOptions options;
  options.tokens = join(prompt, " ");
  *std::get<int64_t *>(givenField(options, "max_tokens")) = 6;
  options.printIds = true;
  options.quiet = true;
  ASSERT_TRUE(runCommand(model, options, out, log).ok());
  EXPECT_EQ(contents(out), join(greedyAfter(prompt, 6), " ") + "\n");
  EXPECT_EQ(contents(log), "");
}

TEST_F(CommandsTest, RunPrintsOneJsonObjectWithTheAnswer) {
  const std::vector<int> prompt = cleanTokens(5, 12, 6);
  RunOptions options;
  options.tokens = join(prompt, ",");
  *std::get<int64_t *>(givenField(options, "max_tokens")) = 6;
  options.json = true;
  std::string expected;
  for (int id : greedyAfter(prompt, 6))
    expected += toy::tokenText(id);
  for (const bool ids : {false, true}) {
    options.printIds = ids;
    out = std::tmpfile();
    ASSERT_TRUE(runCommand(model, options, out, log).ok());
    const auto report = nlohmann::json::parse(contents(out));
    if (ids)
      EXPECT_EQ(report.at("ids"), greedyAfter(prompt, 6));
    else
      EXPECT_EQ(report.at("text"), expected);
    EXPECT_EQ(report.contains("text"), !ids);
    EXPECT_EQ(report.at("prompt_tokens"), 5);
    EXPECT_EQ(report.at("generated_tokens"), 6);
    EXPECT_EQ(report.at("stop"), "length");
    EXPECT_GT(report.at("first_token_s"), 0);
    EXPECT_GT(report.at("decode_tok_s"), 0);
  }
  EXPECT_EQ(contents(log), "");
}

TEST_F(CommandsTest, RunNamesTheSeedItMade) {
  RunOptions options;
  options.tokens = join(cleanTokens(5, 12, 1), ",");
  *std::get<int64_t *>(givenField(options, "max_tokens")) = 1;
  *std::get<double *>(givenField(options, "temperature")) = 1;
  ASSERT_TRUE(runCommand(model, options, out, log).ok());
  EXPECT_THAT(contents(log), HasSubstr("seed "));
  std::fclose(out);
}

TEST(PrepareRunTest, TakesOnePromptOfUtf8) {
  auto code = [](std::optional<std::string> prompt,
                 std::optional<std::string> tokens) {
    RunOptions options;
    options.prompt = std::move(prompt);
    options.tokens = std::move(tokens);
    return exitCode(prepareRun(options, stdin));
  };
  EXPECT_EQ(code(std::nullopt, std::nullopt), ExitCode::Usage);
  EXPECT_EQ(code("a", "1"), ExitCode::Usage);
  EXPECT_EQ(code("a \u65e5\u672c", std::nullopt), ExitCode::Ok);
  EXPECT_EQ(code("", std::nullopt), ExitCode::Ok);
  for (const char *bytes : {"ab\377", "\300\200", "a\343\201"})
    EXPECT_EQ(code(bytes, std::nullopt), ExitCode::Usage) << bytes;
}

TEST(PrepareRunTest, ReadsAPromptOfADash) {
  for (const char *text : {"", "one", "one\ntwo"}) {
    std::FILE *in = std::tmpfile();
    std::fprintf(in, "%s\n", text);
    std::rewind(in);
    RunOptions options;
    options.prompt = "-";
    EXPECT_TRUE(prepareRun(options, in).ok());
    EXPECT_EQ(options.prompt, text);
    std::fclose(in);
  }
}

TEST_F(CommandsTest, RunSaysWhenItsOutputCannotBeWritten) {
  std::FILE *full = std::fopen("/dev/full", "w");
  RunOptions options;
  options.tokens = join(cleanTokens(5, 12, 6), ",");
  *std::get<int64_t *>(givenField(options, "max_tokens")) = 6;
  EXPECT_EQ(exitCode(runCommand(model, options, full, log)), ExitCode::Memory);
  std::fclose(full);
  std::fclose(out);
  std::fclose(log);
}

TEST_F(CommandsTest, LogitsAreAMatrixOfNumpys) {
  const std::vector<int> tokens = cleanTokens(21, 4);
  const std::string path = file.path() + ".npy";
  for (const int64_t chunk : {0, 1, 5}) {
    ASSERT_TRUE(logitsCommand(model, {join(tokens, ","), path, chunk}).ok());
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream all;
    all << stream.rdbuf();
    const std::string bytes = all.str();
    ASSERT_GE(bytes.size(), 128u);
    EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const size_t header = 10 + static_cast<unsigned char>(bytes[8]);
    EXPECT_EQ(header % 64, 0u);
    EXPECT_EQ(bytes[header - 1], '\n');
    EXPECT_THAT(bytes.substr(10, header - 10),
                HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': "
                          "(21, 96), }"));
    ASSERT_EQ(bytes.size(), header + 21 * 96 * 4);
    for (size_t row = 0; row < 21; ++row) {
      float values[toy::vocab];
      std::memcpy(values, bytes.data() + header + row * sizeof values,
                  sizeof values);
      const int argmax =
          toy::argmaxAfter({tokens.begin(), tokens.begin() + row + 1});
      EXPECT_EQ(values[argmax], 0) << "row " << row;
    }
  }
}

TEST_F(CommandsTest, LogitsThatFailLeaveTheOldFile) {
  const std::string path = file.path() + ".npy";
  std::ofstream(path) << "old";
  for (const char *tokens : {"96", "1,96", "two", ""}) {
    EXPECT_EQ(exitCode(logitsCommand(model, {tokens, path, 1})),
              ExitCode::Usage);
    std::ifstream stream(path);
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    EXPECT_EQ(bytes.str(), "old") << tokens;
  }
}

TEST_F(CommandsTest, LogitsRefuseWhatTheyCannotDo) {
  const std::string path = file.path() + ".npy";
  auto code = [&](const char *tokens, const std::string &output) {
    return exitCode(logitsCommand(model, {tokens, output, 0}));
  };
  EXPECT_EQ(code("1,96", path), ExitCode::Usage);
  EXPECT_EQ(code("", path), ExitCode::Usage);
  EXPECT_EQ(code("5", "/nowhere/x.npy"), ExitCode::Usage);
  EXPECT_EQ(exitCode(logitsCommand(model, {"5", "/dev/full", 0})),
            ExitCode::Memory);
  const std::string tooLong = join(std::vector<int>(31, 5), ",");
  EXPECT_EQ(code(tooLong.c_str(), path), ExitCode::Usage);
}

/// -log p of the token at `place`, by the toy's formula, given those from
/// `first` on, and `bos` before them when it is not negative.
static double surprise(const std::vector<int> &tokens, size_t first,
                       size_t place, int bos) {
  std::vector<int> before(tokens.begin() + first, tokens.begin() + place);
  if (bos >= 0)
    before.insert(before.begin(), bos);
  const unsigned hash = toy::hashOf(before);
  double sum = 0;
  for (int id = 0; id < toy::vocab; ++id)
    sum += std::exp(toy::logitOf(hash, id, 2));
  return std::log(sum) - toy::logitOf(hash, tokens[place], 2);
}

TEST_F(CommandsTest, PerplexityScoresEachTokenOnceInOverlappingWindows) {
  const auto engine = *Engine::create(model);
  const std::vector<int> tokens = cleanTokens(41, 6);
  // Windows of 10 begin at 0, 5, 10, ..; the first scores all it can.
  double sum = 0;
  bool clean = true;
  for (size_t place = 1; place < tokens.size(); ++place) {
    const size_t first = place < 10 ? 0 : (place - 5) / 5 * 5;
    const double value = surprise(tokens, first, place, -1);
    clean &= std::isfinite(value);
    sum += value;
  }
  const auto result = perplexity(*engine, tokens, 10, -1);
  if (!clean) {
    EXPECT_EQ(exitCode(result.status()), ExitCode::Accuracy);
    GTEST_SKIP() << "the toy's text has logits of NaN";
  }
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->scored, 40);
  EXPECT_NEAR(result->perplexity / std::exp(sum / 40), 1, 1e-3);
}

TEST_F(CommandsTest, PerplexityBeginsWindowsWithTheModelsToken) {
  const auto engine = *Engine::create(model);
  const std::vector<int> tokens = cleanTokens(12, 6);
  double sum = 0;
  for (size_t place = 1; place < tokens.size(); ++place)
    sum += surprise(tokens, 0, place, 0);
  ASSERT_TRUE(std::isfinite(sum));
  const auto result = perplexity(*engine, tokens, 20, 0);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->scored, 11);
  EXPECT_NEAR(result->perplexity / std::exp(sum / 11), 1, 1e-3);
}

TEST_F(CommandsTest, PerplexityRefusesWhatItCannotScore) {
  const auto engine = *Engine::create(model);
  const std::vector<int> tokens = cleanTokens(12, 6);
  for (const int64_t window : {0, 1, 31, -4})
    EXPECT_EQ(exitCode(perplexity(*engine, tokens, window, -1).status()),
              ExitCode::Usage);
  EXPECT_EQ(exitCode(perplexity(*engine, {5}, 10, -1).status()),
            ExitCode::Usage);
  EXPECT_EQ(exitCode(perplexityCommand(model, {"/nowhere/x.txt"}, out)),
            ExitCode::BadFile);
}

TEST_F(CommandsTest, BenchPrintsOneObject) {
  toy::ToyPlanFile longer([](toy::ToyPlan &toy) {
    toy.plan.context = 32; // The number of pages is the same.
  });
  model = *Model::load(longer.path(), {.threads = 2});
  const absl::Status status = benchCommand(
      model, {.promptTokens = {2}, .genTokens = 2, .json = true}, out);
  if (exitCode(status) == ExitCode::Accuracy)
    GTEST_SKIP() << status;
  ASSERT_TRUE(status.ok()) << status;
  const auto report = nlohmann::json::parse(contents(out));
  EXPECT_GT(report.at("prefill_tok_s"), 0);
  EXPECT_GT(report.at("decode_tok_s"), 0);
  EXPECT_EQ(report.at("prompt_tokens"), 2);
  EXPECT_EQ(report.at("threads"), 2);
  EXPECT_EQ(report.at("isa"), "portable");
  EXPECT_GT(report.at("peak_rss_bytes"), 1 << 20);
}

TEST_F(CommandsTest, BenchMeasuresEveryLengthWithEveryBatch) {
  const absl::Status status = benchCommand(model,
                                           {.promptTokens = {2, 3},
                                            .genTokens = 2,
                                            .batch = {1, 2},
                                            .warmUps = 1,
                                            .repeat = 2,
                                            .json = true},
                                           out);
  if (exitCode(status) == ExitCode::Accuracy)
    GTEST_SKIP() << status;
  ASSERT_TRUE(status.ok()) << status;
  std::istringstream lines(contents(out));
  std::string line;
  for (const int tokens : {2, 3})
    for (const int batch : {1, 2}) {
      ASSERT_TRUE(std::getline(lines, line));
      const auto report = nlohmann::json::parse(line);
      EXPECT_EQ(report.at("prompt_tokens"), tokens);
      EXPECT_EQ(report.at("batch"), batch);
      EXPECT_EQ(report.at("repeat"), 2);
      // A step gives a token of each sequence.
      EXPECT_NEAR(report.at("decode_tok_s").get<double>() *
                      report.at("step_ms").get<double>(),
                  1e3 * batch, 1e-6);
    }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(CommandsTest, BenchComparesPromptByPromptAndStepByStep) {
  const absl::Status status = benchCommand(model,
                                           {.promptTokens = {2, 3},
                                            .genTokens = 4,
                                            .warmUps = 1,
                                            .repeat = 3,
                                            .compareUntuned = true,
                                            .json = true},
                                           out);
  if (exitCode(status) == ExitCode::Accuracy)
    GTEST_SKIP() << status;
  ASSERT_TRUE(status.ok()) << status;
  std::istringstream lines(contents(out));
  std::string line;
  for (const int tokens : {2, 3}) {
    ASSERT_TRUE(std::getline(lines, line));
    const auto report = nlohmann::json::parse(line);
    EXPECT_EQ(report.at("prompt_tokens"), tokens);
    EXPECT_EQ(report.at("same"), true); // Nothing was tuned for it.
    EXPECT_EQ(report.at("prefill").at("turns"), 3);
    EXPECT_EQ(report.at("decode").at("turns"), 3 * 4);
    for (const char *work : {"prefill", "decode"}) {
      EXPECT_GT(report.at(work).at("tuned_s"), 0);
      EXPECT_GT(report.at(work).at("untuned_s"), 0);
      EXPECT_GT(report.at(work).at("speedup"), 0);
      EXPECT_GE(report.at(work).at("noise"), 0.01);
    }
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(CommandsTest, BenchRefusesWhatThePlanDoesNotHold) {
  const struct {
    BenchOptions options;
    const char *message;
  } cases[] = {
      {{.promptTokens = {20}, .genTokens = 11},
       "at most 30 tokens, the context of the plan, got a prompt of 20 and 11"},
      {{.promptTokens = {4, 0}, .genTokens = 1}, "--prompt-tokens: expected"},
      {{.promptTokens = {1}, .genTokens = 0}, "--gen-tokens: expected"},
      {{.promptTokens = {1}, .genTokens = 1, .repeat = 0},
       "--repeat: expected"},
      {{.promptTokens = {1}, .genTokens = 1, .warmUps = -1},
       "--warm-ups: expected"},
      {{.promptTokens = {1}, .genTokens = 1, .batch = {1, 0}},
       "--batch: expected"},
      {{.promptTokens = {1}, .genTokens = 1, .batch = {1000}},
       "--batch: expected"},
  };
  for (const auto &[options, message] : cases) {
    const absl::Status status = benchCommand(model, options, out);
    EXPECT_EQ(exitCode(status), ExitCode::Usage);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

} // namespace
} // namespace llamac
