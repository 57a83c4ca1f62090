//===- LlamaOps.cpp - Types, verifiers and folders of llama ops -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op says once how its result types follow from its operands (infer).
// MLIR calls it to infer types and to verify them: infer() reports a shape that
// does not fit, and the verifier compares the inferred types with the op's.
// ODS has checked ranks and element types before.
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llamac::llama;

namespace llamac::llama {

static_assert(mostRanks == 64, "Llama_Ranks has the number too");

/// One dimension of an operand, with the words that name it in messages.
struct Dim {
  const char *what;
  int64_t size;
};

/// Checks the shapes of one op's operands and collects its result types. After
/// the first mistake it is failed, and further checks say nothing.
class ShapeInference {
public:
  ShapeInference(MLIRContext *context, std::optional<Location> location,
                 StringRef op, SmallVectorImpl<Type> &types)
      : context(context), location(location), op(op), types(types) {}

  /// The shape of `value`, a tensor of that rank. ODS has reported any other
  /// type to whoever parsed or verified the op; a builder fails to infer.
  ArrayRef<int64_t> of(Value value, size_t rank) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && type.getShape().size() == rank)
      return type.getShape();
    failed = true;
    static constexpr int64_t unknown[] = {
        ShapedType::kDynamic, ShapedType::kDynamic, ShapedType::kDynamic};
    return ArrayRef(unknown).take_front(rank);
  }
  int64_t rows(Value indices) { return of(indices, 1)[0]; }

  /// The size that `dims` have in common; `?` where none of them knows it.
  int64_t same(ArrayRef<Dim> dims) {
    Dim known{"", ShapedType::kDynamic};
    for (Dim dim : dims) {
      if (ShapedType::isDynamic(dim.size))
        continue;
      if (ShapedType::isDynamic(known.size))
        known = dim;
      else if (known.size != dim.size)
        error("expects ", known.what, " to equal ", dim.what, ", got ",
              known.size, " and ", dim.size);
    }
    return known.size;
  }

  /// `a` times `b`; `?` where either is.
  int64_t product(int64_t a, int64_t b) {
    int64_t result = 0;
    if (ShapedType::isDynamic(a) || ShapedType::isDynamic(b))
      return ShapedType::kDynamic;
    if (llvm::MulOverflow(a, b, result))
      error("expects sizes whose product is one, got ", a, " and ", b);
    return failed ? ShapedType::kDynamic : result;
  }

  /// `whole` / `part`, which must divide it; neither may be unknown.
  int64_t quotient(Dim whole, Dim part) {
    if (ShapedType::isDynamic(whole.size) || ShapedType::isDynamic(part.size))
      error("expects ", part.what, " and ", whole.what, " to be static");
    else if (part.size <= 0 || whole.size % part.size != 0)
      error("expects ", part.what, " to divide ", whole.what, ", got ",
            part.size, " and ", whole.size);
    return failed ? ShapedType::kDynamic : whole.size / part.size;
  }

  /// The type of a layer's cache; null on failure.
  KVType kv(Value cache) {
    auto type = dyn_cast<KVType>(cache.getType());
    failed |= !type;
    return type;
  }

  template <typename... Args> void error(Args &&...args) {
    if (!failed)
      (void)emitOptionalError(location, "'", op, "' op ",
                              std::forward<Args>(args)...);
    failed = true;
  }

  /// Adds the type of the next result: an f32 tensor, [rows] in i32, or `type`.
  void floats(ArrayRef<int64_t> shape) {
    for (int64_t size : shape)
      if (!ShapedType::isDynamic(size) && !isSize(size))
        return error("expects sizes of 1 to ", largestSize, ", got ", size);
    types.push_back(RankedTensorType::get(shape, Float32Type::get(context)));
  }
  void indices(int64_t rows) {
    types.push_back(RankedTensorType::get(rows, IntegerType::get(context, 32)));
  }
  void give(Type type) { types.push_back(type); }

  bool failed = false;

private:
  MLIRContext *context;
  std::optional<Location> location;
  StringRef op;
  SmallVectorImpl<Type> &types;
};

} // namespace llamac::llama

#include "ir/llama/LlamaInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "ir/llama/LlamaOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

SmallVector<Value> RMSNormOp::getRowOperands() { return {getX()}; }

SmallVector<Value> LinearOp::getRowOperands() { return {getX()}; }

SmallVector<Value> BiasOp::getRowOperands() { return {getX()}; }

