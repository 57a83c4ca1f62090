//===- Shard.cpp - A step becomes that of one of several ranks ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The partition of Megatron-LM (Shoeybi et al. 2019, section 3): what makes
// heads, hidden features and the vocabulary is cut by rows, wo and w2, which
// consume heads and features, by columns. So each layer has two sums over the
// ranks.
//
// Walks the function once in order. Each value is whole on every rank, or
// partitioned over the ranks by heads or columns; an op's types are inferred
// again from its operands' parts. A product that sums a part of the columns is
// followed by its llama.all_reduce, logits by a llama.all_gather. What would
// need another collective is refused.
//
// Where results have to be the same bits for every number of ranks, whatever
// ranks would sum is cut into the same leaves, equal runs of columns, and the
// leaves are added by a binary tree (arXiv 2511.17826): its lower part by the
// product of the rank that has them, its upper part by the all_reduce.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "runtime/base/ModelConfig.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_SHARD
#include "passes/Passes.h.inc"

namespace {

/// The dimension of a weight that ranks partition, and its unit.
struct WeightPartition {
  StringLiteral name; ///< The last part of the canonical name.
  int64_t dim;
  bool isOfKvHeads = false; ///< Each rank has at least one KV head.
};

constexpr WeightPartition weightPartitions[] = {{"tok_embeddings", 0},
                                                {"output", 0},
                                                {"wq", 0},
                                                {"bq", 0},
                                                {"wk", 0, true},
                                                {"bk", 0, true},
                                                {"wv", 0, true},
                                                {"bv", 0, true},
                                                {"wo", 1},
                                                {"w1", 0},
                                                {"w3", 0},
                                                {"w2", 1}};

const WeightPartition *partitionOf(StringRef weight) {
  const StringRef name = weight.rsplit('.').second;
  const auto *partitioned =
      llvm::find_if(weightPartitions, [&](const WeightPartition &row) {
        return row.name == (name.empty() ? weight : name);
      });
  return partitioned == std::end(weightPartitions) ? nullptr : partitioned;
}

/// The leaves of every sum that ranks may partition: also the most ranks that
/// can.
constexpr int64_t allLeaves = 8;

/// Calls `visit(product, weight)` for what sums over columns that ranks would
/// partitioned; stops where that fails.
LogicalResult forEachPartialSum(
    func::FuncOp step,
    llvm::function_ref<LogicalResult(llama::LinearOp, llama::WeightOp)> visit) {
  return failure(
      step.walk([&](llama::LinearOp product) {
            auto weight = product.getWeight().getDefiningOp<llama::WeightOp>();
            const WeightPartition *row =
                weight ? partitionOf(weight.getName()) : nullptr;
            return WalkResult(!row || row->dim == 0 ? success()
                                                    : visit(product, weight));
          })
          .wasInterrupted());
}

/// Emits an error where a sum cannot be cut into leaves.
LogicalResult checkLeaves(func::FuncOp step) {
  return forEachPartialSum(
      step, [&](llama::LinearOp, llama::WeightOp weight) -> LogicalResult {
        const auto type = weight.getResult().getType();
        const auto quant = dyn_cast<llama::QuantType>(type.getElementType());
        // Kernels take eight columns of floats at a time.
        const int64_t unit = quant ? quant.getBlockElements() : 8;
        if (type.getDimSize(1) % (allLeaves * unit) == 0)
          return success();
        return step.emitError()
               << weight.getName() << ": expected a multiple of "
               << allLeaves * unit << " columns, " << allLeaves << " leaves of "
               << unit << ", got " << type.getDimSize(1)
               << "; compile without --reproducible-ranks";
      });
}

class Sharding {
public:
  /// Sums are trees where `isReproducible`.
  Sharding(func::FuncOp step, int64_t ranks, bool isReproducible)
      : step(step), builder(step.getContext()), ranks(ranks),
        isReproducible(isReproducible) {}

