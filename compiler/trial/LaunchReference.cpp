//===- LaunchReference.cpp - What every launch should give ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/trial/LaunchReference.h"

#include "compiler/reference/Ops.h"
#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"

#include "absl/strings/str_cat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;

namespace llamac {

double CheckedKernel::errorRatio() const {
  const double error = std::max(difference.nmse, difference.tile / tileShare);
  return error == 0 ? 0 : error / tolerance;
}

absl::StatusOr<std::unique_ptr<LaunchReference>>
LaunchReference::create(ModuleOp module, reference::WeightReader reader,
                        const kernel::TargetNumerics &numerics,
                        uint64_t pageBytes) {
  std::unique_ptr<LaunchReference> result(
      new LaunchReference(std::move(reader), numerics, pageBytes));
  for (auto function : module.getOps<func::FuncOp>()) {
    LLAMAC_ASSIGN_OR_RETURN(reference::Interpreter interpreter,
                            reference::Interpreter::create(function));
    LLAMAC_RETURN_IF_ERROR(reference::checkRoles(function));
    Program program{function, std::move(interpreter), {}};
    for (Operation &op : function.getBody().front())
      if (isa<kernel::KernelDialect>(op.getDialect()))
        program.launches.push_back(&op);
    result->caches = reference::emptyCaches(function);
    result->programs.push_back(std::move(program));
  }
  return result;
}

const LaunchReference::Program *
LaunchReference::find(StringRef function) const {
  const auto it = llvm::find_if(programs, [&](const Program &known) {
    func::FuncOp callee = known.function;
    return callee.getName() == function;
  });
  return it == programs.end() ? nullptr : &*it;
}

ArrayRef<Operation *> LaunchReference::launches(StringRef function) const {
  const Program *program = find(function);
  return program ? ArrayRef<Operation *>(program->launches)
                 : ArrayRef<Operation *>();
}

/// Gives the rows of `positions` that `op` has appended to `state` the values
/// that the target's cache can hold.
void LaunchReference::roundAppended(Operation &op, reference::KvState &state,
                                    absl::Span<const int32_t> positions) {
  const reference::KvRows &rows = state.rows().at(0);
  const int64_t width = state.rowSize();
  const auto kv = cast<llama::KVType>(
      *llvm::find_if(op.getResultTypes(), llvm::IsaPred<llama::KVType>));
  std::vector<float> keys(positions.size() * width), values(keys.size());
  for (size_t n = 0; n < positions.size(); ++n) {
    const int64_t from = positions[n] * width,
                  to = static_cast<int64_t>(n) * width;
    numerics.writeKv(kv, rows.keys.data() + from, rows.values.data() + from,
                     /*token=*/0, page.data());
    numerics.readKv(kv, page.data(), /*token=*/0, keys.data() + to,
                    values.data() + to);
  }
  state.append(keys.data(), values.data(), positions,
               std::vector<int32_t>(positions.size(), 0));
}

absl::Status LaunchReference::step(StringRef function,
                                   absl::Span<const int32_t> tokens,
                                   absl::Span<const int32_t> logitsRows) {
  const Program *program = find(function);
  if (!program || program->launches.empty())
    return internalError(
        absl::StrCat("no function @", function.str(), " has launches"));
  std::vector<int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), length);
  const std::vector<int32_t> sequences(tokens.size(), 0);
  func::FuncOp callee = program->function;
  // The engine passes zero sampling params for a step that is not sampled.
  std::vector<reference::ValuePtr> arguments = reference::stepArguments(
      callee, {tokens, positions, sequences, logitsRows}, caches);

  values.clear();
  for (auto [parameter, argument] : llvm::zip(callee.getArguments(), arguments))
    values[parameter] = argument;
  auto record = [&](Operation &op, ArrayRef<reference::ValuePtr> results) {
    for (auto [result, value] : llvm::zip(op.getResults(), results)) {
      if (auto *kv = std::get_if<reference::KvState>(value.get()))
        roundAppended(op, *kv, positions);
      values[result] = value;
    }
  };
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<reference::ValuePtr> results,
                          program->interpreter.run(std::move(arguments),
                                                   weights, parallel, record));
  caches = reference::cachesOf(results);
  length += static_cast<int32_t>(tokens.size());
  return absl::OkStatus();
}

