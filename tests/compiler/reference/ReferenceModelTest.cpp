//===- ReferenceModelTest.cpp - A whole model, step by step ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The results must not depend on how a sequence is cut into steps, on its
// neighbours or on where weights are kept. The numbers themselves are checked
// against numpy (test_reference.py).
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/ReferenceModel.h"
#include "frontends/GraphBuilder.h"
#include "runtime/base/Status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace llamac::reference {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class ReferenceModelTest : public testing::Test {
protected:
  ReferenceModelTest() {
    config.dim = 48;
    config.numLayers = 3;
    config.numHeads = 6;
    config.numKvHeads = 2;
    config.headSize = 8;
    config.ffnDim = 40;
    config.vocabSize = 97;
    config.maxContext = 256;
    module = buildStepGraph(context, config,
                            [](absl::string_view) { return DataType::F32; });
  }

  /// Rows that depend on the name and the row alone.
  absl::Status readRows(absl::string_view name, int64_t first, int64_t count,
                        float *out) {
    const bool norm = name.find("norm") != absl::string_view::npos;
    const int64_t width =
        name.find("w2") != absl::string_view::npos ? config.ffnDim : config.dim;
    for (int64_t row = first; row < first + count; ++row) {
      std::seed_seq seed(name.begin(), name.end());
      std::mt19937 generator(seed);
      generator.discard(static_cast<uint64_t>(row) * 1000);
      for (int64_t i = 0; i < width; ++i) {
        float x = static_cast<float>(generator() % 2001) / 1000.0f - 1.0f;
        *out++ = norm ? 1.0f + x / 8 : x / 3;
      }
    }
    ++reads;
    return absl::OkStatus();
  }

  std::unique_ptr<ReferenceModel> create(ReferenceOptions options = {}) {
    options.threads = 2;
    auto model = ReferenceModel::create(
        *module,
        [this](const Weight &weight, int64_t first, int64_t count, float *out) {
          return readRows(weight.name, first, count, out);
        },
        options);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    return *std::move(model);
  }

  /// Logits of all rows of one step.
  static std::vector<float> step(ReferenceModel &model,
                                 const std::vector<int32_t> &tokens,
                                 const std::vector<int32_t> &positions,
                                 const std::vector<int32_t> &sequences) {
    std::vector<int32_t> wanted(tokens.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    auto logits = model.step(tokens, positions, sequences, wanted);
    EXPECT_TRUE(logits.ok()) << logits.status().ToString();
    return logits.ok() ? *logits : std::vector<float>();
  }

  mlir::MLIRContext context;
  ModelConfig config;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::atomic<int> reads = 0;
  const std::vector<int32_t> tokens = {5, 17, 96, 0, 42, 42, 8};
  const std::vector<int32_t> positions = {0, 1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> zeros = std::vector<int32_t>(7, 0);
};

TEST_F(ReferenceModelTest, OneTokenAtATimeEqualsAllAtOnceBitForBit) {
  auto model = create();
  std::vector<float> whole = step(*model, tokens, positions, zeros);
  EXPECT_THAT(whole, SizeIs(7 * 97));
  model->reset();
  std::vector<float> pieces;
  for (int32_t n = 0; n < 7; ++n) {
    std::vector<float> row = step(*model, {tokens[n]}, {n}, {0});
    pieces.insert(pieces.end(), row.begin(), row.end());
  }
  EXPECT_EQ(pieces, whole);
}

TEST_F(ReferenceModelTest, SequencesDoNotSeeEachOther) {
  auto model = create();
  std::vector<float> alone = step(*model, tokens, positions, zeros);
  model->reset();
  // Now the sequence is numbered 9, row by row beside another one.
  std::vector<float> beside;
  for (int32_t n = 0; n < 7; ++n) {
    std::vector<float> rows = step(*model, {60 + n, tokens[n]}, {n, n}, {2, 9});
    beside.insert(beside.end(), rows.begin() + 97, rows.end());
  }
  EXPECT_EQ(beside, alone);
}

TEST_F(ReferenceModelTest, ADroppedSequenceStartsAnew) {
  auto model = create();
  std::vector<float> first = step(*model, tokens, positions, zeros);
  step(*model, {1}, {0}, {3});
  model->drop(0);
  EXPECT_EQ(step(*model, tokens, positions, zeros), first);
  // Sequence 3 is still there.
  step(*model, {1}, {1}, {3});
}

TEST_F(ReferenceModelTest, AReplacedPositionCountsAsIfItHadBeenFirst) {
  auto model = create();
  std::vector<float> expected = step(*model, tokens, positions, zeros);
  model->reset();
  step(*model, {5, 17, 1, 2, 3}, {0, 1, 2, 3, 4}, {0, 0, 0, 0, 0});
  std::vector<float> got =
      step(*model, {96, 0, 42, 42, 8}, {2, 3, 4, 5, 6}, {0, 0, 0, 0, 0});
  expected.erase(expected.begin(), expected.begin() + 2 * 97);
  EXPECT_EQ(got, expected);
}

TEST_F(ReferenceModelTest, OnlyWantedRowsHaveLogitsInTheirOrder) {
  auto model = create();
  std::vector<float> all = step(*model, tokens, positions, zeros);
  model->reset();
  auto some = model->step(tokens, positions, zeros, {6, 2});
  ASSERT_TRUE(some.ok());
  std::vector<float> expected(all.begin() + 6 * 97, all.end());
  expected.insert(expected.end(), all.begin() + 2 * 97, all.begin() + 3 * 97);
  EXPECT_EQ(*some, expected);
  model->reset();
  auto none = model->step(tokens, positions, zeros, {});
  ASSERT_TRUE(none.ok()) << none.status().ToString();
  EXPECT_THAT(*none, SizeIs(0));
}

TEST_F(ReferenceModelTest,
       WeightsAreReadOnceWhenTheyFitAndAtEveryUseOtherwise) {
  auto kept = create();
  std::vector<float> expected = step(*kept, tokens, positions, zeros);
  int readsOfFirstStep = reads.exchange(0);
  step(*kept, {1}, {7}, {0});
  // The embedding's rows are looked up, everything else is kept.
  EXPECT_EQ(reads.exchange(0), 1);

  auto streamed = create({.weightLimitBytes = 0});
  EXPECT_EQ(step(*streamed, tokens, positions, zeros), expected);
  EXPECT_GE(reads.exchange(0), readsOfFirstStep / 2);
  step(*streamed, {1}, {7}, {0});
  EXPECT_GT(reads, 20);
}

TEST_F(ReferenceModelTest, TheHookSeesEveryOpInOrder) {
  std::vector<std::string> expected, seen;
  module->lookupSymbol<mlir::func::FuncOp>("step").walk(
      [&](mlir::Operation *op) {
        if (op->getNumResults() > 0)
          expected.push_back(op->getName().getStringRef().str());
      });
  auto model = create();
  size_t logits = 0;
  model->setHook([&](mlir::Operation &op, llvm::ArrayRef<ValuePtr> results) {
    seen.push_back(op.getName().getStringRef().str());
    EXPECT_EQ(results.size(), op.getNumResults());
    if (const auto *tensor = std::get_if<Tensor>(results[0].get()))
      logits = tensor->data.size();
  });
  step(*model, tokens, positions, zeros);
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(logits, 7 * 97);
}

TEST_F(ReferenceModelTest, RowsThatCannotBeAreRefusedAndChangeNothing) {
  auto model = create();
  std::vector<float> expected = step(*model, tokens, positions, zeros);
  model->reset();
  step(*model, {5, 17, 96}, {0, 1, 2}, {0, 0, 0});
  struct {
    std::vector<int32_t> tokens, positions, sequences, wanted;
    const char *message;
  } cases[] = {
      {{}, {}, {}, {}, "expected at least one token in a step, got none"},
      {{1, 2}, {3}, {0, 0}, {0}, "for each of 2 tokens, got 1 and 2"},
      {{97}, {3}, {0}, {0}, "row 0: expected a token in [0, 97), got 97"},
      {{-1}, {3}, {0}, {0}, "row 0: expected a token in [0, 97), got -1"},
      {{1}, {3}, {0}, {1}, "logits row 0: expected a row in [0, 1), got 1"},
      {{1},
       {4},
       {0},
       {0},
       "row 0: expected a position in [0, 3] of sequence 0, got 4"},
      {{1, 1},
       {3, 3},
       {0, 0},
       {0},
       "row 1: position 3 of sequence 0 occurs twice"},
  };
  for (const auto &bad : cases) {
    auto result =
        model->step(bad.tokens, bad.positions, bad.sequences, bad.wanted);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(bad.message));
    EXPECT_EQ(exitCode(result.status()), ExitCode::Usage);
  }
  std::vector<float> rest =
      step(*model, {0, 42, 42, 8}, {3, 4, 5, 6}, {0, 0, 0, 0});
  expected.erase(expected.begin(), expected.begin() + 3 * 97);
  EXPECT_EQ(rest, expected);
}

TEST_F(ReferenceModelTest, AWeightThatCannotBeReadNamesItsOp) {
  auto model =
      ReferenceModel::create(*module,
                             [this](const Weight &weight, int64_t first,
                                    int64_t count, float *out) -> absl::Status {
                               if (weight.name == "layers.1.attention.wo")
                                 return badFileError("model.gguf: truncated");
                               return readRows(weight.name, first, count, out);
                             });
  ASSERT_TRUE(model.ok());
  auto result = (*model)->step({1}, {0}, {0}, {0});
  EXPECT_EQ(exitCode(result.status()), ExitCode::BadFile);
  EXPECT_THAT(
      std::string(result.status().message()),
      HasSubstr(
          "llama.linear at \"layers.1.attention.wo\": model.gguf: truncated"));
}

TEST_F(ReferenceModelTest, AModuleWithoutAStepIsRefused) {
  mlir::OwningOpRef<mlir::ModuleOp> empty =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  auto model = ReferenceModel::create(*empty, {});
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("expects a function @step"));
}

} // namespace
} // namespace llamac::reference
