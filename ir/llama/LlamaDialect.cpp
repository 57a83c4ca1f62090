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
  registerTypes();
  registerAttributes();
  addInterfaces<LlamaAliases>();
}

void LlamaDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/llama/LlamaTypes.cpp.inc"
      >();
}

void LlamaDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/llama/LlamaAttrs.cpp.inc"
      >();
}

LogicalResult LlamaDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  if (attribute.getName() != getModelAttrName())
    return op->emitError("has the unknown attribute '")
           << attribute.getName().getValue() << "'; the llama dialect knows '"
           << getModelAttrName() << "'";
  if (!isa<ModuleOp>(op))
    return op->emitError("has '")
           << getModelAttrName() << "', which stands only on a module";
  if (!isa<ModelAttr>(attribute.getValue()))
    return op->emitError("expects '")
           << getModelAttrName() << "' to be a #llama.model attribute, got "
           << attribute.getValue();
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

int64_t QuantType::getBlockElements() const {
  switch (getFormat()) {
  case BlockFormat::Q4_K: // The K formats have super-blocks.
  case BlockFormat::Q5_K:
  case BlockFormat::Q6_K:
    return 256;
  default:
    return 32;
  }
}

int64_t QuantType::getBlockBytes() const {
  switch (getFormat()) {
  case BlockFormat::Q8_0: // f16 scale, 32 bytes
    return 34;
  case BlockFormat::Q4_0: // f16 scale, 32 halves
    return 18;
  case BlockFormat::Q4_1: // the same with an f16 minimum
    return 20;
  case BlockFormat::Q5_0: // f16 scale, 32 fifth bits, 32 halves
    return 22;
  case BlockFormat::Q5_1: // the same with an f16 minimum
    return 24;
  case BlockFormat::Q4_K: // f16 scale and minimum, 12 of 6-bit ones, 256 halves
    return 144;
  case BlockFormat::Q5_K: // the same with 256 fifth bits
    return 176;
  case BlockFormat::Q6_K: // 256 halves, 256 pairs of bits, 16 scales, f16 scale
    return 210;
  case BlockFormat::MXFP8: // E8M0 scale, 32 bytes
    return 33;
  }
  llvm_unreachable("no other format");
}

LogicalResult KVType::verify(function_ref<InFlightDiagnostic()> emitError,
                             int64_t layers, int64_t heads, int64_t size) {
  const std::pair<StringRef, int64_t> fields[] = {
      {"layers", layers}, {"heads", heads}, {"size", size}};
  for (auto [name, value] : fields)
    if (value <= 0)
      return emitError() << "!llama.kv expects " << name
                         << " to be positive, got " << value;
  return success();
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
  const std::pair<StringRef, int64_t> sizes[] = {
      {"dim", dim},          {"layers", layers},         {"heads", heads},
      {"kv_heads", kvHeads}, {"head_size", headSize},    {"ffn", ffn},
      {"vocab", vocab},      {"max_context", maxContext}};
  for (auto [name, value] : sizes)
    if (value <= 0)
      return emitError() << "#llama.model expects " << name
                         << " to be positive, got " << value;
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
