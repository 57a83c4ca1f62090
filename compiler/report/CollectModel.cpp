//===- CollectModel.cpp - Gathers the report of a model -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PlanJson.h"
#include "compiler/report/Report.h"
#include "ir/llama/OpNames.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;

namespace llamac {

/// The parameters of the tile config of `op`, "family = gemv, rowBlock = 1".
static std::string configText(Operation &op) {
  Attribute config = op.getAttr("config");
  if (!config)
    return "";
  std::string text;
  llvm::raw_string_ostream(text) << config;
  StringRef parameters(text);
  parameters = parameters.drop_until([](char c) { return c == '<'; });
  parameters.consume_front("<");
  parameters.consume_back(">");
  return parameters.str();
}

/// The weights that `op` reads; what it makes when it reads none.
static std::string shapeText(Operation &op) {
  std::vector<std::string> matrices;
  bool hasNorm = false;
  for (Type type : op.getOperandTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      continue;
    if (tensor.getRank() == 2)
      matrices.push_back(typeText(type));
    hasNorm |= tensor.getRank() == 1;
  }
  if (matrices.empty())
    return typeText(op.getResult(0).getType());
  return absl::StrJoin(matrices, " + ") + (hasNorm ? ", with norm" : "");
}

static Json collectKernels(ModuleOp module) {
  Json kernels = kernelsJson(module);
  for (auto [kernel, op] :
       llvm::zip(kernels, module.getOps<plan::KernelOp>())) {
    kernel["config"] = configText(op.getPrototype());
    kernel["shape"] = shapeText(op.getPrototype());
  }
  return kernels;
}

static Json costJson(const kernel::Cost &cost) {
  return {{"weights", cost.weightBytes},       {"inputs", cost.inputBytes},
          {"outputs", cost.outputBytes},       {"kv_read", cost.kvReadBytes},
          {"kv_written", cost.kvWrittenBytes}, {"flops", cost.flops}};
}

/// A program with its launches and `uses`: the launches of one kernel that cost
/// the same. `step` is the step whose costs are counted, all its rows.
static Json collectProgram(plan::ProgramOp op, kernel::CostStep step,
                           int64_t logitsRows) {
  const auto maxRows = static_cast<int64_t>(op.getMaxRows());
  const auto maxLogitsRows = static_cast<int64_t>(op.getMaxLogitsRows());
  Json launches = Json::array(), uses = Json::array();
  std::map<std::string, size_t> kernels; // By name, in the module's order.
  for (auto kernel : op->getParentOfType<ModuleOp>().getOps<plan::KernelOp>())
    kernels.emplace(kernel.getSymName().str(), kernels.size());
  std::map<std::pair<size_t, int64_t>, size_t> numbers;
  int64_t interval = 0;
  for (auto launch : op.getBody().front().getOps<plan::LaunchOp>()) {
    interval += launch.getBarrier();
    const size_t kernel = kernels.at(launch.getKernel().str());
    step.rows = std::min(maxRows, step.context);
    if (launch.getRows() == plan::RowSymbol::LogitsRows)
      step.rows = std::min({maxLogitsRows, step.rows, logitsRows});
    launches.push_back({{"kernel", kernel},
                        {"interval", interval},
                        {"label", labelOf(launch.getLoc()).str()},
                        {"offsets", Json::array()}});
    const auto [it, isNew] =
        numbers.try_emplace({kernel, step.rows}, uses.size());
    if (isNew) {
      auto symbol = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(
          launch, launch.getKernelAttr());
      auto anchor = cast<kernel::AnchorOpInterface>(symbol.getPrototype());
      uses.push_back({{"kernel", kernel},
                      {"rows", step.rows},
                      {"launches", 0},
                      {"weight_bytes", 0},
                      {"cost", costJson(anchor.cost(step))}});
    }
    Json &use = uses[it->second];
    use["launches"] = use["launches"].get<int64_t>() + 1;
    for (Value arg : launch.getArgs())
      if (auto weight = arg.getDefiningOp<plan::WeightOp>())
        use["weight_bytes"] = use["weight_bytes"].get<int64_t>() +
                              kernel::weightBytes(weight.getType());
  }
  return {{"name", op.getSymName().str()},
          {"max_rows", maxRows},
          {"max_logits_rows", maxLogitsRows},
          {"arena_bytes", op.getArenaBytes().value_or(0)},
          {"arena", arenaJson(op)},
          {"launches", std::move(launches)},
          {"uses", std::move(uses)}};
}

/// Tensors and bytes of each element type.
static Json collectWeights(ModuleOp module) {
  std::map<std::string, Type> weights;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto weight : program.getBody().front().getOps<plan::WeightOp>())
      weights[weight.getName().str()] = weight.getType();
  std::map<std::string, std::pair<int64_t, int64_t>> formats;
  for (const auto &[name, type] : weights) {
    auto &[tensors, bytes] =
        formats[llama::elementTypeName(cast<ShapedType>(type).getElementType())
                    .str()];
    ++tensors;
    bytes += kernel::weightBytes(type);
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
  constexpr int64_t usualContext = 512, logitsRows = 1;
  const int64_t context = compilation->options().context;
  const kernel::CostStep step{
      .context = options.costContext ? options.costContext
                                     : std::min(usualContext, context),
      .splitContext = context,
      .kvTokenBytes = kvTokenBytes(compilation->kvLayout())};
  if (step.context < 1 || step.context > context)
    return usageError(absl::StrCat("--cost-context: expected 1 to ", context,
                                   ", the context that is compiled for, got ",
                                   step.context));
  Json report = emptyReport("model", checkpoint.name, options);
  report["facts"] = configFacts(checkpoint.config);
  report["facts"].insert(
      report["facts"].begin(),
      Json::array(
          {"Format", std::string(checkpointFormatName(checkpoint.format))}));
  report["facts"].push_back(
      {"Compiled with", compilation->options().describe()});
  report["facts"].push_back({"Compiler", "llamac " LLAMAC_VERSION});
  report["basis"]["context"] = step.context;
  report["basis"]["kv_token_bytes"] = step.kvTokenBytes;

  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Import));
  report["imported"] = innerLayer(compilation->module(), checkpoint.config);
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Fuse));
  report["fused"] = innerLayer(compilation->module(), checkpoint.config);
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Emit));
  report["passes"] = recorder.take();

  ModuleOp module = compilation->module();
  report["kernels"] = collectKernels(module);
  for (auto program : module.getOps<plan::ProgramOp>())
    report["programs"].push_back(collectProgram(program, step, logitsRows));
  report["weights"] = collectWeights(module);
  report["source"] = compilation->text();
  return report;
}

} // namespace llamac
