//===- Cost.cpp - Bytes and arithmetic of a launch ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the formulas R is the number of rows of the launch, and activations have
// 4 bytes (f32, i32).
//
//===----------------------------------------------------------------------===//

#include "ir/kernel/Cost.h"

#include "ir/kernel/Target.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace llamac::kernel {

int64_t weightBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  const int64_t elements = tensor.getNumElements();
  if (auto quant = dyn_cast<llama::QuantType>(tensor.getElementType()))
    return elements / quant.getBlockElements() * quant.getBlockBytes();
  return elements * tensor.getElementTypeBitWidth() / 8;
}

int64_t CostStep::weightBytes(Type type) const {
  return target ? target->weightBytes(type) : kernel::weightBytes(type);
}

/// Bytes of one row of each of these activations: all dimensions but the first.
static int64_t rowBytes(ArrayRef<Value> values) {
  int64_t sum = 0;
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    for (int64_t size : type.getShape().drop_front())
      bytes *= size;
    sum += bytes;
  }
  return sum;
}

static int64_t widthOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// Operations on one element by a scalar region: those of arith are one each,
/// constants none.
static int64_t scalarFlops(Region &region) {
  int64_t flops = 0;
  if (region.empty())
    return 0;
  for (Operation &op : region.front().without_terminator()) {
    auto scalar = dyn_cast<ScalarOpInterface>(op);
    flops += scalar                                 ? scalar.flops()
             : op.hasTrait<OpTrait::ConstantLike>() ? 0
                                                    : 1;
  }
  return flops;
}

/// RMSNorm of one row of n: n squares, n sums, n products with the factor and n
/// with the weight; division by n, eps and the square root: 4 n + 3.
static int64_t normFlops(int64_t width) { return 4 * width + 3; }

/// Keys that all rows of the step attend to together:
/// R * context - R (R - 1) / 2, or for each row no more than the window.
static int64_t keysOfAllRows(const CostStep &step, int64_t window) {
  if (window == 0)
    return step.rows * step.context - step.rows * (step.rows - 1) / 2;
  int64_t sum = 0;
  for (int64_t row = 0; row < step.rows; ++row)
    sum += std::min(window, step.context - row);
  return sum;
}

/// Partial results of one head that all rows write together: a row with k keys
/// has ceil(k * splits / splitContext) of them.
static int64_t splitsOfAllRows(int64_t splits, const CostStep &step) {
  if (!step.splitContext)
    return step.rows * splits;
  int64_t sum = 0;
  for (int64_t row = 0; row < step.rows; ++row) {
    const int64_t keys = step.context - step.rows + row + 1;
    sum += std::min(splits,
                    llvm::divideCeilSigned(keys * splits, step.splitContext));
  }
  return sum;
}

/// Adds operands that go in element by element: rows, and vectors, which are
/// weights.
static void addElementwise(Cost &cost, const CostStep &step,
                           OperandRange operands) {
  for (Value operand : operands)
    if (cast<RankedTensorType>(operand.getType()).getRank() == 1)
      cost.weightBytes += step.weightBytes(operand.getType());
    else
      cost.inputBytes += step.rows * rowBytes(operand);
}

/// Adds the norm of each row of `width`, where there is one. Of a norm of which
/// the squares are known its sum of parts, division, eps and root are left, and
/// a product for each of `outputs` results.
static void addNorm(Cost &cost, const CostStep &step, Value norm, int64_t width,
                    int64_t outputs) {
  if (!norm)
    return;
  if (cast<RankedTensorType>(norm.getType()).getRank() == 1) {
    cost.weightBytes += step.weightBytes(norm.getType());
    cost.flops += step.rows * normFlops(width);
    return;
  }
  cost.inputBytes += step.rows * rowBytes(norm);
  cost.flops += step.rows * (widthOf(norm) + 3 + outputs);
}

/// Adds what `op` gives for the norm that comes next: a product, a square and a
/// sum for each element of its result.
static void addNextNorm(Cost &cost, const CostStep &step, Operation *op) {
  auto maker = cast<NextNormOpInterface>(op);
  if (!maker.getNextNorm())
    return;
  cost.weightBytes += step.weightBytes(maker.getNextNorm().getType());
  cost.outputBytes +=
      step.rows * rowBytes({maker.getRounded(), maker.getSquares()});
  cost.flops += step.rows * 3 * widthOf(maker.getRounded());
}

/// R rows of the table; the result, [R, width]; cosines and sines, where it
/// makes them, as kernel.rope_table does.
Cost EmbedOp::cost(const CostStep &step) {
  Cost cost{.weightBytes = step.rows * (step.weightBytes(getTable().getType()) /
                                        getTable().getType().getDimSize(0)),
            .inputBytes = step.rows * rowBytes(getTokens()),
            .outputBytes = step.rows * rowBytes(getResult())};
  if (Value cosSin = getCosSin()) {
    cost.inputBytes += step.rows * rowBytes(getPositions());
    cost.outputBytes += step.rows * rowBytes(cosSin);
    cost.flops = step.rows * 3 * getFrequenciesAttr().getNumElements();
  }
  return cost;
}