  /// Rewrites the step. Emits an error where that cannot be.
  LogicalResult run();

private:
  LogicalResult setLeaves();
  LogicalResult shardCaches();
  LogicalResult shard(Operation *op);
  LogicalResult shard(llama::WeightOp weight);
  LogicalResult shard(llama::SplitHeadsOp op);
  LogicalResult shard(llama::EmbeddingOp op);
  LogicalResult shard(llama::LinearOp op);
  LogicalResult shard(func::ReturnOp op);
  LogicalResult requireAlike(Operation *op, ValueRange operands);
  LogicalResult inferTypes(Operation *op);

  bool isPartitioned(Value value) const { return partitioned.contains(value); }
  llama::ShardAttr shardOf(Value weight) const {
    auto op = weight.getDefiningOp<llama::WeightOp>();
    return op ? op.getShardAttr() : llama::ShardAttr();
  }

  /// Parts into which `size` units, `what`, are cut by `parts`.
  FailureOr<int64_t> partOf(Operation *op, int64_t size, int64_t parts,
                            const Twine &what) {
    if (size % parts == 0)
      return size / parts;
    return op->emitError() << size << " " << what
                           << " cannot be partitioned over " << ranks
                           << " ranks";
  }

  /// Lets the sum over the ranks of what `op` makes stand for its result, and
  /// calls the rank's own part of it another name.
  void reduce(Operation *op) {
    Value partial = op->getResult(0);
    builder.setInsertionPointAfter(op);
    auto sum = builder.create<llama::AllReduceOp>(
        op->getLoc(), partial, builder.getI64IntegerAttr(ranks),
        isReproducible ? builder.getUnitAttr() : UnitAttr());
    partial.replaceAllUsesExcept(sum.getResult(), sum);
    if (auto name = dyn_cast<NameLoc>(op->getLoc()))
      op->setLoc(NameLoc::get(
          builder.getStringAttr(name.getName().getValue() + ".partial")));
  }

  func::FuncOp step;
  OpBuilder builder;
  const int64_t ranks;
  const bool isReproducible;
  int64_t kvParts = 1; ///< Into which the heads of the caches are cut.
  Value rank;          ///< The argument.
  llvm::DenseSet<Value> partitioned;
};

} // namespace

LogicalResult Sharding::run() {
  if (isReproducible && failed(setLeaves()))
    return failure();
  if (ranks == 1)
    return success();
  if (failed(shardCaches()))
    return failure();
  const auto role = llama::StepRoleAttr::get(
      builder.getContext(), llama::StepRole::Rank, std::nullopt);
  const unsigned number = step.getNumArguments();
  step.insertArgument(number, RankedTensorType::get({1}, builder.getI32Type()),
                      builder.getDictionaryAttr(builder.getNamedAttr(
                          llama::LlamaDialect::getRoleAttrName(), role)),
                      NameLoc::get(builder.getStringAttr("rank")));
  rank = step.getArgument(number);
  for (Operation &op : llvm::make_early_inc_range(step.getBody().front()))
    if (failed(shard(&op)))
      return failure();
  Operation *end = step.getBody().front().getTerminator();
  step.setFunctionType(builder.getFunctionType(
      step.getBody().getArgumentTypes(), end->getOperandTypes()));
  return success();
}

/// A rank has as many leaves of each sum as others.
LogicalResult Sharding::setLeaves() {
  const FailureOr<int64_t> leaves = partOf(step, allLeaves, ranks, "leaves");
  if (failed(leaves))
    return failure();
  return forEachPartialSum(step, [&](llama::LinearOp product, llama::WeightOp) {
    if (*leaves > 1)
      product.setLeaves(*leaves);
    return success();
  });
}

