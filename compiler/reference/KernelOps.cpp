//===- KernelOps.cpp - The mathematics of launches ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernel ops by the steps of the llama ops that they stand for; tile configs
// change nothing here. A scalar region is evaluated op by op, each over many
// elements at a time.
//
// The layout of the partial results of split-KV attention is the target's own.
// Here split 0 of each head holds the final values, all else is 0, and the
// merge passes them on.
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Ops.h"
#include "engine/sampling/Sampler.h"
#include "ir/kernel/Kernel.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

using namespace mlir;

namespace llamac::reference {

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

ScalarFn scalarFunction(Operation &op) {
#define LLAMAC_SCALAR(Op, GraphOp, pattern, result, value)                     \
  if (isa<Op>(op) ||                                                           \
      op.getName().getStringRef() == GraphOp::getOperationName())              \
    return [](double a, [[maybe_unused]] double b) {                           \
      return static_cast<float>(value);                                        \
    };
  using kernel::NoOp;
#include "ir/kernel/Scalars.def"
  return nullptr;
}

/// The element-wise function `region` of `inputs`, which have one shape.
static absl::StatusOr<Tensor> mapScalars(OpCall &call, Region &region,
                                         ArrayRef<const Tensor *> inputs) {
  struct Step {
    ScalarFn compute;
    size_t a, b;    ///< Operands by register.
    float constant; ///< The result, where nothing computes it.
  };
  // The inputs are the first registers; each step fills the next.
  Block &block = region.front();
  llvm::DenseMap<mlir::Value, size_t> registers;
  for (BlockArgument arg : block.getArguments())
    registers[arg] = arg.getArgNumber();
  std::vector<Step> steps;
  for (Operation &op : block.without_terminator()) {
    registers[op.getResult(0)] = inputs.size() + steps.size();
    if (auto constant = dyn_cast<arith::ConstantFloatOp>(op)) {
      steps.push_back({nullptr, 0, 0, constant.value().convertToFloat()});
      continue;
    }
    const ScalarFn compute = scalarFunction(op);
    if (!compute)
      return unsupportedError(
          absl::StrCat("the reference does not know the scalar op ",
                       op.getName().getStringRef().str()));
    steps.push_back(
        {compute, registers.at(op.getOperand(0)),
         registers.at(op.getOperand(op.getNumOperands() > 1 ? 1 : 0)), 0});
  }
  const size_t yielded = registers.at(block.getTerminator()->getOperand(0));

  for (const Tensor *input : inputs)
    if (input->shape != inputs.front()->shape)
      return internalError("operands of a scalar region differ in shape");
  Tensor result(inputs.front()->shape);
  const auto size = static_cast<int64_t>(result.data.size());
  constexpr int64_t chunk = 4096;
  call.parallel.forEach(
      (size + chunk - 1) / chunk,
      expCost * static_cast<double>(steps.size() + 1) *
          static_cast<double>(size),
      [&](int64_t task) {
        const int64_t first = task * chunk;
        const int64_t count = std::min(chunk, size - first);
        std::vector<std::vector<float>> made(steps.size());
        std::vector<const float *> values;
        for (const Tensor *input : inputs)
          values.push_back(input->data.data() + first);
        for (auto [step, out] : llvm::zip(steps, made)) {
          out.assign(count, step.constant);
          if (step.compute)
            std::transform(values[step.a], values[step.a] + count,
                           values[step.b], out.begin(), step.compute);
          values.push_back(out.data());
        }
        std::copy_n(values[yielded], count, result.data.data() + first);
      });
  return result;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The rows of `x` over the root of the mean of their squares, whose sums
/// `squares` has, and of eps.
static Tensor divideByRoots(Tensor x, const Tensor &squares, double eps) {
  const int64_t width = x.shape[1], parts = squares.shape[1];
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    const float *of = &squares.data[row * parts];
    const double mean =
        std::accumulate(of, of + parts, 0.0) / static_cast<double>(width);
    const double factor = 1 / std::sqrt(mean + eps);
    for (float &value : MutableArrayRef(x.data).slice(row * width, width))
      value = static_cast<float>(value * factor);
  }
  return x;
}

/// The products of the input, operand 0, with each of the `count` weights
/// behind it; normalised by the operand behind these when `eps` is given.
static absl::StatusOr<std::vector<Tensor>>
productsOf(OpCall &call, unsigned count, FloatAttr eps) {
  const unsigned norm = 1 + count;
  std::optional<Tensor> normalised;
  if (eps && std::holds_alternative<Tensor>(*call.operands[norm])) {
    normalised = divideByRoots(call.tensor(0), call.tensor(norm),
                               eps.getValueAsDouble());
  } else if (eps) {
    LLAMAC_ASSIGN_OR_RETURN(normalised, normaliseRows(call, call.tensor(0),
                                                      call.weight(norm),
                                                      eps.getValueAsDouble()));
  }
  std::vector<Tensor> products(count);
  for (unsigned i = 0; i < count; ++i) {
    LLAMAC_ASSIGN_OR_RETURN(
        products[i],
        multiplyRows(call, normalised ? *normalised : call.tensor(0),
                     call.weight(1 + i)));
  }
  return products;
}

/// The sums of squares of `parts` equal parts of each row of `x`.
static Tensor squaresOf(const Tensor &x, int64_t parts) {
  Tensor squares({x.shape[0], parts});
  const int64_t size = x.shape[1] / parts;
  for (auto [i, sum] : llvm::enumerate(squares.data)) {
    const float *of = &x.data[i * size];
    sum = static_cast<float>(std::inner_product(of, of + size, of, 0.0));
  }
  return squares;
}

/// Adds operands `first` and on to `inputs`; `repeated`, which lasts as long,
/// holds `rows` copies of those that are vectors.
static absl::Status addElements(OpCall &call, unsigned first,
                                SmallVectorImpl<const Tensor *> &inputs,
                                std::vector<Tensor> &repeated, int64_t rows) {
  repeated.reserve(call.operands.size());
  for (unsigned i = first; i < call.operands.size(); ++i) {
    if (std::holds_alternative<Tensor>(*call.operands[i])) {
      inputs.push_back(&call.tensor(i));
      continue;
    }
    LLAMAC_ASSIGN_OR_RETURN(Tensor copies,
                            repeatRow(call, call.weight(i), rows));
    repeated.push_back(std::move(copies));
    inputs.push_back(&repeated.back());
  }
  return absl::OkStatus();
}

/// Gives `result`, and what the next norm gets of it where its op has the
/// weights of one, operand `nextNorm`.
static absl::Status giveForNextNorm(OpCall &call, Tensor result,
                                    unsigned nextNorm) {
  auto op = cast<kernel::NextNormOpInterface>(call.op);
  if (!op.getNextNorm())
    return call.give(std::move(result));
  LLAMAC_ASSIGN_OR_RETURN(
      Tensor rounded, repeatRow(call, call.weight(nextNorm), result.shape[0]));
  std::transform(rounded.data.begin(), rounded.data.end(), result.data.begin(),
                 rounded.data.begin(), std::multiplies<>());
  const auto squaresType = cast<RankedTensorType>(op.getSquares().getType());
  Tensor squares = squaresOf(result, squaresType.getDimSize(1));
  LLAMAC_RETURN_IF_ERROR(call.give(std::move(result)));
  LLAMAC_RETURN_IF_ERROR(call.give(std::move(rounded)));
  return call.give(std::move(squares));
}

/// Gives what `epilogue`, which may be empty, makes of `accumulators` and of
/// the operands behind number `nextNorm`, or from it on without a next norm.
static absl::Status giveWithEpilogue(OpCall &call,
                                     MutableArrayRef<Tensor> accumulators,
                                     Region &epilogue, unsigned nextNorm) {
  if (epilogue.empty())
    return giveForNextNorm(call, std::move(accumulators.front()), nextNorm);
  auto op = cast<kernel::NextNormOpInterface>(call.op);
  const unsigned firstExtra = nextNorm + (op.getNextNorm() ? 1 : 0);
  SmallVector<const Tensor *> scalars;
  for (const Tensor &accumulator : accumulators)
    scalars.push_back(&accumulator);
  std::vector<Tensor> repeated;
  LLAMAC_RETURN_IF_ERROR(addElements(call, firstExtra, scalars, repeated,
                                     accumulators.front().shape[0]));
  LLAMAC_ASSIGN_OR_RETURN(Tensor result, mapScalars(call, epilogue, scalars));
  return giveForNextNorm(call, std::move(result), nextNorm);
}

template <> absl::Status compute<kernel::MatmulOp>(OpCall &call) {
  auto op = cast<kernel::MatmulOp>(call.op);
  const unsigned weights = op.getWeights().size();
  const unsigned nextNorm = 1 + weights + (op.getNorm() ? 1 : 0);
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Tensor> products,
                          productsOf(call, weights, op.getEpsAttr()));
  return giveWithEpilogue(call, products, op.getEpilogue(), nextNorm);
}

