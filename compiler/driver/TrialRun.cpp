//===- TrialRun.cpp - A kernel alone, on the simulator --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KernelTrial.h"
#include "compiler/driver/LaunchReference.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace mlir;

namespace llamac {

/// Parameters are an op's operands, the page table where one is the cache,
/// workspace and counters where its blocks work together, and its results, of
/// which a new cache lies where the old one did.
void KernelTrial::bindArguments(ArrayRef<std::string> parameters) {
  const auto *name = parameters.begin();
  auto add = [&](size_t size, SimContents contents) -> Buffer & {
    arguments.push_back(buffers.size());
    buffers.push_back({*name++, contents, {}, DeviceBytes(size)});
    return buffers.back();
  };
  auto addCopy = [&](std::vector<uint8_t> bytes, bool changes) {
    Buffer &buffer = add(bytes.size(), changes ? SimContents::Defined
                                               : SimContents::ReadOnly);
    llvm::copy(bytes, buffer.bytes.data());
    if (changes)
      buffer.before = std::move(bytes);
  };
  const bool appends = llvm::any_of(op->getResults(), isCache);
  std::optional<size_t> cache;
  for (Value operand : op->getOperands()) {
    const auto [place, isNew] = places.try_emplace(operand, buffers.size());
    if (isNew) {
      addCopy(memoryOf(operand), isCache(operand) && appends);
    } else {
      arguments.push_back(place->second);
      ++name;
    }
    if (isCache(operand))
      cache = place->second;
  }
  if (cache) {
    const auto *table = reinterpret_cast<const uint8_t *>(pages.data());
    addCopy({table, table + pages.size() * sizeof(int32_t)}, /*changes=*/false);
  }
  if (geometry.workspace)
    add(geometry.workspace * rows, SimContents::Undefined);
  if (geometry.counters) {
    counters = buffers.size();
    addCopy(std::vector<uint8_t>(geometry.counters * rows * sizeof(uint32_t)),
            /*changes=*/true);
  }
  for (Value result : op->getResults()) {
    places[result] = isCache(result) ? *cache : buffers.size();
    if (!isCache(result))
      add(numbersOf(*values.at(result)).size() * sizeof(float),
          SimContents::Undefined);
  }
}

absl::StatusOr<SimLaunch> KernelTrial::launch() {
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

absl::Status KernelTrial::run(const SimModule &module,
                              const SimOptions &options) {
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
          absl::StrCat(left.name, ": expected every counter to be 0 after the "
                                  "kernel, got another number"));
  }
  return absl::OkStatus();
}

absl::Status KernelTrial::compare() const {
  for (OpResult result : op->getResults()) {
    const reference::Value &known = *values.at(result);
    const Buffer &buffer = buffers[places.at(result)];
    const std::vector<float> expected = numbersOf(known);
    const std::vector<float> got =
        isCache(result)
            ? readCache(cast<llama::KVType>(result.getType()),
                        buffer.bytes.data())
            : numbersIn({buffer.bytes.data(), buffer.bytes.size()}, known);
    const CheckedKernel launch = compareResult(
        result, got, backend.numerics(),
        [&](Value value) -> const auto & { return *values.at(value); });
    if (launch.passed())
      continue;
    const size_t worst = launch.difference.worst;
    return accuracyError(absl::StrCat(
        buffer.name, " differs from the reference: ", launch.where,
        ": expected ", expected[worst], ", got ", got[worst],
        " (a normalised mean squared error of ", launch.difference.nmse,
        ", at most ", launch.tolerance, " is rounding), in a launch of ", rows,
        rows == 1 ? " row" : " rows"));
  }
  return absl::OkStatus();
}

} // namespace llamac
