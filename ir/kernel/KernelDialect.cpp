//===- KernelDialect.cpp - Launches as typed ops --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/kernel/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "ir/kernel/KernelDialect.cpp.inc"
#include "ir/kernel/KernelEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/kernel/KernelAttrs.cpp.inc"

#include "ir/kernel/KernelInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "ir/kernel/KernelOps.cpp.inc"

using namespace mlir;

namespace llamac::kernel {

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/kernel/KernelAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/kernel/KernelOps.cpp.inc"
      >();
}

LogicalResult KernelDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() == getTargetAttrName() && isa<ModuleOp>(op) &&
      isa<TargetAttr>(attr.getValue()))
    return success();
  return op->emitError("has '")
         << attr.getName().getValue() << "' = " << attr.getValue()
         << "; the kernel dialect knows '" << getTargetAttrName()
         << "', a #kernel.target on a module";
}

llvm::MutableArrayRef<OpOperand> elementwiseOperands(Operation *op) {
  if (isa<PointwiseOp>(op))
    return op->getOpOperands();
  if (auto product = dyn_cast<MatmulOp>(op))
    return op->getOpOperands().take_back(product.getExtras().size());
  return {};
}

bool isElementwise(OpOperand &operand) {
  auto operands = elementwiseOperands(operand.getOwner());
  return llvm::any_of(operands, [&](OpOperand &elementwise) {
    return &elementwise == &operand;
  });
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The shape of `value`, checked to have `rank` dimensions.
static FailureOr<ArrayRef<int64_t>> shapeOf(Operation *op, StringRef what,
                                            Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != rank)
    return op->emitOpError() << what << " must be a tensor of rank " << rank
                             << ", got " << value.getType();
  return type.getShape();
}

static LogicalResult checkSize(Operation *op, StringRef what, int64_t got,
                               int64_t expected) {
  if (got == expected)
    return success();
  return op->emitOpError() << what << " is " << got << ", expected "
                           << expected;
}

static LogicalResult checkF32(Operation *op, StringRef what, Value value) {
  if (cast<ShapedType>(value.getType()).getElementType().isF32())
    return success();
  return op->emitOpError() << what << " must hold f32, got " << value.getType();
}

static LogicalResult checkIndices(Operation *op, StringRef what, Value value) {
  if (failed(shapeOf(op, what, value, 1)))
    return failure();
  if (cast<ShapedType>(value.getType()).getElementType().isSignlessInteger(32))
    return success();
  return op->emitOpError() << what << " must hold i32, got " << value.getType();
}

/// A matrix in one of the element types that weights have.
static FailureOr<ArrayRef<int64_t>> weightShapeOf(Operation *op, StringRef what,
                                                  Value weight) {
  auto shape = shapeOf(op, what, weight, 2);
  if (failed(shape))
    return failure();
  Type element = cast<ShapedType>(weight.getType()).getElementType();
  if (isa<Float32Type, Float16Type, BFloat16Type, llama::QuantType>(element))
    return shape;
  return op->emitOpError()
         << what << " must hold f32, f16, bf16 or a block format, got "
         << weight.getType();
}

/// `table`, [rows, i, 2], holds the angles of `positions` times i frequencies.
static LogicalResult checkAngles(Operation *op, Value positions,
                                 ElementsAttr frequencies,
                                 const std::string &name, Value table) {
  if (failed(checkIndices(op, "positions", positions)))
    return failure();
  auto result = shapeOf(op, name, table, 3);
  if (failed(result) || failed(checkF32(op, name, table)) ||
      failed(checkSize(op, name + "'s last dimension", (*result)[2], 2)))
    return failure();
  return checkSize(op, "number of frequencies", frequencies.getNumElements(),
                   (*result)[1]);
}

LogicalResult EmbedOp::verify() {
  if (failed(checkIndices(*this, "tokens", getTokens())))
    return failure();
  auto table = weightShapeOf(*this, "table", getTable());
  auto result = shapeOf(*this, "result", getResult(), 2);
  if (failed(table) || failed(result) ||
      failed(checkF32(*this, "result", getResult())))
    return failure();
  if (failed(checkSize(*this, "result's width", (*result)[1], (*table)[1])))
    return failure();
  const bool hasPositions = static_cast<bool>(getPositions());
  if (hasPositions != static_cast<bool>(getFrequenciesAttr()) ||
      hasPositions != static_cast<bool>(getAngles()))
    return emitOpError(
        "needs positions, frequencies and a second result, or none of them");
  if (!hasPositions)
    return success();
  return checkAngles(*this, getPositions(), getFrequenciesAttr(), "angles",
                     getAngles());
}

