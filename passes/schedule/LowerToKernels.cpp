//===- LowerToKernels.cpp - Every step of the graph becomes a launch ------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the function in order and builds, for each op of the graph, the kernel
// op that does its work, keeping the kernel value that stands for each value
// of the graph. What an op becomes is one row of a table. Kernel values are
// [rows, width]: heads are a view of the width.
//
// The launch that appends a layer's keys turns its queries too. What makes the
// queries is lowered ahead of the append where it comes after it.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_LOWERTOKERNELS
#include "passes/Passes.h.inc"

namespace {

/// [rows, a, b] as [rows, a * b]; other types as they are.
static Type flattened(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 3)
    return type;
  return RankedTensorType::get(
      {tensor.getDimSize(0), tensor.getDimSize(1) * tensor.getDimSize(2)},
      tensor.getElementType());
}

class Lowering {
public:
  explicit Lowering(func::FuncOp func)
      : func(func), builder(func.getContext()) {}

  LogicalResult run();

private:
  using Row = LogicalResult (Lowering::*)(Operation *);
  static const llvm::StringMap<Row> &table();

  LogicalResult lower(Operation *op);
  LogicalResult lowerAhead(Value value);
  bool canLower(Operation *op) const;

  Value of(Value value) { return mapping.lookup(value); }

  /// Builds a kernel op at `op`'s place whose only result stands for `op`'s.
  template <typename Op, typename... Args>
  LogicalResult emit(Operation *op, Args &&...args) {
    auto lowered =
        builder.create<Op>(op->getLoc(), flattened(op->getResult(0).getType()),
                           std::forward<Args>(args)...);
    mapping.map(op->getResult(0), lowered->getResult(0));
    return success();
  }

  LogicalResult keep(Operation *op);
  LogicalResult skip(Operation *) { return success(); }
  LogicalResult view(Operation *op);
  LogicalResult embedding(Operation *op);
  LogicalResult rmsNorm(Operation *op);
  LogicalResult linear(Operation *op);
  LogicalResult ropeTable(Operation *op);
  LogicalResult cacheAppend(Operation *op);
  LogicalResult attention(Operation *op);
  LogicalResult gatherRows(Operation *op);
  LogicalResult pointwise(Operation *op);
  LogicalResult terminate(Operation *op);

  func::FuncOp func;
  OpBuilder builder;
  IRMapping mapping;
  llvm::SmallPtrSet<Operation *, 32> met; ///< Lowered, or being lowered.
};

/// Element-wise ops, and the op on scalars, of as many operands, that each is.
static constexpr std::pair<StringRef, StringRef> scalarOps[] = {
    {"llama.add", "arith.addf"},
    {"llama.mul", "arith.mulf"},
    {"llama.silu", "kernel.silu"},
};

const llvm::StringMap<Lowering::Row> &Lowering::table() {
  static const llvm::StringMap<Row> rows = [] {
    llvm::StringMap<Row> all = {
        {"func.return", &Lowering::terminate},
        {"llama.attention", &Lowering::attention},
        {"llama.cache_append", &Lowering::cacheAppend},
        {"llama.embedding", &Lowering::embedding},
        {"llama.gather_rows", &Lowering::gatherRows},
        {"llama.linear", &Lowering::linear},
        {"llama.merge_heads", &Lowering::view},
        {"llama.rms_norm", &Lowering::rmsNorm},
        {"llama.rope", &Lowering::skip}, // With the append of its layer.
        {"llama.rope_table", &Lowering::ropeTable},
        {"llama.split_heads", &Lowering::view},
        {"llama.weight", &Lowering::keep},
    };
    for (const auto &[name, scalar] : scalarOps)
      all[name] = &Lowering::pointwise;
    return all;
  }();
  return rows;
}

/// True where a value that llama.rope makes may be read: as the key of an
/// append or the query of an attention, whose launch turns it.
static bool readsTurned(OpOperand &operand) {
  Operation *op = operand.getOwner();
  return (isa<llama::CacheAppendOp>(op) && operand.getOperandNumber() == 1) ||
         (isa<llama::AttentionOp>(op) && operand.getOperandNumber() == 0);
}