template <> absl::Status compute<kernel::RmsNormOp>(OpCall &call) {
  enum { Input, Weight, NextNorm };
  auto op = cast<kernel::RmsNormOp>(call.op);
  LLAMAC_ASSIGN_OR_RETURN(Tensor normalised,
                          normaliseRows(call, call.tensor(Input),
                                        call.weight(Weight),
                                        op.getEps().convertToDouble()));
  return giveWithEpilogue(call, normalised, op.getEpilogue(), NextNorm);
}

template <> absl::Status compute<kernel::AllReduceOp>(OpCall &call) {
  auto op = cast<kernel::AllReduceOp>(call.op);
  LLAMAC_ASSIGN_OR_RETURN(Tensor sum, sumOfRanks(call, op.getRanks()));
  return giveWithEpilogue(call, sum, op.getEpilogue(), /*nextNorm=*/1);
}

template <> absl::Status compute<kernel::PointwiseOp>(OpCall &call) {
  auto op = cast<kernel::PointwiseOp>(call.op);
  SmallVector<const Tensor *> inputs;
  std::vector<Tensor> repeated;
  int64_t rows = 0;
  for (unsigned i = 0; i < call.operands.size(); ++i)
    if (const auto *tensor = std::get_if<Tensor>(&*call.operands[i]))
      rows = tensor->shape[0];
  LLAMAC_RETURN_IF_ERROR(addElements(call, 0, inputs, repeated, rows));
  return call.give(mapScalars(call, op.getBody(), inputs));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// [rows, width] as [rows, width / size, size].
static Tensor withHeads(Tensor x, int64_t size) {
  x.shape = {x.shape[0], x.shape[1] / size, size};
  return x;
}

/// [rows, heads, size] as [rows, heads * size].
static Tensor withoutHeads(Tensor x) {
  x.shape = {x.shape[0], x.shape[1] * x.shape[2]};
  return x;
}

/// Rotates `query` and `key` [rows, width] by `table` and appends `key` and
/// `value` to operand `kvOperand`, which positions and sequences follow.
/// Results: the rotated query, the new cache.
static absl::Status rotateAndAppend(OpCall &call, Tensor query, Tensor key,
                                    const Tensor &value, const Tensor &table,
                                    unsigned kvOperand) {
  const Indices &positions = call.indices(kvOperand + 1);
  const Indices &sequences = call.indices(kvOperand + 2);
  LLAMAC_RETURN_IF_ERROR(call.kv(kvOperand).checkAppend(positions, sequences));
  auto kv = call.take<KvState>(kvOperand);
  query = withHeads(std::move(query), kv.headSize());
  key = withHeads(std::move(key), kv.headSize());
  LLAMAC_RETURN_IF_ERROR(rotateHeads(query, table));
  LLAMAC_RETURN_IF_ERROR(rotateHeads(key, table));
  kv.append(key.data.data(), value.data.data(), positions, sequences);
  (void)call.give(withoutHeads(std::move(query)));
  return call.give(std::move(kv));
}

template <> absl::Status compute<kernel::RopeAppendOp>(OpCall &call) {
  enum { Query, Key, RowValue, Table, Kv, QueryNorm = Kv + 3, KeyNorm };
  auto op = cast<kernel::RopeAppendOp>(call.op);
  auto query = call.take<Tensor>(Query);
  auto key = call.take<Tensor>(Key);
  if (FloatAttr eps = op.getEpsAttr())
    for (auto [x, norm] :
         {std::pair(&query, QueryNorm), std::pair(&key, KeyNorm)}) {
      LLAMAC_ASSIGN_OR_RETURN(*x, normaliseRows(call, *x, call.weight(norm),
                                                eps.getValueAsDouble()));
    }
  return rotateAndAppend(call, std::move(query), std::move(key),
                         call.tensor(RowValue), call.tensor(Table), Kv);
}

template <> absl::Status compute<kernel::QkvOp>(OpCall &call) {
  enum { Input, QueryWeight, NormWeight = QueryWeight + 3 };
  auto op = cast<kernel::QkvOp>(call.op);
  const unsigned firstBias = op.getNorm() ? NormWeight + 1 : NormWeight;
  const unsigned table = firstBias + op.getBiases().size();
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Tensor> parts,
                          productsOf(call, 3, op.getEpsAttr()));
  for (unsigned i = 0; i < op.getBiases().size(); ++i)
    LLAMAC_RETURN_IF_ERROR(addRow(call, parts[i], call.weight(firstBias + i)));
  return rotateAndAppend(call, std::move(parts[0]), std::move(parts[1]),
                         parts[2], call.tensor(table), table + 1);
}

