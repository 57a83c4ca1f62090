//===- KernelDialect.cpp - Launches as typed ops --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/kernel/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
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

static_assert(mostRanks == 64, "Kernel_Ranks has the number too");

/// Whether Scalars.def has `Op`, if it is an op on scalars.
template <typename Op> static constexpr bool isListedIfScalar() {
  return !Op::template hasTrait<ScalarOpInterface::Trait>()
#define LLAMAC_SCALAR(Listed, ...) || std::is_same_v<Op, Listed>
#include "ir/kernel/Scalars.def"
      ;
}

template <typename... Ops> static constexpr bool areScalarsListed() {
  return (... && isListedIfScalar<Ops>());
}
static_assert(areScalarsListed<
#define GET_OP_LIST
#include "ir/kernel/KernelOps.cpp.inc"
                  >(),
              "an op on scalars is not in Scalars.def");

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
  if (auto norm = dyn_cast<RmsNormOp>(op))
    return op->getOpOperands().take_back(norm.getExtras().size());
  if (auto sum = dyn_cast<AllReduceOp>(op))
    return op->getOpOperands().take_back(sum.getExtras().size());
  return {};
}

bool isElementwise(OpOperand &operand) {
  auto operands = elementwiseOperands(operand.getOwner());
  return &operand >= operands.begin() && &operand < operands.end();
}

bool readsOfAllRanks(OpOperand &operand) {
  return isa<AllReduceOp, AllGatherOp>(operand.getOwner()) &&
         operand.getOperandNumber() == 0;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

namespace {

/// A size of an op, with the words that name it in messages.
struct Size {
  const char *what;
  int64_t got, expected;
};

} // namespace

static LogicalResult checkSizes(Operation *op, ArrayRef<Size> sizes) {
  for (const auto &[what, got, expected] : sizes)
    if (got != expected)
      return op->emitOpError()
             << what << " is " << got << ", expected " << expected;
  return success();
}

LogicalResult checkSized(Operation *op) {
  auto check = [&](Type type) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success();
    ArrayRef<int64_t> sizes = tensor.getShape();
    if (tensor.isDynamicDim(0))
      sizes = sizes.drop_front();
    if (llvm::all_of(sizes, llama::isSize))
      return success();
    return op->emitOpError()
           << "takes or gives " << type << ", expected sizes of 1 to "
           << llama::largestSize << ", of which rows alone may be dynamic";
  };
  for (Type type : op->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(type)))
      return failure();
  return success();
}

static int64_t sizeOf(Value value, unsigned dimension) {
  return cast<ShapedType>(value.getType()).getDimSize(dimension);
}

/// `cosSin`, [rows, i, 2], holds cosine and sine for each of i frequencies.
static LogicalResult checkCosSin(Operation *op, ElementsAttr frequencies,
                                 Value cosSin) {
  return checkSizes(op, {{"cos/sin's last dimension", sizeOf(cosSin, 2), 2},
                         {"number of frequencies", frequencies.getNumElements(),
                          sizeOf(cosSin, 1)}});
}

LogicalResult EmbedOp::verifySized() {
  const bool hasPositions = static_cast<bool>(getPositions());
  if (hasPositions != static_cast<bool>(getFrequenciesAttr()) ||
      hasPositions != static_cast<bool>(getCosSin()))
    return emitOpError(
        "needs positions, frequencies and a second result, or none of them");
  if (hasPositions &&
      failed(checkCosSin(*this, getFrequenciesAttr(), getCosSin())))
    return failure();
  return checkSizes(*this, {{"result's width", sizeOf(getResult(), 1),
                             sizeOf(getTable(), 1)}});
}

LogicalResult RopeTableOp::verifySized() {
  return checkCosSin(*this, getFrequencies(), getResult());
}

LogicalResult GatherRowsOp::verifySized() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (input.getShape().drop_front() == result.getShape().drop_front() &&
      input.getElementType() == result.getElementType())
    return success();
  return emitOpError() << "result is " << result << ", expected rows of "
                       << input;
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