// The other rows that attention reads are the cache's.
SmallVector<Value> AttentionOp::getRowOperands() {
  return {getQuery(), getPositions(), getSequences()};
}

//===----------------------------------------------------------------------===//
// Weights and embedding
//===----------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  if (getName().empty())
    return emitOpError("expects a name, got an empty one");
  RankedTensorType type = getResult().getType();
  if (!llvm::all_of(type.getShape(), isSize))
    return emitOpError("expects sizes of 1 to ")
           << largestSize << ", got " << type;
  if (auto quant = dyn_cast<QuantType>(type.getElementType()))
    if (type.getShape().back() % quant.getBlockElements() != 0)
      return emitOpError("expects rows of whole blocks of ")
             << quant.getBlockElements() << " elements, got "
             << type.getShape().back() << " elements a row";
  if (getShard() && getShard()->getDim() >= type.getRank())
    return emitOpError("expects a shard of one of its ")
           << type.getRank() << " dimensions, got " << *getShard();
  return success();
}

void WeightOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getName());
}

void EmbeddingOp::infer(ShapeInference &shapes, Adaptor op) {
  shapes.floats({shapes.rows(op.getTokens()), shapes.of(op.getTable(), 2)[1]});
}

//===----------------------------------------------------------------------===//
// Row-wise ops and products
//===----------------------------------------------------------------------===//

/// Infers the shape of `x`, whose last dimension is the size of `weight`.
static void inferByVector(ShapeInference &shapes, Value x, Value weight) {
  auto type = dyn_cast<RankedTensorType>(x.getType());
  shapes.failed |= !type || type.getRank() == 0;
  if (shapes.failed)
    return;
  SmallVector<int64_t> shape(type.getShape());
  shape.back() =
      shapes.same({{"the columns of x", shape.back()},
                   {"the size of the weight", shapes.of(weight, 1)[0]}});
  shapes.floats(shape);
}

void RMSNormOp::infer(ShapeInference &shapes, Adaptor op) {
  inferByVector(shapes, op.getX(), op.getWeight());
}

void BiasOp::infer(ShapeInference &shapes, Adaptor op) {
  inferByVector(shapes, op.getX(), op.getWeight());
}

void LinearOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> x = shapes.of(op.getX(), 2);
  ArrayRef<int64_t> weight = shapes.of(op.getWeight(), 2);
  shapes.same(
      {{"the columns of x", x[1]}, {"the columns of the weight", weight[1]}});
  if (const auto leaves = op.getLeaves())
    shapes.quotient({"the columns of x", x[1]},
                    {"leaves", static_cast<int64_t>(*leaves)});
  shapes.floats({x[0], weight[0]});
}

void SplitHeadsOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> x = shapes.of(op.getX(), 2);
  const auto heads = static_cast<int64_t>(op.getHeads());
  const int64_t size =
      shapes.quotient({"the columns of x", x[1]}, {"heads", heads});
  if (!shapes.failed)
    shapes.floats({x[0], heads, size});
}

OpFoldResult SplitHeadsOp::fold(FoldAdaptor) {
  auto merge = getX().getDefiningOp<MergeHeadsOp>();
  return merge && merge.getX().getType() == getType() ? merge.getX() : Value();
}

void MergeHeadsOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> x = shapes.of(op.getX(), 3);
  if (ShapedType::isDynamic(x[1]) || ShapedType::isDynamic(x[2]))
    return shapes.error("expects the heads of x and their size to be static, "
                        "got ",
                        op.getX().getType());
  shapes.floats({x[0], shapes.product(x[1], x[2])});
}

OpFoldResult MergeHeadsOp::fold(FoldAdaptor) {
  auto split = getX().getDefiningOp<SplitHeadsOp>();
  return split && split.getX().getType() == getType() ? split.getX() : Value();
}

/// Infers the common shape of `lhs` and `rhs`.
static void inferBinary(ShapeInference &shapes, Value lhs, Value rhs) {
  auto left = dyn_cast<RankedTensorType>(lhs.getType());
  auto right = dyn_cast<RankedTensorType>(rhs.getType());
  shapes.failed |= !left || !right;
  if (shapes.failed)
    return;
  if (left.getRank() != right.getRank())
    return shapes.error("expects operands of one rank, got ", left, " and ",
                        right);
  SmallVector<int64_t> shape;
  for (auto [l, r] : llvm::zip(left.getShape(), right.getShape()))
    shape.push_back(shapes.same(
        {{"each dimension of the left", l}, {"that of the right operand", r}}));
  shapes.floats(shape);
}

