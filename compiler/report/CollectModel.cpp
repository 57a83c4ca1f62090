//===- CollectModel.cpp - Gathers the report of a model -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PlanJson.h"
#include "compiler/report/Collect.h"
#include "compiler/report/LayerGraphs.h"
#include "compiler/report/PassRecorder.h"
#include "ir/llama/OpNames.h"
#include "ir/plan/Plan.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;

namespace llamac {

std::vector<std::pair<std::string, std::string>>
configFacts(const ModelConfig &config) {
  return {{"Layers", absl::StrCat(config.numLayers)},
          {"Width", absl::StrCat(config.dim)},
          {"Heads", absl::StrCat(config.numHeads, " of ", config.headSize)},
          {"Key/value heads", absl::StrCat(config.numKvHeads)},
          {"Feed-forward", absl::StrCat(config.ffnDim)},
          {"Vocabulary", absl::StrCat(config.vocabSize)}};
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

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

/// The weights that `op` takes, or what it makes when it takes none.
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

static std::vector<KernelFacts> collectKernels(ModuleOp module) {
  std::vector<KernelFacts> kernels;
  for (auto op : module.getOps<plan::KernelOp>()) {
    KernelFacts kernel;
    kernel.name = op.getSymName().str();
    kernel.family = op.getFamily().str();
    kernel.config = configText(op.getPrototype());
    kernel.shape = shapeText(op.getPrototype());
    for (StringRef role : op.getRoles().getAsValueRange<StringAttr>())
      kernel.serves.push_back(role.str());
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

/// Makes the facts of programs, which share the kernels of `module`.
class ProgramCollector {
public:
  ProgramCollector(ModuleOp module, const CostBasis &basis,
                   int64_t splitContext)
      : basis(basis), splitContext(splitContext) {
    for (auto kernel : module.getOps<plan::KernelOp>()) {
      numbers[kernel.getSymName()] = static_cast<uint32_t>(prototypes.size());
      prototypes.push_back(&kernel.getPrototype());
    }
  }

  ProgramFacts collect(plan::ProgramOp op);

private:
  int64_t rowsOf(plan::LaunchOp launch, const ProgramFacts &program) const;
  KernelUse newUse(uint32_t kernel, int64_t rows) const;

  const CostBasis &basis;
  int64_t splitContext;
  llvm::StringMap<uint32_t> numbers;
  std::vector<Operation *> prototypes;
};

} // namespace

/// The rows that `launch` has in the step of the costs.
int64_t ProgramCollector::rowsOf(plan::LaunchOp launch,
                                 const ProgramFacts &program) const {
  const int64_t rows = std::min(program.maxRows, basis.context);
  return launch.getRows() == plan::RowSymbol::LogitsRows
             ? std::min({program.maxWanted, rows, basis.wanted})
             : rows;
}

/// A use with its cost and no launch yet.
KernelUse ProgramCollector::newUse(uint32_t kernel, int64_t rows) const {
  KernelUse use;
  use.kernel = kernel;
  use.rows = rows;
  use.cost = cast<kernel::AnchorOpInterface>(prototypes[kernel])
                 .cost({.rows = rows,
                        .context = basis.context,
                        .splitContext = splitContext,
                        .kvTokenBytes = basis.kvTokenBytes});
  return use;
}

ProgramFacts ProgramCollector::collect(plan::ProgramOp op) {
  ProgramFacts program;
  program.name = op.getSymName().str();
  program.maxRows = op.getMaxRowsAttr().getInt();
  program.maxWanted = op.getMaxLogitsRowsAttr().getInt();
  if (IntegerAttr bytes = op.getArenaBytesAttr())
    program.arenaBytes = bytes.getInt();
  program.arena = arenaJson(op);
  std::map<std::pair<uint32_t, int64_t>, size_t> uses;
  int64_t phase = 0;
  for (auto launch : op.getBody().front().getOps<plan::LaunchOp>()) {
    phase += launch.getBarrier();
    const uint32_t kernel = numbers.lookup(launch.getKernel());
    const int64_t rows = rowsOf(launch, program);
    program.launches.push_back(
        {kernel, phase, labelOf(launch.getLoc()).str(), {}});
    const auto [it, isNew] =
        uses.try_emplace({kernel, rows}, program.uses.size());
    if (isNew)
      program.uses.push_back(newUse(kernel, rows));
    KernelUse &use = program.uses[it->second];
    ++use.launches;
    for (Value arg : launch.getArgs())
      if (auto weight = arg.getDefiningOp<plan::WeightOp>())
        use.weightBytes += kernel::weightBytes(weight.getType());
  }
  return program;
}

static std::vector<WeightFormat> collectWeights(ModuleOp module) {
  std::map<std::string, Type> weights;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto weight : program.getBody().front().getOps<plan::WeightOp>())
      weights[weight.getName().str()] = weight.getType();
  std::map<std::string, WeightFormat> formats;
  for (const auto &[name, type] : weights) {
    const std::string element =
        llama::elementTypeName(cast<ShapedType>(type).getElementType()).str();
    WeightFormat &format = formats[element];
    format.type = element;
    ++format.tensors;
    format.bytes += kernel::weightBytes(type);
  }
  std::vector<WeightFormat> rows;
  rows.reserve(formats.size());
  for (auto &[element, format] : formats)
    rows.push_back(std::move(format));
  return rows;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

static absl::StatusOr<CostBasis> costBasis(const Compilation &compilation,
                                           const ReportOptions &options) {
  constexpr int64_t usualContext = 512;
  const int64_t context = compilation.options().context;
  CostBasis basis;
  basis.context = options.costContext ? options.costContext
                                      : std::min(usualContext, context);
  basis.kvTokenBytes =
      compilation.kvBytesPerToken() / compilation.model().config.numLayers;
  if (basis.context < 1 || basis.context > context)
    return usageError(absl::StrCat("--cost-context: expected 1 to ", context,
                                   ", the context that is compiled for, got ",
                                   basis.context));
  return basis;
}

/// The graph of a layer that is neither the first nor, if there are three, the
/// last, which computes fewer rows; of the program for the fewest rows where
/// there are several.
static LayerGraph innerLayer(ModuleOp module, const ModelConfig &config) {
  func::FuncOp step = *module.getOps<func::FuncOp>().begin();
  return layerGraph(step, std::min<int64_t>(1, config.numLayers - 1));
}

absl::StatusOr<Report> collectModel(const Checkpoint &checkpoint,
                                    const CompileOptions &compile,
                                    const ReportOptions &options) {
  PassRecorder recorder;
  CompileOptions recorded = compile;
  recorded.reports.observer = &recorder;
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, recorded));
  Report report;
  report.kind = "model";
  report.name = checkpoint.name;
  report.peaks = options.peaks;
  report.facts = {
      {"Format", std::string(checkpointFormatName(checkpoint.format))}};
  for (auto &fact : configFacts(checkpoint.config))
    report.facts.push_back(std::move(fact));
  report.facts.emplace_back("Compiled with", compilation->options().describe());
  report.facts.emplace_back("Compiler", "llamac " LLAMAC_VERSION);
  LLAMAC_ASSIGN_OR_RETURN(report.basis, costBasis(*compilation, options));

  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Import));
  report.imported = innerLayer(compilation->module(), checkpoint.config);
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Fuse));
  report.fused = innerLayer(compilation->module(), checkpoint.config);
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Emit));
  report.passes = recorder.take();

  ModuleOp module = compilation->module();
  report.kernels = collectKernels(module);
  ProgramCollector programs(module, report.basis,
                            compilation->options().context);
  for (auto program : module.getOps<plan::ProgramOp>())
    report.programs.push_back(programs.collect(program));
  report.weights = collectWeights(module);
  report.source = compilation->text();
  return report;
}

} // namespace llamac