/// Operands that go in element by element have the shape of the result, of type
/// `type`, or are one row of it.
static LogicalResult checkElementwise(Operation *op, OperandRange operands,
                                      Type type) {
  auto result = cast<RankedTensorType>(type);
  const RankedTensorType rows = RankedTensorType::get(
      result.getShape(), Float32Type::get(op->getContext()));
  const Type row = rows.clone(rows.getShape().take_back());
  for (Value operand : operands)
    if (operand.getType() != rows && operand.getType() != row)
      return op->emitOpError()
             << "element-wise operand is " << operand.getType()
             << ", expected the result's shape in f32, " << rows;
  return success();
}

/// Rows of `width` have `parts` equal parts, of which `what` has the squares.
static LogicalResult checkParts(Operation *op, StringRef what, int64_t parts,
                                int64_t width) {
  if (width % parts == 0)
    return success();
  return op->emitOpError() << what << " has squares of " << parts
                           << " parts, expected a divisor of " << width;
}

/// Checks what `maker` gives for the norm that comes next.
static LogicalResult checkNextNorm(Operation *maker) {
  auto op = cast<NextNormOpInterface>(maker);
  const size_t results = op.getNextNorm() ? 3 : 1;
  if (op->getNumResults() != results)
    return op.emitOpError()
           << "gives " << op->getNumResults() << " results, expected "
           << results << (op.getNextNorm() ? " with" : " without")
           << " a next norm";
  if (!op.getNextNorm())
    return success();
  const auto result = cast<RankedTensorType>(op->getResult(0).getType());
  const auto rounded = cast<RankedTensorType>(op.getRounded().getType());
  const auto squares = cast<RankedTensorType>(op.getSquares().getType());
  if (!result.getElementType().isF32() || !rounded.getElementType().isBF16() ||
      rounded.getShape() != result.getShape() ||
      squares.getDimSize(0) != result.getDimSize(0) || squares.getEncoding() ||
      !squares.getElementType().isF32())
    return op->emitOpError()
           << "gives " << op->getResultTypes()
           << " with a next norm, expected rows in f32, the same rows in bf16 "
              "and their squares in f32";
  const int64_t width = result.getDimSize(1);
  if (failed(checkSizes(
          op, {{"next norm's size", sizeOf(op.getNextNorm(), 0), width}})))
    return failure();
  return checkParts(op, "third result", sizeOf(op.getSquares(), 1), width);
}

/// The epilogue of `op`, which may be left out, takes an accumulator and
/// `extras`.
template <typename Op> static LogicalResult checkOptionalEpilogue(Op op) {
  if (op.getEpilogue().empty())
    return op.getExtras().empty()
               ? success()
               : op.emitOpError("has extra operands and no epilogue");
  if (!llvm::hasSingleElement(op.getEpilogue()))
    return op.emitOpError("epilogue has more than one block");
  if (failed(checkElementwise(op, op.getExtras(), op.getResult().getType())))
    return failure();
  return checkScalarRegion(op, op.getEpilogue(), 1 + op.getExtras().size());
}

LogicalResult RmsNormOp::verifySized() {
  const int64_t size = sizeOf(getWeight(), 0), width = sizeOf(getInput(), 1);
  if (width % size != 0)
    return emitOpError() << "weight's size is " << size
                         << ", expected a divisor of " << width;
  if (failed(checkNextNorm(*this)))
    return failure();
  return checkOptionalEpilogue(*this);
}

LogicalResult AllReduceOp::verifySized() {
  if (getTree() && !llvm::isPowerOf2_64(getRanks()))
    return emitOpError() << "has a tree over " << getRanks()
                         << " ranks, expected a power of two";
  if (failed(checkNextNorm(*this)))
    return failure();
  return checkOptionalEpilogue(*this);
}

LogicalResult AllGatherOp::verifySized() {
  const auto ranks = static_cast<int64_t>(getRanks());
  return checkSizes(*this, {{"result's width", sizeOf(getResult(), 1),
                             sizeOf(getInput(), 1) * ranks}});
}

