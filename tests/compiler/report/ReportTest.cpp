//===- ReportTest.cpp - A report as data and as a page --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compiler.h"
#include "compiler/report/Collect.h"
#include "compiler/report/LayerGraphs.h"
#include "compiler/report/PassRecorder.h"
#include "compiler/report/ReportPage.h"

#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace llamac {
namespace {

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(ScriptJson, HoldsNothingThatEndsOrOpensAnElement) {
  const std::string hostile = "</script><script>alert(1)</script><!--&amp;";
  const std::string text = scriptJson({{"name", hostile}, {hostile, 1}});
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_THAT(text, Not(HasSubstr(">")));
  EXPECT_THAT(text, Not(HasSubstr("&")));
  const auto parsed = nlohmann::ordered_json::parse(text);
  EXPECT_EQ(parsed["name"], hostile);
  EXPECT_TRUE(parsed.contains(hostile));
}

TEST(ScriptJson, IsAsciiWhateverTheStringsHold) {
  const std::string text =
      scriptJson({"\xe2\x80\xa8 line separator", "\xff\xfe no UTF-8"});
  for (char c : text)
    EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  EXPECT_THAT(text, HasSubstr("\\u2028"));
  EXPECT_THAT(text, HasSubstr("\\ufffd"));
}

TEST(ReportPage, HostileNamesAddNoElement) {
  const std::string hostile = "</script><script>alert(1)</script><!--";
  Report plain;
  plain.kind = "plan";
  const std::string page = reportPage(plain);

  Report report = plain;
  report.name = report.source = hostile;
  report.facts = {{hostile, hostile}};
  report.kernels = {{hostile, hostile, hostile, hostile, {hostile}}};
  report.passes.emplace();
  report.passes->lines = {hostile};
  report.imported.emplace();
  report.imported->nodes.push_back(
      {GraphNode::Kind::Op, hostile, hostile, hostile, {hostile}, hostile});
  const std::string hostilePage = reportPage(report);
  EXPECT_THAT(hostilePage, Not(HasSubstr("alert(1)<")));
  for (const char *part : {"<script", "</script", "<!--"})
    EXPECT_EQ(count(hostilePage, part), count(page, part)) << part;
}

TEST(ReportPage, HoldsItsPartsAndForbidsAllLoading) {
  Report report;
  report.name = "{{script}}{{style}}"; // what the page's own marks look like
  const std::string page = reportPage(report);
  EXPECT_EQ(count(page, "{{"), 2U) << "both in the name";
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("function showPasses("));
  EXPECT_THAT(page, HasSubstr("--page: light-dark("));
}

class PassRecorderTest : public testing::Test {
protected:
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  }

  std::unique_ptr<mlir::MLIRContext> context = createContext();
  PassRecorder recorder;
};

TEST_F(PassRecorderTest, VersionsShareLinesAndDiffsCountThem) {
  auto before = parse("func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
                      "%0 = llama.silu %x : (tensor<4x8xf32>) -> "
                      "tensor<4x8xf32>\n"
                      "%1 = llama.silu %0 : (tensor<4x8xf32>) -> "
                      "tensor<4x8xf32>\n"
                      "return %1 : tensor<4x8xf32>\n}");
  auto after = parse("func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
                     "%0 = llama.silu %x : (tensor<4x8xf32>) -> "
                     "tensor<4x8xf32>\n"
                     "return %0 : tensor<4x8xf32>\n}");
  ASSERT_TRUE(before && after);
  recorder.stepDone("import", "import", *before, 0.5);
  recorder.stepDone("graph", "cse", *before, 0.25);
  recorder.stepDone("graph", "drop-one", *after, 0.125);
  const PassHistory history = recorder.take();

  ASSERT_EQ(history.steps.size(), 3U);
  ASSERT_EQ(history.versions.size(), 2U) << "the second step changed nothing";
  const PassStep &unchanged = history.steps[1];
  EXPECT_EQ(unchanged.before, unchanged.after);
  EXPECT_EQ(unchanged.signs, "");
  const PassStep &step = history.steps[2];
  EXPECT_EQ(step.phase, "graph");
  EXPECT_EQ(step.name, "drop-one");
  EXPECT_EQ(step.seconds, 0.125);
  EXPECT_EQ(step.opsBefore, 2);
  EXPECT_EQ(step.opsAfter, 1);
  EXPECT_NE(step.before, step.after);
  // One line goes, and the return reads another value.
  EXPECT_EQ(step.linesRemoved, 2);
  EXPECT_EQ(step.linesAdded, 1);
  EXPECT_EQ(std::count(step.signs.begin(), step.signs.end(), ' ') +
                step.linesRemoved,
            static_cast<int64_t>(history.versions[step.before].lines.size()));
  EXPECT_EQ(history.versions[0].lines.front(),
            history.versions[1].lines.front());

  Report report;
  report.passes = history;
  const auto json = reportJson(report);
  EXPECT_EQ(json["passes"]["steps"].size(), 3U);
  EXPECT_EQ(json["passes"]["steps"][0]["runs"],
            nlohmann::ordered_json::parse(R"(["", []])"));
  int64_t lines = 0;
  for (int64_t length : json["passes"]["steps"][2]["runs"][1])
    lines += length;
  EXPECT_EQ(lines, static_cast<int64_t>(step.signs.size()));
}

TEST_F(PassRecorderTest, LayerGraphsHoldOpsWeightsAndWhatCrossesTheirBorder) {
  auto module = parse(R"(
    func.func @step(%x: tensor<?x8xf32> loc("tokens")) -> tensor<?x8xf32> {
      %w = llama.weight "layers.1.w" : tensor<8x8xbf16> loc("layers.1.w")
      %0 = llama.silu %x : (tensor<?x8xf32>) -> tensor<?x8xf32> loc("layers.0.silu")
      %1 = llama.linear %0, %w : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32> loc("layers.1.w")
      %2 = llama.add %1, %0 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32> loc("layers.1.residual")
      %3 = llama.silu %2 : (tensor<?x8xf32>) -> tensor<?x8xf32> loc("layers.10.silu")
      return %3 : tensor<?x8xf32>
    })");
  ASSERT_TRUE(module);
  const LayerGraph graph =
      layerGraph(*module->getOps<mlir::func::FuncOp>().begin(), 1);
  std::vector<std::string> labels;
  labels.reserve(graph.nodes.size());
  for (const GraphNode &node : graph.nodes)
    labels.push_back(node.op + " " + node.label);
  EXPECT_THAT(labels, ElementsAre(" layers.0.silu", "llama.linear w",
                                  "llama.add residual", " layers.10.silu"));
  EXPECT_EQ(graph.nodes[0].kind, GraphNode::Kind::Input);
  EXPECT_EQ(graph.nodes[3].kind, GraphNode::Kind::Output);
  EXPECT_THAT(graph.nodes[1].weights, ElementsAre("w 8 x 8 bf16"));
  EXPECT_EQ(graph.nodes[2].type, "rows x 8 f32");
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  edges.reserve(graph.edges.size());
  for (const GraphEdge &edge : graph.edges)
    edges.emplace_back(edge.from, edge.to);
  EXPECT_THAT(edges, ElementsAre(std::pair(0, 1), std::pair(1, 2),
                                 std::pair(0, 2), std::pair(2, 3)));
}

} // namespace
} // namespace llamac