bool isCache(Value value) { return isa<llama::KVType>(value.getType()); }

std::vector<float> numbersOf(const reference::Value &value) {
  if (const auto *tensor = std::get_if<reference::Tensor>(&value))
    return tensor->data;
  if (const auto *indices = std::get_if<reference::Indices>(&value))
    return {indices->begin(), indices->end()};
  if (const auto *state = std::get_if<reference::KvState>(&value))
    return state->numbers();
  return {};
}

static Type elementOf(Type type) {
  return cast<RankedTensorType>(type).getElementType();
}

/// Where column `column` of rows in the order of lanes lies among its 16.
static size_t placeOfColumn(size_t column) {
  const size_t lane = column % 16 / 4, within = column % 4;
  return column - column % 16 + 2 * lane + within / 2 * 8 + within % 2;
}

static bool isInLaneOrder(Type type) {
  return isa_and_nonnull<kernel::LaneOrderAttr>(
      cast<RankedTensorType>(type).getEncoding());
}

/// How the floats of a tensor of `type` lie in memory.
static DataType storedType(Type type) {
  return elementOf(type).isBF16() ? DataType::BF16 : DataType::F32;
}

std::vector<uint8_t> storedNumbers(Type type, const reference::Value &value) {
  if (const auto *indices = std::get_if<reference::Indices>(&value)) {
    const auto *first = reinterpret_cast<const uint8_t *>(indices->data());
    return {first, first + indices->size() * sizeof(int32_t)};
  }
  std::vector<float> numbers = std::get<reference::Tensor>(value).data;
  if (isInLaneOrder(type)) {
    const std::vector<float> columns = numbers;
    for (size_t i = 0; i < columns.size(); ++i)
      numbers[placeOfColumn(i)] = columns[i];
  }
  const DataType stored = storedType(type);
  std::vector<uint8_t> bytes(dataTypeBytes(stored, numbers.size()));
  quantizeRow(stored, numbers.data(), static_cast<int64_t>(numbers.size()),
              bytes.data());
  return bytes;
}

std::vector<float> numbersIn(Type type, absl::Span<const uint8_t> bytes) {
  if (elementOf(type).isInteger()) {
    std::vector<int32_t> integers(bytes.size() / sizeof(int32_t));
    std::memcpy(integers.data(), bytes.data(), bytes.size());
    return {integers.begin(), integers.end()};
  }
  const DataType stored = storedType(type);
  std::vector<float> numbers(bytes.size() / dataTypeBytes(stored, 1));
  dequantizeRow(stored, bytes.data(), static_cast<int64_t>(numbers.size()),
                numbers.data());
  if (isInLaneOrder(type)) {
    const std::vector<float> lanes = numbers;
    for (size_t i = 0; i < lanes.size(); ++i)
      numbers[i] = lanes[placeOfColumn(i)];
  }
  return numbers;
}

int64_t widthOf(const reference::Value &value) {
  if (const auto *state = std::get_if<reference::KvState>(&value))
    return state->rowSize();
  const auto *tensor = std::get_if<reference::Tensor>(&value);
  return tensor ? static_cast<int64_t>(tensor->data.size()) / tensor->shape[0]
                : 1;
}

/// The operand that the epilogue of `op`, a product, adds to it in result 0;
/// null when there is none.
static Value residualOf(Operation *op) {
  auto product = dyn_cast<kernel::MatmulOp>(op);
  if (!product)
    return {};
  Block &epilogue = product.getEpilogue().front();
  auto sum =
      epilogue.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return {};
  const unsigned products = product.getWeights().size();
  for (Value term : sum->getOperands())
    if (auto arg = dyn_cast<BlockArgument>(term);
        arg && arg.getArgNumber() >= products)
      return product.getExtras()[arg.getArgNumber() - products];
  return {};
}