/// A norm and eps go together; the norm is its weights, [width], or sums of
/// squares of equal parts of each of the rows of operand 0.
static LogicalResult checkNorm(Operation *op, Value norm, bool hasEps) {
  if (static_cast<bool>(norm) != hasEps)
    return op->emitOpError("needs both a norm and eps, or neither");
  if (!norm)
    return success();
  const auto input = cast<RankedTensorType>(op->getOperand(0).getType());
  const auto type = cast<RankedTensorType>(norm.getType());
  const int64_t width = input.getDimSize(1);
  if (type.getRank() == 1)
    return checkSizes(op, {{"norm weight's size", type.getDimSize(0), width}});
  if (type.getDimSize(0) != input.getDimSize(0))
    return op->emitOpError()
           << "norm is " << type << ", expected weights of " << width
           << " numbers, or squares of the rows of " << input;
  return checkParts(op, "norm", type.getDimSize(1), width);
}

LogicalResult MatmulOp::verifySized() {
  const int64_t depth = sizeOf(getInput(), 1);
  if (getWeights().empty() || getWeights().size() > 2)
    return emitOpError() << "takes one or two weights, got "
                         << getWeights().size();
  if (getWeights().front().getType() != getWeights().back().getType())
    return emitOpError() << "weights differ in type: "
                         << getWeights().front().getType() << " and "
                         << getWeights().back().getType();
  Value weight = getWeights().front();
  if (failed(checkSizes(*this, {{"weight's columns", sizeOf(weight, 1), depth},
                                {"weight's rows", sizeOf(weight, 0),
                                 sizeOf(getResult(), 1)}})) ||
      failed(checkNorm(*this, getNorm(), getEps().has_value())))
    return failure();
  if (depth % static_cast<int64_t>(getLeaves().value_or(1)) != 0)
    return emitOpError() << "cuts " << depth << " columns into " << *getLeaves()
                         << " leaves, which do not divide them";
  if (failed(checkNextNorm(*this)) ||
      failed(checkElementwise(*this, getExtras(), getResult().getType())))
    return failure();
  return checkScalarRegion(*this, getEpilogue(),
                           getWeights().size() + getExtras().size());
}

LogicalResult PointwiseOp::verifySized() {
  if (getInputs().empty())
    return emitOpError("takes at least one operand");
  if (failed(checkElementwise(*this, getInputs(), getType())))
    return failure();
  return checkScalarRegion(*this, getBody(), getInputs().size());
}

LogicalResult SampleOp::verifySized() {
  return checkSizes(*this,
                    {{"number of sampling params", sizeOf(getParams(), 1), 4}});
}

/// The query's heads are a multiple of those of `kv`.
static LogicalResult checkQuery(Operation *op, llama::KVType kv,
                                int64_t queryWidth) {
  const int64_t width = kv.getHeads() * kv.getSize();
  if (queryWidth % width == 0)
    return success();
  return op->emitOpError() << "query's width is " << queryWidth
                           << ", expected a multiple of " << width;
}

LogicalResult RopeAppendOp::verifySized() {
  const llama::KVType kv = getKv().getType();
  const int64_t width = kv.getHeads() * kv.getSize();
  if (failed(checkQuery(*this, kv, sizeOf(getQuery(), 1))))
    return failure();
  if (getNorms().size() != (getEps() ? 2 : 0))
    return emitOpError("needs two norms and eps, or neither");
  for (auto [norm, normalised] : llvm::zip(getNorms(), getOperands()))
    if (const int64_t size = sizeOf(norm, 0);
        size % kv.getSize() != 0 || sizeOf(normalised, 1) % size != 0)
      return emitOpError() << "norm's size is " << size
                           << ", expected heads of " << kv.getSize()
                           << " that divide " << sizeOf(normalised, 1);
  return checkSizes(*this,
                    {{"table's pairs", sizeOf(getTable(), 1), kv.getSize() / 2},
                     {"key's width", sizeOf(getKey(), 1), width},
                     {"value's width", sizeOf(getValue(), 1), width}});
}

