//===- KernelTrial.cpp - A kernel alone, on random operands ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrices may be larger than what one would keep twice, so their rows are made
// when they are asked for, in the stored format, from the operand's number and
// the row's: by the reference, and once to pack them.
//
//===----------------------------------------------------------------------===//

#include "compiler/trial/KernelTrial.h"

#include "codegen/KernelOps.h"
#include "compiler/trial/LaunchReference.h"
#include "engine/sampling/Sampler.h"
#include "ir/kernel/Kernel.h"
#include "runtime/base/Status.h"
#include "runtime/formats/BlockScales.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/packing/TilePacking.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;

namespace llamac {

/// Tokens that the sequences have already, where the context is long enough:
/// attention partitions so many keys over several blocks, and they are no
/// multiple of a page.
static constexpr int64_t tokensBefore = 300;
static constexpr int32_t sequenceCount = 2;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// A random number in [-limit, limit), the same on every machine.
static float uniform(RandomStream &random, float limit) {
  const auto value = static_cast<int32_t>(random.next() >> 32);
  return static_cast<float>(value) * 0x1p-31F * limit;
}

/// The stored bytes of a row of `cols` weights whose products with numbers
/// around 1 add up to such.
static std::vector<uint8_t> weightRow(DataType type, int64_t cols,
                                      uint64_t seed) {
  RandomStream random(seed);
  std::vector<uint8_t> bytes(dataTypeBytes(type, cols));
  const auto rms = 1 / std::sqrt(static_cast<float>(cols));
  if (!takesRandomBits(type)) {
    std::vector<float> row(cols);
    for (float &weight : row)
      weight = uniform(random, 1.7F * rms);
    quantizeRow(type, row.data(), cols, bytes.data());
    return bytes;
  }
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random.next();
    std::memcpy(&bytes[at], &bits, std::min(sizeof bits, bytes.size() - at));
  }
  const size_t blockBytes = dataTypeInfo(type).blockBytes;
  for (size_t at = 0; at < bytes.size(); at += blockBytes)
    setBlockScales(type, (1.25F + uniform(random, 0.25F)) * rms, &bytes[at]);
  return bytes;
}

/// Row `row` of `weight`, whose name is the operand's number.
static std::vector<uint8_t> storedRow(const reference::Weight &weight,
                                      int64_t row) {
  uint64_t operand = 0;
  const bool isNumber = absl::SimpleAtoi(weight.name, &operand);
  assert(isNumber && "makeOperand() sets the names");
  (void)isNumber;
  return weightRow(weight.type, weight.cols, (operand << 32) + row);
}

static absl::Status readWeight(const reference::Weight &weight,
                               int64_t firstRow, int64_t numRows, float *out) {
  for (int64_t row = 0; row < numRows; ++row)
    dequantizeRow(weight.type, storedRow(weight, firstRow + row).data(),
                  weight.cols, out + row * weight.cols);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static kernel::GatherRowsOp gatherOf(Value value) {
  return dyn_cast<kernel::GatherRowsOp>(*value.getUsers().begin());
}

/// Where `value` is read: what a resident step is given, by a phase of it.
static OpOperand &readOf(Value value) {
  for (;;) {
    OpOperand &read = *value.use_begin();
    Operation *reader = read.getOwner();
    if (auto step = dyn_cast<kernel::ResidentOp>(reader))
      value = step.getBody().getArgument(read.getOperandNumber());
    else if (auto layers = dyn_cast<kernel::LayersOp>(reader))
      value = layers.getArgumentOf(read.getOperandNumber());
    else
      return read;
  }
}

/// Whether `op` reads or appends at its rows' positions.
static bool appends(Operation *op) {
  return isa<kernel::QkvOp, kernel::RopeAppendOp>(op);
}

/// Random numbers in [0, bound), of which the last is one.
static reference::Indices indicesBelow(int64_t bound, int64_t count,
                                       uint64_t seed) {
  RandomStream random(seed);
  reference::Indices indices(count);
  for (int32_t &index : indices)
    index = static_cast<int32_t>(random.next() % bound);
  indices.back() = static_cast<int32_t>(bound - 1);
  return indices;
}

/// Temperature, top-k and top-p of every second row; the others are greedy.
static reference::Indices makeSamplingParams(int64_t rows, uint64_t seed) {
  RandomStream random(seed);
  reference::Indices words(rows * reference::samplingParamWords);
  for (int64_t row = 0; row < rows; row += 2) {
    const SamplingParams params{0.8F, 40, 0.9F,
                                static_cast<uint32_t>(random.next() >> 32)};
    std::memcpy(&words[row * reference::samplingParamWords], &params,
                sizeof params);
  }
  return words;
}

/// How many ranks have the operands of `op`.
static int64_t ranksOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<kernel::AllGatherOp, kernel::AllReduceOp>(
          [](auto collective) { return collective.getRanks(); })
      .Default([](Operation *) { return 1; });
}

/// The rank whose part of a table the trial has: not the first, whose tokens
/// begin at 0 as those of a whole table do.
static constexpr int32_t rankOfPart = 1;

