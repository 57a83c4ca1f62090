//===- FormResident.cpp - The step of one row becomes one launch ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layers are found by what they do, not by their names: `count` times the same
// `period` ops, where an operand is, in all layers, the same value, or a value
// of the layer itself, or one of the layer before, or another one from outside.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/StepRows.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_FORMRESIDENT
#include "passes/Passes.h.inc"

namespace {

/// `count` times `period` ops, from op number `first` on.
struct Repetition {
  size_t first = 0, period = 0, count = 0;

  size_t ops() const { return period * count; }
  size_t end() const { return first + ops(); }
};

/// The source of an operand of an op in a layer.
struct Source {
  enum Kind {
    Shared,  ///< One value for all layers.
    Each,    ///< One from outside for each; `op` numbers these.
    Local,   ///< Result `result` of op `op` of the layer.
    Carried, ///< A result of the layer before; for the first layer, a value
             ///< from outside.
  };
  Kind kind;
  size_t op = 0;
  unsigned result = 0;
};

/// The launches of a function, and how they repeat themselves.
class Launches {
public:
  explicit Launches(func::FuncOp func) {
    for (Operation &op : func.getBody().front())
      if (isa<kernel::KernelDialect>(op.getDialect())) {
        numbers[&op] = ops.size();
        ops.push_back(&op);
      }
  }

  ArrayRef<Operation *> all() const { return ops; }

  /// The repetition of most ops, of these the one of most layers.
  Repetition longest() const {
    Repetition best;
    for (size_t first = 0; first < ops.size(); ++first)
      for (size_t period = 1; first + 2 * period <= ops.size(); ++period) {
        const Repetition found{first, period, layersFrom(first, period)};
        if (found.count >= 2 && found.ops() > best.ops())
          best = found;
      }
    return best;
  }

  /// The source of operand `operand` of op `op` of the layers; nothing where
  /// the layers do not agree.
  std::optional<Source> sourceOf(const Repetition &layers, size_t op,
                                 unsigned operand) const {
    SmallVector<Value> values;
    for (size_t layer = 0; layer < layers.count; ++layer)
      values.push_back(
          ops[layers.first + layer * layers.period + op]->getOperand(operand));
    auto isOutside = [&](Value value) {
      const size_t number = numberOf(value);
      return number == outside || number < layers.first;
    };
    if (llvm::all_equal(values))
      return isOutside(values[0]) ? std::optional<Source>({Source::Shared})
                                  : std::nullopt;
    if (llvm::all_of(values, isOutside))
      return Source{Source::Each};
    // The last layer has one before it.
    const size_t maker = numberOf(values.back());
    if (maker == outside || maker < layers.end() - 2 * layers.period)
      return std::nullopt;
    const size_t place = maker - (layers.end() - 2 * layers.period);
    const bool isLocal = place >= layers.period;
    const Source source{isLocal ? Source::Local : Source::Carried,
                        place % layers.period,
                        cast<OpResult>(values.back()).getResultNumber()};
    for (size_t layer = isLocal ? 0 : 1; layer < layers.count; ++layer) {
      const size_t of = layers.first +
                        (layer - (isLocal ? 0 : 1)) * layers.period + source.op;
      if (values[layer] != ops[of]->getResult(source.result))
        return std::nullopt;
    }
    if (!isLocal && !isOutside(values[0]))
      return std::nullopt;
    return source;
  }

  /// The number of the launch that makes `value`; `outside` where none does.
  static constexpr size_t outside = ~size_t{0};
  size_t numberOf(Value value) const {
    auto found = numbers.find(value.getDefiningOp());
    return found == numbers.end() ? outside : found->second;
  }

private:
  /// How often the `period` ops from `first` on follow each other.
  size_t layersFrom(size_t first, size_t period) const {
    size_t count = 1;
    while (first + (count + 1) * period <= ops.size() &&
           llvm::all_of(llvm::seq<size_t>(0, period), [&](size_t i) {
             return isAlike(ops[first + i], ops[first + count * period + i]);
           }))
      ++count;
    for (; count >= 2; --count)
      if (areLayers({first, period, count}))
        return count;
    return 0;
  }

  static bool isAlike(Operation *a, Operation *b) {
    return OperationEquivalence::isEquivalentTo(
        a, b, OperationEquivalence::ignoreValueEquivalence, nullptr,
        OperationEquivalence::IgnoreLocations);
  }

  bool areLayers(const Repetition &layers) const {
    for (size_t op = 0; op < layers.period; ++op)
      for (unsigned i = 0; i < ops[layers.first + op]->getNumOperands(); ++i)
        if (!sourceOf(layers, op, i))
          return false;
    return true;
  }

  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, size_t> numbers;
};

/// Turns the launches of one function into a kernel.resident.
class ResidentBuilder {
public:
  explicit ResidentBuilder(func::FuncOp func)
      : func(func), launches(func), layers(launches.longest()),
        builder(func.getContext()) {}