LogicalResult QkvOp::verifySized() {
  const llama::KVType kv = getKv().getType();
  const int64_t width = kv.getHeads() * kv.getSize();
  const int64_t depth = sizeOf(getInput(), 1);
  const int64_t queryWidth = sizeOf(getQueryWeight(), 0);
  if (failed(checkNorm(*this, getNorm(), getEps().has_value())) ||
      failed(checkQuery(*this, kv, queryWidth)))
    return failure();
  if (!getBiases().empty()) {
    if (getBiases().size() != 3)
      return emitOpError() << "takes three biases or none, got "
                           << getBiases().size();
    if (failed(checkSizes(
            *this,
            {{"query bias's size", sizeOf(getBiases()[0], 0), queryWidth},
             {"key bias's size", sizeOf(getBiases()[1], 0), width},
             {"value bias's size", sizeOf(getBiases()[2], 0), width}})))
      return failure();
  }
  return checkSizes(
      *this, {{"table's pairs", sizeOf(getTable(), 1), kv.getSize() / 2},
              {"query weight's columns", sizeOf(getQueryWeight(), 1), depth},
              {"key weight's columns", sizeOf(getKeyWeight(), 1), depth},
              {"value weight's columns", sizeOf(getValueWeight(), 1), depth},
              {"key weight's rows", sizeOf(getKeyWeight(), 0), width},
              {"value weight's rows", sizeOf(getValueWeight(), 0), width},
              {"rotated query's width", sizeOf(getRotated(), 1), queryWidth}});
}

LogicalResult QkvProductsOp::verifySized() {
  const int64_t depth = sizeOf(getInput(), 1);
  if (failed(checkNorm(*this, getNorm(), getEps().has_value())))
    return failure();
  return checkSizes(
      *this,
      {{"query weight's columns", sizeOf(getQueryWeight(), 1), depth},
       {"key weight's columns", sizeOf(getKeyWeight(), 1), depth},
       {"value weight's columns", sizeOf(getValueWeight(), 1), depth},
       {"query's width", sizeOf(getQuery(), 1), sizeOf(getQueryWeight(), 0)},
       {"key's width", sizeOf(getKey(), 1), sizeOf(getKeyWeight(), 0)},
       {"value's width", sizeOf(getValue(), 1), sizeOf(getValueWeight(), 0)}});
}

/// Partial results [rows, heads, splits, partial] have the sizes of `config`.
static LogicalResult checkPartials(Operation *op, Value partials,
                                   AttentionConfigAttr config, int64_t heads) {
  return checkSizes(
      op, {{"partial results' heads", sizeOf(partials, 1), heads},
           {"partial results' splits", sizeOf(partials, 2), config.getSplits()},
           {"partial results' last dimension", sizeOf(partials, 3),
            config.getPartial()}});
}

LogicalResult AttentionOp::verifySized() {
  const llama::KVType kv = getKv().getType();
  const int64_t queryWidth = sizeOf(getQuery(), 1);
  if (failed(checkQuery(*this, kv, queryWidth)))
    return failure();
  const bool isSplit =
      getConfig() && getConfig()->getFamily() == AttentionFamily::SplitKv;
  if (isSplit && cast<ShapedType>(getType()).getRank() == 4)
    return checkPartials(*this, getResult(), *getConfig(),
                         queryWidth / kv.getSize());
  if (!isSplit &&
      cast<ShapedType>(getType()).getShape() == getQuery().getType().getShape())
    return success();
  return emitOpError() << "result is " << getType() << ", expected "
                       << (isSplit ? "partial results of " : "the shape of ")
                       << getQuery().getType();
}