/// A rank has some of the KV heads, or, where there are fewer than ranks, one
/// that others have too.
LogicalResult Sharding::shardCaches() {
  for (BlockArgument argument : step.getArguments()) {
    auto kv = dyn_cast<llama::KVType>(argument.getType());
    if (!kv)
      continue;
    const int64_t heads = kv.getHeads();
    kvParts = std::min(heads, ranks);
    if (heads % kvParts != 0 || ranks % kvParts != 0)
      return step.emitError()
             << heads << " KV heads cannot be partitioned over " << ranks
             << " ranks";
    argument.setType(llama::KVType::get(
        builder.getContext(), kvHeadsOfRank(heads, ranks), kv.getSize()));
    partitioned.insert(argument);
  }
  return success();
}

LogicalResult Sharding::shard(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<llama::WeightOp, llama::SplitHeadsOp, llama::EmbeddingOp,
            llama::LinearOp, func::ReturnOp>(
          [&](auto known) { return shard(known); })
      .Case<llama::CacheIndexOp, llama::CausalMaskOp>(
          [](auto) { return success(); }) // All ranks have all positions.
      .Case<llama::BiasOp>([&](llama::BiasOp bias) {
        if (isPartitioned(bias.getX()) ==
            (shardOf(bias.getWeight()) != nullptr))
          return inferTypes(bias);
        return LogicalResult(bias.emitError("adds a whole vector to a part"));
      })
      .Case<llama::RMSNormOp>([&](llama::RMSNormOp norm) -> LogicalResult {
        const bool ofHeads = cast<ShapedType>(norm.getType()).getRank() == 3;
        if (ofHeads || !isPartitioned(norm.getX()))
          return inferTypes(norm);
        return norm.emitError("normalises whole rows of heads, of which each "
                              "rank has a part");
      })
      .Case<llama::AddOp, llama::MulOp>([&](auto binary) {
        return failed(requireAlike(binary, binary->getOperands()))
                   ? failure()
                   : inferTypes(binary);
      })
      .Default([&](Operation *other) { return inferTypes(other); });
}

LogicalResult Sharding::requireAlike(Operation *op, ValueRange operands) {
  if (llvm::all_equal(llvm::map_range(
          operands, [&](Value operand) { return isPartitioned(operand); })))
    return success();
  return op->emitError("combines a whole value and a part");
}

/// Infers the types of `op` again; its results are partitioned where an operand
/// is.
LogicalResult Sharding::inferTypes(Operation *op) {
  if (llvm::none_of(op->getOperands(),
                    [&](Value operand) { return isPartitioned(operand); }))
    return success();
  SmallVector<Type> types;
  auto inferred = dyn_cast<InferTypeOpInterface>(op);
  if (!inferred || failed(inferred.inferReturnTypes(
                       builder.getContext(), op->getLoc(), op->getOperands(),
                       op->getAttrDictionary(), op->getPropertiesStorage(),
                       op->getRegions(), types)))
    return op->emitError("cannot be partitioned over ranks");
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
    result.setType(type);
    partitioned.insert(result);
  }
  return success();
}

LogicalResult Sharding::shard(llama::WeightOp weight) {
  const WeightPartition *row = partitionOf(weight.getName());
  if (!row)
    return success();
  const int64_t parts = row->isOfKvHeads ? kvParts : ranks;
  RankedTensorType type = weight.getResult().getType();
  if (weight.getShard())
    return weight.emitError("is partitioned already");
  if (row->dim >= type.getRank())
    return weight.emitError(
               "is partitioned by columns: expected a matrix, got ")
           << type;
  SmallVector<int64_t> shape(type.getShape());
  const FailureOr<int64_t> part = partOf(weight, shape[row->dim], parts,
                                         row->dim == 0 ? "rows" : "columns");
  if (failed(part))
    return failure();
  shape[row->dim] = *part;
  if (auto quant = dyn_cast<llama::QuantType>(type.getElementType());
      quant && row->dim == 1 && *part % quant.getBlockElements() != 0)
    return weight.emitError()
           << "columns cannot be partitioned over " << ranks
           << " ranks: " << *part << " of them are not whole blocks of "
           << quant.getBlockElements();
  weight.getResult().setType(type.clone(shape));
  weight.setShardAttr(
      llama::ShardAttr::get(builder.getContext(), row->dim, parts, ranks));
  return success();
}

