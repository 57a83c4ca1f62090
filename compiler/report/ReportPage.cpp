//===- ReportPage.cpp - A report as one HTML file -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/Report.h"
#include "runtime/device/Profile.h"
#include "runtime/plan/SourceBundle.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "llvm/ADT/STLExtras.h"

namespace llamac {

/// The limits of this machine for kernels of `target`, as llamac bench writes
/// them; null for another machine's, and where they cannot be measured.
static Json hostLimits(absl::string_view target, const ReportOptions &options) {
  if (target != "cpu" || options.gigabytes || !options.hostLimits)
    return {};
  const absl::StatusOr<std::optional<DeviceLimits>> limits =
      options.hostLimits();
  return limits.ok() && *limits ? limitsJson(**limits) : Json();
}

Json emptyReport(absl::string_view kind, absl::string_view name,
                 absl::string_view target, const ReportOptions &options) {
  auto numberOrNull = [](const std::optional<double> &value) {
    return value ? Json(*value) : Json();
  };
  return {{"kind", std::string(kind)},
          {"name", std::string(name)},
          {"facts", Json::array()},
          {"passes", Json()},
          {"imported", Json()},
          {"fused", Json()},
          {"kernels", Json::array()},
          {"programs", Json::array()},
          {"kv", {{"bytes", 0}, {"context", 0}, {"sequences", 0}}},
          {"basis", {{"context", 0}, {"logits_rows", 1}}},
          {"peaks",
           {{"gigabytes", numberOrNull(options.gigabytes)},
            {"gigaflops", numberOrNull(options.gigaflops)},
            {"limits", hostLimits(target, options)}}},
          {"weights", Json::array()},
          {"source", Json::array()},
          {"measured", Json::array()},
          {"before", Json()}};
}

Json configFacts(const ModelConfig &config) {
  return Json::array({{"Layers", absl::StrCat(config.numLayers)},
                      {"Hidden size", absl::StrCat(config.dim)},
                      {"Query heads", absl::StrCat(config.numHeads)},
                      {"Key/value heads", absl::StrCat(config.numKvHeads)},
                      {"Head size", absl::StrCat(config.headSize)},
                      {"Feed-forward size", absl::StrCat(config.ffnDim)},
                      {"Vocabulary size", absl::StrCat(config.vocabSize)}});
}

Json optionsFact(absl::string_view options) {
  std::vector<absl::string_view> given = absl::StrSplit(options, ' ');
  llvm::erase_if(given, [](absl::string_view option) {
    return absl::EndsWith(option, "=");
  });
  return {"Compiled with", absl::StrJoin(given, " ")};
}

Json weightsJson(
    const std::map<std::string, std::pair<int64_t, int64_t>> &formats) {
  Json json = Json::array();
  for (const auto &[type, size] : formats)
    json.push_back(
        {{"type", type}, {"tensors", size.first}, {"bytes", size.second}});
  return json;
}

Json sourceJson(const std::string &text) {
  std::vector<SourceFile> files = unbundleSources(text);
  if (files.empty() && !text.empty())
    files.push_back({"kernels.cpp", text});
  Json json = Json::array();
  for (const SourceFile &file : files)
    json.push_back({{"name", file.name}, {"text", file.text}});
  return json;
}

std::string scriptJson(const Json &json) {
  // The characters can only stand in strings, where an escape means the same.
  return absl::StrReplaceAll(
      json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

/// A file of the folder page/, which is part of this program.
static absl::string_view pageFile(absl::string_view name) {
  static constexpr std::pair<absl::string_view, absl::string_view> files[] = {
#include "ReportPage.inc"
  };
  for (const auto &[known, text] : files)
    if (known == name)
      return text;
  return {};
}

std::string reportPage(const Json &report) {
  std::string script;
  for (absl::string_view part :
       {"dom.js", "widgets.js", "passes.js", "graph.js", "kernels.js",
        "roofline.js", "memory.js", "comparison.js", "report.js"})
    absl::StrAppend(&script, pageFile(part));
  return absl::StrReplaceAll(pageFile("report.html"),
                             {{"{{style}}", pageFile("report.css")},
                              {"{{data}}", scriptJson(report)},
                              {"{{script}}", script}});
}

} // namespace llamac
