//===- TilesTest.cpp - Tiles that the cpu target chooses ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuTarget.h"
#include "ir/kernel/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace llamac {
namespace {

using testing::UnorderedElementsAre;

/// Products of weights of one format.
class TilesTest : public testing::Test {
protected:
  TilesTest() {
    context.loadDialect<kernel::KernelDialect, llama::LlamaDialect,
                        mlir::func::FuncDialect>();
  }

  static CpuTarget targetOf(Processor processor) {
    return CpuTarget({.context = 1024, .tuneFor = processor});
  }

  /// A product by `weights` matrices of `format`, each of 64 rows of `depth`.
  mlir::Operation *product(const std::string &format, int weights,
                           int64_t depth) {
    const std::string row = "x" + std::to_string(depth) + "x";
    const std::string weight = "tensor<64" + row + format + ">";
    std::string arguments = "%x: tensor<?" + row + "f32>", inputs = "%x";
    std::string types = "tensor<?" + row + "f32>", elements;
    for (int i = 0; i < weights; ++i) {
      const std::string number = std::to_string(i);
      arguments += ", %w" + number + ": " + weight;
      inputs += ", %w" + number;
      types += ", " + weight;
      elements += (i ? ", %a" : "%a") + number + ": f32";
    }
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + arguments + ") { kernel.matmul " + inputs +
            " epilogue {\n^bb0(" + elements + "):\nkernel.yield %a0\n} : (" +
            types + ") -> tensor<?x64xf32>\nreturn\n}",
        &context);
    auto func = *module->getOps<mlir::func::FuncOp>().begin();
    return &func.getBody().front().front();
  }

  static std::string textOf(mlir::Attribute config) {
    std::string text;
    if (auto tiles = cast<kernel::MatmulConfigAttr>(config).getTiles())
      for (mlir::NamedAttribute tile : tiles)
        text +=
            (text.empty() ? "" : " ") + tile.getName().str() + "=" +
            std::to_string(cast<mlir::IntegerAttr>(tile.getValue()).getInt());
    return text;
  }

  /// The tiles of a step of at most `rows` rows: "ahead=128 panels=1".
  std::string tiles(const std::string &format, int weights, Processor processor,
                    int rows = 1, int64_t depth = 2048) {
    return textOf(targetOf(processor).chooseConfig(
        product(format, weights, depth), rows));
  }

  /// The others that a step of one row may have.
  std::vector<std::string> others(const std::string &format, int weights,
                                  Processor processor) {
    const CpuTarget target = targetOf(processor);
    mlir::Operation *op = product(format, weights, 2048);
    op->setAttr("config", target.chooseConfig(op, 1));
    std::vector<std::string> texts;
    for (mlir::Attribute config : target.otherConfigs(op))
      texts.push_back(textOf(config));
    return texts;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(TilesTest, Zen4ReadsOneStream) {
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 1, Processor::Zen4),
            "ahead=128 panels=1");
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 2, Processor::Zen4),
            "ahead=128 panels=1");
  EXPECT_EQ(tiles("bf16", 1, Processor::Zen4), "ahead=128 panels=1");
  EXPECT_EQ(tiles("!llama.quant<q4_k>", 2, Processor::Zen4),
            "ahead=128 panels=1");
}

TEST_F(TilesTest, OnZen4BlocksInTwoPlacesKeepAllPanels) {
  EXPECT_EQ(tiles("!llama.quant<q5_k>", 1, Processor::Zen4), "ahead=1024");
  EXPECT_EQ(tiles("!llama.quant<q6_k>", 2, Processor::Zen4), "ahead=1024");
}

TEST_F(TilesTest, Zen3ReadsTwoStreams) {
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 1, Processor::Zen3),
            "ahead=2048 panels=2");
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 2, Processor::Zen3),
            "ahead=2048 panels=1");
  EXPECT_EQ(tiles("!llama.quant<q4_k>", 1, Processor::Zen3),
            "ahead=2048 panels=2");
}

TEST_F(TilesTest, OnZen3BlocksInTwoPlacesAreTwoStreams) {
  EXPECT_EQ(tiles("!llama.quant<q5_k>", 1, Processor::Zen3),
            "ahead=2048 panels=1");
  EXPECT_EQ(tiles("!llama.quant<q6_k>", 2, Processor::Zen3),
            "ahead=2048 panels=1");
}

TEST_F(TilesTest, Zen3ReadsShortPanelsOneByOne) {
  // SmolLM2's; 15 KiB and 9.6 KiB.
  EXPECT_EQ(tiles("!llama.quant<q4_1>", 1, Processor::Zen3, 1, 1536),
            "ahead=2048 panels=2");
  EXPECT_EQ(tiles("!llama.quant<q8_0>", 1, Processor::Zen3, 1, 576),
            "ahead=2048 panels=1");
}

TEST_F(TilesTest, Zen3ReadsFloatsInFourStreams) {
  EXPECT_EQ(tiles("bf16", 1, Processor::Zen3), "ahead=128 panels=4");
  EXPECT_EQ(tiles("bf16", 2, Processor::Zen3), "ahead=128 panels=2");
}

TEST_F(TilesTest, ExactProductsAreThoseOfFloats) {
  CpuTarget exact({.context = 1024, .tuneFor = Processor::Zen3, .exact = true});
  mlir::Operation *op = product("!llama.quant<q4_0>", 1, 2048);
  EXPECT_EQ(textOf(exact.chooseConfig(op, 1)), "ahead=128 panels=4");
  EXPECT_LT(exact.tolerance(op, 0),
            targetOf(Processor::Zen3).tolerance(op, 0) / 1000);
}

TEST_F(TilesTest, NoneAreChosenForOtherProcessorsOrMoreRows) {
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 2, Processor::Generic), "");
  EXPECT_EQ(tiles("!llama.quant<q6_k>", 1, Processor::Generic), "");
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 1, Processor::Zen4, 8), "");
  EXPECT_EQ(tiles("!llama.quant<q6_k>", 1, Processor::Zen3, 512), "");
}

TEST_F(TilesTest, OtherTilesNameWhatSetsThemApartFromTheOwn) {
  // Own: ahead=2048 panels=2.
  EXPECT_THAT(others("!llama.quant<q4_0>", 2, Processor::Generic),
              UnorderedElementsAre("panels=1", "ahead=128", "ahead=1024",
                                   "ahead=128 panels=1",
                                   "ahead=1024 panels=1"));
  // Own: ahead=1024 panels=2.
  EXPECT_THAT(others("bf16", 2, Processor::Generic),
              UnorderedElementsAre("panels=1", "ahead=128", "ahead=2048",
                                   "ahead=128 panels=1",
                                   "ahead=2048 panels=1"));
  // Own: ahead=128 panels=1.
  EXPECT_THAT(others("!llama.quant<q4_0>", 2, Processor::Zen4),
              UnorderedElementsAre("ahead=128 panels=2", "ahead=1024 panels=1",
                                   "ahead=1024 panels=2", "ahead=2048 panels=1",
                                   "ahead=2048 panels=2"));
  // Own: ahead=1024 panels=2.
  EXPECT_THAT(others("!llama.quant<q6_k>", 2, Processor::Zen4),
              UnorderedElementsAre("ahead=128", "ahead=2048",
                                   "ahead=128 panels=1", "ahead=1024 panels=1",
                                   "ahead=2048 panels=1"));
}

} // namespace
} // namespace llamac