template <> absl::Status compute<kernel::QkvProductsOp>(OpCall &call) {
  auto op = cast<kernel::QkvProductsOp>(call.op);
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Tensor> parts,
                          productsOf(call, 3, op.getEpsAttr()));
  for (Tensor &part : parts)
    LLAMAC_RETURN_IF_ERROR(call.give(std::move(part)));
  return absl::OkStatus();
}

template <> absl::Status compute<kernel::AttentionOp>(OpCall &call) {
  auto op = cast<kernel::AttentionOp>(call.op);
  const Tensor query = withHeads(call.take<Tensor>(0), call.kv(1).headSize());
  LLAMAC_ASSIGN_OR_RETURN(Tensor result, attend(call, query, op.getScale(),
                                                op.getWindow().value_or(0)));
  auto config = op.getConfig();
  if (!config || config->getFamily() != kernel::AttentionFamily::SplitKv)
    return call.give(withoutHeads(std::move(result)));
  const int64_t rows = result.shape[0], heads = result.shape[1];
  const int64_t size = result.shape[2];
  const int64_t stride = config->getSplits() * config->getPartial();
  if (config->getPartial() < size)
    return internalError(absl::StrCat("a partial result of ",
                                      config->getPartial(),
                                      " numbers cannot hold a head of ", size));
  Tensor partials({rows, heads, config->getSplits(), config->getPartial()});
  for (int64_t head = 0; head < rows * heads; ++head)
    std::copy_n(result.data.data() + head * size, size,
                partials.data.data() + head * stride);
  return call.give(std::move(partials));
}

