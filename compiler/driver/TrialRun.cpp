//===- TrialRun.cpp - A kernel alone, on the simulator --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/TrialRun.h"

#include "compiler/driver/Check.h"
#include "compiler/driver/LaunchValues.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace mlir;

namespace llamac {

/// Bytes of a result that is no cache.
static size_t bytesOf(const reference::Value &value) {
  const auto *tensor = std::get_if<reference::Tensor>(&value);
  return 4 * (tensor ? tensor->data.size()
                     : std::get<reference::Indices>(value).size());
}

TrialRun::Buffer &TrialRun::add(Value value, const std::string &name,
                                size_t size, SimContents contents) {
  places[value] = buffers.size();
  buffers.push_back({name, contents, {}, DeviceBytes(size)});
  return buffers.back();
}

void TrialRun::addOperand(Value value, const std::string &name,
                          std::vector<uint8_t> bytes, bool changes) {
  Buffer &buffer = add(value, name, bytes.size(),
                       changes ? SimContents::Defined : SimContents::ReadOnly);
  std::copy(bytes.begin(), bytes.end(), buffer.bytes.data());
  if (changes)
    buffer.before = std::move(bytes);
}

/// Parameters are an op's operands, the page table where one is the cache, the
/// workspace and the counters where its blocks work together, and its results,
/// of which a new cache lies where the old one did.
TrialRun::TrialRun(const KernelTrial &trial, plan::KernelOp kernel,
                   const std::vector<std::string> &parameters,
                   const Backend &backend, int64_t rows)
    : trial(trial), symbol(kernel.getSymName()),
      geometry(backend.target().geometry(trial.op())), backend(backend),
      rows(rows) {
  Operation *op = trial.op();
  auto name = parameters.begin();
  auto pass = [&] { arguments.push_back(buffers.size() - 1); };
  const Value *cache = nullptr;
  SmallVector<Value> operands(op->getOperands());
  for (const Value &operand : operands) {
    const std::string &parameter = *name++;
    if (isCache(operand))
      cache = &operand;
    if (!places.contains(operand)) {
      const bool changes =
          isCache(operand) && llvm::any_of(op->getResults(), isCache);
      addOperand(operand, parameter, trial.memoryOf(operand), changes);
    }
    arguments.push_back(places.at(operand));
  }
  if (cache) {
    const auto *table =
        reinterpret_cast<const uint8_t *>(trial.pageTable().data());
    addOperand(Value(), *name++,
               {table, table + trial.pageTable().size() * sizeof(int32_t)},
               /*changes=*/false);
    pass();
  }
  if (geometry.workspace) {
    buffers.push_back({*name++,
                       SimContents::Undefined,
                       {},
                       DeviceBytes(geometry.workspace * rows)});
    pass();
  }
  if (geometry.counters) {
    const size_t bytes = geometry.counters * rows * sizeof(uint32_t);
    counters = buffers.size();
    buffers.push_back({*name++, SimContents::Defined,
                       std::vector<uint8_t>(bytes), DeviceBytes(bytes)});
    pass();
  }
  for (Value result : op->getResults())
    if (isCache(result)) {
      places[result] = places[*cache];
    } else {
      add(result, *name++, bytesOf(trial.value(result)),
          SimContents::Undefined);
      pass();
    }
}

absl::StatusOr<SimLaunch> TrialRun::launch() {
  SimLaunch launch;
  launch.kernel = symbol;
  launch.grid.x = static_cast<uint32_t>(geometry.items);
  if (geometry.rowBlock)
    launch.grid.y = static_cast<uint32_t>(
        llvm::divideCeil(static_cast<uint64_t>(rows), geometry.rowBlock));
  launch.block.x = static_cast<uint32_t>(geometry.threads);
  launch.sharedBytes = static_cast<uint32_t>(geometry.scratch);
  launch.rows = static_cast<int32_t>(rows);
  for (size_t argument : arguments)
    launch.args.push_back(buffers[argument].bytes.data());
  launch.cluster = static_cast<uint32_t>(geometry.cluster);
  for (const kernel::TensorMapGeometry &map : geometry.maps) {
    const TensorMapShape shape{
        .elementBytes = static_cast<uint32_t>(map.elementBytes),
        .columns = static_cast<uint64_t>(map.columns),
        .rows = map.rows < 0
                    ? buffers[arguments[map.operand]].bytes.size() /
                          static_cast<uint64_t>(map.columns * map.elementBytes)
                    : static_cast<uint64_t>(map.rows ? map.rows : rows),
        .rowBytes = static_cast<uint64_t>(map.columns * map.elementBytes),
        .boxColumns = static_cast<uint32_t>(map.boxColumns),
        .boxRows = static_cast<uint32_t>(map.boxRows),
        .swizzleBytes = static_cast<uint32_t>(map.swizzleBytes)};
    LLAMAC_RETURN_IF_ERROR(encodeSimTensorMap(launch.args[map.operand], shape,
                                              maps.emplace_back()));
    launch.args.push_back(&maps.back());
  }
  return launch;
}

/// The first and the last blocks of a grid and some between them.
static std::vector<uint32_t> someBlocks(uint64_t count) {
  constexpr uint64_t most = 16;
  std::vector<uint32_t> blocks(std::min(count, most));
  for (uint64_t i = 0; i < blocks.size(); ++i)
    blocks[i] =
        static_cast<uint32_t>(count <= most ? i : i * (count - 1) / (most - 1));
  return blocks;
}

absl::Status TrialRun::run(const SimModule &module, const SimOptions &options) {
  Simulator simulator(options);
  for (Buffer &buffer : buffers) {
    // Bytes 0xff are NaN.
    if (buffer.contents == SimContents::Undefined)
      std::memset(buffer.bytes.data(), 0xff, buffer.bytes.size());
    std::copy(buffer.before.begin(), buffer.before.end(), buffer.bytes.data());
    simulator.memory().add(buffer.name, buffer.bytes.data(),
                           buffer.bytes.size(), buffer.contents);
  }
  LLAMAC_ASSIGN_OR_RETURN(SimLaunch bound, launch());
  // Of blocks that work together all must come.
  if (options.checked && !geometry.counters)
    bound.blocks = someBlocks(bound.grid.count());
  const absl::Status status = simulator.run(module, bound);
  if (!status.ok())
    return accuracyError(status.message());
  if (counters) {
    const Buffer &left = buffers[*counters];
    if (!std::all_of(left.bytes.data(), left.bytes.data() + left.bytes.size(),
                     [](uint8_t byte) { return byte == 0; }))
      return accuracyError(
          absl::StrCat(left.name, ": expected every counter to be 0 behind the "
                                  "kernel, got another number"));
  }
  return absl::OkStatus();
}

absl::Status TrialRun::compare() const {
  Operation *op = trial.op();
  for (OpResult result : op->getResults()) {
    const reference::Value &known = trial.value(result);
    const Buffer &buffer = buffers[places.at(result)];
    std::vector<float> expected, got;
    if (isCache(result)) {
      expected = trial.cachedRows(result);
      got =
          trial.readCache(result, {buffer.bytes.data(),
                                   buffer.bytes.data() + buffer.bytes.size()});
    } else {
      expected = numbersOf(known, op);
      got.resize(expected.size());
      if (std::holds_alternative<reference::Tensor>(known)) {
        std::memcpy(got.data(), buffer.bytes.data(), buffer.bytes.size());
      } else {
        const auto *indices =
            reinterpret_cast<const int32_t *>(buffer.bytes.data());
        got.assign(indices, indices + got.size());
      }
    }
    const Value added =
        result.getResultNumber() == 0 ? residualOf(op) : Value();
    CheckedKernel launch;
    launch.difference = compareTiles(got, expected, widthOf(known),
                                     added ? numbersOf(trial.value(added), op)
                                           : std::vector<float>());
    launch.tolerance =
        backend.numerics().tolerance(op, result.getResultNumber());
    if (launch.passed())
      continue;
    const size_t worst = launch.difference.worst;
    const auto width = static_cast<size_t>(widthOf(known));
    const std::string place =
        isCache(result)
            ? absl::StrCat(trial.placeInCache(result, worst / width),
                           ", element ", worst % width)
            : absl::StrCat("row ", worst / width, ", column ", worst % width);
    return accuracyError(absl::StrCat(
        buffer.name, " differs from the reference: ", place, ": expected ",
        expected[worst], ", got ", got[worst],
        " (a normalised mean squared error of ", launch.difference.nmse,
        ", at most ", launch.tolerance, " is rounding), in a launch of ", rows,
        rows == 1 ? " row" : " rows"));
  }
  return absl::OkStatus();
}

} // namespace llamac