/// For each row and frequency the angle, its cosine and its sine.
Cost RopeTableOp::cost(const CostStep &step) {
  return {.inputBytes = step.rows * rowBytes(getPositions()),
          .outputBytes = step.rows * rowBytes(getResult()),
          .flops = step.rows * 3 * getFrequencies().getNumElements()};
}

/// The norm of each row, and the epilogue of each element.
Cost RmsNormOp::cost(const CostStep &step) {
  const int64_t width = widthOf(getInput());
  Cost cost{.weightBytes = step.weightBytes(getWeight().getType()),
            .inputBytes = step.rows * rowBytes(getInput()),
            .outputBytes = step.rows * rowBytes(getResult()),
            .flops = step.rows *
                     (normFlops(width) + width * scalarFlops(getEpilogue()))};
  addElementwise(cost, step, getExtras());
  addNextNorm(cost, step, *this);
  return cost;
}

/// R indices and R rows, which are copied.
Cost GatherRowsOp::cost(const CostStep &step) {
  return {.inputBytes = step.rows * rowBytes({getRows(), getInput()}),
          .outputBytes = step.rows * rowBytes(getResult())};
}

/// With W weights [n, k]: 2 R W n k, and for each of the R n results the
/// epilogue; the norm of each row once, when there is one.
Cost MatmulOp::cost(const CostStep &step) {
  const int64_t depth = widthOf(getInput());
  const auto weights = static_cast<int64_t>(getWeights().size());
  Cost cost{.weightBytes =
                weights * step.weightBytes(getWeights().front().getType()),
            .inputBytes = step.rows * rowBytes(getInput()),
            .outputBytes = step.rows * rowBytes(getResult()),
            .flops = step.rows * widthOf(getResult()) *
                     (2 * depth * weights + scalarFlops(getEpilogue()))};
  addElementwise(cost, step, getExtras());
  addNorm(cost, step, getNorm(), depth, weights * widthOf(getResult()));
  addNextNorm(cost, step, *this);
  return cost;
}

/// Rotating one row of q and k: six for each pair, four products and two sums.
static int64_t rotationFlops(int64_t queryWidth, int64_t keyWidth) {
  return 6 * (queryWidth + keyWidth) / 2;
}

/// k and v go to the cache; q and k are normalised first, where they have
/// norms.
Cost RopeAppendOp::cost(const CostStep &step) {
  Cost cost{
      .inputBytes =
          step.rows * rowBytes({getQuery(), getKey(), getValue(), getTable(),
                                getPositions(), getSequences()}),
      .outputBytes = step.rows * rowBytes(getRotated()),
      .kvWrittenBytes = step.rows * step.kvTokenBytes,
      .flops =
          step.rows * rotationFlops(widthOf(getQuery()), widthOf(getKey()))};
  for (auto [norm, normalised] : llvm::zip(getNorms(), getOperands()))
    addNorm(cost, step, norm, widthOf(normalised), /*outputs=*/0);
  return cost;
}

/// Three products of 2 R n k, of which two are rotated, and R n sums with the
/// biases; the norm of each row once, when there is one. Keys and values go to
/// the cache only.
Cost QkvOp::cost(const CostStep &step) {
  const int64_t depth = widthOf(getInput());
  int64_t outputs = 0, weights = 0;
  for (Value weight : {getQueryWeight(), getKeyWeight(), getValueWeight()}) {
    weights += step.weightBytes(weight.getType());
    outputs += cast<RankedTensorType>(weight.getType()).getDimSize(0);
  }
  const int64_t queryWidth = widthOf(getRotated());
  const int64_t keyWidth = (outputs - queryWidth) / 2;
  Cost cost{
      .weightBytes = weights,
      .inputBytes = step.rows * rowBytes({getInput(), getTable(),
                                          getPositions(), getSequences()}),
      .outputBytes = step.rows * rowBytes(getRotated()),
      .kvWrittenBytes = step.rows * step.kvTokenBytes,
      .flops = step.rows *
               (2 * depth * outputs + rotationFlops(queryWidth, keyWidth))};
  addElementwise(cost, step, getBiases());
  if (!getBiases().empty())
    cost.flops += step.rows * outputs;
  addNorm(cost, step, getNorm(), depth, outputs);
  return cost;
}

/// Three products of 2 R n k; the norm of each row once, when there is one.
Cost QkvProductsOp::cost(const CostStep &step) {
  const int64_t depth = widthOf(getInput());
  Cost cost{.inputBytes = step.rows * rowBytes(getInput()),
            .outputBytes =
                step.rows * rowBytes({getQuery(), getKey(), getValue()})};
  for (Value weight : {getQueryWeight(), getKeyWeight(), getValueWeight()})
    cost.weightBytes += step.weightBytes(weight.getType());
  int64_t outputs = 0;
  for (Value result : getResults())
    outputs += widthOf(result);
  cost.flops = step.rows * 2 * depth * outputs;
  addNorm(cost, step, getNorm(), depth, outputs);
  return cost;
}

