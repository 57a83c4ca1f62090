//===- LowerToPlan.cpp - Launches get memory, kernels become symbols ------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// paramsOf() is the one place that gives a kernel its parameters; launches pass
// memory by their roles.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/StepRows.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_LOWERTOPLAN
#include "passes/Passes.h.inc"

namespace {

using plan::InputRole;
using plan::ParamRole;
using plan::RowSymbol;

/// "layers.7.attention.wq" as "layers.*.attention.wq".
static std::string roleOf(StringRef name) {
  StringRef rest = name;
  if (!rest.consume_front("layers."))
    return name.str();
  rest = rest.drop_while([](char c) { return c >= '0' && c <= '9'; });
  return ("layers.*" + rest).str();
}

/// The weights that `op` reads, in the order of its operands.
static SmallVector<llama::WeightOp> weightsOf(Operation *op) {
  SmallVector<llama::WeightOp> weights;
  for (Value operand : op->getOperands())
    if (auto weight = operand.getDefiningOp<llama::WeightOp>())
      weights.push_back(weight);
  return weights;
}

/// Numbers of a row of what `op`, which reads no weight, makes or takes; 0
/// where neither is a matrix.
static int64_t widthOf(Operation *op) {
  for (Value value : {Value(op->getResult(0)), op->getOperand(0)})
    if (auto type = dyn_cast<RankedTensorType>(value.getType());
        type && type.getRank() == 2)
      return type.getDimSize(1);
  return 0;
}

/// The most rows that the config of `op` is for; 0 where it is for any number.
static int64_t rowsMadeFor(Operation *op) {
  if (auto product = op->getAttrOfType<kernel::MatmulConfigAttr>("config"))
    return product.getRowBlock();
  if (auto attention = op->getAttrOfType<kernel::AttentionConfigAttr>("config"))
    return attention.getRows();
  return 0;
}

/// `text` with '_' for everything that a C identifier cannot hold.
static std::string identifier(StringRef text) {
  std::string result;
  for (char c : text)
    if (llvm::isAlnum(c))
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  return StringRef(result).rtrim('_').str();
}

/// The parameters of a kernel that computes `op` with `geometry`, in order.
static SmallVector<int32_t> paramsOf(Operation *op,
                                     const kernel::LaunchGeometry &geometry) {
  SmallVector<int32_t> params;
  auto add = [&](ParamRole role) {
    params.push_back(static_cast<int32_t>(role));
  };
  auto isCache = llvm::IsaPred<llama::KVType>;
  const bool appends = llvm::any_of(op->getResultTypes(), isCache);
  for (OpOperand &operand : op->getOpOperands())
    add(isCache(operand.get().getType())
            ? (appends ? ParamRole::AppendedCache : ParamRole::Cache)
        : kernel::readsOfAllRanks(operand) ? ParamRole::Peers
        : operand.get().getDefiningOp<llama::WeightOp>()
            ? ParamRole::Weight
            : ParamRole::Activation);
  if (llvm::any_of(op->getOperandTypes(), isCache))
    add(ParamRole::PageTable);
  if (geometry.workspace)
    add(ParamRole::Workspace);
  if (geometry.counters)
    add(ParamRole::Counters);
  for (Type result : op->getResultTypes())
    if (!isCache(result))
      add(ParamRole::Result);
  return params;
}

/// Whether a kernel only reads its argument for a parameter of `role`.
static bool isRead(ParamRole role) {
  return role == ParamRole::Activation || role == ParamRole::Weight ||
         role == ParamRole::Cache || role == ParamRole::PageTable ||
         role == ParamRole::Peers;
}

/// The distinct kernels of the module. Nothing of them depends on locations,
/// which a file of IR need not have.
class KernelTable {
public:
  KernelTable(ModuleOp module, const kernel::Target &target)
      : module(module), target(target) {}

  /// The kernel that implements `op`; made when it is the first of its kind.
  plan::KernelOp get(Operation *op) {
    OpBuilder builder(module.getContext());
    Region body;
    Block &block = body.emplaceBlock();
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, block.addArgument(operand.getType(), op->getLoc()));
    builder.setInsertionPointToEnd(&block);
    builder.clone(*op, mapping);