LogicalResult Sharding::shard(llama::SplitHeadsOp op) {
  if (!isPartitioned(op.getX()))
    return success();
  // Heads keep their size.
  const int64_t size = op.getType().getDimSize(2);
  const int64_t columns =
      cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  if (columns % size != 0)
    return op.emitError() << op.getHeads()
                          << " heads cannot be partitioned over " << ranks
                          << " ranks";
  op.setHeads(columns / size);
  return inferTypes(op);
}

LogicalResult Sharding::shard(llama::EmbeddingOp op) {
  if (!shardOf(op.getTable()))
    return success();
  op.getRankMutable().assign(rank);
  reduce(op);
  return success();
}

LogicalResult Sharding::shard(llama::LinearOp op) {
  const llama::ShardAttr shard = shardOf(op.getWeight());
  const bool takesPart = shard && shard.getDim() == 1;
  if (takesPart != isPartitioned(op.getX()))
    return op.emitError(takesPart
                            ? "multiplies a whole value by a part of columns"
                            : "multiplies a part by a weight of whole columns");
  const RankedTensorType type = op.getType();
  const int64_t rows = cast<ShapedType>(op.getWeight().getType()).getDimSize(0);
  op.getResult().setType(type.clone({type.getDimSize(0), rows}));
  if (takesPart)
    reduce(op);
  else if (shard)
    partitioned.insert(op.getResult());
  return success();
}

/// Every rank gives the logits of the whole vocabulary.
LogicalResult Sharding::shard(func::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isPartitioned(operand.get()) ||
        isa<llama::KVType>(operand.get().getType()))
      continue;
    if (auto type = dyn_cast<RankedTensorType>(operand.get().getType());
        !type || type.getRank() != 2)
      return op.emitError("gives a part of ")
             << operand.get().getType()
             << ", expected rows, whose columns can be gathered";
    builder.setInsertionPoint(op);
    auto gather = builder.create<llama::AllGatherOp>(
        operand.get().getLoc(), operand.get(),
        builder.getI64IntegerAttr(ranks));
    operand.set(gather.getResult());
  }
  return success();
}

/// The numbers of ranks over which a step can be partitioned, up to mostRanks.
static SmallVector<int64_t> possibleRanks(func::FuncOp step,
                                          bool isReproducible) {
  ScopedDiagnosticHandler silent(step.getContext(),
                                 [](Diagnostic &) { return success(); });
  SmallVector<int64_t> possible = {1};
  for (int64_t ranks = 2; ranks <= mostRanks; ++ranks) {
    OwningOpRef<func::FuncOp> trial = step.clone();
    if (succeeded(Sharding(*trial, ranks, isReproducible).run()))
      possible.push_back(ranks);
  }
  return possible;
}

namespace {

struct Shard : impl::ShardBase<Shard> {
  using ShardBase::ShardBase;

  void runOnOperation() override {
    func::FuncOp step = getOperation();
    if (failed(checkOneBlock(step)))
      return signalPassFailure();
    if (reproducible && failed(checkLeaves(step)))
      return signalPassFailure();
    const OwningOpRef<func::FuncOp> before = step.clone();
    std::string why;
    {
      ScopedDiagnosticHandler collect(
          &getContext(), [&](Diagnostic &diagnostic) {
            if (!why.empty())
              return success();
            llvm::raw_string_ostream os(why);
            if (auto name = dyn_cast<NameLoc>(diagnostic.getLocation());
                name && name != step.getLoc())
              os << name.getName().getValue() << ": ";
            os << diagnostic;
            return success();
          });
      if (succeeded(Sharding(step, ranks, reproducible).run()))
        return;
    }
    InFlightDiagnostic error = step.emitError() << why << "; expected ";
    llvm::interleaveComma(possibleRanks(*before, reproducible), error,
                          [&](int64_t number) { error << number; });
    error << " ranks, got " << int64_t{ranks};
    error.report();
    signalPassFailure();
  }
};

} // namespace

} // namespace llamac
