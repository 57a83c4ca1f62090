//===- SourceText.cpp - Text that emitters share --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/SourceText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "clang/Format/Format.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <charconv>
#include <optional>

using namespace mlir;

namespace llamac {

std::string formatSource(const std::string &text) {
  clang::format::FormatStyle style = clang::format::getLLVMStyle();
  style.Standard = clang::format::FormatStyle::LS_Cpp20;
  auto replacements = clang::format::reformat(
      style, text, {clang::tooling::Range(0, text.size())}, "kernels.cpp");
  auto result = clang::tooling::applyAllReplacements(text, replacements);
  if (!result) {
    llvm::consumeError(result.takeError());
    return text;
  }
  return *result;
}

std::string describeKernel(plan::KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << kernel.getPrototype().getName();
  if (!kernel.getRoles().empty())
    os << " for ";
  llvm::interleaveComma(kernel.getRoles().getAsValueRange<StringAttr>(), os);
  return text;
}

std::string literal(double value) {
  char text[32];
  char *end = std::to_chars(text, std::end(text), value).ptr;
  StringRef digits(text, end - text);
  const bool isInteger = digits.find_first_of(".e") == StringRef::npos;
  return (digits + (isInteger ? ".0" : "")).str();
}

std::string frequenciesText(ArrayRef<ElementsAttr> tables,
                            StringRef qualifiers) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// Radians per position.\n"
     << qualifiers << "constexpr double frequencies[] = {";
  SmallVector<double> frequencies;
  for (ElementsAttr table : tables)
    llvm::append_range(frequencies, table.getValues<double>());
  llvm::interleaveComma(frequencies, os,
                        [&](double value) { os << literal(value); });
  os << "};\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

namespace {

/// How a scalar op reads on vectors; {0}, {1} are its operands.
struct ScalarText {
  const char *pattern;
  StringRef result; ///< The name of the value.
};

} // namespace

static std::optional<ScalarText> textOf(Operation &op) {
#define LLAMAC_SCALAR(Op, GraphOp, pattern, result, value)                     \
  if (isa<Op>(op))                                                             \
    return ScalarText{pattern, result};
#include "ir/kernel/Scalars.def"
  return std::nullopt;
}

/// The value of `op` where it is a constant, of every lane.
static std::optional<std::string> constantText(Operation &op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  auto value =
      constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
  if (!value)
    return std::nullopt;
  return "splat(" + literal(value.getValue().convertToFloat()) + "f)";
}

LogicalResult checkScalars(Operation &op, StringRef target) {
  for (Region &region : op.getRegions())
    for (Block &block : region)
      for (Operation &scalar : block.without_terminator())
        if (isa<kernel::AnchorOpInterface, kernel::LayersOp>(scalar)) {
          if (failed(checkScalars(scalar, target)))
            return failure();
        } else if (!textOf(scalar) && !constantText(scalar))
          return scalar.emitError() << "the " << target << " target has no "
                                    << "rendering of " << scalar.getName();
  return success();
}

std::string functorText(StringRef name, Region &region, ValueRange operands,
                        StringRef input, StringRef width,
                        const FunctorStyle &style, StringRef result,
                        StringRef rows) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Block &block = region.front();
  const size_t inputs = operands.size();
  const size_t accumulators = block.getNumArguments() - inputs;
  auto pointer = [&](size_t i) { return (input + Twine(i)).str(); };
  llvm::DenseMap<Value, std::string> names;
  os << "struct " << name << " {\n";
  auto isVector = [&](size_t i) {
    return cast<ShapedType>(operands[i].getType()).getRank() == 1;
  };
  for (size_t i = 0; i < inputs; ++i)
    os << (isVector(i) ? "const float *" : rows) << " " << pointer(i) << ";\n";
  os << result << " out;\n";
  auto loadOf = [&](size_t i) {
    return llvm::formatv(isVector(i) ? style.loadVector : style.load,
                         pointer(i), width)
        .str();
  };
  const bool loadsApart = style.loadsApart && accumulators > 0 && inputs > 0;
  if (loadsApart) {
    os << "struct Extras {\n";
    for (size_t i = 0; i < inputs; ++i)
      os << style.vector << " x" << i << ";\n";
    os << "};\n"
       << style.qualifiers << "Extras load(long row, long column) const {\n"
       << "return {";
    for (size_t i = 0; i < inputs; ++i)
      os << (i ? ", " : "") << loadOf(i);
    os << "};\n}\n";
  }
  os << style.qualifiers << style.result << " operator()(long row, long column";
  for (size_t i = 0; i < accumulators; ++i) {
    std::string &argument = names[block.getArgument(i)];
    argument = accumulators == 1 ? "acc" : "acc" + std::to_string(i);
    os << ", " << style.vector << " " << argument;
  }
  os << style.parameters << (loadsApart ? ", const Extras &extras" : "")
     << ") const {\n"
     << llvm::formatv(style.prologue, "", width);
  for (size_t i = 0; i < inputs; ++i) {
    std::string &argument = names[block.getArgument(accumulators + i)];
    argument = "x" + std::to_string(i);
    if (loadsApart)
      argument.insert(0, "extras.");
    else
      os << "const " << style.vector << " " << argument << " = " << loadOf(i)
         << ";\n";
  }
  llvm::StringMap<int> uses;
  for (Operation &op : block.without_terminator()) {
    std::string &result = names[op.getResult(0)];
    if (const auto constant = constantText(op)) {
      result = *constant;
      continue;
    }
    const std::optional<ScalarText> scalar = textOf(op);
    assert(scalar && "checked by checkScalars");
    result = scalar->result.str();
    if (const int count = ++uses[scalar->result]; count > 1)
      result += std::to_string(count);
    os << "const " << style.vector << " " << result << " = "
       << llvm::formatv(
              scalar->pattern, names.lookup(op.getOperand(0)),
              op.getNumOperands() == 2 ? names.lookup(op.getOperand(1)) : "")
       << ";\n";
  }
  os << llvm::formatv(style.store, "out", width,
                      names.lookup(block.getTerminator()->getOperand(0)))
     << ";\n}\n};\n";
  return text;
}

} // namespace llamac
