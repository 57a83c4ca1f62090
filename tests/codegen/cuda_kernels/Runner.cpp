//===- Runner.cpp - Launches on the simulator -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runner.h"

#include "Source.h"

#include "codegen/sim/SimCompiler.h"
#include "simulator/SimTensorMap.h"
#include "simulator/Simulator.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <cstring>
#include <map>

namespace llamac::cuda {

DeviceBytes::DeviceBytes(size_t size)
    : memory(static_cast<uint8_t *>(
                 std::aligned_alloc(256, (size + 255) / 256 * 256)),
             &std::free),
      bytes(size) {
  std::memset(memory.get(), 0xff, size);
}

DeviceBytes::DeviceBytes(const DeviceBytes &other) : DeviceBytes(other.bytes) {
  std::memcpy(data(), other.data(), bytes);
}

/// Kernels.cu for `model` as one text.
static std::string sourceOf(const ModelCase &model) {
  const std::string cases = readFile("Cases.h");
  return absl::StrCat(
      "#define LLAMAC_MODEL ", modelLiteral(model),
      "\n#line 1 \"Kernels.cu\"\n",
      absl::StrReplaceAll(readFile("Kernels.cu"),
                          {{"#include \"Cases.h\"\n",
                            absl::StrCat("#line 1 \"Cases.h\"\n", cases,
                                         "#line 14 \"Kernels.cu\"\n")}}));
}

/// Compiled once in a process: it takes as long as many launches.
static absl::StatusOr<const SimModule *> moduleOf(const ModelCase &model,
                                                  bool checked) {
  static std::map<std::string, std::unique_ptr<SimModule>> modules;
  std::unique_ptr<SimModule> &module =
      modules[absl::StrCat(modelLiteral(model), checked)];
  if (!module) {
    const auto object =
        compileForSim({SourceFile{"Kernels.cu", sourceOf(model)}},
                      checked ? SimFlavour::Checked : SimFlavour::Fast);
    if (!object.ok())
      return object.status();
    auto opened = SimModule::open(
        {reinterpret_cast<const uint8_t *>(object->data()), object->size()},
        "Kernels.cu");
    if (!opened.ok())
      return opened.status();
    module = *std::move(opened);
  }
  return module.get();
}

struct Runner::Implementation {
  absl::StatusOr<const SimModule *> module;
  SimOptions options;
};

Runner::Runner(const ModelCase &model, const RunMode &mode)
    : implementation(std::make_unique<Implementation>()) {
  implementation->module = moduleOf(model, mode.checked);
  implementation->options.checked = mode.checked;
  implementation->options.schedule =
      mode.random ? SimSchedule::Random : SimSchedule::Forward;
  implementation->options.seed = 11;
}

Runner::~Runner() = default;

std::string Runner::run(const std::string &kernel, const LaunchShape &shape,
                        int64_t rows, const std::vector<Operand> &operands,
                        const std::vector<MapShape> &maps) {
  if (!implementation->module.ok())
    return std::string(implementation->module.status().message());
  Simulator simulator(implementation->options);
  SimLaunch launch;
  launch.kernel = kernel;
  launch.grid.x = static_cast<uint32_t>(shape.gridSize);
  if (shape.rowBlock)
    launch.grid.y = static_cast<uint32_t>(divideUp(rows, shape.rowBlock));
  launch.block.x = static_cast<uint32_t>(shape.threads);
  launch.sharedBytes = static_cast<uint32_t>(shape.sharedBytes);
  launch.rows = static_cast<int32_t>(rows);
  for (const Operand &operand : operands) {
    simulator.memory().add(
        absl::StrCat("operand ", launch.args.size()), operand.bytes->data(),
        operand.bytes->size(),
        operand.contents == Contents::Output  ? SimContents::Undefined
        : operand.contents == Contents::Input ? SimContents::ReadOnly
                                              : SimContents::Defined);
    launch.args.push_back(operand.bytes->data());
  }
  launch.cluster = static_cast<uint32_t>(shape.cluster);
  std::vector<SimTensorMap> encoded(maps.size());
  for (size_t i = 0; i < maps.size(); ++i) {
    const MapShape &map = maps[i];
    const DeviceBytes &bytes = *operands[map.operand].bytes;
    const uint64_t rowBytes = map.columns * map.elementBytes;
    const absl::Status status = encodeSimTensorMap(
        bytes.data(),
        {.elementBytes = static_cast<uint32_t>(map.elementBytes),
         .columns = static_cast<uint64_t>(map.columns),
         .rows = map.rows > 0 ? static_cast<uint64_t>(map.rows)
                              : bytes.size() / rowBytes,
         .rowBytes = rowBytes,
         .boxColumns = static_cast<uint32_t>(map.boxColumns),
         .boxRows = static_cast<uint32_t>(map.boxRows),
         .swizzleBytes = static_cast<uint32_t>(map.swizzleBytes)},
        encoded[i]);
    if (!status.ok())
      return std::string(status.message());
    launch.args.push_back(&encoded[i]);
  }
  return std::string(simulator.run(**implementation->module, launch).message());
}

} // namespace llamac::cuda
