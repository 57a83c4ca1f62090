//===- LlamaDialect.cpp - The llama dialect, its types and attributes -----===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llamac;
using namespace llamac::llama;

#include "ir/llama/LlamaDialect.cpp.inc"
#include "ir/llama/LlamaEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/llama/LlamaAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/llama/LlamaTypes.cpp.inc"

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

namespace {

/// Prints the KV type and the model attribute, which are long and on many
/// lines, as `!kv` and `#model`.
struct LlamaAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    if (!isa<KVType>(type))
      return AliasResult::NoAlias;
    os << "kv";
    return AliasResult::FinalAlias;
  }

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<ModelAttr>(attribute))
      return AliasResult::NoAlias;
    os << "model";
    return AliasResult::FinalAlias;
  }
};

} // namespace

void LlamaDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/llama/LlamaOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/llama/LlamaTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/llama/LlamaAttrs.cpp.inc"
      >();
  addInterfaces<LlamaAliases>();
}

LogicalResult LlamaDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  if (attribute.getName() == getModelAttrName() && isa<ModuleOp>(op) &&
      isa<ModelAttr>(attribute.getValue()))
    return success();
  return op->emitError("has '")
         << attribute.getName().getValue() << "' = " << attribute.getValue()
         << "; the llama dialect knows '" << getModelAttrName()
         << "', a #llama.model on a module";
}

/// Whether the argument of a step with that role may be of `type`.
static bool fits(StepRole role, Type type) {
  if (role == StepRole::KV)
    return isa<KVType>(type);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (role == StepRole::Features || role == StepRole::HeadState)
    return tensor && tensor.getElementType().isF32() && tensor.getRank() == 2;
  return tensor && tensor.getElementType().isInteger(32) &&
         tensor.getRank() == (role == StepRole::SamplingParams ? 2 : 1);
}

LogicalResult LlamaDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned index,
                                                     NamedAttribute attribute) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  auto role = dyn_cast<StepRoleAttr>(attribute.getValue());
  if (attribute.getName() != getRoleAttrName() || !func || !role)
    return op->emitError("argument ")
           << index << " has '" << attribute.getName().getValue()
           << "' = " << attribute.getValue() << "; the llama dialect knows '"
           << getRoleAttrName() << "', a #llama.role on a function's argument";
  const Type type = func.getArgumentTypes()[index];
  if (!fits(role.getValue(), type))
    return op->emitError("argument ")
           << index << " is " << role << " and cannot be of type " << type;
  for (unsigned other = 0; other < index; ++other)
    if (func.getArgAttr(other, getRoleAttrName()) == role)
      return op->emitError("arguments ")
             << other << " and " << index << " are both " << role;
  const int64_t layers =
      llvm::count_if(func.getArgumentTypes(), llvm::IsaPred<KVType>);
  if (role.getLayer() && *role.getLayer() >= layers)
    return op->emitError("argument ")
           << index << " is " << role << ", of a step with " << layers
           << (layers == 1 ? " cache" : " caches");
  return success();
}

StepRoleAttr llama::roleOf(BlockArgument argument) {
  auto step = cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return step.getArgAttrOfType<StepRoleAttr>(argument.getArgNumber(),
                                             LlamaDialect::getRoleAttrName());
}

