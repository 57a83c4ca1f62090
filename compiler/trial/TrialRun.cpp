//===- TrialRun.cpp - A kernel alone, on the simulator --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/trial/KernelTrial.h"
#include "compiler/trial/LaunchReference.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace mlir;

namespace llamac {

/// A buffer for each parameter, by its role. Operands that are one value share
/// theirs, and new caches lie where the old ones did. What all ranks have lies
/// in a buffer for each, and the parameter is a table of these.
void KernelTrial::bindArguments(ArrayRef<std::string> parameters) {
  auto add = [&](const std::string &name, size_t size, SimContents contents) {
    arguments.push_back(buffers.size());
    buffers.push_back({name, contents, {}, DeviceBytes(size)});
  };
  auto addCopy = [&](const std::string &name, std::vector<uint8_t> bytes,
                     bool changes) {
    add(name, bytes.size(),
        changes ? SimContents::Defined : SimContents::ReadOnly);
    llvm::copy(bytes, buffers.back().bytes.data());
    if (changes)
      buffers.back().before = std::move(bytes);
  };
  const plan::GeometryAttr geometry = kernel.getGeometry();
  auto operand = op->operand_begin();
  auto result = op->result_begin();
  std::vector<size_t> caches;
  for (size_t i = 0; i < kernel.getParams().size(); ++i) {
    const std::string &name = parameters[i];
    const plan::ParamRole role = kernel.getRole(i);
    switch (role) {
    case plan::ParamRole::Activation:
    case plan::ParamRole::Weight:
    case plan::ParamRole::Cache:
    case plan::ParamRole::AppendedCache: {
      const Value value = *operand++;
      const auto [place, isNew] = places.try_emplace(value, buffers.size());
      if (isCache(value))
        caches.push_back(place->second);
      if (isNew)
        addCopy(name, memoryOf(value, *values.at(value)),
                role == plan::ParamRole::AppendedCache);
      else
        arguments.push_back(place->second);
      break;
    }
    case plan::ParamRole::Peers: {
      const Value value = *operand++;
      std::vector<const uint8_t *> table;
      for (auto [rank, known] : llvm::enumerate(valuesOfRanks.at(value))) {
        addCopy(absl::StrCat(name, "[", rank, "]"), memoryOf(value, *known),
                /*changes=*/false);
        table.push_back(buffers[arguments.back()].bytes.data());
        arguments.pop_back(); // The kernel finds it in the table.
      }
      const auto *first = reinterpret_cast<const uint8_t *>(table.data());
      addCopy(name, {first, first + table.size() * sizeof(table.front())},
              /*changes=*/false);
      break;
    }
    case plan::ParamRole::PageTable: {
      const auto *table = reinterpret_cast<const uint8_t *>(pages.data());
      addCopy(name, {table, table + pages.size() * sizeof(int32_t)},
              /*changes=*/false);
      break;
    }
    case plan::ParamRole::Workspace:
      add(name, geometry.getWorkspace() * rows, SimContents::Undefined);
      break;
    case plan::ParamRole::Counters:
      counters = buffers.size();
      addCopy(name,
              std::vector<uint8_t>(geometry.getCounters() * rows *
                                   sizeof(uint32_t)),
              /*changes=*/true);
      break;
    case plan::ParamRole::Result:
      while (isCache(*result))
        ++result;
      places[*result] = buffers.size();
      add(name, storedNumbers((*result).getType(), *values.at(*result)).size(),
          SimContents::Undefined);
      ++result;
    }
  }
  auto cache = caches.begin();
  for (Value appended : op->getResults())
    if (isCache(appended))
      places[appended] = *cache++;
}

absl::StatusOr<SimLaunch> KernelTrial::launch() {
  const plan::GeometryAttr geometry = kernel.getGeometry();
  SimLaunch launch;
  launch.kernel = kernel.getSymName();
  launch.grid.x = static_cast<uint32_t>(geometry.getItems());
  if (geometry.getRowBlock())
    launch.grid.y = static_cast<uint32_t>(
        llvm::divideCeil(static_cast<uint64_t>(rows), geometry.getRowBlock()));
  launch.block.x = static_cast<uint32_t>(geometry.getThreads());
  launch.sharedBytes = static_cast<uint32_t>(geometry.getScratch());
  // A resident step has one row, and takes how many steps it is to do.
  launch.rows = static_cast<int32_t>(rows);
  if (geometry.getResident())
    launch.makeResident();
  for (size_t argument : arguments)
    launch.args.push_back(buffers[argument].bytes.data());
  launch.cluster = static_cast<uint32_t>(geometry.getCluster());
  for (plan::TensorMapAttr map : kernel.getTensorMaps()) {
    const auto columns = static_cast<uint64_t>(map.getColumns());
    const auto elementBytes = static_cast<uint32_t>(map.getElementBytes());
    const uint64_t rowBytes = columns * elementBytes;
    const TensorMapShape shape{
        .elementBytes = elementBytes,
        .columns = columns,
        .rows =
            map.getRows()
                ? static_cast<uint64_t>(map.getRows())
                : buffers[arguments[map.getOperand()]].bytes.size() / rowBytes,
        .rowBytes = rowBytes,
        .boxColumns = static_cast<uint32_t>(map.getBoxColumns()),
        .boxRows = static_cast<uint32_t>(map.getBoxRows()),
        .swizzleBytes = static_cast<uint32_t>(map.getSwizzleBytes())};
    LLAMAC_RETURN_IF_ERROR(encodeSimTensorMap(launch.args[map.getOperand()],
                                              shape, maps.emplace_back()));
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
  // Blocks that work together are all needed.
  if (options.checked && !counters)
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
        isCache(result) ? readCache(cast<llama::KVType>(result.getType()),
                                    buffer.bytes.data())
                        : numbersIn(result.getType(),
                                    {buffer.bytes.data(), buffer.bytes.size()});
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
