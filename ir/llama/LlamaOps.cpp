//===- LlamaOps.cpp - Types, verifiers and folders of llama ops -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op says once how its result types follow from its operands
// (inferReturnTypes). The same code verifies: a shape that does not fit is
// reported there, and the verifier compares the inferred types with the op's.
// ODS has checked ranks and element types before.
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include <cmath>

using namespace mlir;
using namespace llamac::llama;

#include "ir/llama/LlamaInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "ir/llama/LlamaOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

SmallVector<Value> RMSNormOp::getRowOperands() { return {getX()}; }

SmallVector<Value> LinearOp::getRowOperands() { return {getX()}; }

// The other rows that attention reads are the cache's.
SmallVector<Value> AttentionOp::getRowOperands() {
  return {getQuery(), getPositions(), getSequences()};
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

namespace {

/// One dimension of an operand, with the words that name it in messages.
struct Dim {
  const char *what;
  int64_t size;
};

/// Checks the shapes of one op's operands and makes its result types. After
/// the first mistake it is failed, and further checks say nothing.
class Shapes {
public:
  Shapes(MLIRContext *context, std::optional<Location> location, StringRef op)
      : context(context), location(location), op(op) {}

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

  /// Checks that `part` divides `whole`; neither may be unknown.
  void divides(Dim part, Dim whole) {
    if (ShapedType::isDynamic(whole.size) || ShapedType::isDynamic(part.size))
      error("expects ", part.what, " and ", whole.what, " to be static");
    else if (part.size <= 0 || whole.size % part.size != 0)
      error("expects ", part.what, " to divide ", whole.what, ", got ",
            part.size, " and ", whole.size);
  }

  /// Checks that `kv` has a layer `layer`.
  void hasLayer(KVType kv, int64_t layer) {
    if (layer < 0 || layer >= kv.getLayers())
      error("expects layer to be in [0, ", kv.getLayers(), "), got ", layer);
  }

  template <typename... Args> void error(Args &&...args) {
    if (!failed)
      (void)emitOptionalError(location, "'", op, "' op ",
                              std::forward<Args>(args)...);
    failed = true;
  }

  /// The f32 (or i32) tensors of these shapes, unless something failed.
  LogicalResult floats(ArrayRef<int64_t> shape, SmallVectorImpl<Type> &types) {
    return give(RankedTensorType::get(shape, Float32Type::get(context)), types);
  }
  LogicalResult indices(int64_t rows, SmallVectorImpl<Type> &types) {
    return give(RankedTensorType::get(rows, IntegerType::get(context, 32)),
                types);
  }
  LogicalResult give(Type type, SmallVectorImpl<Type> &types) {
    if (failed)
      return failure();
    types.push_back(type);
    return success();
  }

  bool failed = false;

private:
  MLIRContext *context;
  std::optional<Location> location;
  StringRef op;
};

} // namespace

/// Infers the type of an op that keeps the shape of its one tensor.
static LogicalResult inferSameShape(Value x, SmallVectorImpl<Type> &types) {
  types.push_back(x.getType());
  return success();
}

/// Infers the common shape of `lhs` and `rhs`.
static LogicalResult inferBinary(Shapes shapes, Value lhs, Value rhs,
                                 SmallVectorImpl<Type> &types) {
  auto left = dyn_cast<RankedTensorType>(lhs.getType());
  auto right = dyn_cast<RankedTensorType>(rhs.getType());
  if (!left || !right)
    return failure();
  if (left.getRank() != right.getRank())
    shapes.error("expects operands of one rank, got ", left, " and ", right);
  SmallVector<int64_t> shape;
  for (auto [l, r] : llvm::zip(left.getShape(), right.getShape()))
    shape.push_back(shapes.same(
        {{"each dimension of the left", l}, {"that of the right operand", r}}));
  return shapes.floats(shape, types);
}

static LogicalResult verifyPositive(Operation *op, StringRef name,
                                    const APFloat &value) {
  if (value.isFinite() && value.convertToDouble() > 0)
    return success();
  return op->emitOpError("expects ")
         << name << " to be positive and finite, got "
         << FloatAttr::get(Float64Type::get(op->getContext()), value);
}

//===----------------------------------------------------------------------===//
// Weights and embedding
//===----------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  if (getName().empty())
    return emitOpError("expects a name, got an empty one");
  RankedTensorType type = getResult().getType();
  for (int64_t size : type.getShape())
    if (size <= 0)
      return emitOpError("expects positive dimensions, got ") << type;
  if (auto quant = dyn_cast<QuantType>(type.getElementType()))
    if (type.getShape().back() % quant.getBlockElements() != 0)
      return emitOpError("expects rows of whole blocks of ")
             << quant.getBlockElements() << " elements, got "
             << type.getShape().back() << " elements a row";
  return success();
}

void WeightOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getName());
}

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> tokens = shapes.of(adaptor.getTokens(), 1);
  ArrayRef<int64_t> table = shapes.of(adaptor.getTable(), 2);
  return shapes.floats({tokens[0], table[1]}, types);
}