    auto *known = llvm::find_if(kernels, [&](plan::KernelOp kernel) {
      return OperationEquivalence::isRegionEquivalentTo(
          &kernel.getBody(), &body, OperationEquivalence::IgnoreLocations);
    });
    plan::KernelOp kernel = known == kernels.end() ? create(op, body) : *known;
    llvm::SetVector<Attribute> roles(kernel.getRoles().begin(),
                                     kernel.getRoles().end());
    for (llama::WeightOp weight : weightsOf(op))
      roles.insert(builder.getStringAttr(roleOf(weight.getName())));
    kernel.setRolesAttr(builder.getArrayAttr(roles.getArrayRef()));
    return kernel;
  }

private:
  plan::KernelOp create(Operation *op, Region &body) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    StringRef family = target.familyName(op);
    const kernel::LaunchGeometry geometry = target.geometry(op);
    auto kernel = builder.create<plan::KernelOp>(
        op->getLoc(), nameFor(op, family), paramsOf(op, geometry), family,
        builder.getArrayAttr({}), plan::GeometryAttr(), ArrayAttr());
    kernel.getBody().takeBody(body);
    kernel.setGeometryOf(geometry);
    kernels.push_back(kernel);
    return kernel;
  }

  /// family_role_nN_kK_format by the first weight, or family_nN without one,
  /// followed by _mM where it is made for up to M > 1 rows, and by a number
  /// when that is taken. A whole step is called by its family alone.
  std::string nameFor(Operation *op, StringRef family) {
    std::string name = family.str();
    SmallVector<llama::WeightOp> weights = weightsOf(op);
    if (isa<kernel::ResidentOp>(op)) {
      name += "_step";
    } else if (!weights.empty()) {
      const std::string full = roleOf(weights.front().getName());
      StringRef role = full;
      role.consume_front("layers.*.");
      name += "_" + identifier(role);
      auto type = cast<RankedTensorType>(weights.front().getType());
      if (type.getRank() == 2)
        name += "_n" + std::to_string(type.getDimSize(0)) + "_k" +
                std::to_string(type.getDimSize(1)) + "_" +
                llama::elementTypeName(type.getElementType()).str();
    } else if (const int64_t width = widthOf(op)) {
      name += "_n" + std::to_string(width);
    }
    if (const int64_t rows = rowsMadeFor(op); rows > 1)
      name += "_m" + std::to_string(rows);
    std::string unique = name;
    for (int i = 2; !names.insert(unique).second; ++i)
      unique = name + "_" + std::to_string(i);
    return unique;
  }

  ModuleOp module;
  const kernel::Target &target;
  SmallVector<plan::KernelOp> kernels;
  llvm::StringSet<> names;
};

static InputRole inputOf(llama::StepRole role) {
  switch (role) {
  case llama::StepRole::Tokens:
    return InputRole::Tokens;
  case llama::StepRole::Positions:
    return InputRole::Positions;
  case llama::StepRole::Sequences:
    return InputRole::Sequences;
  case llama::StepRole::LogitsRows:
    return InputRole::LogitsRows;
  case llama::StepRole::SamplingParams:
    return InputRole::SamplingParams;
  case llama::StepRole::Rank:
    return InputRole::Rank;
  case llama::StepRole::Features:
    return InputRole::Features;
  case llama::StepRole::HeadState:
    return InputRole::HeadState;
  case llama::StepRole::KV:
    break;
  }
  llvm_unreachable("the cache is no input");
}

/// How many keys a row sees of `cache`, which the step appends to and reads;
/// null where it sees all.
static IntegerAttr windowOf(Value cache) {
  for (Operation *user : cache.getUsers()) {
    if (auto attention = dyn_cast<kernel::AttentionOp>(user))
      return attention.getWindowAttr();
    if (auto step =
            dyn_cast<kernel::ResidentOp>(user)) { // Its layers are alike.
      IntegerAttr window;
      step.walk([&](kernel::AttentionOp op) { window = op.getWindowAttr(); });
      return window;
    }
    for (Value next : user->getResults())
      if (isa<llama::KVType>(next.getType()))
        return windowOf(next);
  }
  return {};
}

/// `a` times `b`; the largest number where that overflows, which no memory is
/// allowed to have.
static int64_t times(int64_t a, int64_t b) {
  int64_t result = 0;
  return llvm::MulOverflow(a, b, result) ? std::numeric_limits<int64_t>::max()
                                         : result;
}

