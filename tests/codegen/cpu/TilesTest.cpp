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

  /// The target for a processor that follows `streams`.
  static CpuTarget targetOf(int streams) {
    return CpuTarget({.context = 1024, .readStreams = streams});
  }

  /// A product by `weights` matrices of `format`.
  mlir::Operation *product(const std::string &format, int weights) {
    const std::string weight = "tensor<64x256x" + format + ">";
    std::string arguments = "%x: tensor<?x256xf32>", inputs = "%x";
    std::string types = "tensor<?x256xf32>", elements;
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
  std::string tiles(const std::string &format, int weights, int streams,
                    int rows = 1) {
    return textOf(
        targetOf(streams).chooseConfig(product(format, weights), rows));
  }

  /// The others that a step of one row may have.
  std::vector<std::string> others(const std::string &format, int weights,
                                  int streams) {
    const CpuTarget target = targetOf(streams);
    mlir::Operation *op = product(format, weights);
    op->setAttr("config", target.chooseConfig(op, 1));
    std::vector<std::string> texts;
    for (mlir::Attribute config : target.otherConfigs(op))
      texts.push_back(textOf(config));
    return texts;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(TilesTest, OneRowReadsAsManyStreamsAsTheProcessorFollows) {
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 1, 1), "ahead=128 panels=1");
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 2, 1), "ahead=128 panels=1");
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 1, 2), "ahead=128 panels=2");
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 2, 2), "ahead=128 panels=1");
  EXPECT_EQ(tiles("bf16", 1, 1), "ahead=128 panels=1");
}

TEST_F(TilesTest, BlocksInTwoPlacesKeepAllPanels) {
  EXPECT_EQ(tiles("!llama.quant<q5_k>", 1, 1), "ahead=1024");
  EXPECT_EQ(tiles("!llama.quant<q6_k>", 2, 1), "ahead=1024");
  EXPECT_EQ(tiles("!llama.quant<q4_k>", 2, 1), "ahead=128 panels=1");
}

TEST_F(TilesTest, NoneAreChosenForFourStreamsOrMoreRows) {
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 2, 4), "");
  EXPECT_EQ(tiles("!llama.quant<q6_k>", 1, 4), "");
  EXPECT_EQ(tiles("!llama.quant<q4_0>", 1, 1, 8), "");
  EXPECT_EQ(tiles("!llama.quant<q6_k>", 1, 1, 512), "");
}

TEST_F(TilesTest, OtherTilesNameWhatSetsThemApartFromTheOwn) {
  EXPECT_THAT(others("!llama.quant<q4_0>", 2, 4), // Own: ahead=2048 panels=2.
              UnorderedElementsAre("panels=1", "ahead=128", "ahead=1024",
                                   "ahead=128 panels=1",
                                   "ahead=1024 panels=1"));
  EXPECT_THAT(others("bf16", 2, 4), // Own: ahead=1024 panels=2.
              UnorderedElementsAre("panels=1", "ahead=128", "ahead=2048",
                                   "ahead=128 panels=1",
                                   "ahead=2048 panels=1"));
  EXPECT_THAT(others("!llama.quant<q4_0>", 2, 1), // Own: ahead=128 panels=1.
              UnorderedElementsAre("ahead=128 panels=2", "ahead=1024 panels=1",
                                   "ahead=1024 panels=2", "ahead=2048 panels=1",
                                   "ahead=2048 panels=2"));
  EXPECT_THAT(others("!llama.quant<q6_k>", 2, 1), // Own: ahead=1024 panels=2.
              UnorderedElementsAre("ahead=128", "ahead=2048",
                                   "ahead=128 panels=1", "ahead=1024 panels=1",
                                   "ahead=2048 panels=1"));
}

} // namespace
} // namespace llamac