template <> absl::Status compute<kernel::AttentionMergeOp>(OpCall &call) {
  auto op = cast<kernel::AttentionMergeOp>(call.op);
  const Tensor &partials = call.tensor(0);
  const int64_t rows = partials.shape[0], heads = partials.shape[1];
  const int64_t stride = partials.shape[2] * partials.shape[3];
  const int64_t width =
      cast<RankedTensorType>(op.getResult().getType()).getDimSize(1);
  const int64_t size = width / heads;
  Tensor result({rows, width});
  for (int64_t head = 0; head < rows * heads; ++head)
    std::copy_n(partials.data.data() + head * stride, size,
                result.data.data() + head * size);
  return call.give(std::move(result));
}

//===----------------------------------------------------------------------===//
// Sampling
//===----------------------------------------------------------------------===//

/// Samples like the host does for plans that leave sampling to it.
static absl::StatusOr<int32_t> tokenOf(absl::Span<const float> logits,
                                       const SamplingParams &draw) {
  if (!llvm::all_of(logits, [](float logit) { return std::isfinite(logit); }))
    return -1;
  if (draw.temperature == 0)
    return argmax(logits);
  LLAMAC_ASSIGN_OR_RETURN(
      Sampler sampler,
      Sampler::create({draw.temperature, draw.topK, draw.topP, 0}));
  return sampler.choose(logits, draw.noiseKey);
}

template <> absl::Status compute<kernel::SampleOp>(OpCall &call) {
  const Tensor &logits = call.tensor(0);
  const Indices &params = call.indices(1);
  const int64_t rows = logits.shape[0], width = logits.shape[1];
  if (static_cast<int64_t>(params.size()) < rows * samplingParamWords)
    return internalError(absl::StrCat("expected sampling params of ", rows,
                                      " rows, got ", params.size(), " words"));
  Indices tokens(rows);
  for (int64_t r = 0; r < rows; ++r) {
    SamplingParams draw;
    std::memcpy(&draw, params.data() + r * samplingParamWords, sizeof draw);
    LLAMAC_ASSIGN_OR_RETURN(tokens[r], tokenOf({logits.data.data() + r * width,
                                                static_cast<size_t>(width)},
                                               draw));
  }
  return call.give(std::move(tokens));
}

} // namespace llamac::reference