/// For each head of size h and each key of each row: the product with the query
/// 2 h, scale, maximum, its subtraction, exponential and sum 5, the product
/// with the value 2 h. Unless it leaves partial results each row's output is
/// divided by the sum; partial results that `merged` keeps to itself are left
/// out. The cache is read once up to the last row's position, from the first
/// row's window on.
Cost AttentionOp::cost(const CostStep &step) {
  const int64_t headSize = getKv().getType().getSize();
  const int64_t heads = widthOf(getQuery()) / headSize;
  const auto window = static_cast<int64_t>(getWindow().value_or(0));
  const int64_t tokens =
      window ? std::min(step.context, window + step.rows - 1) : step.context;
  Cost cost{.inputBytes = step.rows * rowBytes({getQuery(), getPositions(),
                                                getSequences()}),
            .kvReadBytes = tokens * step.kvTokenBytes,
            .flops = keysOfAllRows(step, window) * heads * (4 * headSize + 5)};
  const std::optional<AttentionConfigAttr> config = getConfig();
  if (config && config->getFamily() == AttentionFamily::SplitKv) {
    cost.outputBytes = splitsOfAllRows(config->getSplits(), step) * heads *
                       config->getPartial() * 4;
  } else {
    cost.outputBytes = step.rows * rowBytes(getResult());
    cost.flops += step.rows * heads * headSize;
  }
  return cost;
}

/// For each head of size h and each partial result: maximum, subtraction,
/// exponential, the sum's product and sum 5, the weighted sum 2 h; then each
/// row's output is divided by the sum.
Cost AttentionMergeOp::cost(const CostStep &step) {
  const int64_t heads = getPartials().getType().getDimSize(1);
  const int64_t width = widthOf(getResult());
  const int64_t results =
      heads * splitsOfAllRows(getConfig().getSplits(), step);
  return {.inputBytes = results * getConfig().getPartial() * 4 +
                        step.rows * rowBytes(getPositions()),
          .outputBytes = step.rows * rowBytes(getResult()),
          .flops = results * (2 * (width / heads) + 5) + step.rows * width};
}

/// The inputs of all ranks, and for each element their sum and the epilogue.
Cost AllReduceOp::cost(const CostStep &step) {
  const auto ranks = static_cast<int64_t>(getRanks());
  const int64_t width = widthOf(getInput());
  Cost cost{.inputBytes = step.rows * ranks * rowBytes(getInput()),
            .outputBytes = step.rows * rowBytes(getResult()),
            .flops =
                step.rows * width * (ranks - 1 + scalarFlops(getEpilogue()))};
  addElementwise(cost, step, getExtras());
  addNextNorm(cost, step, *this);
  return cost;
}

/// All rows of all ranks, which are copied.
Cost AllGatherOp::cost(const CostStep &step) {
  const int64_t bytes = step.rows * rowBytes(getResult());
  return {.inputBytes = bytes, .outputBytes = bytes};
}

Cost PointwiseOp::cost(const CostStep &step) {
  Cost cost{.outputBytes = step.rows * rowBytes(getResult()),
            .flops = step.rows * widthOf(getResult()) * scalarFlops(getBody())};
  addElementwise(cost, step, getInputs());
  return cost;
}

static Cost operator+(const Cost &a, const Cost &b) {
  return {a.weightBytes + b.weightBytes,       a.inputBytes + b.inputBytes,
          a.outputBytes + b.outputBytes,       a.kvReadBytes + b.kvReadBytes,
          a.kvWrittenBytes + b.kvWrittenBytes, a.flops + b.flops};
}

static Cost costOfPhases(Block &phases, const CostStep &step) {
  Cost sum;
  for (Operation &op : phases) {
    if (auto phase = dyn_cast<AnchorOpInterface>(op))
      sum = sum + phase.cost(step);
    if (auto layers = dyn_cast<LayersOp>(op)) {
      const Cost layer = costOfPhases(layers.getBody().front(), step);
      const auto count = static_cast<int64_t>(layers.getCount());
      sum = sum + Cost{count * layer.weightBytes,    count * layer.inputBytes,
                       count * layer.outputBytes,    count * layer.kvReadBytes,
                       count * layer.kvWrittenBytes, count * layer.flops};
    }
  }
  return sum;
}

/// The sum of the costs of all phases.
Cost ResidentOp::cost(const CostStep &step) {
  return costOfPhases(getBody().front(), step);
}

/// R rows of logits and sampling params; the largest of each row. What sampling
/// takes besides depends on the params.
Cost SampleOp::cost(const CostStep &step) {
  return {.inputBytes = step.rows * rowBytes({getLogits(), getParams()}),
          .outputBytes = step.rows * rowBytes(getResult()),
          .flops = step.rows * widthOf(getLogits())};
}

} // namespace llamac::kernel