int64_t llama::ranksOf(Operation *scope) {
  int64_t ranks = 1;
  scope->walk([&](WeightOp weight) {
    if (!weight.getShard())
      return WalkResult::advance();
    ranks = weight.getShard()->getRanks();
    return WalkResult::interrupt();
  });
  return ranks;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Checks that the parameters `sizes` of `what` are sizes.
static LogicalResult checkSizes(function_ref<InFlightDiagnostic()> emitError,
                                StringRef what,
                                ArrayRef<std::pair<StringRef, int64_t>> sizes) {
  for (auto [name, value] : sizes)
    if (!isSize(value))
      return emitError() << what << " expects " << name
                         << (value <= 0 ? " to be positive, got "
                                        : " below 2^31, got ")
                         << value;
  return success();
}

LogicalResult KVType::verify(function_ref<InFlightDiagnostic()> emitError,
                             int64_t heads, int64_t size) {
  return checkSizes(emitError, "!llama.kv", {{"heads", heads}, {"size", size}});
}

StringRef llama::nameOf(DataType type) {
  const absl::string_view name = dataTypeName(type);
  return {name.data(), name.size()};
}

FailureOr<DataType> llama::parseBlockFormat(AsmParser &parser) {
  const SMLoc loc = parser.getCurrentLocation();
  std::string name;
  if (parser.parseKeywordOrString(&name))
    return failure();
  const std::optional<DataType> type = parseDataType(name);
  if (type && isBlockFormat(*type))
    return *type;
  auto error = parser.emitError(loc) << "expected a block format, one of ";
  llvm::interleaveComma(
      llvm::make_filter_range(
          dataTypes(), [](const auto &info) { return info.blockElements > 1; }),
      error, [&](const auto &info) { error << nameOf(info.type); });
  return error << ", got '" << name << "'";
}

DataType llama::dataTypeOf(Type type) {
  return llvm::TypeSwitch<Type, DataType>(type)
      .Case<Float32Type>([](auto) { return DataType::F32; })
      .Case<Float16Type>([](auto) { return DataType::F16; })
      .Case<BFloat16Type>([](auto) { return DataType::BF16; })
      .Case<QuantType>([](auto quant) { return quant.getFormat(); });
}

Type llama::elementTypeOf(MLIRContext &context, DataType type) {
  context.loadDialect<LlamaDialect>();
  Builder builder(&context);
  switch (type) {
  case DataType::F32:
    return builder.getF32Type();
  case DataType::F16:
    return builder.getF16Type();
  case DataType::BF16:
    return builder.getBF16Type();
  default:
    return QuantType::get(&context, type);
  }
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t dim, int64_t parts, int64_t ranks) {
  if (dim >= 0 && parts > 0 && ranks > 0 && ranks % parts == 0)
    return success();
  return emitError() << "#llama.shard expects a dimension, and parts that "
                        "divide the ranks, got dimension "
                     << dim << ", " << parts << " parts and " << ranks
                     << " ranks";
}

LogicalResult StepRoleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StepRole value,
                                   std::optional<int64_t> layer) {
  if (layer ? value == StepRole::KV && *layer >= 0 : value != StepRole::KV)
    return success();
  return emitError() << "#llama.role expects a layer from 0 on of kv, and of "
                        "nothing else";
}

LogicalResult
ApproximationAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          ExpKind exp, int64_t topK) {
  if (topK < 0 || (exp == ExpKind::Exact && topK == 0))
    return emitError() << "#llama.approximation expects exp or a positive "
                          "top_k, got exp = "
                       << stringifyExpKind(exp) << ", top_k = " << topK;
  return success();
}

// The polynomial's error is 8.8e-5; the table's (ln 2 / 512)^2 / 2 = 9.2e-7.
// The rest is the exponent's rounding in fp32 where there is no fused
// multiply-add.
static double expError(ExpKind exp) {
  switch (exp) {
  case ExpKind::Exact:
    return 0;
  case ExpKind::Poly3:
    return 9.5e-5;
  case ExpKind::Table256:
    return 8e-6;
  }
  llvm_unreachable("no other kind");
}

// Shares p without those dropped, made to sum to 1, differ from p by 2 d in
// all: d is missing, and the others grow by as much. Shares q (1 + r) with
// |r| <= e over their sum differ from q by at most 2 e / (1 - e) of q.
double llama::attentionBound(ExpKind exp, double dropped) {
  const double e = expError(exp);
  return 2 * e / (1 - e) + 2 * dropped;
}

LogicalResult ModelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t dim, int64_t layers, int64_t heads,
                                int64_t kvHeads, int64_t headSize, int64_t ffn,
                                int64_t vocab, int64_t maxContext,
                                FloatAttr normEps, FloatAttr ropeTheta,
                                BoolAttr) {
  if (failed(checkSizes(emitError, "#llama.model",
                        {{"dim", dim},
                         {"layers", layers},
                         {"heads", heads},
                         {"kv_heads", kvHeads},
                         {"head_size", headSize},
                         {"ffn", ffn},
                         {"vocab", vocab},
                         {"max_context", maxContext}})))
    return failure();
  if (heads % kvHeads != 0)
    return emitError() << "#llama.model expects kv_heads to divide heads, got "
                       << kvHeads << " and " << heads;
  const std::pair<StringRef, FloatAttr> numbers[] = {{"norm_eps", normEps},
                                                     {"rope_theta", ropeTheta}};
  for (auto [name, value] : numbers)
    if (!value.getType().isF64() || !value.getValue().isFinite() ||
        !(value.getValueAsDouble() > 0))
      return emitError() << "#llama.model expects " << name
                         << " to be a positive f64, got " << value;
  return success();
}