LogicalResult Lowering::run() {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("expected a body of one block");
  Block &block = func.getBody().front();
  for (BlockArgument arg : block.getArguments())
    mapping.map(arg, arg);
  SmallVector<Operation *> ops(llvm::make_pointer_range(block));
  builder.setInsertionPointToEnd(&block);
  for (Operation *op : ops)
    if (failed(lower(op)))
      return failure();
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  return success();
}

/// Whether fuse-attention takes `op` into llama.attention.
static bool isPartOfAttention(Operation *op) {
  return isa<llama::AddMaskOp, llama::AttentionScoresOp,
             llama::AttentionValuesOp, llama::CacheIndexOp, llama::CacheReadOp,
             llama::CausalMaskOp, llama::SoftmaxOp>(op);
}

bool Lowering::canLower(Operation *op) const {
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    return mapping.contains(operand.get()) || readsTurned(operand);
  });
}

/// Lowers `op` unless it was lowered before.
LogicalResult Lowering::lower(Operation *op) {
  if (!met.insert(op).second)
    return success();
  auto row = table().find(op->getName().getStringRef());
  if (row == table().end()) {
    InFlightDiagnostic error = op->emitError()
                               << "no kernel implements " << op->getName();
    if (isPartOfAttention(op))
      error << ", which is part of attention: fuse-attention must come first";
    return error;
  }
  if (!canLower(op))
    return op->emitError("reads a result of llama.rope, which may only be an "
                         "attention's query or an appended key");
  return (this->*row->second)(op);
}

/// Lowers what makes `value`, as far as it does not depend on an op that is
/// being lowered.
LogicalResult Lowering::lowerAhead(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || met.contains(op))
    return success();
  for (Value operand : op->getOperands())
    if (failed(lowerAhead(operand)))
      return failure();
  return canLower(op) ? lower(op) : success();
}

LogicalResult Lowering::keep(Operation *op) {
  builder.clone(*op, mapping);
  return success();
}

LogicalResult Lowering::view(Operation *op) {
  mapping.map(op->getResult(0), of(op->getOperand(0)));
  return success();
}

LogicalResult Lowering::embedding(Operation *op) {
  auto embedding = cast<llama::EmbeddingOp>(op);
  return emit<kernel::EmbedOp>(op, /*angles=*/Type(), of(embedding.getTokens()),
                               of(embedding.getTable()), /*positions=*/Value(),
                               /*frequencies=*/DenseElementsAttr());
}

LogicalResult Lowering::rmsNorm(Operation *op) {
  auto norm = cast<llama::RMSNormOp>(op);
  return emit<kernel::RmsNormOp>(op, of(norm.getX()), of(norm.getWeight()),
                                 norm.getEpsAttr());
}

LogicalResult Lowering::gatherRows(Operation *op) {
  auto gather = cast<llama::GatherRowsOp>(op);
  return emit<kernel::GatherRowsOp>(op, of(gather.getX()),
                                    of(gather.getRows()));
}

LogicalResult Lowering::ropeTable(Operation *op) {
  auto table = cast<llama::RopeTableOp>(op);
  auto lowered = builder.create<kernel::RopeTableOp>(
      op->getLoc(), table.getType(), of(table.getPositions()),
      table.getFrequenciesAttr());
  mapping.map(table.getResult(), lowered.getResult());
  return success();
}

LogicalResult Lowering::linear(Operation *op) {
  auto linear = cast<llama::LinearOp>(op);
  auto product = builder.create<kernel::MatmulOp>(
      op->getLoc(), op->getResult(0).getType(), of(linear.getX()),
      of(linear.getWeight()), Value(), ValueRange(), FloatAttr(),
      kernel::MatmulConfigAttr());
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&product.getEpilogue(), {},
                                     builder.getF32Type(), op->getLoc());
  builder.create<kernel::YieldOp>(op->getLoc(), block->getArgument(0));
  mapping.map(linear.getResult(), product.getResult());
  return success();
}