void AddOp::infer(ShapeInference &shapes, Adaptor op) {
  inferBinary(shapes, op.getLhs(), op.getRhs());
}

void MulOp::infer(ShapeInference &shapes, Adaptor op) {
  inferBinary(shapes, op.getLhs(), op.getRhs());
}

void SiluOp::infer(ShapeInference &shapes, Adaptor op) {
  shapes.give(op.getX().getType());
}

void GeluTanhOp::infer(ShapeInference &shapes, Adaptor op) {
  shapes.give(op.getX().getType());
}

void ScaleOp::infer(ShapeInference &shapes, Adaptor op) {
  shapes.give(op.getX().getType());
}

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? getX() : Value();
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

void RopeTableOp::infer(ShapeInference &shapes, Adaptor op) {
  shapes.floats({shapes.rows(op.getPositions()),
                 op.getFrequencies().getNumElements(), 2});
}

void RopeTableOp::build(OpBuilder &builder, OperationState &state,
                        Value positions, ArrayRef<double> frequencies) {
  auto type = RankedTensorType::get(static_cast<int64_t>(frequencies.size()),
                                    builder.getF64Type());
  build(builder, state, positions, DenseFPElementsAttr::get(type, frequencies));
}

LogicalResult RopeTableOp::verify() {
  if (getFrequencies().getType().getRank() != 1 || getFrequencies().empty())
    return emitOpError("expects frequencies of rank 1, at least one, got ")
           << getFrequencies().getType();
  for (auto [i, frequency] :
       llvm::enumerate(getFrequencies().getValues<APFloat>()))
    if (!frequency.isFinite() || frequency.isNegative())
      return emitOpError("expects frequency ")
             << i << " to be finite and not negative, got "
             << FloatAttr::get(Float64Type::get(getContext()), frequency);
  return success();
}

void RopeTableOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "rope");
}

void RopeOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> x = shapes.of(op.getX(), 3);
  ArrayRef<int64_t> table = shapes.of(op.getTable(), 3);
  int64_t rows = shapes.same(
      {{"the rows of x", x[0]}, {"the rows of the table", table[0]}});
  int64_t size = shapes.same(
      {{"the head size of x", x[2]},
       {"twice the pairs of the table", shapes.product(2, table[1])}});
  shapes.same({{"the last dimension of the table", table[2]},
               {"a cosine and a sine", 2}});
  shapes.floats({rows, x[1], size});
}

//===----------------------------------------------------------------------===//
// KV cache
//===----------------------------------------------------------------------===//

void CacheAppendOp::infer(ShapeInference &shapes, Adaptor op) {
  const KVType kv = shapes.kv(op.getKv());
  if (!kv)
    return;
  ArrayRef<int64_t> key = shapes.of(op.getKey(), 3);
  ArrayRef<int64_t> value = shapes.of(op.getValue(), 3);
  shapes.same({{"the rows of key", key[0]},
               {"the rows of value", value[0]},
               {"the positions", shapes.rows(op.getPositions())},
               {"the sequences", shapes.rows(op.getSequences())}});
  shapes.same({{"the heads of the KV cache", kv.getHeads()},
               {"the heads of key", key[1]},
               {"the heads of value", value[1]}});
  shapes.same({{"the head size of the KV cache", kv.getSize()},
               {"the head size of key", key[2]},
               {"the head size of value", value[2]}});
  shapes.give(kv);
}

void CacheAppendOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "kv");
}

void CacheReadOp::infer(ShapeInference &shapes, Adaptor op) {
  if (const KVType kv = shapes.kv(op.getKv()))
    for (int i = 0; i < 2; ++i)
      shapes.floats({ShapedType::kDynamic, kv.getHeads(), kv.getSize()});
}

void CacheReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getKeys(), "keys");
  setName(getValues(), "values");
}

void CacheIndexOp::infer(ShapeInference &shapes, Adaptor op) {
  shapes.same({{"the positions", shapes.rows(op.getPositions())},
               {"the sequences", shapes.rows(op.getSequences())}});
  for (int i = 0; i < 2; ++i)
    shapes.indices(ShapedType::kDynamic);
}

void CacheIndexOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getKeyPositions(), "keyPositions");
  setName(getKeySequences(), "keySequences");
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