LogicalResult RopeTableOp::verify() {
  return checkAngles(*this, getPositions(), getFrequencies(), "result",
                     getResult());
}

LogicalResult RmsNormOp::verify() {
  auto input = shapeOf(*this, "input", getInput(), 2);
  auto weight = shapeOf(*this, "weight", getWeight(), 1);
  if (failed(input) || failed(weight) ||
      failed(checkF32(*this, "input", getInput())) ||
      failed(checkF32(*this, "weight", getWeight())))
    return failure();
  if (getResult().getType() != getInput().getType())
    return emitOpError() << "result is " << getResult().getType()
                         << ", expected the input's type "
                         << getInput().getType();
  return checkSize(*this, "weight's size", (*weight)[0], (*input)[1]);
}

LogicalResult GatherRowsOp::verify() {
  if (failed(checkIndices(*this, "rows", getRows())))
    return failure();
  auto vector = dyn_cast<RankedTensorType>(getInput().getType());
  if (vector && vector.getRank() == 1 && vector.getElementType().isInteger(32))
    return checkIndices(*this, "result", getResult());
  auto input = shapeOf(*this, "input", getInput(), 2);
  auto result = shapeOf(*this, "result", getResult(), 2);
  if (failed(input) || failed(result) ||
      failed(checkF32(*this, "input", getInput())) ||
      failed(checkF32(*this, "result", getResult())))
    return failure();
  return checkSize(*this, "result's width", (*result)[1], (*input)[1]);
}

/// Checks that `region` takes `count` f32 scalars.
static LogicalResult checkScalarRegion(Operation *op, Region &region,
                                       size_t count) {
  Block &block = region.front();
  if (block.getNumArguments() != count)
    return op->emitOpError() << "region takes " << block.getNumArguments()
                             << " scalars, expected " << count;
  for (BlockArgument arg : block.getArguments())
    if (!arg.getType().isF32())
      return op->emitOpError() << "region argument " << arg.getArgNumber()
                               << " must be f32, got " << arg.getType();
  if (block.empty() || !isa<YieldOp>(block.back()))
    return op->emitOpError("region must end with kernel.yield");
  return success();
}

/// A norm weight and eps go together; the weight is f32 [width].
static LogicalResult checkNorm(Operation *op, Value weight, bool hasEps,
                               int64_t width) {
  if (static_cast<bool>(weight) != hasEps)
    return op->emitOpError("needs both a norm weight and eps, or neither");
  if (!weight)
    return success();
  auto shape = shapeOf(op, "norm weight", weight, 1);
  if (failed(shape) || failed(checkF32(op, "norm weight", weight)))
    return failure();
  return checkSize(op, "norm weight's size", (*shape)[0], width);
}

LogicalResult MatmulOp::verify() {
  auto input = shapeOf(*this, "input", getInput(), 2);
  auto result = shapeOf(*this, "result", getResult(), 2);
  if (failed(input) || failed(result) ||
      failed(checkF32(*this, "input", getInput())) ||
      failed(checkF32(*this, "result", getResult())))
    return failure();
  if (getWeights().empty() || getWeights().size() > 2)
    return emitOpError() << "takes one or two weights, got "
                         << getWeights().size();
  for (Value weight : getWeights()) {
    auto shape = weightShapeOf(*this, "weight", weight);
    if (failed(shape) ||
        failed(
            checkSize(*this, "weight's columns", (*shape)[1], (*input)[1])) ||
        failed(checkSize(*this, "weight's rows", (*shape)[0], (*result)[1])))
      return failure();
    if (weight.getType() != getWeights().front().getType())
      return emitOpError() << "weights differ in type: "
                           << getWeights().front().getType() << " and "
                           << weight.getType();
  }
  if (failed(
          checkNorm(*this, getNormWeight(), getEps().has_value(), (*input)[1])))
    return failure();
  for (Value extra : getExtras())
    if (extra.getType() != getResult().getType())
      return emitOpError() << "extra operand is " << extra.getType()
                           << ", expected the result's type "
                           << getResult().getType();
  return checkScalarRegion(*this, getEpilogue(),
                           getWeights().size() + getExtras().size());
}

