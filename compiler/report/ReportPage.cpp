//===- ReportPage.cpp - A report as JSON and as one HTML file -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/ReportPage.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace llamac {

using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// "  --+" as [" -+", [2, 2, 1]].
static Json runsJson(const std::string &signs) {
  std::string kinds;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < signs.size(); ++i) {
    if (i == 0 || signs[i] != signs[i - 1]) {
      kinds += signs[i];
      lengths.push_back(0);
    }
    ++lengths.back();
  }
  return Json::array({kinds, lengths});
}

static Json passesJson(const PassHistory &history) {
  Json json = {{"lines", history.lines},
               {"versions", Json::array()},
               {"steps", Json::array()}};
  for (const IrVersion &version : history.versions)
    json["versions"].push_back(version.lines);
  for (const PassStep &step : history.steps)
    json["steps"].push_back({{"phase", step.phase},
                             {"name", step.name},
                             {"seconds", step.seconds},
                             {"ops_before", step.opsBefore},
                             {"ops_after", step.opsAfter},
                             {"removed", step.linesRemoved},
                             {"added", step.linesAdded},
                             {"before", step.before},
                             {"after", step.after},
                             {"runs", runsJson(step.signs)}});
  return json;
}

static const char *kindName(GraphNode::Kind kind) {
  switch (kind) {
  case GraphNode::Kind::Input:
    return "input";
  case GraphNode::Kind::Op:
    return "op";
  case GraphNode::Kind::Output:
    return "output";
  }
  return "";
}

static Json graphJson(const LayerGraph &graph) {
  Json json = {{"layer", graph.layer},
               {"nodes", Json::array()},
               {"edges", Json::array()}};
  for (const GraphNode &node : graph.nodes)
    json["nodes"].push_back({{"kind", kindName(node.kind)},
                             {"op", node.op},
                             {"label", node.label},
                             {"type", node.type},
                             {"weights", node.weights},
                             {"text", node.text}});
  for (const GraphEdge &edge : graph.edges)
    json["edges"].push_back(
        {{"from", edge.from}, {"to", edge.to}, {"type", edge.type}});
  return json;
}

static Json useJson(const KernelUse &use) {
  Json json = {{"kernel", use.kernel},
               {"rows", use.rows},
               {"launches", use.launches},
               {"weight_bytes", use.weightBytes}};
  if (use.cost)
    json["cost"] = {{"weights", use.cost->weightBytes},
                    {"inputs", use.cost->inputBytes},
                    {"outputs", use.cost->outputBytes},
                    {"kv_read", use.cost->kvReadBytes},
                    {"kv_written", use.cost->kvWrittenBytes},
                    {"flops", use.cost->flops}};
  return json;
}

static Json programJson(const ProgramFacts &program) {
  Json json = {{"name", program.name},
               {"max_rows", program.maxRows},
               {"max_wanted", program.maxWanted},
               {"arena_bytes", program.arenaBytes},
               {"arena", program.arena},
               {"launches", Json::array()},
               {"uses", Json::array()}};
  for (const LaunchFacts &launch : program.launches)
    json["launches"].push_back({{"kernel", launch.kernel},
                                {"phase", launch.phase},
                                {"label", launch.label},
                                {"offsets", launch.arenaOffsets}});
  for (const KernelUse &use : program.uses)
    json["uses"].push_back(useJson(use));
  return json;
}

static Json numberOrNull(const std::optional<double> &value) {
  return value ? Json(*value) : Json();
}

Json reportJson(const Report &report) {
  Json json = {{"kind", report.kind},
               {"name", report.name},
               {"facts", report.facts},
               {"passes", Json()},
               {"imported", Json()},
               {"fused", Json()},
               {"kernels", Json::array()},
               {"programs", Json::array()},
               {"basis",
                {{"context", report.basis.context},
                 {"wanted", report.basis.wanted},
                 {"kv_token_bytes", report.basis.kvTokenBytes}}},
               {"peaks",
                {{"gigabytes", numberOrNull(report.peaks.gigabytes)},
                 {"gigaflops", numberOrNull(report.peaks.gigaflops)}}},
               {"weights", Json::array()},
               {"source", report.source}};
  if (report.passes)
    json["passes"] = passesJson(*report.passes);
  if (report.imported)
    json["imported"] = graphJson(*report.imported);
  if (report.fused)
    json["fused"] = graphJson(*report.fused);
  for (const KernelFacts &kernel : report.kernels)
    json["kernels"].push_back({{"name", kernel.name},
                               {"family", kernel.family},
                               {"config", kernel.config},
                               {"shape", kernel.shape},
                               {"serves", kernel.serves}});
  for (const ProgramFacts &program : report.programs)
    json["programs"].push_back(programJson(program));
  for (const WeightFormat &format : report.weights)
    json["weights"].push_back({{"type", format.type},
                               {"tensors", format.tensors},
                               {"bytes", format.bytes}});
  return json;
}

std::string scriptJson(const Json &json) {
  // The characters can only stand in strings, where an escape means the same.
  return absl::StrReplaceAll(
      json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

//===----------------------------------------------------------------------===//
// The page
//===----------------------------------------------------------------------===//

namespace {

struct PageFile {
  absl::string_view name, text;
};

} // namespace

/// A file of the folder page/, which is part of this program.
static absl::string_view pageFile(absl::string_view name) {
  static constexpr PageFile files[] = {
#include "ReportPage.inc"
  };
  for (const PageFile &file : files)
    if (file.name == name)
      return file.text;
  return {};
}

std::string reportPage(const Report &report) {
  std::string script = "\"use strict\";\n";
  for (absl::string_view part : {"dom.js", "passes.js", "graph.js",
                                 "kernels.js", "memory.js", "report.js"})
    absl::StrAppend(&script, pageFile(part));
  return absl::StrReplaceAll(pageFile("report.html"),
                             {{"{{style}}", pageFile("report.css")},
                              {"{{data}}", scriptJson(reportJson(report))},
                              {"{{script}}", script}});
}

} // namespace llamac