absl::StatusOr<reference::Value>
KernelTrial::makeOperand(BlockArgument argument, int64_t rank) {
  const uint64_t number = argument.getArgNumber();
  const OpOperand &read = readOf(argument);
  Operation *user = read.getOwner();
  if (auto kv = dyn_cast<llama::KVType>(argument.getType()))
    return makeCache(kv, /*withRows=*/!appends(user));
  auto embed = dyn_cast<kernel::EmbedOp>(user);
  if (embed && embed.getRank() == read.get())
    return reference::Indices{rankOfPart};
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type)
    return unsupportedError("an operand that is neither tensor nor cache");
  if (type.hasStaticShape()) {
    // Vectors are widened when they are loaded.
    const bool isMatrix = type.getRank() == 2;
    return reference::Weight{
        std::to_string(number), isMatrix ? type.getDimSize(0) : 1,
        type.getShape().back(),
        isMatrix ? llama::dataTypeOf(argument) : DataType::F32};
  }

  // Gathering takes some of more rows.
  kernel::GatherRowsOp gather = gatherOf(argument);
  const int64_t gathered = rows + 3;
  const bool isGathered = gather && gather.getInput() == argument;
  std::vector<int64_t> shape(type.getShape());
  shape.front() = isGathered ? gathered : rows;
  if (isa<FloatType>(type.getElementType())) {
    reference::Tensor tensor(std::move(shape));
    RandomStream random((static_cast<uint64_t>(rank) << 32) + number + 1);
    for (float &element : tensor.data)
      element = uniform(random, 2);
    // Squares of such numbers have means of 1 to 3.
    if (hasProducts(user) && squaresOf(user) == argument) {
      const int64_t width = widthOf(user->getOperand(0));
      for (float &element : tensor.data)
        element = (1 + std::abs(element)) * static_cast<float>(width) /
                  static_cast<float>(type.getDimSize(1));
    }
    // The numbers are rounded as the type stores them.
    tensor.data = numbersIn(type, storedNumbers(type, tensor));
    return tensor;
  }
  if (isGathered || gather)
    return indicesBelow(isGathered ? 1000 : gathered, shape.front(), number);
  if (embed && embed.getTokens() == read.get()) {
    // A part has its own tokens and those before it.
    const int64_t parts = embed.getRank() ? rankOfPart + 1 : 1;
    return indicesBelow(
        parts * cast<ShapedType>(embed.getTable().getType()).getDimSize(0),
        rows, number);
  }
  auto rowNumbers = [&](auto op) {
    return op.getSequences() == read.get() ? sequences : positions;
  };
  return llvm::TypeSwitch<Operation *, absl::StatusOr<reference::Value>>(user)
      .Case<kernel::AttentionOp, kernel::QkvOp, kernel::RopeAppendOp>(
          rowNumbers)
      .Case<kernel::EmbedOp, kernel::RopeTableOp>(
          [&](auto) { return positions; })
      .Case([&](kernel::SampleOp) { return makeSamplingParams(rows, number); })
      .Default([&](Operation *op) {
        return unsupportedError(absl::StrCat("nothing is known of what ",
                                             op->getName().getStringRef().str(),
                                             " reads"));
      });
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

/// Keys and values, as the cache rounds them, of the tokens before the step
/// and, `withRows`, of its own.
reference::KvState KernelTrial::makeCache(llama::KVType kv,
                                          bool withRows) const {
  reference::KvState state(kv.getHeads(), kv.getSize());
  const int64_t width = state.rowSize();
  std::vector<uint8_t> page(layout.pageBytes);
  RandomStream random(77);
  for (int32_t sequence = 0; sequence < sequenceCount; ++sequence) {
    const int64_t count = withRows ? tokensOf(sequence) : before;
    std::vector<float> keys(count * width), cached(count * width);
    for (std::vector<float> *part : {&keys, &cached})
      for (float &element : *part)
        element = uniform(random, 2);
    std::vector<int32_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), 0);
    for (int64_t token = 0; token < count; ++token) {
      float *key = &keys[token * width], *value = &cached[token * width];
      backend.numerics().writeKv(kv, key, value, /*token=*/0, page.data());
      backend.numerics().readKv(kv, page.data(), /*token=*/0, key, value);
    }
    state.append(keys.data(), cached.data(), tokens,
                 std::vector<int32_t>(count, sequence));
  }
  return state;
}

