//===- ReportTest.cpp - A report as data and as a page --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/Report.h"
#include "runtime/base/Status.h"
#include "runtime/plan/SourceBundle.h"

#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
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
  const std::string page = reportPage(emptyReport("plan", "", "cpu", {}));

  Json report = emptyReport("plan", hostile, "cpu", {});
  report["source"] = hostile;
  report["facts"] = Json::array({{hostile, hostile}});
  report["kernels"] = {{{"name", hostile}, {hostile, hostile}}};
  report["passes"] = {{"lines", {hostile}}};
  const std::string hostilePage = reportPage(report);
  EXPECT_THAT(hostilePage, Not(HasSubstr("alert(1)<")));
  for (const char *part : {"<script", "</script", "<!--"})
    EXPECT_EQ(count(hostilePage, part), count(page, part)) << part;
}

TEST(ReportPage, HoldsItsPartsAndForbidsAllLoading) {
  // The name looks like the page's own marks.
  const std::string page =
      reportPage(emptyReport("plan", "{{script}}{{style}}", "cpu", {}));
  EXPECT_EQ(count(page, "{{"), 2U) << "both in the name";
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("function showPasses("));
  EXPECT_THAT(page, HasSubstr("--page: light-dark("));
}

TEST(SourceJson, HasTheFilesThatWereJoined) {
  EXPECT_EQ(sourceJson(""), Json::array());
  EXPECT_EQ(sourceJson("int x;\n"),
            Json::parse(R"([{"name": "kernels.cpp", "text": "int x;\n"}])"));
  EXPECT_EQ(
      sourceJson(joinSources({{"a.cu", "int a;\n"}, {"b.cu", "int b;\n"}})),
      Json::parse(R"([{"name": "a.cu", "text": "int a;\n"},
                            {"name": "b.cu", "text": "int b;\n"}])"));
}

/// The data that is read from a file with `text`.
absl::StatusOr<Json> measured(const std::string &text) {
  const std::string path = testing::TempDir() + "measured.json";
  std::ofstream(path) << text;
  return readMeasured(path);
}

TEST(ReadMeasured, KeepsWhatAReportShowsOfEachLine) {
  const absl::StatusOr<Json> works = measured(
      R"({"work": "a", "more": 1, "kernels": [{"kernel": "k", )"
      R"("launches": 2, "seconds": 0.5, "bytes": 8, )"
      R"("operations": 0, "int8_operations": 0, "more": []}]})"
      "\n\n"
      R"({"work": "b", "limits": {"bandwidth": 1e9, )"
      R"("bandwidth_of": "a read", "f32_operations": 0, "int8_operations": 0}, )"
      R"("kernels": []})"
      "\n");
  ASSERT_TRUE(works.ok()) << works.status();
  EXPECT_EQ(*works, Json::parse(R"([
      {"work": "a", "kernels": [{"kernel": "k", "launches": 2.0,
       "seconds": 0.5, "bytes": 8.0, "operations": 0.0,
       "int8_operations": 0.0}]},
      {"work": "b", "limits": {"bandwidth_of": "a read", "bandwidth": 1e9,
       "f32_operations": 0.0, "int8_operations": 0.0}, "kernels": []}])"));
}

TEST(ReadMeasured, RefusesOtherLinesByTheirPlace) {
  auto kernel = [](const std::string &seconds) {
    return R"({"work": "a", "kernels": [{"kernel": "k", "launches": 1, )"
           R"("seconds": )" +
           seconds +
           R"(, "bytes": 0, "operations": 0, "int8_operations": 0}]})";
  };
  const std::pair<std::string, const char *> lines[] = {
      {"prefill 9 tok/s", ":1: "},
      {"[]", "root: expected"},
      {R"({"prefill_tok_s": 9})", "work: expected text, got nothing"},
      {R"({"work": "a"})", "kernels: expected those that bench --kernels"},
      {R"({"work": "a", "kernels": [1]})", "kernels: expected"},
      {R"({"work": "a", "kernels": [], "limits": {}})", "bandwidth_of: "},
      {kernel("-1"), "seconds: expected a number of at least 0, got -1"},
      {kernel("null"), "seconds: expected a number of at least 0, got nothing"},
      {kernel("1e999"), ":2:"}};
  for (const auto &[line, expected] : lines) {
    const absl::Status status = measured(R"({"work": "a", "kernels": []})"
                                         "\n" +
                                         line)
                                    .status();
    EXPECT_EQ(exitCode(status), ExitCode::BadFile);
    EXPECT_THAT(status.message(), HasSubstr("measured.json:2:"));
    EXPECT_THAT(status.message(), HasSubstr(expected));
  }
  EXPECT_THAT(measured("\n").status().message(),
              HasSubstr("expected lines of llamac bench --kernels --json"));
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
  const Json history = recorder.take();

  ASSERT_EQ(history["steps"].size(), 3U);
  ASSERT_EQ(history["versions"].size(), 2U)
      << "the second step changed nothing";
  const Json &unchanged = history["steps"][1];
  EXPECT_EQ(unchanged["before"], unchanged["after"]);
  EXPECT_EQ(unchanged["runs"], Json::parse(R"(["", []])"));
  const Json &step = history["steps"][2];
  EXPECT_EQ(step["phase"], "graph");
  EXPECT_EQ(step["name"], "drop-one");
  EXPECT_EQ(step["seconds"], 0.125);
  EXPECT_EQ(step["ops_before"], 2);
  EXPECT_EQ(step["ops_after"], 1);
  EXPECT_NE(step["before"], step["after"]);
  // One line goes, and the return reads another value.
  EXPECT_EQ(step["removed"], 2);
  EXPECT_EQ(step["added"], 1);
  const std::string signs = step["runs"][0];
  size_t kept = 0;
  for (size_t i = 0; i < signs.size(); ++i)
    if (signs[i] == ' ')
      kept += step["runs"][1][i].get<size_t>();
  EXPECT_EQ(kept + 2, history["versions"][0].size());
  EXPECT_EQ(history["versions"][0][0], history["versions"][1][0]);
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
  const Json graph =
      layerGraph(*module->getOps<mlir::func::FuncOp>().begin(), 1);
  std::vector<std::string> labels;
  for (const Json &node : graph["nodes"])
    labels.push_back(node["op"].get<std::string>() + " " +
                     node["label"].get<std::string>());
  EXPECT_THAT(labels, ElementsAre(" layers.0.silu", "llama.linear w",
                                  "llama.add residual", " layers.10.silu"));
  EXPECT_EQ(graph["nodes"][0]["kind"], "input");
  EXPECT_EQ(graph["nodes"][3]["kind"], "output");
  EXPECT_EQ(graph["nodes"][1]["weights"], Json::array({"w 8 x 8 bf16"}));
  EXPECT_EQ(graph["nodes"][2]["type"], "rows x 8 f32");
  std::vector<std::pair<int, int>> edges;
  for (const Json &edge : graph["edges"])
    edges.emplace_back(edge["from"], edge["to"]);
  EXPECT_THAT(edges, ElementsAre(std::pair(0, 1), std::pair(1, 2),
                                 std::pair(0, 2), std::pair(2, 3)));
}

} // namespace
} // namespace llamac
