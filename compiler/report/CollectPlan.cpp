//===- CollectPlan.cpp - Gathers the report of a plan file ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KernelUses.h"
#include "compiler/report/Report.h"
#include "runtime/base/Status.h"
#include "runtime/load/MemoryNeeds.h"
#include "runtime/packing/TilePacking.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanReader.h"

#include "absl/strings/str_cat.h"

#include <filesystem>
#include <map>

namespace llamac {

/// The element type in which kernels read `weight`.
static DataType readType(const schema::WeightT &weight) {
  const DataType type = fromPlan(weight.type);
  return weight.layout == schema::WeightLayout::Tiles ? cuda::deviceType(type)
                                                      : type;
}

static int64_t bytesOf(const schema::WeightT &weight) {
  return static_cast<int64_t>(dataTypeBytes(
      readType(weight), static_cast<uint64_t>(weight.rows * weight.cols)));
}

Json launchCost(const schema::KernelT &kernel, int64_t rows, int64_t context) {
  const auto count = static_cast<double>(rows);
  const auto last = static_cast<double>(context);
  const LaunchTotals totals =
      totalsOf(kernel, count, last, count * last - count * (count - 1) / 2);
  return {{"weights", totals.weightBytes},
          {"rows", totals.rowBytes},
          {"keys", totals.keyBytes},
          {"flops", totals.operations}};
}

static Json collectPlanProgram(const schema::PlanT &plan,
                               const schema::ProgramT &program,
                               int64_t context) {
  Json launches = Json::array(), uses = Json::array();
  std::map<std::pair<uint32_t, int64_t>, size_t> numbers;
  int64_t interval = 0;
  for (const auto &launch : program.launches) {
    interval += launch->barrier;
    const int64_t rows =
        countedRows(program.maxRows, program.maxOutputRows, context,
                    launch->rows == schema::RowSymbol::Outputs);
    const auto [it, isNew] =
        numbers.try_emplace({launch->kernel, rows}, uses.size());
    if (isNew)
      uses.push_back(
          {{"kernel", launch->kernel},
           {"rows", rows},
           {"launches", 0},
           {"cost", launchCost(*plan.kernels[launch->kernel], rows, context)},
           {"int8_products", plan.kernels[launch->kernel]->int8Products},
           {"tiles", ""},
           {"slow_paths", Json::array()}});
    Json &use = uses[it->second];
    use["launches"] = use["launches"].get<int64_t>() + 1;
    Json offsets = Json::array();
    for (const schema::Operand &operand : launch->operands)
      if (operand.kind() == schema::OperandKind::Arena)
        offsets.push_back(operand.offset());
    launches.push_back({{"use", it->second},
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
      plan.target, options);
  report["facts"] = configFacts(fromPlan(*plan.config));
  report["facts"].push_back(optionsFact(plan.options));
  report["facts"].push_back(
      {"Compiler", absl::StrCat("llamac ", plan.producer)});
  report["facts"].push_back({"Model's fingerprint", plan.modelFingerprint});
  for (const auto &kernel : plan.kernels)
    report["kernels"].push_back({{"name", kernel->symbol},
                                 {"family", kernel->family},
                                 {"roles", Json::array()},
                                 {"shape", ""}});
  LLAMAC_ASSIGN_OR_RETURN(const int64_t context,
                          countedContext(options.costContext, plan.context));
  report["basis"]["context"] = context;
  for (const auto &program : plan.programs)
    report["programs"].push_back(collectPlanProgram(plan, *program, context));
  std::map<std::string, std::pair<int64_t, int64_t>> formats;
  for (const auto &weight : plan.weights) {
    auto &[tensors, bytes] =
        formats[std::string(dataTypeName(readType(*weight)))];
    ++tensors;
    bytes += bytesOf(*weight);
  }
  report["weights"] = weightsJson(formats);
  report["kv"] = {{"bytes", memoryNeeds(*reader).kv},
                  {"context", plan.context},
                  {"sequences", plan.kv->maxSequences}};
  if (plan.sourceSection >= 0) {
    const auto bytes = reader->bytes(static_cast<uint32_t>(plan.sourceSection));
    report["source"] = sourceJson({bytes.begin(), bytes.end()});
  }
  return report;
}

} // namespace llamac