LogicalResult PointwiseOp::verify() {
  if (getInputs().empty())
    return emitOpError("takes at least one operand");
  for (Value input : getInputs())
    if (input.getType() != getResult().getType())
      return emitOpError() << "operand is " << input.getType()
                           << ", expected the result's type "
                           << getResult().getType();
  if (failed(shapeOf(*this, "result", getResult(), 2)) ||
      failed(checkF32(*this, "result", getResult())))
    return failure();
  return checkScalarRegion(*this, getBody(), getInputs().size());
}

LogicalResult SampleOp::verify() {
  auto logits = shapeOf(*this, "logits", getLogits(), 2);
  auto draws = shapeOf(*this, "draws", getDraws(), 2);
  if (failed(logits) || failed(draws) ||
      failed(checkF32(*this, "logits", getLogits())))
    return failure();
  if (!cast<ShapedType>(getDraws().getType())
           .getElementType()
           .isSignlessInteger(32))
    return emitOpError() << "draws must hold i32, got " << getDraws().getType();
  if (failed(checkSize(*this, "draw's number of words", (*draws)[1], 4)))
    return failure();
  return checkIndices(*this, "result", getResult());
}

static LogicalResult checkLayer(Operation *op, llama::KVType kv,
                                int64_t layer) {
  if (layer >= 0 && layer < kv.getLayers())
    return success();
  return op->emitOpError() << "layer is " << layer << ", the cache has "
                           << kv.getLayers();
}

/// What rope_append and qkv have in common: a query `width` wide is turned by
/// `table`, and keys and values go to layer `layer` of `kv`, which becomes
/// `newKv`. Gives the cache's type.
static FailureOr<llama::KVType> checkAppend(Operation *op, Value kvValue,
                                            Value newKv, Value table,
                                            Value positions, Value sequences,
                                            int64_t layer, int64_t queryWidth) {
  auto kv = dyn_cast<llama::KVType>(kvValue.getType());
  if (!kv)
    return op->emitOpError()
           << "kv must be a !llama.kv, got " << kvValue.getType();
  if (newKv.getType() != kv)
    return op->emitOpError()
           << "new kv is " << newKv.getType() << ", expected " << kv;
  auto pairs = shapeOf(op, "table", table, 3);
  if (failed(pairs) || failed(checkF32(op, "table", table)) ||
      failed(checkIndices(op, "positions", positions)) ||
      failed(checkIndices(op, "sequences", sequences)) ||
      failed(checkSize(op, "table's pairs", (*pairs)[1], kv.getSize() / 2)))
    return failure();
  const int64_t width = kv.getHeads() * kv.getSize();
  if (queryWidth % width != 0)
    return op->emitOpError() << "query's width is " << queryWidth
                             << ", expected a multiple of " << width;
  if (failed(checkLayer(op, kv, layer)))
    return failure();
  return kv;
}

LogicalResult RopeAppendOp::verify() {
  auto query = shapeOf(*this, "query", getQuery(), 2);
  auto key = shapeOf(*this, "key", getKey(), 2);
  auto value = shapeOf(*this, "value", getValue(), 2);
  if (failed(query) || failed(key) || failed(value) ||
      failed(checkF32(*this, "query", getQuery())) ||
      failed(checkF32(*this, "key", getKey())) ||
      failed(checkF32(*this, "value", getValue())))
    return failure();
  auto kv = checkAppend(*this, getKv(), getNewKv(), getTable(), getPositions(),
                        getSequences(), getLayer(), (*query)[1]);
  if (failed(kv))
    return failure();
  const int64_t width = kv->getHeads() * kv->getSize();
  if (failed(checkSize(*this, "key's width", (*key)[1], width)) ||
      failed(checkSize(*this, "value's width", (*value)[1], width)))
    return failure();
  if (getTurned().getType() != getQuery().getType())
    return emitOpError() << "turned query is " << getTurned().getType()
                         << ", expected " << getQuery().getType();
  return success();
}