  kernel::ResidentOp run();

private:
  bool isInLayers(Operation *op) const {
    const size_t number = launches.numberOf(op->getResult(0));
    return number - layers.first < layers.ops();
  }
  Operation *opOf(size_t layer, size_t op) const {
    return launches.all()[layers.first + layer * layers.period + op];
  }

  /// Failure where what layers are given cannot be told apart.
  LogicalResult findSources();
  bool isSameInAll(std::pair<size_t, unsigned> a,
                   std::pair<size_t, unsigned> b) const {
    return llvm::all_of(llvm::seq(layers.count), [&](size_t layer) {
      return opOf(layer, a.first)->getOperand(a.second) ==
             opOf(layer, b.first)->getOperand(b.second);
    });
  }
  SmallVector<Value> operandsOfStep() const;
  void buildLayers(IRMapping &map);

  func::FuncOp func;
  const Launches launches;
  const Repetition layers;
  OpBuilder builder;
  /// Sources by op of a layer and operand.
  SmallVector<SmallVector<Source>> sources;
  llvm::SetVector<Value> shared;
  /// Results of ops that a layer takes from the one before it, and the operand
  /// of the first layer in its place.
  llvm::MapVector<std::pair<size_t, unsigned>, Value> carried;
  /// Operands that are others in each layer: those of the first layer, once.
  SmallVector<std::pair<size_t, unsigned>> each;
  /// Caches that each layer gives.
  SmallVector<std::pair<size_t, unsigned>> caches;
};

LogicalResult ResidentBuilder::findSources() {
  for (size_t op = 0; op < layers.period; ++op) {
    sources.emplace_back();
    for (unsigned i = 0; i < opOf(0, op)->getNumOperands(); ++i) {
      Source source = *launches.sourceOf(layers, op, i);
      const Value value = opOf(0, op)->getOperand(i);
      if (source.kind == Source::Carried &&
          carried.insert({{source.op, source.result}, value}).first->second !=
              value)
        return failure();
      if (source.kind == Source::Shared)
        shared.insert(value);
      if (source.kind == Source::Each) {
        const std::pair<size_t, unsigned> place(op, i);
        source.op =
            llvm::find_if(
                each, [&](auto other) { return isSameInAll(place, other); }) -
            each.begin();
        if (source.op == each.size())
          each.push_back(place);
      }
      sources.back().push_back(source);
    }
    for (OpResult result : opOf(0, op)->getResults())
      if (isa<llama::KVType>(result.getType()))
        caches.emplace_back(op, result.getResultNumber());
  }
  return success();
}

/// All values from outside that the launches read: those of the layers last,
/// layer by layer.
SmallVector<Value> ResidentBuilder::operandsOfStep() const {
  llvm::SetVector<Value> operands;
  for (size_t layer = 0; layer < layers.count; ++layer)
    for (auto [op, operand] : each)
      if (Value value = opOf(layer, op)->getOperand(operand);
          launches.numberOf(value) == Launches::outside)
        operands.insert(value);
  llvm::SetVector<Value> others;
  for (Operation *op : launches.all())
    for (Value operand : op->getOperands())
      if (launches.numberOf(operand) == Launches::outside &&
          !operands.contains(operand))
        others.insert(operand);
  SmallVector<Value> all(others.takeVector());
  llvm::append_range(all, operands);
  return all;
}

void ResidentBuilder::buildLayers(IRMapping &map) {
  SmallVector<Value> sharedByAll, firsts, eachOfAll;
  SmallVector<Type> types;
  for (auto &[place, first] : carried) {
    firsts.push_back(map.lookup(first));
    types.push_back(first.getType());
  }
  for (size_t layer = 0; layer < layers.count; ++layer) {
    for (auto [op, operand] : each)
      eachOfAll.push_back(map.lookup(opOf(layer, op)->getOperand(operand)));
    for (auto [op, result] : caches)
      types.push_back(opOf(0, op)->getResult(result).getType());
  }
  for (Value value : shared)
    sharedByAll.push_back(map.lookup(value));
  auto loop = builder.create<kernel::LayersOp>(
      opOf(0, 0)->getLoc(), types, static_cast<int64_t>(layers.count),
      sharedByAll, firsts, eachOfAll);
  Block &body = loop.getBody().emplaceBlock();
  IRMapping inLayer;
  for (Value value : shared)
    inLayer.map(value, body.addArgument(value.getType(), value.getLoc()));
  llvm::MapVector<std::pair<size_t, unsigned>, Value> before;
  for (auto &[place, first] : carried)
    before[place] = body.addArgument(first.getType(), first.getLoc());
  SmallVector<Value> own;
  for (auto [op, operand] : each) {
    const Value value = opOf(0, op)->getOperand(operand);
    own.push_back(body.addArgument(value.getType(), value.getLoc()));
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  SmallVector<Operation *> clones;
  for (size_t op = 0; op < layers.period; ++op) {
    Operation *clone = builder.clone(*opOf(0, op), inLayer);
    // The rest is mapped: what is shared, and what the layer has made.
    for (auto [i, source] : llvm::enumerate(sources[op]))
      if (source.kind == Source::Carried)
        clone->setOperand(i, before[{source.op, source.result}]);
      else if (source.kind == Source::Each)
        clone->setOperand(i, own[source.op]);
    clones.push_back(clone);
  }
  SmallVector<Value> given;
  for (auto &[place, first] : carried)
    given.push_back(clones[place.first]->getResult(place.second));
  for (auto [op, result] : caches)
    given.push_back(clones[op]->getResult(result));
  builder.create<kernel::ReturnOp>(loop.getLoc(), given);

  // Results of the last layer, and the caches of all, are replaced by the
  // loop's.
  size_t number = 0;
  for (auto &[place, first] : carried)
    map.map(opOf(layers.count - 1, place.first)->getResult(place.second),
            loop.getResult(number++));
  for (size_t layer = 0; layer < layers.count; ++layer)
    for (auto [op, result] : caches)
      map.map(opOf(layer, op)->getResult(result), loop.getResult(number++));
}

kernel::ResidentOp ResidentBuilder::run() {
  if (layers.count == 0 || failed(findSources()))
    return {};
  Operation *end = func.getBody().front().getTerminator();
  SmallVector<Value> results(end->getOperands());
  const SmallVector<Value> operands = operandsOfStep();
  builder.setInsertionPoint(end);
  auto resident = builder.create<kernel::ResidentOp>(
      func.getLoc(), TypeRange(ValueRange(results)), operands);
  Block &body = resident.getBody().emplaceBlock();
  IRMapping map;
  for (Value operand : operands)
    map.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
  builder.setInsertionPointToEnd(&body);
  for (auto [number, op] : llvm::enumerate(launches.all())) {
    if (number == layers.first)
      buildLayers(map);
    if (isInLayers(op))
      continue;
    if (!llvm::all_of(op->getOperands(),
                      [&](Value value) { return map.contains(value); })) {
      resident.erase(); // It reads what only some layer has.
      return {};
    }
    builder.clone(*op, map);
  }
  SmallVector<Value> given;
  for (Value result : results) {
    if (!map.contains(result)) {
      resident.erase();
      return {};
    }
    given.push_back(map.lookup(result));
  }
  builder.create<kernel::ReturnOp>(resident.getLoc(), given);
  end->setOperands(resident.getResults());
  for (Operation *op : llvm::reverse(launches.all()))
    op->erase();
  return resident;
}

/// Seconds that the launches of `func` should take, one after the other.
double secondsOf(func::FuncOp func, const kernel::Target &target) {
  const kernel::CostStep step{.context = kernel::CostStep::usualContext,
                              .target = &target};
  const Launches launches(func);
  double seconds = 0;
  for (Operation *op : launches.all())
    seconds += target.predictedSeconds(op, step) + target.launchGap();
  return seconds;
}

struct FormResident : impl::FormResidentBase<FormResident> {
  using FormResidentBase::FormResidentBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const std::unique_ptr<kernel::Target> target = kernel::targetOf(module);
    if (!target)
      return signalPassFailure();
    SmallVector<func::FuncOp> funcs(module.getOps<func::FuncOp>());
    for (func::FuncOp func : funcs) {
      const FailureOr<RowBounds> bounds = rowBoundsOf(func);
      if (failed(bounds) || failed(checkOneBlock(func)))
        return signalPassFailure();
      if (bounds->rows != 1)
        continue;
      OpBuilder builder(func);
      auto copy = cast<func::FuncOp>(builder.clone(*func));
      copy.setName("resident");
      const std::string why = form(copy, func, *target);
      if (why.empty())
        continue;
      copy.erase();
      if (target->residentSteps() == kernel::ResidentSteps::On) {
        func.emitError("no kernel makes the step of one row in one launch: ")
            << why << "; compile with --resident-step=off";
        return signalPassFailure();
      }
      if (explain)
        mlir::emitRemark(func.getLoc(),
                         "the step of one row stays many launches: ")
            << why;
    }
  }

private:
  /// Makes the launches of `copy`, which are those of `func`, one; else says
  /// why not.
  static std::string form(func::FuncOp copy, func::FuncOp func,
                          const kernel::Target &target) {
    // The cos/sin caches of some layers, between those, are ahead of all.
    Block &body = copy.getBody().front();
    for (auto table :
         llvm::make_early_inc_range(body.getOps<kernel::RopeTableOp>()))
      table->moveBefore(&body, body.begin());
    kernel::ResidentOp step = ResidentBuilder(copy).run();
    if (!step)
      return "its launches are no layers that follow each other";
    if (std::string why = target.whyNotResident(step); !why.empty())
      return why;
    if (target.residentSteps() == kernel::ResidentSteps::On)
      return "";
    const double one = secondsOf(copy, target), many = secondsOf(func, target);
    return one < many ? ""
                      : llvm::formatv("one is expected to take {0:F0} us, they "
                                      "{1:F0} us",
                                      1e6 * one, 1e6 * many)
                            .str();
  }
};

} // namespace

} // namespace llamac
