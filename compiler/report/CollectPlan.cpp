//===- CollectPlan.cpp - Gathers the report of a plan file ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/Collect.h"
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

static ProgramFacts collectProgram(const schema::PlanT &plan,
                                   const schema::ProgramT &source) {
  ProgramFacts program;
  program.name = source.name;
  program.maxRows = source.maxRows;
  program.maxWanted = source.maxOutputRows;
  program.arenaBytes = static_cast<int64_t>(source.arenaBytes);
  std::map<uint32_t, size_t> uses;
  int64_t phase = 0;
  for (const auto &launch : source.launches) {
    phase += launch->barrier;
    LaunchFacts facts{launch->kernel, phase, launch->label, {}};
    const auto [it, isNew] =
        uses.try_emplace(launch->kernel, program.uses.size());
    if (isNew) {
      program.uses.emplace_back();
      program.uses.back().kernel = launch->kernel;
    }
    KernelUse &use = program.uses[it->second];
    ++use.launches;
    for (const schema::Operand &operand : launch->operands) {
      if (operand.kind() == schema::OperandKind::Weight)
        use.weightBytes += bytesOf(*plan.weights[operand.index()]);
      else if (operand.kind() == schema::OperandKind::Arena)
        facts.arenaOffsets.push_back(operand.offset());
    }
    program.launches.push_back(std::move(facts));
  }
  return program;
}

static std::vector<WeightFormat> collectWeights(const schema::PlanT &plan) {
  std::map<std::string, WeightFormat> formats;
  for (const auto &weight : plan.weights) {
    const std::string type(dataTypeName(fromPlan(weight->type)));
    WeightFormat &format = formats[type];
    format.type = type;
    ++format.tensors;
    format.bytes += bytesOf(*weight);
  }
  std::vector<WeightFormat> rows;
  rows.reserve(formats.size());
  for (auto &[type, format] : formats)
    rows.push_back(std::move(format));
  return rows;
}

absl::StatusOr<Report> collectPlan(absl::string_view path,
                                   const ReportOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const PlanReader> reader,
                          PlanReader::open(path));
  const schema::PlanT &plan = reader->plan();
  Report report;
  report.kind = "plan";
  report.name = std::filesystem::path(reader->path()).filename().string();
  report.peaks = options.peaks;
  report.facts = configFacts(fromPlan(*plan.config));
  report.facts.emplace_back("Compiled with", plan.options);
  report.facts.emplace_back("Compiler", absl::StrCat("llamac ", plan.producer));
  report.facts.emplace_back("Model's fingerprint", plan.modelFingerprint);
  for (const auto &kernel : plan.kernels)
    report.kernels.push_back({kernel->symbol, kernel->family, {}, {}, {}});
  for (const auto &program : plan.programs)
    report.programs.push_back(collectProgram(plan, *program));
  report.weights = collectWeights(plan);
  if (plan.sourceSection >= 0) {
    const auto bytes = reader->bytes(static_cast<uint32_t>(plan.sourceSection));
    report.source.assign(bytes.begin(), bytes.end());
  }
  return report;
}

} // namespace llamac