LogicalResult QkvOp::verify() {
  auto input = shapeOf(*this, "input", getInput(), 2);
  auto turned = shapeOf(*this, "turned query", getTurned(), 2);
  auto query = weightShapeOf(*this, "query weight", getQueryWeight());
  auto key = weightShapeOf(*this, "key weight", getKeyWeight());
  auto value = weightShapeOf(*this, "value weight", getValueWeight());
  if (failed(input) || failed(turned) || failed(query) || failed(key) ||
      failed(value) || failed(checkF32(*this, "input", getInput())) ||
      failed(checkF32(*this, "turned query", getTurned())) ||
      failed(
          checkNorm(*this, getNormWeight(), getEps().has_value(), (*input)[1])))
    return failure();
  auto kv = checkAppend(*this, getKv(), getNewKv(), getTable(), getPositions(),
                        getSequences(), getLayer(), (*query)[0]);
  if (failed(kv))
    return failure();
  const int64_t width = kv->getHeads() * kv->getSize(), depth = (*input)[1];
  if (failed(checkSize(*this, "query weight's columns", (*query)[1], depth)) ||
      failed(checkSize(*this, "key weight's columns", (*key)[1], depth)) ||
      failed(checkSize(*this, "value weight's columns", (*value)[1], depth)) ||
      failed(checkSize(*this, "key weight's rows", (*key)[0], width)) ||
      failed(checkSize(*this, "value weight's rows", (*value)[0], width)))
    return failure();
  return checkSize(*this, "turned query's width", (*turned)[1], (*query)[0]);
}

LogicalResult AttentionOp::verify() {
  auto kv = dyn_cast<llama::KVType>(getKv().getType());
  if (!kv)
    return emitOpError() << "kv must be a !llama.kv, got " << getKv().getType();
  auto query = shapeOf(*this, "query", getQuery(), 2);
  if (failed(query) || failed(checkF32(*this, "query", getQuery())) ||
      failed(checkIndices(*this, "positions", getPositions())) ||
      failed(checkIndices(*this, "sequences", getSequences())) ||
      failed(checkLayer(*this, kv, getLayer())))
    return failure();
  if ((*query)[1] % (kv.getHeads() * kv.getSize()) != 0)
    return emitOpError() << "query's width is " << (*query)[1]
                         << ", expected a multiple of "
                         << kv.getHeads() * kv.getSize();
  if (getConfig() && getConfig()->getFamily() == AttentionFamily::Split) {
    auto result = shapeOf(*this, "partial result", getResult(), 4);
    if (failed(result) ||
        failed(checkF32(*this, "partial result", getResult())))
      return failure();
    const int64_t heads = (*query)[1] / kv.getSize();
    if (failed(
            checkSize(*this, "partial result's heads", (*result)[1], heads)) ||
        failed(checkSize(*this, "partial result's splits", (*result)[2],
                         getConfig()->getSplits())))
      return failure();
    return checkSize(*this, "partial result's last dimension", (*result)[3],
                     getConfig()->getPartial());
  }
  if (getResult().getType() != getQuery().getType())
    return emitOpError() << "result is " << getResult().getType()
                         << ", expected " << getQuery().getType();
  return success();
}

LogicalResult AttentionMergeOp::verify() {
  auto partials = shapeOf(*this, "partials", getPartials(), 4);
  auto result = shapeOf(*this, "result", getResult(), 2);
  if (failed(partials) || failed(result) ||
      failed(checkF32(*this, "partials", getPartials())) ||
      failed(checkF32(*this, "result", getResult())) ||
      failed(checkIndices(*this, "positions", getPositions())))
    return failure();
  if (getConfig().getFamily() != AttentionFamily::Split)
    return emitOpError() << "config is " << getConfig()
                         << ", expected the split family";
  if (failed(checkSize(*this, "partials' splits", (*partials)[2],
                       getConfig().getSplits())) ||
      failed(checkSize(*this, "partials' last dimension", (*partials)[3],
                       getConfig().getPartial())))
    return failure();
  const int64_t heads = (*partials)[1];
  if (heads <= 0 || (*result)[1] % heads != 0)
    return emitOpError() << "result's width is " << (*result)[1]
                         << ", expected a multiple of " << heads << " heads";
  if (getKvHeads() > 0 && heads % getKvHeads() == 0)
    return success();
  return emitOpError() << "kvHeads is " << getKvHeads()
                       << ", expected a divisor of " << heads << " heads";
}

} // namespace llamac::kernel