/// Turns one function into one program.
class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp func, const kernel::Target &target,
                 KernelTable &kernels)
      : func(func), target(target), kernels(kernels), rows(func),
        builder(func.getContext()) {}

  LogicalResult run(ModuleOp module);

private:
  LogicalResult lower(Operation *op);
  LogicalResult launch(Operation *op);

  Value memoryOf(Value value) {
    Value result = memory.lookup(value);
    assert(result && "a value is lowered before its users");
    return result;
  }

  Value input(InputRole role, IntegerAttr window = {}) {
    Value &value = inputs[{static_cast<int64_t>(role), window}];
    if (!value)
      value = builder.create<plan::InputOp>(func.getLoc(), role, window);
    return value;
  }

  Value countersOf(int64_t words) {
    const int64_t bytes = times(words, sizeof(uint32_t));
    if (!counters) {
      // Ahead of every launch, so that all may use it.
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(builder.getBlock());
      counters = builder.create<plan::CountersOp>(func.getLoc(), bytes);
    }
    counters.setBytes(std::max<int64_t>(counters.getBytes(), bytes));
    return counters;
  }

  Value buffer(Location loc, int64_t bytes) {
    return builder.create<plan::BufferOp>(loc, bytes, IntegerAttr());
  }

  /// The place of a result that is not a cache: for all ranks to read, where
  /// they do.
  Value resultBuffer(Value value, RowSymbol symbol) {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t bytes = times(bounds.of(symbol), type.getElementTypeBitWidth() / 8);
    for (int64_t size : type.getShape().drop_front())
      bytes = times(bytes, size);
    if (!isForAllRanks(value))
      return buffer(value.getLoc(), bytes);
    const int64_t half = exchanges++ % 2;
    return builder.create<plan::ExchangeOp>(value.getLoc(), bytes, half);
  }

  static bool isForAllRanks(Value value) {
    return llvm::any_of(value.getUses(), kernel::readsOfAllRanks);
  }

  /// An operand whose memory `result` may take: read for the last time, only
  /// where the same element is stored, and by no other launch since the last
  /// barrier.
  Value operandToOverwrite(Operation *op, Value result) {
    if (isForAllRanks(result))
      return {};
    for (OpOperand &operand : kernel::elementwiseOperands(op)) {
      Value value = operand.get();
      const bool isLastRead =
          llvm::all_of(value.getUses(), [&](OpOperand &use) {
            return use.getOwner() == op ? kernel::isElementwise(use)
                                        : use.getOwner()->isBeforeInBlock(op);
          });
      Value place = memoryOf(value);
      if (isLastRead && value.getType() == result.getType() &&
          place.getDefiningOp<plan::BufferOp>() && !read.contains(place))
        return value;
    }
    return {};
  }

  func::FuncOp func;
  const kernel::Target &target;
  KernelTable &kernels;
  const StepRows rows;
  OpBuilder builder;
  RowBounds bounds;
  int64_t exchanges = 0;     ///< Made so far.
  plan::CountersOp counters; ///< The largest number that a launch needs.
  llvm::DenseMap<Value, Value> memory;
  llvm::DenseMap<std::pair<int64_t, Attribute>, Value> inputs;
  llvm::DenseSet<Value> read, written; ///< Since the last barrier.
};

LogicalResult ProgramBuilder::run(ModuleOp module) {
  const FailureOr<RowBounds> known = rowBoundsOf(func);
  if (failed(known))
    return failure();
  bounds = *known;
  builder.setInsertionPointToEnd(module.getBody());
  auto program = builder.create<plan::ProgramOp>(
      func.getLoc(), func.getName(), bounds.rows, bounds.logitsRows,
      IntegerAttr(), func->hasAttr("llamac.decode_only"));
  builder.setInsertionPointToEnd(&program.getBody().emplaceBlock());
  for (BlockArgument argument : func.getArguments()) {
    const llama::StepRoleAttr role = llama::roleOf(argument);
    if (!role)
      return func.emitError("argument ")
             << argument.getArgNumber()
             << ": expected a llama.role, which says what it is";
    if (role.getLayer())
      memory[argument] = builder.create<plan::KvOp>(
          func.getLoc(), *role.getLayer(), windowOf(argument));
    else
      memory[argument] = input(inputOf(role.getValue()));
  }
  for (Operation &op : func.getBody().front())
    if (failed(lower(&op)))
      return failure();
  return success();
}

