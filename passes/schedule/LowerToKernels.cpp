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
// of the graph. convert() has an overload for each op; element-wise ops are
// rows of a table. Kernel values are [rows, width]: heads are a view of the
// width.
//
// The launch that appends a layer's keys rotates its queries too. What makes
// the queries is lowered before the append even where it comes after it.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_LOWERTOKERNELS
#include "passes/Passes.h.inc"

namespace {

/// [rows, a, b] as [rows, a * b]; other types as they are.
static Type flattened(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 3 ||
      !llvm::all_of(tensor.getShape().drop_front(), llama::isSize))
    return type;
  return RankedTensorType::get(
      {tensor.getDimSize(0), tensor.getDimSize(1) * tensor.getDimSize(2)},
      tensor.getElementType());
}

/// The op on scalars, of as many operands, that `op` is for each element;
/// empty where it is none.
StringRef scalarOf(Operation *op) {
  using kernel::NoOp;
#define LLAMAC_SCALAR(Op, GraphOp, ...)                                        \
  if (op->getName().getStringRef() == GraphOp::getOperationName())             \
    return Op::getOperationName();
#include "ir/kernel/Scalars.def"
  return "";
}

/// Whether fuse-attention takes `op` into llama.attention.
bool isPartOfAttention(Operation *op) {
  return isa<llama::AddMaskOp, llama::AttentionScoresOp,
             llama::AttentionValuesOp, llama::CacheIndexOp, llama::CacheReadOp,
             llama::CausalMaskOp, llama::SoftmaxOp>(op);
}

/// True where a value that llama.rope makes may be read: as the key of an
/// append or the query of an attention, whose launch rotates it.
bool readsRotated(OpOperand &operand) {
  Operation *op = operand.getOwner();
  return (isa<llama::CacheAppendOp>(op) && operand.getOperandNumber() == 1) ||
         (isa<llama::AttentionOp>(op) && operand.getOperandNumber() == 0);
}

class Lowering {
public:
  explicit Lowering(func::FuncOp func)
      : func(func), builder(func.getContext()) {}

  LogicalResult run() {
    if (failed(checkOneBlock(func)))
      return failure();
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

private:
  bool canLower(Operation *op) const {
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      return mapping.contains(operand.get()) || readsRotated(operand);
    });
  }

  /// Lowers `op` unless it was lowered before.
  LogicalResult lower(Operation *op) {
    if (!met.insert(op).second)
      return success();
    auto checked = [&](auto convert) -> LogicalResult {
      if (canLower(op))
        return convert();
      return op->emitError("reads a result of llama.rope, which may only be an "
                           "attention's query or an appended key");
    };
    if (const StringRef scalar = scalarOf(op); !scalar.empty())
      return checked([&] { return pointwise(op, scalar); });
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case<func::ReturnOp, llama::AllGatherOp, llama::AllReduceOp,
              llama::AttentionOp, llama::BiasOp, llama::CacheAppendOp,
              llama::EmbeddingOp, llama::GatherRowsOp, llama::LinearOp,
              llama::MergeHeadsOp, llama::RMSNormOp, llama::RopeOp,
              llama::RopeTableOp, llama::ScaleOp, llama::SplitHeadsOp,
              llama::WeightOp>(
            [&](auto known) { return checked([&] { return convert(known); }); })
        .Default([](Operation *op) -> LogicalResult {
          InFlightDiagnostic error = op->emitError() << "no kernel implements "
                                                     << op->getName();
          if (isPartOfAttention(op))
            error << ", which is part of attention: fuse-attention must come "
                     "first";
          return error;
        });
  }

  /// Lowers what makes `value`, as far as it does not depend on an op that is
  /// being lowered.
  LogicalResult lowerAhead(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || met.contains(op))
      return success();
    for (Value operand : op->getOperands())
      if (failed(lowerAhead(operand)))
        return failure();
    return canLower(op) ? lower(op) : success();
  }

  Value of(Value value) { return mapping.lookup(value); }

  /// Builds a kernel op whose only result, of `type`, stands for `op`'s.
  template <typename Op, typename... Args>
  Op emit(Operation *op, Type type, Args &&...args) {
    auto lowered =
        builder.create<Op>(op->getLoc(), type, std::forward<Args>(args)...);
    mapping.map(op->getResult(0), lowered->getResult(0));
    return lowered;
  }

  LogicalResult clone(Operation *op) {
    builder.clone(*op, mapping);
    return success();
  }

  LogicalResult view(Operation *op) {
    mapping.map(op->getResult(0), of(op->getOperand(0)));
    return success();
  }

  LogicalResult convert(func::ReturnOp op) { return clone(op); }
  LogicalResult convert(llama::WeightOp op) { return clone(op); }
  LogicalResult convert(llama::MergeHeadsOp op) { return view(op); }
  LogicalResult convert(llama::SplitHeadsOp op) { return view(op); }
  // With the append of its layer.
  LogicalResult convert(llama::RopeOp) { return success(); }

  LogicalResult convert(llama::EmbeddingOp op) {
    emit<kernel::EmbedOp>(op, op.getType(), /*cosSin=*/Type(),
                          of(op.getTokens()), of(op.getTable()),
                          /*positions=*/Value(),
                          op.getRank() ? of(op.getRank()) : Value(),
                          /*frequencies=*/DenseElementsAttr());
    return success();
  }

  LogicalResult convert(llama::AllReduceOp op) {
    emit<kernel::AllReduceOp>(op, op.getType(), /*forNextNorm=*/TypeRange(),
                              of(op.getX()), /*nextNorm=*/Value(), ValueRange(),
                              op.getRanksAttr(), op.getTreeAttr());
    return success();
  }

  LogicalResult convert(llama::AllGatherOp op) {
    emit<kernel::AllGatherOp>(op, op.getType(), of(op.getX()),
                              op.getRanksAttr());
    return success();
  }

  LogicalResult convert(llama::RMSNormOp op) {
    emit<kernel::RmsNormOp>(op, flattened(op.getType()),
                            /*forNextNorm=*/TypeRange(), of(op.getX()),
                            of(op.getWeight()), /*nextNorm=*/Value(),
                            ValueRange(), op.getEpsAttr());
    return success();
  }

  LogicalResult convert(llama::BiasOp op) {
    return pointwise(op, arith::AddFOp::getOperationName());
  }

  LogicalResult convert(llama::GatherRowsOp op) {
    emit<kernel::GatherRowsOp>(op, flattened(op.getType()), of(op.getX()),
                               of(op.getRows()));
    return success();
  }

  LogicalResult convert(llama::RopeTableOp op) {
    emit<kernel::RopeTableOp>(op, op.getType(), of(op.getPositions()),
                              op.getFrequenciesAttr());
    return success();
  }

  LogicalResult convert(llama::LinearOp op) {
    auto product = emit<kernel::MatmulOp>(
        op, op.getType(), /*forNextNorm=*/TypeRange(), of(op.getX()),
        of(op.getWeight()), /*norm=*/Value(),
        /*nextNorm=*/Value(), ValueRange(), FloatAttr(), op.getLeavesAttr(),
        kernel::MatmulConfigAttr());
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&product.getEpilogue(), {},
                                       builder.getF32Type(), op.getLoc());
    builder.create<kernel::YieldOp>(op.getLoc(), block->getArgument(0));
    return success();
  }

  LogicalResult convert(llama::CacheAppendOp op);

  LogicalResult convert(llama::AttentionOp op) {
    if (!mapping.contains(op.getQuery()))
      return op.emitError("the query is not rotated by llama.rope");
    emit<kernel::AttentionOp>(op, flattened(op.getType()), of(op.getQuery()),
                              of(op.getKv()), of(op.getPositions()),
                              of(op.getSequences()), op.getScaleAttr(),
                              op.getWindowAttr(), kernel::AttentionConfigAttr(),
                              op.getApproximationAttr());
    return success();
  }

  LogicalResult convert(llama::ScaleOp op) {
    return pointwise(op, arith::MulFOp::getOperationName(), op.getFactorAttr());
  }

  LogicalResult pointwise(Operation *op, StringRef scalarName,
                          FloatAttr constant = {});

  func::FuncOp func;
  OpBuilder builder;
  IRMapping mapping;
  llvm::SmallPtrSet<Operation *, 32> met; ///< Lowered, or being lowered.
};