void CausalMaskOp::infer(ShapeInference &shapes, Adaptor op) {
  int64_t rows =
      shapes.same({{"the positions", shapes.rows(op.getPositions())},
                   {"the sequences", shapes.rows(op.getSequences())}});
  int64_t keys =
      shapes.same({{"the key positions", shapes.rows(op.getKeyPositions())},
                   {"the key sequences", shapes.rows(op.getKeySequences())}});
  shapes.floats({rows, keys});
}

void CausalMaskOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "mask");
}

void AttentionScoresOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> query = shapes.of(op.getQuery(), 3);
  ArrayRef<int64_t> keys = shapes.of(op.getKeys(), 3);
  shapes.quotient({"the heads of the query", query[1]},
                  {"the heads of the keys", keys[1]});
  shapes.same({{"the head size of the query", query[2]},
               {"the head size of the keys", keys[2]}});
  shapes.floats({query[1], query[0], keys[0]});
}

void AddMaskOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> scores = shapes.of(op.getScores(), 3);
  ArrayRef<int64_t> mask = shapes.of(op.getMask(), 2);
  int64_t rows = shapes.same({{"the rows of the scores", scores[1]},
                              {"the rows of the mask", mask[0]}});
  int64_t keys = shapes.same({{"the keys of the scores", scores[2]},
                              {"the keys of the mask", mask[1]}});
  shapes.floats({scores[0], rows, keys});
}

OpFoldResult AddMaskOp::fold(FoldAdaptor) {
  // Zeros and minus infinities change nothing the second time.
  auto inner = getScores().getDefiningOp<AddMaskOp>();
  return inner && inner.getMask() == getMask() &&
                 getMask().getDefiningOp<CausalMaskOp>()
             ? inner.getResult()
             : Value();
}

void SoftmaxOp::infer(ShapeInference &shapes, Adaptor op) {
  shapes.give(op.getScores().getType());
}

void AttentionValuesOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> probabilities = shapes.of(op.getProbabilities(), 3);
  ArrayRef<int64_t> values = shapes.of(op.getValues(), 3);
  shapes.quotient({"the heads of the probabilities", probabilities[0]},
                  {"the heads of the values", values[1]});
  shapes.same({{"the keys of the probabilities", probabilities[2]},
               {"the rows of the values", values[0]}});
  shapes.floats({probabilities[1], probabilities[0], values[2]});
}

void AttentionOp::infer(ShapeInference &shapes, Adaptor op) {
  const KVType kv = shapes.kv(op.getKv());
  if (!kv)
    return;
  ArrayRef<int64_t> query = shapes.of(op.getQuery(), 3);
  int64_t rows =
      shapes.same({{"the rows of the query", query[0]},
                   {"the positions", shapes.rows(op.getPositions())},
                   {"the sequences", shapes.rows(op.getSequences())}});
  shapes.quotient({"the heads of the query", query[1]},
                  {"the heads of the KV cache", kv.getHeads()});
  int64_t size = shapes.same({{"the head size of the query", query[2]},
                              {"the head size of the KV cache", kv.getSize()}});
  shapes.floats({rows, query[1], size});
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void AllReduceOp::infer(ShapeInference &shapes, Adaptor op) {
  if (op.getTree() && !llvm::isPowerOf2_64(op.getRanks()))
    return shapes.error("expects a power of two of ranks for a tree, got ",
                        op.getRanks());
  shapes.give(op.getX().getType());
}

void AllGatherOp::infer(ShapeInference &shapes, Adaptor op) {
  ArrayRef<int64_t> x = shapes.of(op.getX(), 2);
  if (ShapedType::isDynamic(x[1]))
    return shapes.error("expects the columns of x to be static, got ",
                        op.getX().getType());
  shapes.floats(
      {x[0], shapes.product(x[1], static_cast<int64_t>(op.getRanks()))});
}

//===----------------------------------------------------------------------===//
// Selection of rows
//===----------------------------------------------------------------------===//

void GatherRowsOp::infer(ShapeInference &shapes, Adaptor op) {
  auto x = dyn_cast<RankedTensorType>(op.getX().getType());
  shapes.failed |= !x || x.getRank() == 0;
  if (shapes.failed)
    return;
  SmallVector<int64_t> shape(x.getShape());
  shape[0] = shapes.rows(op.getRows());
  shapes.give(x.clone(shape));
}