LogicalResult ProgramBuilder::lower(Operation *op) {
  if (auto weight = dyn_cast<llama::WeightOp>(op)) {
    memory[weight.getResult()] = builder.create<plan::WeightOp>(
        op->getLoc(), weight.getNameAttr(), TypeAttr::get(weight.getType()),
        weight.getShardAttr());
    return success();
  }
  if (isa<func::ReturnOp>(op)) {
    if (op->getNumOperands() == 0 ||
        !isa<RankedTensorType>(op->getOperand(0).getType()))
      return op->emitError("expected logits as the first result");
    builder.create<plan::LogitsOp>(op->getLoc(), memoryOf(op->getOperand(0)));
    // Features come ahead of the caches, the tokens of a step that samples
    // behind them.
    for (Value result : op->getOperands().drop_front()) {
      auto tensor = dyn_cast<RankedTensorType>(result.getType());
      if (!tensor)
        continue;
      if (tensor.getRank() == 2)
        builder.create<plan::FeaturesOp>(op->getLoc(), memoryOf(result));
      else
        builder.create<plan::TokensOp>(op->getLoc(), memoryOf(result));
    }
    return success();
  }
  if (isa<kernel::KernelDialect>(op->getDialect()))
    return launch(op);
  return op->emitError()
         << "cannot become a launch: lower-to-kernels must come first";
}

LogicalResult ProgramBuilder::launch(Operation *op) {
  if (target.familyName(op).empty())
    return op->emitError() << "no kernel family of target " << target.name()
                           << " implements " << op->getName()
                           << " as it is: choose-kernels must come first";
  const RowSymbol symbol = rows.of(op);
  plan::KernelOp kernel = kernels.get(op);
  const plan::GeometryAttr geometry = kernel.getGeometry();
  SmallVector<Value> args;
  plan::KvOp pages;
  for (OpOperand &operand : op->getOpOperands()) {
    args.push_back(memoryOf(operand.get()));
    if (auto cache = args.back().getDefiningOp<plan::KvOp>())
      pages = cache;
    if (!kernel::readsOfAllRanks(operand))
      continue;
    if (!args.back().getDefiningOp<plan::ExchangeOp>())
      return op->emitError("sends what is read elsewhere too, or made by no "
                           "launch");
    args.back() = builder.create<plan::PeersOp>(op->getLoc(), args.back());
  }
  if (pages)
    args.push_back(input(InputRole::PageTable, pages.getWindowAttr()));
  if (geometry.getWorkspace())
    args.push_back(buffer(op->getLoc(),
                          times(bounds.of(symbol), geometry.getWorkspace())));
  if (geometry.getCounters())
    args.push_back(
        countersOf(times(bounds.of(symbol), geometry.getCounters())));
  // Peers are written by other ranks.
  bool barrier = llvm::any_of(
      args, [](Value arg) { return arg.getDefiningOp<plan::PeersOp>(); });
  for (auto [i, arg] : llvm::enumerate(args))
    barrier |= written.contains(arg) ||
               (!isRead(kernel.getRole(i)) && read.contains(arg));
  if (barrier) {
    read.clear();
    written.clear();
  }
  for (Value result : op->getResults()) {
    if (isa<llama::KVType>(result.getType())) {
      memory[result] = pages;
      continue;
    }
    Value taken = operandToOverwrite(op, result);
    memory[result] = taken ? memoryOf(taken) : resultBuffer(result, symbol);
    args.push_back(memory[result]);
  }
  for (auto [i, arg] : llvm::enumerate(args))
    (isRead(kernel.getRole(i)) ? read : written).insert(arg);
  builder.create<plan::LaunchOp>(op->getLoc(), kernel.getSymName(), args,
                                 symbol, barrier);
  return success();
}

struct LowerToPlan : impl::LowerToPlanBase<LowerToPlan> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const std::unique_ptr<kernel::Target> target = kernel::targetOf(module);
    if (!target)
      return signalPassFailure();
    KernelTable kernels(module, *target);
    SmallVector<func::FuncOp> funcs(module.getOps<func::FuncOp>());
    for (func::FuncOp func : funcs) {
      if (failed(checkOneBlock(func)))
        return signalPassFailure();
      if (failed(ProgramBuilder(func, *target, kernels).run(module)))
        return signalPassFailure();
      func.erase();
    }
  }
};

} // namespace

} // namespace llamac
