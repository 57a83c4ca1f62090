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
  return success();
}

std::optional<StepRole> llama::roleOf(FunctionOpInterface step,
                                      unsigned argument) {
  auto role = step.getArgAttrOfType<StepRoleAttr>(
      argument, LlamaDialect::getRoleAttrName());
  return role ? std::optional(role.getValue()) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Elements and bytes of a block, by BlockFormat.
static constexpr std::pair<int64_t, int64_t> blocks[] = {
    {32, 34},   // Q8_0: f16 scale, 32 bytes
    {32, 18},   // Q4_0: f16 scale, 32 halves
    {32, 20},   // Q4_1: the same with an f16 minimum
    {32, 22},   // Q5_0: f16 scale, 32 fifth bits, 32 halves
    {32, 24},   // Q5_1: the same with an f16 minimum
    {256, 144}, // Q4_K: f16 scale and minimum, 12 of 6-bit ones, 256 halves
    {256, 176}, // Q5_K: the same with 256 fifth bits
    {256, 210}, // Q6_K: 256 halves, 256 pairs of bits, 16 scales, f16 scale
    {32, 33},   // MXFP8: E8M0 scale, 32 bytes
};
static_assert(std::size(blocks) == getMaxEnumValForBlockFormat() + 1);

int64_t QuantType::getBlockElements() const {
  return blocks[static_cast<size_t>(getFormat())].first;
}

int64_t QuantType::getBlockBytes() const {
  return blocks[static_cast<size_t>(getFormat())].second;
}

/// Checks that the parameters `sizes` of `what` are positive.
static LogicalResult
checkPositive(function_ref<InFlightDiagnostic()> emitError, StringRef what,
              ArrayRef<std::pair<StringRef, int64_t>> sizes) {
  for (auto [name, value] : sizes)
    if (value <= 0)
      return emitError() << what << " expects " << name
                         << " to be positive, got " << value;
  return success();
}

LogicalResult KVType::verify(function_ref<InFlightDiagnostic()> emitError,
                             int64_t layers, int64_t heads, int64_t size) {
  return checkPositive(emitError, "!llama.kv",
                       {{"layers", layers}, {"heads", heads}, {"size", size}});
}

StringRef llama::elementTypeName(Type type) {
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case<Float32Type>([](auto) { return "f32"; })
      .Case<Float16Type>([](auto) { return "f16"; })
      .Case<BFloat16Type>([](auto) { return "bf16"; })
      .Case<QuantType>(
          [](auto quant) { return stringifyBlockFormat(quant.getFormat()); });
}

Type llama::elementTypeNamed(MLIRContext &context, StringRef name) {
  context.loadDialect<LlamaDialect>();
  if (std::optional<BlockFormat> format = symbolizeBlockFormat(name))
    return QuantType::get(&context, *format);
  Builder builder(&context);
  for (Type type :
       {builder.getF32Type(), builder.getF16Type(), builder.getBF16Type()})
    if (elementTypeName(type) == name)
      return type;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult ModelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t dim, int64_t layers, int64_t heads,
                                int64_t kvHeads, int64_t headSize, int64_t ffn,
                                int64_t vocab, int64_t maxContext,
                                FloatAttr normEps, FloatAttr ropeTheta,
                                BoolAttr) {
  if (failed(checkPositive(emitError, "#llama.model",
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