LogicalResult AttentionMergeOp::verifySized() {
  if (getConfig().getFamily() != AttentionFamily::SplitKv)
    return emitOpError() << "config is " << getConfig()
                         << ", expected the split_kv family";
  const int64_t heads = sizeOf(getPartials(), 1);
  if (failed(checkPartials(*this, getPartials(), getConfig(), heads)))
    return failure();
  if (heads <= 0 || sizeOf(getResult(), 1) % heads != 0)
    return emitOpError() << "result's width is " << sizeOf(getResult(), 1)
                         << ", expected a multiple of " << heads << " heads";
  if (getKvHeads() > 0 && heads % getKvHeads() == 0)
    return success();
  return emitOpError() << "kvHeads is " << getKvHeads()
                       << ", expected a divisor of " << heads << " heads";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// Tiles have names, and whole numbers from 0 on.
static LogicalResult checkTiles(function_ref<InFlightDiagnostic()> emitError,
                                DictionaryAttr tiles) {
  for (const NamedAttribute &tile :
       tiles ? tiles.getValue() : ArrayRef<NamedAttribute>()) {
    auto size = dyn_cast<IntegerAttr>(tile.getValue());
    if (!size || !size.getType().isSignlessInteger(64) || size.getInt() < 0 ||
        size.getInt() > llama::largestSize)
      return emitError() << "tile '" << tile.getName().getValue()
                         << "': expected a size of 0 to " << llama::largestSize
                         << " in i64, got " << tile.getValue();
  }
  return success();
}

LogicalResult
MatmulConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         MatmulFamily, int64_t rowBlock, DictionaryAttr tiles) {
  if (rowBlock < 0 || rowBlock > llama::largestSize)
    return emitError() << "#kernel.matmul_config expects a rowBlock of 0 to "
                       << llama::largestSize << ", got " << rowBlock;
  return checkTiles(emitError, tiles);
}

LogicalResult AttentionConfigAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, AttentionFamily family,
    int64_t splits, int64_t partial, int64_t rows, DictionaryAttr tiles) {
  const bool isSplit = family != AttentionFamily::Unsplit;
  const int64_t mostRows =
      family == AttentionFamily::SplitKv ? 0 : llama::largestSize;
  if (rows < 0 || rows > mostRows)
    return emitError() << "#kernel.attention_config expects rows of 0"
                       << (mostRows ? " to " + std::to_string(mostRows)
                                    : " where another launch merges")
                       << ", got " << rows;
  for (auto [name, size] :
       {std::pair("splits", splits), std::pair("partial", partial)})
    if (isSplit ? !llama::isSize(size) : size != 0)
      return emitError() << "#kernel.attention_config expects " << name
                         << " of "
                         << (isSplit
                                 ? "1 to " + std::to_string(llama::largestSize)
                                 : "0 where keys are not split")
                         << ", got " << size;
  return checkTiles(emitError, tiles);
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef name, int64_t contextSize, StringRef,
                                 StringRef, StringRef, StringRef isa, bool,
                                 ResidentSteps) {
  if (contextSize <= 0 || contextSize > longestContext)
    return emitError() << "#kernel.target expects a context_size of 1 to "
                       << longestContext << ", got " << contextSize;
  constexpr StringLiteral simCode[] = {"", "fast", "checked",
                                       "hostile-rounding"};
  if (name == "sim" && !llvm::is_contained(simCode, isa))
    return emitError() << "#kernel.target of sim expects an isa of fast, "
                          "checked or hostile-rounding, got "
                       << isa;
  return success();
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

std::vector<std::pair<StringRef, int64_t>> Target::tiles(Operation *op) const {
  std::vector<std::pair<StringRef, int64_t>> sizes;
  auto add = [&](StringRef name, int64_t size) {
    if (size)
      sizes.emplace_back(name, size);
  };
  DictionaryAttr named;
  if (auto product = op->getAttrOfType<MatmulConfigAttr>("config")) {
    add("rowBlock", product.getRowBlock());
    named = product.getTiles();
  } else if (auto attention =
                 op->getAttrOfType<AttentionConfigAttr>("config")) {
    add("splits", attention.getSplits());
    named = attention.getTiles();
  }
  if (named)
    for (const NamedAttribute &size : named)
      add(size.getName(), cast<IntegerAttr>(size.getValue()).getInt());
  return sizes;
}

Cost costOf(Operation *op, const CostStep &step, const Target &target) {
  CostStep own = step;
  own.target = &target;
  return cast<AnchorOpInterface>(op).cost(own);
}

std::unique_ptr<Target> targetOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (!module) {
    op->emitError("is in no module, which says what it is compiled for");
    return nullptr;
  }
  auto attr =
      module->getAttrOfType<TargetAttr>(KernelDialect::getTargetAttrName());
  if (!attr) {
    module.emitError() << "has no " << KernelDialect::getTargetAttrName()
                       << ": attach-target must come first";
    return nullptr;
  }
  auto *dialect = op->getContext()->getLoadedDialect<KernelDialect>();
  const auto *factory = dialect->getRegisteredInterface<TargetFactory>();
  assert(factory && "registerTargets() is called ahead of passes");
  return factory->create(attr, [&] { return module.emitError(); });
}