LogicalResult Lowering::pointwise(Operation *op) {
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands())
    if (!llvm::is_contained(inputs, of(operand)))
      inputs.push_back(of(operand));
  auto lowered = builder.create<kernel::PointwiseOp>(
      op->getLoc(), flattened(op->getResult(0).getType()), inputs);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> types(inputs.size(), builder.getF32Type());
  SmallVector<Location> locs(inputs.size(), op->getLoc());
  Block *block = builder.createBlock(&lowered.getBody(), {}, types, locs);
  const auto *known = llvm::find_if(scalarOps, [&](const auto &row) {
    return row.first == op->getName().getStringRef();
  });
  OperationState scalar(op->getLoc(), known->second);
  scalar.addTypes(builder.getF32Type());
  for (Value operand : op->getOperands()) {
    auto *it = llvm::find(inputs, of(operand));
    scalar.addOperands(block->getArgument(it - inputs.begin()));
  }
  builder.create<kernel::YieldOp>(op->getLoc(),
                                  builder.create(scalar)->getResult(0));
  mapping.map(op->getResult(0), lowered.getResult());
  return success();
}

LogicalResult Lowering::cacheAppend(Operation *op) {
  auto append = cast<llama::CacheAppendOp>(op);
  auto keyTurn = append.getKey().getDefiningOp<llama::RopeOp>();
  if (!keyTurn)
    return op->emitError("the appended key is not turned by llama.rope");
  // The query that reads this layer is turned by the same launch.
  llama::AttentionOp reader;
  for (Operation *user : append.getResult().getUsers())
    if (auto attention = dyn_cast<llama::AttentionOp>(user))
      if (attention.getLayer() == append.getLayer())
        reader = attention;
  // It may read the wanted rows of the turned query alone.
  Value turned = reader ? reader.getQuery() : Value();
  if (auto gather =
          turned ? turned.getDefiningOp<llama::GatherRowsOp>() : nullptr)
    turned = gather.getX();
  llama::RopeOp queryTurn =
      turned ? turned.getDefiningOp<llama::RopeOp>() : llama::RopeOp();
  if (queryTurn && failed(lowerAhead(queryTurn.getX())))
    return failure();
  if (!queryTurn || queryTurn.getTable() != keyTurn.getTable() ||
      !mapping.contains(queryTurn.getX()))
    return op->emitError() << "no attention over layer " << append.getLayer()
                           << " with a query turned by the key's table";
  Value query = of(queryTurn.getX());
  auto lowered = builder.create<kernel::RopeAppendOp>(
      builder.getFusedLoc({queryTurn.getLoc(), keyTurn.getLoc(), op->getLoc()}),
      TypeRange{query.getType(), append.getResult().getType()}, query,
      of(keyTurn.getX()), of(append.getValue()), of(keyTurn.getTable()),
      of(append.getKv()), of(append.getPositions()), of(append.getSequences()),
      append.getLayerAttr());
  mapping.map(queryTurn.getResult(), lowered.getTurned());
  mapping.map(append.getResult(), lowered.getNewKv());
  return success();
}

LogicalResult Lowering::attention(Operation *op) {
  auto attention = cast<llama::AttentionOp>(op);
  if (!mapping.contains(attention.getQuery()))
    return op->emitError("the query is not turned by llama.rope");
  return emit<kernel::AttentionOp>(
      op, of(attention.getQuery()), of(attention.getKv()),
      of(attention.getPositions()), of(attention.getSequences()),
      attention.getLayerAttr(), attention.getScaleAttr(),
      kernel::AttentionConfigAttr());
}

LogicalResult Lowering::terminate(Operation *op) {
  builder.clone(*op, mapping);
  return success();
}

struct LowerToKernels : impl::LowerToKernelsBase<LowerToKernels> {
  void runOnOperation() override {
    if (failed(Lowering(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace llamac
