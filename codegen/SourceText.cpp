//===- SourceText.cpp - What emitters write alike -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/SourceText.h"

#include "codegen/ScalarRenderer.h"

#include "mlir/IR/BuiltinOps.h"
#include "clang/Format/Format.h"

#include <charconv>

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
  for (auto program :
       kernel->getParentOfType<ModuleOp>().getOps<plan::ProgramOp>()) {
    const auto count = llvm::count_if(
        program.getBody().getOps<plan::LaunchOp>(), [&](plan::LaunchOp launch) {
          return launch.getKernel() == kernel.getSymName();
        });
    if (count)
      os << "; " << count << (count == 1 ? " launch" : " launches") << " in "
         << program.getSymName();
  }
  return text;
}

std::string literal(double value) {
  char text[32];
  char *end = std::to_chars(text, std::end(text), value).ptr;
  StringRef digits(text, end - text);
  const bool isInteger = digits.find_first_of(".e") == StringRef::npos;
  return (digits + (isInteger ? ".0" : "")).str();
}

LogicalResult checkScalars(Operation &op, StringRef target) {
  for (Region &region : op.getRegions()) {
    Operation *unknown = nullptr;
    if (!canRenderScalars(region, unknown))
      return unknown->emitError() << "the " << target << " target has no "
                                  << "rendering of " << unknown->getName();
  }
  return success();
}

} // namespace llamac