/// `scalarName` of the elements of the operands, and of `constant` behind them
/// where there is one.
LogicalResult Lowering::pointwise(Operation *op, StringRef scalarName,
                                  FloatAttr constant) {
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands())
    if (!llvm::is_contained(inputs, of(operand)))
      inputs.push_back(of(operand));
  auto lowered = emit<kernel::PointwiseOp>(
      op, flattened(op->getResult(0).getType()), inputs);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> types(inputs.size(), builder.getF32Type());
  SmallVector<Location> locs(inputs.size(), op->getLoc());
  Block *block = builder.createBlock(&lowered.getBody(), {}, types, locs);
  OperationState scalar(op->getLoc(), scalarName);
  scalar.addTypes(builder.getF32Type());
  for (Value operand : op->getOperands()) {
    auto *it = llvm::find(inputs, of(operand));
    scalar.addOperands(block->getArgument(it - inputs.begin()));
  }
  if (constant) {
    const auto value = static_cast<float>(constant.getValueAsDouble());
    scalar.addOperands(builder
                           .create<arith::ConstantOp>(
                               op->getLoc(), builder.getF32FloatAttr(value))
                           .getResult());
  }
  builder.create<kernel::YieldOp>(op->getLoc(),
                                  builder.create(scalar)->getResult(0));
  return success();
}

LogicalResult Lowering::convert(llama::CacheAppendOp op) {
  auto keyRope = op.getKey().getDefiningOp<llama::RopeOp>();
  if (!keyRope)
    return op.emitError("the appended key is not rotated by llama.rope");
  // The query that reads this cache is rotated by the same launch; attention
  // may read the logits rows of it alone.
  Value rotated;
  for (Operation *user : op.getResult().getUsers())
    if (auto attention = dyn_cast<llama::AttentionOp>(user))
      rotated = attention.getQuery();
  if (auto gather = rotated ? rotated.getDefiningOp<llama::GatherRowsOp>()
                            : llama::GatherRowsOp())
    rotated = gather.getX();
  llama::RopeOp queryRope =
      rotated ? rotated.getDefiningOp<llama::RopeOp>() : llama::RopeOp();
  if (queryRope && failed(lowerAhead(queryRope.getX())))
    return failure();
  if (!queryRope || queryRope.getTable() != keyRope.getTable() ||
      !mapping.contains(queryRope.getX()))
    return op.emitError("no attention over the appended cache with a query "
                        "rotated by the key's table");
  Value query = of(queryRope.getX());
  auto lowered = builder.create<kernel::RopeAppendOp>(
      builder.getFusedLoc({queryRope.getLoc(), keyRope.getLoc(), op.getLoc()}),
      TypeRange{query.getType(), op.getType()}, query, of(keyRope.getX()),
      of(op.getValue()), of(keyRope.getTable()), of(op.getKv()),
      of(op.getPositions()), of(op.getSequences()), ValueRange(), FloatAttr());
  mapping.map(queryRope.getResult(), lowered.getRotated());
  mapping.map(op.getResult(), lowered.getNewKv());
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
