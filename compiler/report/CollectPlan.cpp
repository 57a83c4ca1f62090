//===- CollectPlan.cpp - Gathers the report of a plan file ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/Report.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanReader.h"

#include "absl/strings/str_cat.h"

#include <filesystem>
#include <map>

namespace llamac {

static int64_t bytesOf(const schema::WeightT &weight) {
  return static_cast<int64_t>(dataTypeBytes(
      fromPlan(weight.type), static_cast<uint64_t>(weight.rows * weight.cols)));
}

/// A plan knows no costs, so that the launches of a kernel are one use.
static Json collectPlanProgram(const schema::PlanT &plan,
                               const schema::ProgramT &program) {
  Json launches = Json::array(), uses = Json::array();
  std::map<uint32_t, size_t> numbers;
  int64_t interval = 0;
  for (const auto &launch : program.launches) {
    interval += launch->barrier;
    const auto [it, isNew] = numbers.try_emplace(launch->kernel, uses.size());
    if (isNew)
      uses.push_back({{"kernel", launch->kernel},
                      {"rows", 0},
                      {"launches", 0},
                      {"weight_bytes", 0}});
    Json &use = uses[it->second];
    use["launches"] = use["launches"].get<int64_t>() + 1;
    Json offsets = Json::array();
    for (const schema::Operand &operand : launch->operands)
      if (operand.kind() == schema::OperandKind::Weight)
        use["weight_bytes"] = use["weight_bytes"].get<int64_t>() +
                              bytesOf(*plan.weights[operand.index()]);
      else if (operand.kind() == schema::OperandKind::Arena)
        offsets.push_back(operand.offset());
    launches.push_back({{"kernel", launch->kernel},
                        {"interval", interval},
                        {"label", launch->label},
                        {"offsets", std::move(offsets)}});
  }
  return {{"name", program.name},
          {"max_rows", program.maxRows},
          {"max_logits_rows", program.maxOutputRows},
          {"arena_bytes", program.arenaBytes},
          {"arena", Json()},
          {"launches", std::move(launches)},
          {"uses", std::move(uses)}};
}

absl::StatusOr<Json> collectPlan(absl::string_view path,
                                 const ReportOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const PlanReader> reader,
                          PlanReader::open(path));
  const schema::PlanT &plan = reader->plan();
  Json report = emptyReport(
      "plan", std::filesystem::path(reader->path()).filename().string(),
      options);
  report["facts"] = configFacts(fromPlan(*plan.config));
  report["facts"].push_back({"Compiled with", plan.options});
  report["facts"].push_back(
      {"Compiler", absl::StrCat("llamac ", plan.producer)});
  report["facts"].push_back({"Model's fingerprint", plan.modelFingerprint});
  for (const auto &kernel : plan.kernels)
    report["kernels"].push_back({{"name", kernel->symbol},
                                 {"family", kernel->family},
                                 {"roles", Json::array()},
                                 {"config", ""},
                                 {"shape", ""}});
  for (const auto &program : plan.programs)
    report["programs"].push_back(collectPlanProgram(plan, *program));
  std::map<std::string, std::pair<int64_t, int64_t>> formats;
  for (const auto &weight : plan.weights) {
    auto &[tensors, bytes] =
        formats[std::string(dataTypeName(fromPlan(weight->type)))];
    ++tensors;
    bytes += bytesOf(*weight);
  }
  report["weights"] = weightsJson(formats);
  if (plan.sourceSection >= 0) {
    const auto bytes = reader->bytes(static_cast<uint32_t>(plan.sourceSection));
    report["source"] = std::string(bytes.begin(), bytes.end());
  }
  return report;
}

} // namespace llamac
