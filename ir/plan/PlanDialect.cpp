//===- PlanDialect.cpp - Programs of launches on memory -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "ir/plan/PlanDialect.cpp.inc"
#include "ir/plan/PlanEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/plan/PlanAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/plan/PlanTypes.cpp.inc"

using namespace mlir;

/// `(read %a, write %b)`.
static ParseResult
parseLaunchArgs(OpAsmParser &parser,
                SmallVectorImpl<OpAsmParser::UnresolvedOperand> &args,
                DenseI32ArrayAttr &accesses) {
  SmallVector<int32_t> parsed;
  auto parseOne = [&]() -> ParseResult {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    auto access = llamac::plan::symbolizeAccess(keyword);
    if (!access)
      return parser.emitError(loc)
             << "expected read, write or update, got '" << keyword << "'";
    parsed.push_back(static_cast<int32_t>(*access));
    return parser.parseOperand(args.emplace_back());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  accesses = DenseI32ArrayAttr::get(parser.getContext(), parsed);
  return success();
}

static void printLaunchArgs(OpAsmPrinter &printer, Operation *,
                            OperandRange args, DenseI32ArrayAttr accesses) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip(accesses.asArrayRef(), args), printer, [&](auto pair) {
        auto [access, arg] = pair;
        printer << llamac::plan::stringifyAccess(
                       static_cast<llamac::plan::Access>(access))
                << ' ' << arg;
      });
  printer << ')';
}

#define GET_OP_CLASSES
#include "ir/plan/PlanOps.cpp.inc"

namespace llamac::plan {

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/plan/PlanAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/plan/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/plan/PlanOps.cpp.inc"
      >();
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (!llvm::hasSingleElement(block))
    return emitOpError() << "body must hold exactly one op, got "
                         << block.getOperations().size();
  if (block.front().getNumOperands() != block.getNumArguments())
    return emitOpError() << "body's op takes " << block.front().getNumOperands()
                         << " operands, the kernel has "
                         << block.getNumArguments();
  return success();
}

int64_t KernelOp::getMaxRows() {
  uint64_t most = 1;
  for (auto program : (*this)->getParentOfType<ModuleOp>().getOps<ProgramOp>())
    for (auto launch : program.getOps<LaunchOp>())
      if (launch.getKernel() == getSymName())
        most = std::max(most, launch.getRows() == RowSymbol::Tokens
                                  ? program.getMaxRows()
                                  : program.getMaxLogitsRows());
  return static_cast<int64_t>(most);
}

/// The elements of `maps`, if there are any.
static ArrayRef<Attribute> mapsOf(LaunchOp launch) {
  const ArrayAttr maps = launch.getMapsAttr();
  return maps ? maps.getValue() : ArrayRef<Attribute>();
}

LogicalResult LaunchOp::verify() {
  const GeometryAttr geometry = getGeometry();
  if (geometry.getItems() <= 0 || geometry.getRowBlock() < 0 ||
      geometry.getScratch() < 0 || geometry.getThreads() < 0)
    return emitOpError() << "geometry is " << geometry
                         << ", expected positive items and no negative size";
  if (getAccesses().size() != getArgs().size())
    return emitOpError() << "has " << getArgs().size() << " arguments and "
                         << getAccesses().size() << " accesses";
  for (int32_t access : getAccesses())
    if (!symbolizeAccess(static_cast<uint32_t>(access)))
      return emitOpError() << "access " << access
                           << ", expected read, write or update";
  for (Attribute attr : mapsOf(*this)) {
    auto map = dyn_cast<TensorMapAttr>(attr);
    if (!map)
      return emitOpError() << "has " << attr << " among its tensor maps";
    if (map.getOperand() < 0 ||
        map.getOperand() >= static_cast<int64_t>(getArgs().size()))
      return emitOpError() << "has a tensor map of argument "
                           << map.getOperand() << " of " << getArgs().size();
  }
  if (!SymbolTable::lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr()))
    return emitOpError() << "no plan.kernel is named " << getKernelAttr();
  return success();
}

} // namespace llamac::plan
