//===- CollectModel.cpp - Gathers the report of a model -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KernelUses.h"
#include "compiler/driver/PlanJson.h"
#include "compiler/report/Report.h"
#include "ir/llama/OpNames.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/DenseMap.h"

#include <map>

using namespace mlir;

namespace llamac {

/// The weights that `op` reads; what it makes when it reads none.
static std::string shapeText(Operation &op) {
  std::vector<std::string> matrices;
  for (Type type : op.getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && tensor.hasStaticShape() && tensor.getRank() == 2)
      matrices.push_back(typeText(type));
  const bool hasNorm = op.hasAttr("eps");
  if (matrices.empty())
    return typeText(op.getResult(0).getType());
  return absl::StrJoin(matrices, " + ") + (hasNorm ? ", with norm" : "");
}

static Json collectKernels(ModuleOp module) {
  Json kernels = kernelsJson(module);
  for (auto [kernel, op] :
       llvm::zip(kernels, module.getOps<plan::KernelOp>())) {
    kernel["shape"] = shapeText(op.getPrototype());
  }
  return kernels;
}

static Json useJson(const KernelUse &use) {
  Json json = {{"rows", use.rows},
               {"launches", use.launches.size()},
               {"tiles", use.tiles},
               {"slow_paths", use.slowPaths}};
  if (use.peaks) {
    json["peaks"] = {{"bandwidth", use.peaks->bandwidth},
                     {"operations", use.peaks->operations}};
    json["least"] = use.leastSeconds();
    json["bound"] = use.isBoundByMemory() ? "memory" : "arithmetic";
  }
  if (use.seconds > 0)
    json["expected"] = use.seconds;
  return json;
}

/// A program of `manifest` with its launches and their uses, costs in a step as
/// `step`.
static Json collectProgram(plan::ProgramOp op, const Compilation &compilation,
                           const schema::PlanT &manifest,
                           const kernel::CostStep &step) {
  std::map<std::string, size_t> kernels; // Kernels by name, in the module's
                                         // order.
  for (auto kernel : op->getParentOfType<ModuleOp>().getOps<plan::KernelOp>())
    kernels.emplace(kernel.getSymName().str(), kernels.size());
  Json launches = Json::array(), uses = Json::array();
  llvm::DenseMap<Operation *, size_t> useOf; // Uses by launch.
  for (const KernelUse &use :
       kernelUses(op, compilation.target(), step, compilation.passReports())) {
    for (plan::LaunchOp launch : use.launches)
      useOf[launch] = uses.size();
    plan::KernelOp kernel = use.kernel;
    const size_t number = kernels.at(kernel.getSymName().str());
    Json &json = uses.emplace_back(useJson(use));
    json["kernel"] = number;
    json["cost"] =
        launchCost(*manifest.kernels[number], use.rows, step.context);
    json["int8_products"] = manifest.kernels[number]->int8Products;
  }
  int64_t interval = 0;
  for (auto launch : op.getBody().front().getOps<plan::LaunchOp>()) {
    interval += launch.getBarrier();
    launches.push_back({{"use", useOf.lookup(launch)},
                        {"interval", interval},
                        {"label", labelOf(launch.getLoc()).str()},
                        {"offsets", Json::array()}});
  }
  return {{"name", op.getSymName().str()},
          {"max_rows", op.getMaxRows()},
          {"max_logits_rows", op.getMaxLogitsRows()},
          {"arena_bytes", op.getArenaBytes().value_or(0)},
          {"arena", arenaJson(op)},
          {"launches", std::move(launches)},
          {"uses", std::move(uses)}};
}

/// Tensors and bytes of each element type.
static Json collectWeights(ModuleOp module, const kernel::Target &target) {
  std::map<std::string, RankedTensorType> weights;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto weight : program.getBody().front().getOps<plan::WeightOp>())
      weights[weight.getName().str()] =
          cast<RankedTensorType>(weight.getType());
  std::map<std::string, std::pair<int64_t, int64_t>> formats;
  for (const auto &[name, type] : weights) {
    const Type element = type.getElementType();
    const Type read =
        type.getRank() == 2 ? target.weightElement(element) : element;
    auto &[tensors, bytes] = formats[llama::elementTypeName(read).str()];
    ++tensors;
    bytes += target.weightBytes(type);
  }
  return weightsJson(formats);
}

/// The graph of a layer that is neither the first nor, if there are three, the
/// last, which computes fewer rows; of the program for the fewest rows where
/// there are several.
static Json innerLayer(ModuleOp module, const ModelConfig &config) {
  func::FuncOp step = *module.getOps<func::FuncOp>().begin();
  return layerGraph(step, std::min<int64_t>(1, config.numLayers - 1));
}

absl::StatusOr<Json> collectModel(const Checkpoint &checkpoint,
                                  const CompileOptions &compile,
                                  const ReportOptions &options) {
  PassRecorder recorder;
  CompileOptions recorded = compile;
  recorded.reports.observer = &recorder;
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, recorded));
  const int64_t context = compilation->options().context;
  LLAMAC_ASSIGN_OR_RETURN(const int64_t tokens,
                          countedContext(options.costContext, context));
  const kernel::CostStep step = compilation->costStep(tokens);
  Json report = emptyReport("model", checkpoint.name,
                            compilation->options().target, options);
  report["facts"] = configFacts(checkpoint.config);
  report["facts"].insert(
      report["facts"].begin(),
      Json::array(
          {"Format", std::string(checkpointFormatName(checkpoint.format))}));
  report["facts"].push_back(optionsFact(compilation->options().describe()));
  report["facts"].push_back({"Compiler", "llamac " LLAMAC_VERSION});
  report["basis"]["context"] = step.context;

  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Import));
  report["imported"] = innerLayer(compilation->module(), checkpoint.config);
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Fuse));
  report["fused"] = innerLayer(compilation->module(), checkpoint.config);
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Emit));
  report["passes"] = recorder.take();
  report["passes"]["skipped"] = compilation->options().skipPasses;

  ModuleOp module = compilation->module();
  report["kernels"] = collectKernels(module);
  LLAMAC_ASSIGN_OR_RETURN(const schema::PlanT manifest,
                          compilation->manifest());
  for (auto program : module.getOps<plan::ProgramOp>())
    report["programs"].push_back(
        collectProgram(program, *compilation, manifest, step));
  report["weights"] = collectWeights(module, compilation->target());
  report["kv"] = {{"bytes", kvPoolBytes(compilation->kvLayout())},
                  {"context", context},
                  {"sequences", compilation->options().maxSequences}};
  report["source"] = sourceJson(compilation->text());
  return report;
}

} // namespace llamac