std::vector<float> KernelTrial::readCache(llama::KVType kv,
                                          const uint8_t *pool) const {
  const int64_t width = kv.getHeads() * kv.getSize();
  std::vector<float> all;
  for (int32_t sequence = 0; sequence < sequenceCount; ++sequence) {
    const int64_t count = tokensOf(sequence);
    const size_t keys = all.size(), cached = keys + count * width;
    all.resize(all.size() + 2 * count * width);
    for (int64_t token = 0; token < count; ++token)
      backend.numerics().readKv(
          kv, pool + pageOf(sequence, token), token % layout.pageTokens,
          &all[keys + token * width], &all[cached + token * width]);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// `weight` as runtime/packing/TileLayout.h lays it out.
static std::vector<uint8_t> packedMatrix(const reference::Weight &weight) {
  const cuda::WeightFormat format = cuda::weightFormat(weight.type);
  std::vector<uint8_t> packed(
      cuda::packedWeightBytes(format, weight.rows, weight.cols));
  const int64_t unitRows = cuda::unitRows(format);
  for (int64_t unit = 0; unit * unitRows < weight.rows; ++unit) {
    const int64_t first = unit * unitRows;
    const int64_t count = std::min(unitRows, weight.rows - first);
    std::vector<uint8_t> stored;
    for (int64_t row = first; row < first + count; ++row)
      llvm::append_range(stored, storedRow(weight, row));
    cuda::packWeight(weight.type, weight.cols, count, stored.data(),
                     packed.data() +
                         unit * cuda::unitBytes(format, weight.cols));
  }
  return packed;
}

std::vector<uint8_t>
KernelTrial::memoryOf(Value operand, const reference::Value &known) const {
  if (std::holds_alternative<reference::Tensor>(known) ||
      std::holds_alternative<reference::Indices>(known))
    return storedNumbers(operand.getType(), known);
  if (const auto *weight = std::get_if<reference::Weight>(&known))
    return cast<ShapedType>(operand.getType()).getRank() == 2
               ? packedMatrix(*weight)
               : storedRow(*weight, 0);
  // Bytes 0xff are NaN in every format of the cache.
  const auto &state = std::get<reference::KvState>(known);
  const int64_t used = 1 + *llvm::max_element(pages);
  std::vector<uint8_t> pool(used * layout.pageBytes, 0xff);
  const int64_t width = state.rowSize();
  for (const auto &[sequence, cached] : state.rows())
    for (int64_t token = 0;
         token * width < static_cast<int64_t>(cached.keys.size()); ++token)
      backend.numerics().writeKv(
          cast<llama::KVType>(operand.getType()), &cached.keys[token * width],
          &cached.values[token * width], token % layout.pageTokens,
          pool.data() + pageOf(sequence, token));
  return pool;
}

//===----------------------------------------------------------------------===//
// The trial
//===----------------------------------------------------------------------===//

absl::Status KernelTrial::runReference() {
  LLAMAC_ASSIGN_OR_RETURN(const reference::Interpreter interpreter,
                          reference::Interpreter::create(function));
  reference::WeightStore weights(readWeight, /*limitBytes=*/0);
  reference::Parallel parallel(0);
  // The operands of all ranks; the kernel runs on the first.
  std::vector<std::vector<reference::ValuePtr>> operands(ranksOf(op));
  for (auto [rank, own] : llvm::enumerate(operands))
    for (BlockArgument argument : function.getArguments()) {
      LLAMAC_ASSIGN_OR_RETURN(
          reference::Value value,
          makeOperand(argument, static_cast<int64_t>(rank)));
      own.push_back(std::make_shared<reference::Value>(std::move(value)));
      valuesOfRanks[argument].push_back(own.back());
      values.try_emplace(argument, own.back());
    }
  auto record = [&](Operation &op, ArrayRef<reference::ValuePtr> results) {
    for (auto [result, value] : llvm::zip(op.getResults(), results))
      values[result] = value;
  };
  return interpreter.runRanks(std::move(operands), weights, parallel, record)
      .status();
}

KernelTrial::KernelTrial(plan::KernelOp kernel, int64_t rows, int64_t context,
                         const Backend &backend)
    : kernel(kernel), rows(rows), backend(backend),
      module(isolateLaunch(&kernel.getPrototype(), backend.numerics())),
      function(*module->getOps<func::FuncOp>().begin()),
      op(&function.getBody().front().front()) {
  const int64_t first = (rows + 1) / 2;
  before = std::clamp<int64_t>(context - first, 0, tokensBefore);
  for (int64_t row = 0; row < rows; ++row) {
    const bool isFirst = row < first;
    positions.push_back(
        static_cast<int32_t>(before + row - (isFirst ? 0 : first)));
    sequences.push_back(isFirst ? 1 : 0);
  }
  const auto cache = llvm::find_if(op->getOperands(), isCache);
  if (cache == op->operand_end())
    return;
  layout = backend.kvLayout(cast<llama::KVType>((*cache).getType()));
  // The pages of both sequences, the last first.
  const int64_t perSequence =
      llvm::divideCeilSigned(before + first, layout.pageTokens);
  pages.assign(sequenceCount * layout.pagesPerSequence, -1);
  for (int64_t page = 0; page < sequenceCount * perSequence; ++page)
    pages[page / perSequence * layout.pagesPerSequence + page % perSequence] =
        static_cast<int32_t>(sequenceCount * perSequence - 1 - page);
}

absl::StatusOr<std::unique_ptr<KernelTrial>>
KernelTrial::create(plan::KernelOp kernel, ArrayRef<std::string> parameters,
                    int64_t rows, int64_t context, const Backend &backend) {
  std::unique_ptr<KernelTrial> trial(
      new KernelTrial(kernel, rows, context, backend));
  LLAMAC_RETURN_IF_ERROR(trial->runReference());
  trial->bindArguments(parameters);
  return trial;
}

} // namespace llamac
