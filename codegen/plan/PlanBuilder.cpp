//===- PlanBuilder.cpp - From the plan dialect to the plan file -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/PlanBuilder.h"

#include "codegen/plan/PlanWriter.h"
#include "codegen/plan/WeightSections.h"
#include "ir/kernel/Target.h"
#include "ir/kernel/TargetNumerics.h"
#include "ir/llama/Llama.h"
#include "ir/llama/OpNames.h"
#include "ir/plan/Plan.h"
#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <optional>

using namespace mlir;

namespace llamac {

namespace {

/// Builds the manifest from the module, without the sections it names.
class ManifestBuilder {
public:
  ManifestBuilder(ModuleOp module, const kernel::Target &target,
                  const PlanContents &contents)
      : module(module), target(target), contents(contents) {}

  absl::StatusOr<schema::PlanT> build();

private:
  void addKernel(plan::KernelOp op);
  absl::StatusOr<schema::ProgramT> programOf(plan::ProgramOp op);
  absl::Status addLaunch(plan::LaunchOp op, schema::ProgramT &program);
  absl::StatusOr<schema::Operand> operandOf(Value memory);
  absl::StatusOr<uint32_t> weightNumber(plan::WeightOp op);

  ModuleOp module;
  const kernel::Target &target;
  const PlanContents &contents;
  schema::PlanT plan;
  llvm::StringMap<uint32_t> kernelNumbers;
  llvm::StringMap<uint32_t> weightNumbers;
  uint64_t halfBytes = 0; ///< Bytes of a half of the exchange area.
};

/// Ranks do not share cache lines.
constexpr uint64_t exchangeAlignment = 64;

} // namespace

static absl::Span<const uint8_t> bytesOf(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

static int64_t maxRowsOf(ModuleOp module) {
  int64_t rows = 0;
  for (auto program : module.getOps<plan::ProgramOp>())
    rows = std::max(rows, program.getMaxRowsAttr().getInt());
  return rows;
}

/// The group of layers that see `window` keys, none for all. A ring as long as
/// the context is none.
static schema::KvGroup kvGroup(const schema::KvLayoutT &kv,
                               std::optional<uint64_t> window,
                               int64_t maxRows) {
  const schema::KvGroup all(0, kv.pagesPerSequence);
  if (!window)
    return all;
  const auto keys = static_cast<int64_t>(*window);
  const int64_t pages = ringPages(keys, maxRows, kv.pageTokens);
  return pages < kv.pagesPerSequence ? schema::KvGroup(keys, pages) : all;
}

static uint32_t numberOf(const schema::KvGroup &group,
                         const schema::KvLayoutT &kv) {
  const auto known =
      std::ranges::find(kv.groups, group.window(), &schema::KvGroup::window);
  return static_cast<uint32_t>(known - kv.groups.begin());
}

void addKvGroups(ModuleOp module, int64_t layers, schema::KvLayoutT &kv) {
  const int64_t maxRows = maxRowsOf(module);
  std::vector<std::optional<uint64_t>> windows(layers);
  module.walk([&](plan::KvOp op) { windows[op.getLayer()] = op.getWindow(); });
  for (const std::optional<uint64_t> window : windows) {
    const schema::KvGroup group = kvGroup(kv, window, maxRows);
    const uint32_t number = numberOf(group, kv);
    if (number == kv.groups.size())
      kv.groups.push_back(group);
    kv.layerGroups.push_back(number);
  }
}

absl::StatusOr<schema::PlanT> ManifestBuilder::build() {
  plan.producer = LLAMAC_VERSION;
  plan.target = contents.target;
  plan.gpu = contents.gpu;
  plan.config = toPlan(contents.config);
  plan.context = contents.context;
  plan.ranks = contents.ranks;
  plan.modelFingerprint = contents.fingerprint;
  plan.options = contents.options;
  plan.generator = contents.generator;
  plan.rowsAreAlike = contents.rowsAreAlike;
  plan.featureLayers = contents.featureLayers;
  plan.kv = std::make_unique<schema::KvLayoutT>(contents.kv);
  if (contents.sampling)
    plan.sampling = std::make_unique<schema::SamplingT>(*contents.sampling);
  for (auto op : module.getOps<plan::KernelOp>())
    addKernel(op);
  module.walk([&](plan::ExchangeOp op) {
    const uint64_t bytes = llvm::alignTo(op.getBytes(), exchangeAlignment);
    halfBytes = std::max<uint64_t>(halfBytes, bytes);
  });
  plan.exchangeBytes = 2 * halfBytes;
  for (auto op : module.getOps<plan::ProgramOp>()) {
    LLAMAC_ASSIGN_OR_RETURN(schema::ProgramT program, programOf(op));
    program.tuning = contents.programTuning.lookup(op.getSymName());
    plan.programs.push_back(
        std::make_unique<schema::ProgramT>(std::move(program)));
  }
  return std::move(plan);
}

// The coefficients of what a launch of `op` costs in a plan for `context`
// tokens with a cache of `kv`. Costs of some steps give the coefficients: bytes
// are linear in the rows and the tokens (those of partial results nearly so:
// they grow by whole splits), operations in the rows and the keys, which a step
// of two rows at the end of two tokens has three of.
static schema::LaunchCost launchCost(Operation *op,
                                     const kernel::Target &target,
                                     const schema::KvLayoutT &kv,
                                     int64_t context) {
  const int64_t longest = std::max<int64_t>(context, 2);
  auto at = [&](int64_t rows, int64_t context) {
    return kernel::costOf(op,
                          {.rows = rows,
                           .context = context,
                           .splitContext = longest,
                           .kvTokenBytes = kvTokenBytes(kv)},
                          target);
  };
  const kernel::Cost one = at(1, 1), longer = at(1, 2), two = at(2, 2);
  const int64_t keyBytes =
      (at(1, longest).bytes() - one.bytes()) / (longest - 1);
  const int64_t rowBytes = two.bytes() - longer.bytes();
  const int64_t keyFlops = longer.flops - one.flops;
  // The rest may lack a token's share of a split.
  const int64_t weightBytes =
      std::max<int64_t>(one.bytes() - keyBytes - rowBytes, 0);
  return schema::LaunchCost(weightBytes, rowBytes, keyBytes,
                            one.flops - keyFlops, keyFlops);
}

schema::GeometryT geometryOf(plan::KernelOp kernel) {
  const plan::GeometryAttr from = kernel.getGeometry();
  schema::GeometryT geometry;
  geometry.items = from.getItems();
  geometry.rowBlock = from.getRowBlock();
  geometry.scratchBytes = from.getScratch();
  geometry.threads = static_cast<int32_t>(from.getThreads());
  geometry.cluster = static_cast<int32_t>(from.getCluster());
  geometry.dependent = from.getDependent();
  geometry.workspaceBytes = from.getWorkspace();
  geometry.counters = from.getCounters();
  geometry.resident = from.getResident();
  for (plan::TensorMapAttr map : kernel.getTensorMaps())
    geometry.maps.emplace_back(map.getOperand(), map.getElementBytes(),
                               map.getColumns(), map.getRows(),
                               map.getBoxColumns(), map.getBoxRows(),
                               map.getSwizzleBytes());
  return geometry;
}

// One list, in the IR and in the file.
static_assert(plan::getMaxEnumValForParamRole() ==
              static_cast<uint64_t>(schema::ParamRole::MAX));

/// Bytes of a row of `result`; 0 where only the target's kernels know its form.
/// LowerToPlan has found room for as many rows as a step may have.
static uint64_t rowBytes(Value result) {
  if (kernel::TargetNumerics::isPrivate(result))
    return 0;
  const auto type = cast<RankedTensorType>(result.getType());
  uint64_t bytes = type.getElementTypeBitWidth() / 8;
  for (const int64_t size : type.getShape().drop_front())
    bytes *= static_cast<uint64_t>(size);
  return bytes;
}

void ManifestBuilder::addKernel(plan::KernelOp op) {
  kernelNumbers[op.getSymName()] = static_cast<uint32_t>(plan.kernels.size());
  schema::KernelT &kernel =
      *plan.kernels.emplace_back(std::make_unique<schema::KernelT>());
  kernel.symbol = op.getSymName().str();
  kernel.family = op.getFamily().str();
  for (int32_t role : op.getParams())
    kernel.params.push_back(static_cast<schema::ParamRole>(role));
  for (const Value result : op.getPrototype().getResults())
    if (!isa<llama::KVType>(result.getType()))
      kernel.resultRowBytes.push_back(rowBytes(result));
  kernel.geometry = std::make_unique<schema::GeometryT>(geometryOf(op));
  kernel.cost = std::make_unique<schema::LaunchCost>(
      launchCost(&op.getPrototype(), target, *plan.kv, contents.context));
  kernel.int8Products = target.hasInt8Products(&op.getPrototype());
  const auto known = contents.tuning.find(op.getSymName());
  if (known == contents.tuning.end())
    return;
  const KernelTuning &tuning = known->second;
  kernel.tuning = tuning.tuning;
  kernel.tolerance = tuning.tolerance;
  kernel.predicted = tuning.predicted;
  for (const schema::VariantT &variant : tuning.variants)
    kernel.variants.push_back(std::make_unique<schema::VariantT>(variant));
}

absl::StatusOr<schema::ProgramT>
ManifestBuilder::programOf(plan::ProgramOp op) {
  schema::ProgramT program;
  program.name = op.getSymName().str();
  program.maxRows = op.getMaxRowsAttr().getInt();
  program.maxOutputRows = op.getMaxLogitsRowsAttr().getInt();
  program.decodeOnly = op.getDecodeOnly();
  program.arenaBytes = op.getArenaBytes().value_or(0);
  for (Operation &inner : op.getBody().front()) {
    if (auto launch = dyn_cast<plan::LaunchOp>(inner)) {
      LLAMAC_RETURN_IF_ERROR(addLaunch(launch, program));
    } else if (auto logits = dyn_cast<plan::LogitsOp>(inner)) {
      LLAMAC_ASSIGN_OR_RETURN(schema::Operand memory,
                              operandOf(logits.getMemory()));
      program.logitsOffset = memory.offset();
    } else if (auto features = dyn_cast<plan::FeaturesOp>(inner)) {
      LLAMAC_ASSIGN_OR_RETURN(schema::Operand memory,
                              operandOf(features.getMemory()));
      program.features.push_back(memory.offset());
    } else if (auto tokens = dyn_cast<plan::TokensOp>(inner)) {
      LLAMAC_ASSIGN_OR_RETURN(schema::Operand memory,
                              operandOf(tokens.getMemory()));
      program.tokensOffset = static_cast<int64_t>(memory.offset());
    } else if (auto counters = dyn_cast<plan::CountersOp>(inner)) {
      plan.counterBytes =
          std::max<uint64_t>(plan.counterBytes, counters.getBytes());
    }
  }
  return program;
}

absl::Status ManifestBuilder::addLaunch(plan::LaunchOp op,
                                        schema::ProgramT &program) {
  auto launch = std::make_unique<schema::LaunchT>();
  launch->kernel = kernelNumbers.lookup(op.getKernel());
  launch->rows = op.getRows() == plan::RowSymbol::Tokens
                     ? schema::RowSymbol::Tokens
                     : schema::RowSymbol::Outputs;
  launch->barrier = op.getBarrier();
  StringRef name = labelOf(op.getLoc());
  launch->label = (name.empty() ? op.getKernel() : name).str();
  for (Value arg : op.getArgs()) {
    LLAMAC_ASSIGN_OR_RETURN(schema::Operand operand, operandOf(arg));
    if (auto peers = arg.getDefiningOp<plan::PeersOp>()) {
      auto area = peers.getExchange().getDefiningOp<plan::ExchangeOp>();
      const int64_t rowBytes = area.getBytes() / maxRowsOf(*launch, program);
      operand = {operand.kind(), static_cast<uint32_t>(rowBytes),
                 operand.offset()};
    }
    launch->operands.push_back(operand);
  }
  program.launches.push_back(std::move(launch));
  return absl::OkStatus();
}

absl::StatusOr<schema::Operand> ManifestBuilder::operandOf(Value memory) {
  using schema::Operand, schema::OperandKind;
  Operation *op = memory.getDefiningOp();
  if (auto input = dyn_cast<plan::InputOp>(op)) {
    uint64_t offset = 0;
    if (input.getRole() == plan::InputRole::PageTable)
      offset = numberOf(kvGroup(*plan.kv, input.getWindow(), maxRowsOf(module)),
                        *plan.kv);
    return Operand(OperandKind::Input, static_cast<uint32_t>(input.getRole()),
                   offset);
  }
  if (auto kv = dyn_cast<plan::KvOp>(op))
    return Operand(OperandKind::Kv, static_cast<uint32_t>(kv.getLayer()), 0);
  if (auto weight = dyn_cast<plan::WeightOp>(op)) {
    LLAMAC_ASSIGN_OR_RETURN(uint32_t number, weightNumber(weight));
    return Operand(OperandKind::Weight, number, 0);
  }
  if (isa<plan::CountersOp>(op))
    return Operand(OperandKind::Counters, 0, 0);
  if (auto exchange = dyn_cast<plan::ExchangeOp>(op))
    return Operand(OperandKind::Exchange, 0, exchange.getHalf() * halfBytes);
  if (auto peers = dyn_cast<plan::PeersOp>(op)) {
    LLAMAC_ASSIGN_OR_RETURN(const Operand own, operandOf(peers.getExchange()));
    return Operand(OperandKind::Peers, 0, own.offset());
  }
  if (auto buffer = dyn_cast<plan::BufferOp>(op))
    if (IntegerAttr offset = buffer.getOffsetAttr())
      return Operand(OperandKind::Arena, 0, offset.getInt());
  return internalError(absl::StrCat("an operand of a launch has no place: ",
                                    op->getName().getStringRef().str()));
}

absl::StatusOr<uint32_t> ManifestBuilder::weightNumber(plan::WeightOp op) {
  auto [it, inserted] =
      weightNumbers.try_emplace(op.getName(), plan.weights.size());
  if (!inserted)
    return it->second;
  auto type = cast<RankedTensorType>(op.getType());
  auto weight = std::make_unique<schema::WeightT>();
  weight->name = op.getName().str();
  weight->type = toPlan(llama::dataTypeOf(type.getElementType()));
  weight->rows = type.getRank() == 1 ? 1 : type.getDimSize(0);
  weight->cols = type.getShape().back();
  if (const llama::ShardAttr shard = op.getShardAttr()) {
    weight->partsDim =
        type.getRank() == 1 ? 1 : static_cast<int32_t>(shard.getDim());
    weight->parts = shard.getParts();
  }
  weight->layout = type.getRank() == 1 ? schema::WeightLayout::RowMajor
                                       : contents.matrixLayout;
  plan.weights.push_back(std::move(weight));
  return it->second;
}

absl::StatusOr<schema::PlanT> planManifest(ModuleOp module,
                                           const PlanContents &contents) {
  const std::unique_ptr<kernel::Target> target = kernel::targetOf(module);
  if (!target)
    return internalError("the module of a plan has no target");
  return ManifestBuilder(module, *target, contents).build();
}

static absl::Status addSourceFiles(const WeightMap &weights,
                                   schema::PlanT &plan) {
  for (const std::shared_ptr<MappedFile> &file : weights.files()) {
    auto source = std::make_unique<schema::SourceFileT>();
    source->path = file->path();
    source->size = file->size();
    LLAMAC_ASSIGN_OR_RETURN(source->fingerprint, fingerprintFiles({file}));
    plan.sourceFiles.push_back(std::move(source));
  }
  return absl::OkStatus();
}

static std::unique_ptr<schema::WeightSourceT>
sourceOf(const WeightSource &weight) {
  auto source = std::make_unique<schema::WeightSourceT>();
  source->tensor = weight.tensor;
  source->type = toPlan(weight.type);
  for (const FileExtent &part : weight.parts)
    source->parts.emplace_back(part.file, part.offset, part.size);
  source->partsDim = weight.partsDim;
  source->rotaryHalves = weight.rotaryHalves;
  source->addend = weight.addend;
  return source;
}

static absl::Status addWeightContents(const PlanContents &contents,
                                      const WeightMap &weights,
                                      PlanWriter &writer,
                                      const PlanProgress &progress,
                                      schema::PlanT &plan) {
  if (!contents.hasWeights)
    return absl::OkStatus();
  if (!contents.embedWeights)
    LLAMAC_RETURN_IF_ERROR(addSourceFiles(weights, plan));
  uint64_t total = 0, done = 0;
  for (const auto &weight : plan.weights)
    total += packedBytes(*weight) * static_cast<uint64_t>(weight->parts);
  for (auto &weight : plan.weights) {
    const WeightSource *source = weights.find(weight->name);
    if (!source)
      return internalError(
          absl::StrCat("the model has no weight named ", weight->name));
    if (!contents.embedWeights) {
      if (source->decoder)
        return unsupportedError(absl::StrCat(
            source->tensor,
            ": expected a plain tensor that "
            "--reference-weights can leave in the checkpoint, got one of "
            "several or in parts, such as a quantised one; compile without "
            "it"));
      weight->source = sourceOf(*source);
      continue;
    }
    LLAMAC_ASSIGN_OR_RETURN(weight->section,
                            addWeightSection(writer, *weight, weights, *source,
                                             [&](uint64_t bytes) {
                                               done += bytes;
                                               if (progress)
                                                 progress(done, total);
                                             }));
  }
  return absl::OkStatus();
}

static absl::Status addCode(const PlanContents &contents, PlanWriter &writer,
                            schema::PlanT &plan) {
  for (const PlanCode &code : contents.code) {
    auto object = std::make_unique<schema::CodeObjectT>();
    object->isa = code.isa;
    LLAMAC_ASSIGN_OR_RETURN(
        object->section,
        writer.addSection(SectionKind::Code, bytesOf(code.elf)));
    plan.code.push_back(std::move(object));
  }
  LLAMAC_ASSIGN_OR_RETURN(
      plan.sourceSection,
      writer.addSection(SectionKind::Source, bytesOf(contents.source)));
  if (contents.tokenizerBlob.empty())
    return absl::OkStatus();
  plan.tokenizer = std::make_unique<schema::TokenizerT>();
  plan.tokenizer->kind = contents.tokenizerKind;
  // A tokenizer may know more ids than the model.
  if (contents.bos && *contents.bos < contents.config.vocabSize) {
    plan.tokenizer->bos = *contents.bos;
    plan.tokenizer->addBos = contents.addBos;
  }
  plan.tokenizer->stopIds = contents.stopIds;
  LLAMAC_ASSIGN_OR_RETURN(plan.tokenizer->section,
                          writer.addSection(SectionKind::Tokenizer,
                                            bytesOf(contents.tokenizerBlob)));
  return absl::OkStatus();
}

absl::Status writePlan(ModuleOp module, const PlanContents &contents,
                       const WeightMap &weights, const std::string &path,
                       const PlanProgress &progress) {
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<PlanWriter> writer,
                          PlanWriter::create(path));
  LLAMAC_ASSIGN_OR_RETURN(schema::PlanT plan, planManifest(module, contents));
  LLAMAC_RETURN_IF_ERROR(
      addWeightContents(contents, weights, *writer, progress, plan));
  LLAMAC_RETURN_IF_ERROR(addCode(contents, *writer, plan));
  if (contents.checkModel)
    LLAMAC_RETURN_IF_ERROR(contents.checkModel());
  return writer->finish(plan);
}

} // namespace llamac
