//===- PlanConfig.cpp - Hyperparameters in the plan's schema --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanConfig.h"

#include "runtime/packing/PanelLayout.h"
#include "runtime/packing/TilePacking.h"

#include <algorithm>

namespace llamac {

schema::DataType toPlan(DataType type) {
  return static_cast<schema::DataType>(type);
}

DataType fromPlan(schema::DataType type) { return static_cast<DataType>(type); }

MatrixShape wholeShape(const schema::WeightT &weight) {
  return weight.partsDim == 0
             ? MatrixShape{weight.rows * weight.parts, weight.cols}
             : MatrixShape{weight.rows, weight.cols * weight.parts};
}

int64_t partOf(const schema::WeightT &weight, int64_t rank, int64_t ranks) {
  return rank / (ranks / weight.parts);
}

PartOrigin originOf(const schema::WeightT &weight, int64_t part) {
  return weight.partsDim == 0 ? PartOrigin{part * weight.rows, 0}
                              : PartOrigin{0, part * weight.cols};
}

uint64_t packedBytes(const schema::WeightT &weight) {
  const DataType type = fromPlan(weight.type);
  switch (weight.layout) {
  case schema::WeightLayout::RowMajor:
    return static_cast<uint64_t>(weight.rows) *
           dataTypeBytes(type, static_cast<uint64_t>(weight.cols));
  case schema::WeightLayout::Panel16:
    return static_cast<uint64_t>(panelCount(weight.rows)) *
           static_cast<uint64_t>(
               panelBytes(static_cast<PanelFormat>(type), weight.cols));
  case schema::WeightLayout::Tiles:
    return static_cast<uint64_t>(cuda::packedWeightBytes(
        cuda::weightFormat(type), weight.rows, weight.cols));
  }
  return 0; // The verifier lets no other layout pass.
}

int64_t ringPages(int64_t window, int64_t maxRows, int64_t pageTokens) {
  return (window + maxRows - 3) / pageTokens + 2;
}

int64_t kvTokenBytes(const schema::KvLayoutT &kv) {
  return static_cast<int64_t>(kv.pageBytes) /
         std::max<int64_t>(kv.pageTokens, 1);
}

int64_t poolPages(const schema::KvLayoutT &kv, const schema::KvGroup &group,
                  int64_t limit) {
  const int64_t all = group.pages() * kv.maxSequences;
  return limit == 0 ? all : std::min(all, limit);
}

uint64_t kvPoolBytes(const schema::KvLayoutT &kv, int64_t layer,
                     int64_t limit) {
  const schema::KvGroup &group = kv.groups[kv.layerGroups[layer]];
  return static_cast<uint64_t>(poolPages(kv, group, limit)) * kv.pageBytes;
}

uint64_t kvPoolBytes(const schema::KvLayoutT &kv) {
  uint64_t bytes = 0;
  for (size_t layer = 0; layer < kv.layerGroups.size(); ++layer)
    bytes += kvPoolBytes(kv, static_cast<int64_t>(layer));
  return bytes;
}

uint64_t pageTableBytes(const schema::KvLayoutT &kv) {
  return static_cast<uint64_t>(kv.pagesPerSequence) *
         static_cast<uint64_t>(kv.maxSequences) * sizeof(int32_t);
}

std::unique_ptr<schema::ModelConfigT> toPlan(const ModelConfig &config) {
  auto out = std::make_unique<schema::ModelConfigT>();
  out->dim = config.dim;
  out->numLayers = config.numLayers;
  out->numHeads = config.numHeads;
  out->numKvHeads = config.numKvHeads;
  out->headSize = config.headSize;
  out->ffnDim = config.ffnDim;
  out->vocabSize = config.vocabSize;
  out->maxContext = config.maxContext;
  out->normEps = config.normEps;
  out->ropeTheta = config.ropeTheta;
  if (config.ropeScaling) {
    out->ropeScaling = std::make_unique<schema::RopeScalingT>();
    out->ropeScaling->factor = config.ropeScaling->factor;
    out->ropeScaling->lowFreqFactor = config.ropeScaling->lowFreqFactor;
    out->ropeScaling->highFreqFactor = config.ropeScaling->highFreqFactor;
    out->ropeScaling->oldContext = config.ropeScaling->oldContext;
  }
  out->ropeFactors = config.ropeFactors;
  out->tiedEmbeddings = config.tiedEmbeddings;
  if (config.head) {
    out->head = std::make_unique<schema::DraftHeadT>();
    out->head->layers = config.head->layers;
    out->head->targetDim = config.head->targetDim;
    out->head->tokens = config.head->tokens;
    out->head->addsToNorm = config.head->addsToNorm;
  }
  return out;
}

ModelConfig fromPlan(const schema::ModelConfigT &config) {
  ModelConfig out;
  out.dim = config.dim;
  out.numLayers = config.numLayers;
  out.numHeads = config.numHeads;
  out.numKvHeads = config.numKvHeads;
  out.headSize = config.headSize;
  out.ffnDim = config.ffnDim;
  out.vocabSize = config.vocabSize;
  out.maxContext = config.maxContext;
  out.normEps = config.normEps;
  out.ropeTheta = config.ropeTheta;
  if (config.ropeScaling)
    out.ropeScaling = RopeScaling{
        config.ropeScaling->factor, config.ropeScaling->lowFreqFactor,
        config.ropeScaling->highFreqFactor, config.ropeScaling->oldContext};
  out.ropeFactors = config.ropeFactors;
  out.tiedEmbeddings = config.tiedEmbeddings;
  if (config.head)
    out.head = DraftHead{config.head->layers, config.head->targetDim,
                         config.head->tokens, config.head->addsToNorm};
  return out;
}

LaunchTotals &LaunchTotals::operator+=(const LaunchTotals &other) {
  weightBytes += other.weightBytes;
  rowBytes += other.rowBytes;
  keyBytes += other.keyBytes;
  operations += other.operations;
  return *this;
}

LaunchTotals totalsOf(const schema::KernelT &kernel, double rows,
                      double context, double keys) {
  if (!kernel.cost)
    return {};
  const schema::LaunchCost &cost = *kernel.cost;
  return {static_cast<double>(cost.weightBytes()),
          static_cast<double>(cost.rowBytes()) * rows,
          static_cast<double>(cost.keyBytes()) * context,
          static_cast<double>(cost.rowFlops()) * rows +
              static_cast<double>(cost.keyFlops()) * keys};
}

uint64_t resultRowBytes(const schema::KernelT &kernel, size_t param) {
  const auto begin = kernel.params.begin();
  return kernel.resultRowBytes[std::count(
      begin, begin + static_cast<ptrdiff_t>(param), schema::ParamRole::Result)];
}

int64_t maxSampledRows(const schema::PlanT &plan) {
  int64_t most = 0;
  for (const auto &program : plan.programs)
    most = std::max(most, std::min(program->maxRows, program->maxOutputRows));
  return most;
}

bool isForPrompts(const schema::ProgramT &program) {
  return program.maxOutputRows < program.maxRows;
}

bool isResident(const schema::PlanT &plan, const schema::ProgramT &program) {
  return !program.launches.empty() &&
         plan.kernels[program.launches.front()->kernel]->geometry->resident;
}

size_t programFor(const schema::PlanT &plan, int64_t rows, int64_t outputs,
                  bool hasPrompts) {
  size_t number = 0;
  for (; number + 1 < plan.programs.size(); ++number) {
    const schema::ProgramT &program = *plan.programs[number];
    if (program.maxRows >= rows && program.maxOutputRows >= outputs &&
        !(program.decodeOnly && hasPrompts))
      break;
  }
  return number;
}

int64_t maxRowsOf(const schema::LaunchT &launch,
                  const schema::ProgramT &program) {
  return launch.rows == schema::RowSymbol::Tokens ? program.maxRows
                                                  : program.maxOutputRows;
}

} // namespace llamac