FailureOr<bool> appendsWholeHeads(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  if (!module || !module->hasAttr(KernelDialect::getTargetAttrName()))
    return false;
  const std::unique_ptr<Target> target = targetOf(module);
  if (!target)
    return failure();
  return target->appendsWholeHeads();
}

std::string residentStepsNames() {
  constexpr auto last = static_cast<int>(getMaxEnumValForResidentSteps());
  std::string names;
  for (int i = 0; i <= last; ++i) {
    names += i == 0 ? "" : i == last ? " or " : ", ";
    names += stringifyResidentSteps(static_cast<ResidentSteps>(i));
  }
  return names;
}

/// Checks that what `op`'s body takes and gives are `arguments` and `results`.
static LogicalResult checkBody(Operation *op, TypeRange arguments,
                               TypeRange results) {
  Block &body = op->getRegion(0).front();
  if (TypeRange(body.getArgumentTypes()) != arguments)
    return op->emitOpError() << "body takes " << body.getArgumentTypes()
                             << ", expected " << arguments;
  auto end = dyn_cast_or_null<ReturnOp>(body.empty() ? nullptr : &body.back());
  if (!end)
    return op->emitOpError("body does not end in kernel.return");
  if (TypeRange(end.getOperandTypes()) != results)
    return end.emitOpError()
           << "gives " << end.getOperandTypes() << ", expected " << results;
  return success();
}

LogicalResult ResidentOp::verifySized() {
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<LayersOp>(op) &&
        (!isa<AnchorOpInterface>(op) || isa<ResidentOp>(op)))
      return op.emitOpError("is no phase of a resident step");
  return checkBody(*this, getOperandTypes(), getResultTypes());
}

LogicalResult LayersOp::verify() {
  const auto count = static_cast<size_t>(getCount());
  if (getEach().size() % count != 0)
    return emitOpError() << "has " << getEach().size()
                         << " operands for each of " << count << " layers";
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<AnchorOpInterface>(op) || isa<ResidentOp>(op))
      return op.emitOpError("is no phase of a layer");
  const size_t ofLayer = getEachOfLayer(), carried = getCarried().size();
  const TypeRange each = getEach().getTypes();
  for (size_t i = ofLayer; i < each.size(); ++i)
    if (each[i] != each[i % ofLayer])
      return emitOpError() << "has " << each[i] << " for layer " << i / ofLayer
                           << ", but " << each[i % ofLayer] << " for layer 0";
  const size_t results = getResults().size();
  if (results < carried || (results - carried) % count != 0)
    return emitOpError() << "has " << results << " results, expected "
                         << carried << " and as many of each of " << count
                         << " layers";
  const size_t made = (results - carried) / count;
  SmallVector<Type> given(llvm::make_range(
      getResultTypes().begin(), getResultTypes().begin() + carried + made));
  for (size_t i = carried; i < results; ++i)
    if (getResultTypes()[i] != given[carried + (i - carried) % made])
      return emitOpError() << "result " << i << " is not as that of layer 0";
  if (TypeRange(getCarried().getTypes()) !=
      TypeRange(given).take_front(carried))
    return emitOpError() << "takes " << getCarried().getTypes()
                         << " for the first layer, and gives others";
  SmallVector<Type> taken(getShared().getTypes());
  llvm::append_range(taken, getCarried().getTypes());
  llvm::append_range(taken, each.take_front(ofLayer));
  return checkBody(*this, taken, given);
}

} // namespace llamac::kernel
