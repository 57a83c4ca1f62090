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

/// `(activation, result)`.
static ParseResult parseParams(OpAsmParser &parser, DenseI32ArrayAttr &params) {
  SmallVector<int32_t> roles;
  auto parseOne = [&]() -> ParseResult {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    const auto role = llamac::plan::symbolizeParamRole(keyword);
    if (!role)
      return parser.emitError(loc)
             << "expected the role of a parameter, got '" << keyword << "'";
    roles.push_back(static_cast<int32_t>(*role));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  params = DenseI32ArrayAttr::get(parser.getContext(), roles);
  return success();
}

static void printParams(OpAsmPrinter &printer, Operation *,
                        DenseI32ArrayAttr params) {
  printer << '(';
  llvm::interleaveComma(params.asArrayRef(), printer, [&](int32_t role) {
    printer << static_cast<llamac::plan::ParamRole>(role);
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

/// How many of `params` are of one of `roles`.
static int64_t countOf(ArrayRef<int32_t> params, ArrayRef<ParamRole> roles) {
  return llvm::count_if(params, [&](int32_t role) {
    return llvm::is_contained(roles, static_cast<ParamRole>(role));
  });
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
  const GeometryAttr geometry = getGeometry();
  if (geometry.getItems() <= 0 || geometry.getRowBlock() < 0 ||
      geometry.getScratch() < 0 || geometry.getThreads() < 0 ||
      geometry.getWorkspace() < 0 || geometry.getCounters() < 0)
    return emitOpError() << "geometry is " << geometry
                         << ", expected positive items and no negative size";
  for (int32_t role : getParams())
    if (!symbolizeParamRole(static_cast<uint32_t>(role)))
      return emitOpError() << "has a parameter of role " << role
                           << ", expected one of 0 to "
                           << getMaxEnumValForParamRole();
  auto expect = [&](int64_t count, ArrayRef<ParamRole> roles) -> LogicalResult {
    if (const int64_t got = countOf(getParams(), roles); got != count)
      return emitOpError() << "has " << got << " parameters of role "
                           << stringifyParamRole(roles.front()) << ", expected "
                           << count;
    return success();
  };
  using enum ParamRole;
  if (failed(expect(block.getNumArguments(),
                    {Activation, Weight, Cache, AppendedCache, Peers})) ||
      failed(expect(geometry.getWorkspace() != 0, {Workspace})) ||
      failed(expect(geometry.getCounters() != 0, {Counters})))
    return failure();
  for (TensorMapAttr map : getTensorMaps())
    if (map.getOperand() < 0 ||
        map.getOperand() >= static_cast<int64_t>(getParams().size()))
      return emitOpError() << "has a tensor map of parameter "
                           << map.getOperand() << " of " << getParams().size();
  return success();
}

void KernelOp::setGeometryOf(const kernel::LaunchGeometry &geometry) {
  setGeometryAttr(GeometryAttr::get(
      getContext(), geometry.items, geometry.rowBlock, geometry.scratch,
      geometry.threads, geometry.cluster, geometry.dependent,
      geometry.workspace, geometry.counters, geometry.resident));
  SmallVector<Attribute> maps;
  for (const kernel::TensorMapGeometry &map : geometry.maps)
    maps.push_back(TensorMapAttr::get(
        getContext(), map.operand, map.elementBytes, map.columns, map.rows,
        map.boxColumns, map.boxRows, map.swizzleBytes));
  setMapsAttr(maps.empty() ? ArrayAttr() : ArrayAttr::get(getContext(), maps));
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

KernelOp LaunchOp::getKernelOp() {
  return SymbolTable::lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "no plan.kernel is named " << getKernelAttr();
  if (kernel.getParams().size() != getArgs().size())
    return emitOpError() << "has " << getArgs().size() << " arguments, "
                         << getKernelAttr() << " has "
                         << kernel.getParams().size() << " parameters";
  return success();
}

} // namespace llamac::plan
