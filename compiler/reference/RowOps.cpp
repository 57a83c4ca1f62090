//===- RowOps.cpp - Weights, rows and element-wise ops --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Ops.h"
#include "compiler/reference/Product.h"
#include "ir/kernel/Kernel.h"
#include "runtime/base/DataType.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

using namespace mlir;

namespace llamac::reference {

/// Rows of a weight that one thread multiplies at a time, and rows of
/// activations against which they are multiplied while both are in its cache.
static constexpr int64_t weightRowsPerTask = 32;
static constexpr int64_t activationRowsPerBlock = 64;

//===----------------------------------------------------------------------===//
// Constants and weights
//===----------------------------------------------------------------------===//

template <> absl::Status compute<arith::ConstantOp>(OpCall &call) {
  auto elements =
      dyn_cast<DenseElementsAttr>(cast<arith::ConstantOp>(call.op).getValue());
  auto type = elements ? dyn_cast<RankedTensorType>(elements.getType())
                       : RankedTensorType();
  if (type && type.getElementType().isInteger(32) && type.getRank() == 1) {
    auto values = elements.getValues<int32_t>();
    return call.give(Indices(values.begin(), values.end()));
  }
  if (type && type.getElementType().isF32()) {
    Tensor result(type.getShape().vec());
    llvm::copy(elements.getValues<float>(), result.data.begin());
    return call.give(std::move(result));
  }
  return unsupportedError(
      "expected a constant that is a dense tensor of f32 or a 1D one of i32");
}

template <> absl::Status compute<llama::WeightOp>(OpCall &call) {
  auto op = cast<llama::WeightOp>(call.op);
  ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  Weight weight{op.getName().str(), shape.size() == 2 ? shape[0] : 1,
                shape.back(), llama::dataTypeOf(op.getResult())};
  if (const llama::ShardAttr shard = op.getShardAttr()) {
    const int64_t part = shard.partOf(call.rank);
    if (shard.getDim() == 0 && shape.size() == 2)
      weight.firstRow = part * weight.rows;
    else
      weight.firstCol = part * weight.cols;
  }
  return call.give(std::move(weight));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

absl::StatusOr<Tensor> embedRows(OpCall &call, const Indices &tokens,
                                 const Weight &table, const Indices *rank) {
  Tensor result({static_cast<int64_t>(tokens.size()), table.cols});
  std::vector<float> scratch;
  const int64_t first = rank ? rank->front() * table.rows : 0;
  for (auto [n, whole] : llvm::enumerate(tokens)) {
    const int64_t token = whole - first;
    // Another rank has it.
    if (rank && (token < 0 || token >= table.rows))
      continue;
    if (token < 0 || token >= table.rows)
      return usageError(absl::StrCat("row ", n, ": expected a token in [0, ",
                                     table.rows, "), got ", token));
    LLAMAC_ASSIGN_OR_RETURN(const float *row,
                            call.weights.rows(table, token, 1, scratch));
    std::copy_n(row, table.cols, result.data.data() + n * table.cols);
  }
  return result;
}

template <> absl::Status compute<llama::EmbeddingOp>(OpCall &call) {
  return call.give(
      embedRows(call, call.indices(0), call.weight(1),
                call.operands.size() > 2 ? &call.indices(2) : nullptr));
}

template <> absl::Status compute<kernel::EmbedOp>(OpCall &call) {
  auto op = cast<kernel::EmbedOp>(call.op);
  const unsigned positions = 2, rank = op.getPositions() ? 3 : 2;
  LLAMAC_RETURN_IF_ERROR(
      call.give(embedRows(call, call.indices(0), call.weight(1),
                          op.getRank() ? &call.indices(rank) : nullptr)));
  if (!op.getCosSin())
    return absl::OkStatus();
  return call.give(
      cosSinTable(call.indices(positions),
                  cast<DenseElementsAttr>(op.getFrequenciesAttr())));
}

/// sum += x, of equal shapes.
static void addTo(Tensor &sum, const Tensor &x) {
  std::transform(sum.data.begin(), sum.data.end(), x.data.begin(),
                 sum.data.begin(), std::plus<float>());
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Calls `visit(rank, input)` with operand 0 of each rank, in their order.
static absl::Status
forEachRank(OpCall &call, int64_t ranks,
            llvm::function_ref<void(int64_t rank, const Tensor &input)> visit) {
  if (static_cast<int64_t>(call.ofRanks.size()) != ranks)
    return internalError(
        absl::StrCat("expected ", ranks, " ranks, got ", call.ofRanks.size()));
  for (auto [rank, operands] : llvm::enumerate(call.ofRanks))
    visit(static_cast<int64_t>(rank), std::get<Tensor>(*operands[0]));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> sumOfRanks(OpCall &call, int64_t ranks) {
  Tensor sum;
  LLAMAC_RETURN_IF_ERROR(
      forEachRank(call, ranks, [&](int64_t rank, const Tensor &input) {
        if (rank == 0)
          sum = input;
        else
          addTo(sum, input);
      }));
  return sum;
}

absl::StatusOr<Tensor> columnsOfRanks(OpCall &call, int64_t ranks) {
  const int64_t rows = call.tensor(0).shape[0], width = call.tensor(0).shape[1];
  Tensor result({rows, ranks * width});
  LLAMAC_RETURN_IF_ERROR(
      forEachRank(call, ranks, [&](int64_t rank, const Tensor &input) {
        for (int64_t n = 0; n < rows; ++n)
          std::copy_n(input.data.data() + n * width, width,
                      result.data.data() + (n * ranks + rank) * width);
      }));
  return result;
}

template <> absl::Status compute<llama::AllReduceOp>(OpCall &call) {
  return call.give(
      sumOfRanks(call, cast<llama::AllReduceOp>(call.op).getRanks()));
}

template <> absl::Status compute<llama::AllGatherOp>(OpCall &call) {
  return call.give(
      columnsOfRanks(call, cast<llama::AllGatherOp>(call.op).getRanks()));
}

template <> absl::Status compute<kernel::AllGatherOp>(OpCall &call) {
  return call.give(
      columnsOfRanks(call, cast<kernel::AllGatherOp>(call.op).getRanks()));
}

//===----------------------------------------------------------------------===//
// Selection and norms of rows
//===----------------------------------------------------------------------===//

/// Copies `rows`, of `width` elements, of the `count` rows at `from`.
template <typename Element>
static absl::Status copyRows(const Indices &rows, int64_t count, int64_t width,
                             const Element *from, Element *to) {
  for (auto [i, row] : llvm::enumerate(rows)) {
    if (row < 0 || row >= count)
      return usageError(absl::StrCat(
          "logits row ", i, ": expected a row in [0, ", count, "), got ", row));
    std::copy_n(from + row * width, width, to + i * width);
  }
  return absl::OkStatus();
}

static absl::Status gatherRows(OpCall &call) {
  const Indices &rows = call.indices(1);
  if (const auto *x = std::get_if<Indices>(&*call.operands[0])) {
    Indices result(rows.size());
    LLAMAC_RETURN_IF_ERROR(copyRows(rows, static_cast<int64_t>(x->size()), 1,
                                    x->data(), result.data()));
    return call.give(std::move(result));
  }
  const Tensor &x = call.tensor(0);
  std::vector<int64_t> shape = x.shape;
  shape[0] = static_cast<int64_t>(rows.size());
  const int64_t width = std::reduce(shape.begin() + 1, shape.end(), int64_t{1},
                                    std::multiplies());
  Tensor result(std::move(shape));
  LLAMAC_RETURN_IF_ERROR(
      copyRows(rows, x.shape[0], width, x.data.data(), result.data.data()));
  return call.give(std::move(result));
}

template <> absl::Status compute<llama::GatherRowsOp>(OpCall &call) {
  return gatherRows(call);
}

template <> absl::Status compute<kernel::GatherRowsOp>(OpCall &call) {
  return gatherRows(call);
}

absl::StatusOr<Tensor> normaliseRows(OpCall &call, const Tensor &x,
                                     const Weight &gains, double eps) {
  const int64_t width = gains.cols;
  LLAMAC_RETURN_IF_ERROR(call.weights.keep(gains, call.parallel));
  std::vector<float> scratch;
  LLAMAC_ASSIGN_OR_RETURN(const float *gain,
                          call.weights.rows(gains, 0, 1, scratch));
  Tensor result(x.shape);
  call.parallel.forEach(
      static_cast<int64_t>(x.data.size()) / width,
      4.0 * static_cast<double>(x.data.size()), [&](int64_t n) {
        const float *from = x.data.data() + n * width;
        float *to = result.data.data() + n * width;
        double squares = 0;
        for (int64_t i = 0; i < width; ++i)
          squares += double{from[i]} * from[i];
        const double factor =
            1.0 / std::sqrt(squares / static_cast<double>(width) + eps);
        for (int64_t i = 0; i < width; ++i)
          to[i] = static_cast<float>(from[i] * factor * gain[i]);
      });
  return result;
}

template <> absl::Status compute<llama::RMSNormOp>(OpCall &call) {
  const double eps = cast<llama::RMSNormOp>(call.op).getEps().convertToDouble();
  return call.give(normaliseRows(call, call.tensor(0), call.weight(1), eps));
}

absl::StatusOr<Tensor> repeatRow(OpCall &call, const Weight &vector,
                                 int64_t rows) {
  std::vector<float> scratch;
  LLAMAC_ASSIGN_OR_RETURN(const float *row,
                          call.weights.rows(vector, 0, 1, scratch));
  Tensor result({rows, vector.cols});
  for (int64_t n = 0; n < rows; ++n)
    std::copy_n(row, vector.cols, result.data.data() + n * vector.cols);
  return result;
}

absl::Status addRow(OpCall &call, Tensor &x, const Weight &vector) {
  LLAMAC_ASSIGN_OR_RETURN(const Tensor rows,
                          repeatRow(call, vector, x.shape[0]));
  addTo(x, rows);
  return absl::OkStatus();
}

template <> absl::Status compute<llama::BiasOp>(OpCall &call) {
  auto x = call.take<Tensor>(0);
  LLAMAC_RETURN_IF_ERROR(addRow(call, x, call.weight(1)));
  return call.give(std::move(x));
}

absl::StatusOr<Tensor> multiplyRows(OpCall &call, const Tensor &x,
                                    const Weight &weight) {
  const int64_t rows = x.shape[0], cols = weight.cols;
  LLAMAC_RETURN_IF_ERROR(call.weights.keep(weight, call.parallel));
  Tensor result({rows, weight.rows});
  const int64_t tasks =
      (weight.rows + weightRowsPerTask - 1) / weightRowsPerTask;
  const double work = 2.0 * static_cast<double>(rows) *
                      static_cast<double>(weight.rows) *
                      static_cast<double>(cols);
  LLAMAC_RETURN_IF_ERROR(
      call.parallel.tryForEach(tasks, work, [&](int64_t task) -> absl::Status {
        const int64_t first = task * weightRowsPerTask;
        const int64_t count = std::min(weightRowsPerTask, weight.rows - first);
        std::vector<float> scratch;
        LLAMAC_ASSIGN_OR_RETURN(
            const float *w, call.weights.rows(weight, first, count, scratch));
        for (int64_t n = 0; n < rows; n += activationRowsPerBlock)
          productOfRows({x.data.data() + n * cols,
                         std::min(activationRowsPerBlock, rows - n), cols},
                        {w, count, cols}, cols,
                        result.data.data() + n * weight.rows + first,
                        weight.rows);
        return absl::OkStatus();
      }));
  return result;
}

template <> absl::Status compute<llama::LinearOp>(OpCall &call) {
  return call.give(multiplyRows(call, call.tensor(0), call.weight(1)));
}

template <> absl::Status compute<llama::SplitHeadsOp>(OpCall &call) {
  const auto heads =
      static_cast<int64_t>(cast<llama::SplitHeadsOp>(call.op).getHeads());
  auto x = call.take<Tensor>(0);
  x.shape = {x.shape[0], heads, x.shape[1] / heads};
  return call.give(std::move(x));
}

template <> absl::Status compute<llama::MergeHeadsOp>(OpCall &call) {
  auto x = call.take<Tensor>(0);
  x.shape = {x.shape[0], x.shape[1] * x.shape[2]};
  return call.give(std::move(x));
}

//===----------------------------------------------------------------------===//
// Element-wise ops
//===----------------------------------------------------------------------===//

/// fn(element) of the one operand; `cost` is that of fn.
template <typename Fn>
static absl::Status map(OpCall &call, double cost, Fn fn) {
  auto x = call.take<Tensor>(0);
  const auto count = static_cast<int64_t>(x.data.size());
  constexpr int64_t chunk = 4096;
  call.parallel.forEach((count + chunk - 1) / chunk,
                        cost * static_cast<double>(count), [&](int64_t i) {
                          auto begin = x.data.begin() + i * chunk;
                          auto end = begin + std::min(chunk, count - i * chunk);
                          std::transform(begin, end, begin, fn);
                        });
  return call.give(std::move(x));
}

/// fn(left, right) of the elements of two operands of one shape.
template <typename Fn> static absl::Status zip(OpCall &call, Fn fn) {
  auto x = call.take<Tensor>(0);
  const Tensor &y = call.tensor(1);
  if (x.shape != y.shape)
    return internalError("operands of an element-wise op differ in shape");
  std::transform(x.data.begin(), x.data.end(), y.data.begin(), x.data.begin(),
                 fn);
  return call.give(std::move(x));
}

absl::Status elementwise(OpCall &call) {
  const ScalarFn compute = scalarFunction(call.op);
  if (call.operands.size() == 2)
    return zip(call, compute);
  return map(call, expCost, [compute](float x) { return compute(x, x); });
}

template <> absl::Status compute<llama::ScaleOp>(OpCall &call) {
  const double factor =
      cast<llama::ScaleOp>(call.op).getFactor().convertToDouble();
  return map(call, 1,
             [factor](float x) { return static_cast<float>(x * factor); });
}

} // namespace llamac::reference