//===----------------------------------------------------------------------===//
// Row-wise ops and products
//===----------------------------------------------------------------------===//

LogicalResult RMSNormOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> x = shapes.of(adaptor.getX(), 2);
  ArrayRef<int64_t> weight = shapes.of(adaptor.getWeight(), 1);
  int64_t width = shapes.same(
      {{"the columns of x", x[1]}, {"the size of the weight", weight[0]}});
  return shapes.floats({x[0], width}, types);
}

LogicalResult RMSNormOp::verify() {
  return verifyPositive(*this, "eps", getEps());
}

LogicalResult LinearOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> x = shapes.of(adaptor.getX(), 2);
  ArrayRef<int64_t> weight = shapes.of(adaptor.getWeight(), 2);
  shapes.same(
      {{"the columns of x", x[1]}, {"the columns of the weight", weight[1]}});
  return shapes.floats({x[0], weight[0]}, types);
}

LogicalResult SplitHeadsOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> x = shapes.of(adaptor.getX(), 2);
  auto heads = static_cast<int64_t>(adaptor.getHeads());
  shapes.divides({"heads", heads}, {"the columns of x", x[1]});
  if (shapes.failed)
    return failure();
  return shapes.floats({x[0], heads, x[1] / heads}, types);
}

OpFoldResult SplitHeadsOp::fold(FoldAdaptor) {
  auto merge = getX().getDefiningOp<MergeHeadsOp>();
  return merge && merge.getX().getType() == getType() ? merge.getX() : Value();
}

LogicalResult MergeHeadsOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> x = shapes.of(adaptor.getX(), 3);
  if (ShapedType::isDynamic(x[1]) || ShapedType::isDynamic(x[2]))
    shapes.error("expects the heads of x and their size to be static, got ",
                 adaptor.getX().getType());
  if (shapes.failed)
    return failure();
  return shapes.floats({x[0], x[1] * x[2]}, types);
}

OpFoldResult MergeHeadsOp::fold(FoldAdaptor) {
  auto split = getX().getDefiningOp<SplitHeadsOp>();
  return split && split.getX().getType() == getType() ? split.getX() : Value();
}

LogicalResult AddOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> location,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  return inferBinary(Shapes(context, location, getOperationName()),
                     adaptor.getLhs(), adaptor.getRhs(), types);
}

LogicalResult MulOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> location,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  return inferBinary(Shapes(context, location, getOperationName()),
                     adaptor.getLhs(), adaptor.getRhs(), types);
}

LogicalResult SiluOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  return inferSameShape(adaptor.getX(), types);
}

LogicalResult ScaleOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  return inferSameShape(adaptor.getX(), types);
}

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? getX() : Value();
}

LogicalResult ScaleOp::verify() {
  return verifyPositive(*this, "factor", getFactor());
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

LogicalResult RopeTableOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> positions = shapes.of(adaptor.getPositions(), 1);
  int64_t pairs = adaptor.getFrequencies().getNumElements();
  return shapes.floats({positions[0], pairs, 2}, types);
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
    if (failed(
            verifyPositive(*this, ("frequency " + Twine(i)).str(), frequency)))
      return failure();
  return success();
}

SmallVector<double> RopeTableOp::getFrequencyValues() {
  return llvm::to_vector(getFrequencies().getValues<double>());
}

void RopeTableOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "rope");
}

LogicalResult RopeOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> location,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> x = shapes.of(adaptor.getX(), 3);
  ArrayRef<int64_t> table = shapes.of(adaptor.getTable(), 3);
  int64_t rows = shapes.same(
      {{"the rows of x", x[0]}, {"the rows of the table", table[0]}});
  int64_t doubled = ShapedType::isDynamic(table[1]) ? table[1] : 2 * table[1];
  int64_t size = shapes.same({{"the head size of x", x[2]},
                              {"twice the pairs of the table", doubled}});
  shapes.same({{"the last dimension of the table", table[2]},
               {"a cosine and a sine", 2}});
  return shapes.floats({rows, x[1], size}, types);
}

//===----------------------------------------------------------------------===//
// KV state
//===----------------------------------------------------------------------===//

LogicalResult CacheAppendOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> location,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  auto kv = dyn_cast<KVType>(adaptor.getKv().getType());
  if (!kv)
    return failure();
  ArrayRef<int64_t> key = shapes.of(adaptor.getKey(), 3);
  ArrayRef<int64_t> value = shapes.of(adaptor.getValue(), 3);
  shapes.same({{"the rows of key", key[0]},
               {"the rows of value", value[0]},
               {"the positions", shapes.of(adaptor.getPositions(), 1)[0]},
               {"the sequences", shapes.of(adaptor.getSequences(), 1)[0]}});
  shapes.same({{"the heads of the KV state", kv.getHeads()},
               {"the heads of key", key[1]},
               {"the heads of value", value[1]}});
  shapes.same({{"the head size of the KV state", kv.getSize()},
               {"the head size of key", key[2]},
               {"the head size of value", value[2]}});
  shapes.hasLayer(kv, static_cast<int64_t>(adaptor.getLayer()));
  return shapes.give(kv, types);
}

void CacheAppendOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "kv");
}

LogicalResult CacheReadOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  auto kv = dyn_cast<KVType>(adaptor.getKv().getType());
  if (!kv)
    return failure();
  shapes.hasLayer(kv, static_cast<int64_t>(adaptor.getLayer()));
  SmallVector<int64_t> shape = {ShapedType::kDynamic, kv.getHeads(),
                                kv.getSize()};
  if (failed(shapes.floats(shape, types)))
    return failure();
  return shapes.floats(shape, types);
}

void CacheReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getKeys(), "keys");
  setName(getValues(), "values");
}

LogicalResult CacheIndexOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  shapes.same({{"the positions", shapes.of(adaptor.getPositions(), 1)[0]},
               {"the sequences", shapes.of(adaptor.getSequences(), 1)[0]}});
  if (failed(shapes.indices(ShapedType::kDynamic, types)))
    return failure();
  return shapes.indices(ShapedType::kDynamic, types);
}

void CacheIndexOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getKeyPositions(), "keyPositions");
  setName(getKeySequences(), "keySequences");
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult CausalMaskOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  int64_t rows =
      shapes.same({{"the positions", shapes.of(adaptor.getPositions(), 1)[0]},
                   {"the sequences", shapes.of(adaptor.getSequences(), 1)[0]}});
  int64_t keys = shapes.same(
      {{"the key positions", shapes.of(adaptor.getKeyPositions(), 1)[0]},
       {"the key sequences", shapes.of(adaptor.getKeySequences(), 1)[0]}});
  return shapes.floats({rows, keys}, types);
}

void CausalMaskOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "mask");
}

LogicalResult AttentionScoresOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> query = shapes.of(adaptor.getQuery(), 3);
  ArrayRef<int64_t> keys = shapes.of(adaptor.getKeys(), 3);
  shapes.divides({"the heads of the keys", keys[1]},
                 {"the heads of the query", query[1]});
  shapes.same({{"the head size of the query", query[2]},
               {"the head size of the keys", keys[2]}});
  return shapes.floats({query[1], query[0], keys[0]}, types);
}

LogicalResult AddMaskOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> scores = shapes.of(adaptor.getScores(), 3);
  ArrayRef<int64_t> mask = shapes.of(adaptor.getMask(), 2);
  int64_t rows = shapes.same({{"the rows of the scores", scores[1]},
                              {"the rows of the mask", mask[0]}});
  int64_t keys = shapes.same({{"the keys of the scores", scores[2]},
                              {"the keys of the mask", mask[1]}});
  return shapes.floats({scores[0], rows, keys}, types);
}

OpFoldResult AddMaskOp::fold(FoldAdaptor) {
  // Zeros and minus infinities change nothing the second time.
  auto inner = getScores().getDefiningOp<AddMaskOp>();
  return inner && inner.getMask() == getMask() &&
                 getMask().getDefiningOp<CausalMaskOp>()
             ? inner.getResult()
             : Value();
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferSameShape(adaptor.getScores(), types);
}

LogicalResult AttentionValuesOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> probabilities = shapes.of(adaptor.getProbabilities(), 3);
  ArrayRef<int64_t> values = shapes.of(adaptor.getValues(), 3);
  shapes.divides({"the heads of the values", values[1]},
                 {"the heads of the probabilities", probabilities[0]});
  shapes.same({{"the keys of the probabilities", probabilities[2]},
               {"the rows of the values", values[0]}});
  return shapes.floats({probabilities[1], probabilities[0], values[2]}, types);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  auto kv = dyn_cast<KVType>(adaptor.getKv().getType());
  if (!kv)
    return failure();
  ArrayRef<int64_t> query = shapes.of(adaptor.getQuery(), 3);
  int64_t rows =
      shapes.same({{"the rows of the query", query[0]},
                   {"the positions", shapes.of(adaptor.getPositions(), 1)[0]},
                   {"the sequences", shapes.of(adaptor.getSequences(), 1)[0]}});
  shapes.divides({"the heads of the KV state", kv.getHeads()},
                 {"the heads of the query", query[1]});
  int64_t size = shapes.same({{"the head size of the query", query[2]},
                              {"the head size of the KV state", kv.getSize()}});
  shapes.hasLayer(kv, static_cast<int64_t>(adaptor.getLayer()));
  return shapes.floats({rows, query[1], size}, types);
}

LogicalResult AttentionOp::verify() {
  return verifyPositive(*this, "scale", getScale());
}

//===----------------------------------------------------------------------===//
// Selection of rows
//===----------------------------------------------------------------------===//

LogicalResult GatherRowsOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Shapes shapes(context, location, getOperationName());
  ArrayRef<int64_t> rows = shapes.of(adaptor.getRows(), 1);
  auto x = dyn_cast<RankedTensorType>(adaptor.getX().getType());
  if (!x || x.getRank() == 0)
    return failure();
  SmallVector<int64_t> shape(x.getShape());
  shape[0] = rows[0];
  return shapes.give(x.clone(shape), types);
}