/// Where `element` of the numbers of `value` is.
static std::string placeOf(const reference::Value &value, size_t element) {
  const auto width = static_cast<size_t>(widthOf(value));
  size_t row = element / width;
  const auto *state = std::get_if<reference::KvState>(&value);
  if (!state)
    return absl::StrCat("row ", row, ", column ", element % width);
  for (const auto &[sequence, cached] : state->rows()) {
    const size_t count = cached.keys.size() / width;
    if (row < 2 * count)
      return absl::StrCat(row < count ? "key" : "value", " of position ",
                          row % count, " of sequence ", sequence, ", element ",
                          element % width);
    row -= 2 * count;
  }
  llvm_unreachable("no element of the value");
}

/// The attention that has its result in that of `op`, itself or a merge.
static kernel::AttentionOp attentionOf(Operation *op) {
  if (auto merge = dyn_cast<kernel::AttentionMergeOp>(op))
    return merge.getPartials().getDefiningOp<kernel::AttentionOp>();
  return dyn_cast<kernel::AttentionOp>(op);
}

/// The largest difference as a share of its bound and of what rounding may add,
/// whose square is `rounding` times the mean square.
static double largestShare(absl::Span<const float> got,
                           absl::Span<const float> expected,
                           absl::Span<const float> bounds, double rounding) {
  double power = 0, largest = 0;
  for (const float value : expected)
    power += double{value} * double{value};
  const double slack =
      std::sqrt(rounding * power / static_cast<double>(expected.size()));
  for (auto [value, correct, bound] : llvm::zip(got, expected, bounds))
    largest = std::max(largest, std::abs(double{value} - double{correct}) /
                                    (double{bound} + slack));
  return largest;
}

CheckedKernel
compareResult(OpResult result, absl::Span<const float> got,
              const kernel::TargetNumerics &numerics,
              llvm::function_ref<const reference::Value &(Value)> valueOf) {
  Operation *op = result.getOwner();
  const reference::Value &expected = valueOf(result);
  const Value added = result.getResultNumber() == 0 ? residualOf(op) : Value();
  const std::vector<float> numbers = numbersOf(expected);
  CheckedKernel launch;
  launch.tolerance = numerics.tolerance(op, result.getResultNumber());
  reference::ApproximationBound approximation;
  if (auto attention = attentionOf(op);
      attention && attention.getApproximationAttr()) {
    auto indices = [&](Value value) -> const auto & {
      return std::get<reference::Indices>(valueOf(value));
    };
    approximation = reference::approximationBound(
        attention, std::get<reference::Tensor>(valueOf(attention.getQuery())),
        std::get<reference::KvState>(valueOf(attention.getKv())),
        indices(attention.getPositions()), indices(attention.getSequences()));
    launch.approximation = {
        largestShare(got, numbers, approximation.bounds,
                     CheckedKernel::tileShare * launch.tolerance),
        approximation.dropped};
  }
  launch.difference =
      compareTiles(got, numbers, widthOf(expected),
                   added ? numbersOf(valueOf(added)) : std::vector<float>(),
                   approximation.bounds);
  launch.where = placeOf(expected, launch.difference.worst);
  return launch;
}

OwningOpRef<ModuleOp> isolateLaunch(Operation *op,
                                    const kernel::TargetNumerics &numerics) {
  // Ops that go along, each before its users.
  SmallVector<Operation *> members;
  for (Value operand : op->getOperands())
    if (Operation *maker = operand.getDefiningOp())
      if (isa<llama::WeightOp>(maker) || numerics.isPrivate(operand))
        if (!llvm::is_contained(members, maker))
          members.push_back(maker);
  members.push_back(op);

  OpBuilder builder(op->getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto function = builder.create<func::FuncOp>(op->getLoc(), "launch",
                                               builder.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  for (Operation *member : members) {
    for (Value operand : member->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand,
                    body->addArgument(operand.getType(), operand.getLoc()));
    builder.clone(*member, mapping);
  }
  SmallVector<Value> results;
  for (Value result : op->getResults())
    results.push_back(mapping.lookup(result));
  builder.create<func::ReturnOp>(op->getLoc(), results);
  function.setFunctionType(builder.getFunctionType(
      body->getArgumentTypes(), llvm::to_vector(op->getResultTypes())));
  return module;
}

} // namespace llamac
