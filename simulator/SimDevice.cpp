//===- SimDevice.cpp - Plans run by the simulator -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/SimDevice.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "simulator/SimCode.h"
#include "simulator/SimTensorMap.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>

namespace llamac {

absl::StatusOr<NamedSchedule> parseSimSchedule(absl::string_view name) {
  if (name == "forward")
    return NamedSchedule{SimSchedule::Forward};
  if (name == "reverse")
    return NamedSchedule{SimSchedule::Reverse};
  const std::pair<absl::string_view, SimSchedule> seeded[] = {
      {"random", SimSchedule::Random}, {"stalled", SimSchedule::Stalled}};
  for (const auto &[kind, schedule] : seeded) {
    NamedSchedule order{schedule};
    absl::string_view seed = name;
    if (name == kind ||
        (absl::ConsumePrefix(&seed, kind) && absl::ConsumePrefix(&seed, ":") &&
         absl::SimpleAtoi(seed, &order.seed)))
      return order;
  }
  return usageError(
      absl::StrCat("--sim-schedule: expected forward, reverse, random, "
                   "random:SEED, stalled or stalled:SEED, got ",
                   name));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

/// Memory that checked kernels may touch for as long as the object lives.
class RegisteredBuffer final : public Buffer {
public:
  RegisteredBuffer(std::unique_ptr<Buffer> memory, SimMemory &registry,
                   SimContents contents)
      : Buffer(memory->address(), memory->size()), memory(std::move(memory)),
        registry(registry) {
    if (size() != 0)
      registry.add("memory", address(), size(), contents);
  }
  ~RegisteredBuffer() override {
    if (size() != 0)
      registry.remove(address());
  }

private:
  std::unique_ptr<Buffer> memory;
  SimMemory &registry;
};

} // namespace

static DeviceDescription factsOf(const SimDeviceOptions &options) {
  const int threads =
      options.threads != 0
          ? options.threads
          : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return {.name = absl::StrCat(
              "sim, ", options.checked
                           ? std::string("checked")
                           : absl::StrCat(threads, threads == 1 ? " thread"
                                                                : " threads")),
          .threads = threads,
          .arithmetic = "sim"};
}

SimDevice::SimDevice(const SimDeviceOptions &options)
    : HostDevice(factsOf(options)), options(options),
      simulator({.schedule = options.order.schedule,
                 .seed = options.order.seed,
                 .checked = options.checked,
                 .hostThreads = static_cast<unsigned>(threads()),
                 .earlyDependents =
                     options.order.schedule != SimSchedule::Forward}) {}

absl::StatusOr<std::unique_ptr<Buffer>> SimDevice::allocate(uint64_t size,
                                                            MemoryUse use) {
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> memory,
                          allocateHostMemory(size, use));
  // Zeros could hide an uninitialised read.
  return std::make_unique<RegisteredBuffer>(
      std::move(memory), simulator.memory(),
      options.checked ? SimContents::Undefined : SimContents::Defined);
}

std::unique_ptr<Buffer> SimDevice::share(absl::Span<const uint8_t> bytes) {
  return std::make_unique<RegisteredBuffer>(
      HostDevice::share(bytes), simulator.memory(), SimContents::ReadOnly);
}

absl::Status SimDevice::write(Buffer &buffer, uint64_t offset,
                              absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(HostDevice::write(buffer, offset, bytes));
  if (!bytes.empty())
    simulator.memory().markDefined(
        static_cast<uint8_t *>(buffer.address()) + offset, bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Upload>> SimDevice::newUpload(uint64_t) {
  return newHostUpload([this](absl::Span<uint8_t> piece) {
    simulator.memory().markDefined(piece.data(), piece.size());
  });
}

void SimDevice::rename(void *address, std::string name) {
  simulator.memory().rename(address, std::move(name));
}

absl::Status SimDevice::run(const SimModule &module,
                            absl::Span<const SimLaunch> launches,
                            absl::Span<uint8_t> undefined) {
  const std::lock_guard<std::mutex> lock(running);
  if (!undefined.empty())
    simulator.memory().markDefined(undefined.data(), undefined.size(),
                                   /*defined=*/false);
  return simulator.run(module, launches);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

class SimProgram final : public PreparedProgram {
public:
  SimProgram(SimDevice &device, const std::vector<const SimModule *> &modules,
             const schema::PlanT &plan, const schema::ProgramT &program,
             const ProgramBindings &bindings)
      : PreparedProgram(program), device(device), modules(modules), plan(plan),
        bindings(bindings) {}

  /// Makes the tensor maps, once.
  absl::Status prepare() {
    for (const auto &launch : program.launches) {
      maps.emplace_back();
      for (const schema::TensorMap &map :
           plan.kernels[launch->kernel]->geometry->maps)
        LLAMAC_RETURN_IF_ERROR(encodeSimTensorMap(
            addressOf(launch->operands[map.operand()], bindings),
            shapeOf(map, plan, program, *launch), maps.back().emplace_back()));
    }
    return absl::OkStatus();
  }

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> /*meanwhile*/) override {
    return runStep(shape, std::nullopt);
  }
  /// Does what StepQueue::run() asks for.
  absl::Status runSteps(const StepShape &shape, int steps) {
    const bool isOne = isResident(plan, program);
    for (int step = 0; step < (isOne ? 1 : steps); ++step)
      LLAMAC_RETURN_IF_ERROR(runStep(shape, StepOfRun{step, steps}));
    return absl::OkStatus();
  }
  absl::Status runLaunch(size_t launch, const StepShape &shape) override {
    LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
    LLAMAC_RETURN_IF_ERROR(checkLaunch(program, launch));
    const int64_t rows = rowsOf(*program.launches[launch], shape);
    return rows > 0 ? device.run(moduleOf(launch),
                                 {bind(launch, rows, shape, std::nullopt)}, {})
                    : absl::OkStatus();
  }

private:
  struct StepOfRun {
    int step = 0, steps = 1;
  };

  absl::Status runStep(const StepShape &shape, std::optional<StepOfRun> ofRun) {
    LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
    // The arena is uninitialised at the start of each step.
    absl::Span<uint8_t> undefined(static_cast<uint8_t *>(bindings.arena),
                                  program.arenaBytes);
    std::vector<SimLaunch> launches; // Launches of one module, which run
                                     // together.
    for (size_t i = 0; i < program.launches.size(); ++i) {
      if (const int64_t rows = rowsOf(*program.launches[i], shape); rows > 0)
        launches.push_back(bind(i, rows, shape, ofRun));
      if (i + 1 < program.launches.size() && &moduleOf(i) == &moduleOf(i + 1))
        continue;
      LLAMAC_RETURN_IF_ERROR(device.run(moduleOf(i), launches, undefined));
      launches.clear();
      undefined = {};
    }
    return checkCounters();
  }
  SimLaunch bind(size_t number, int64_t rows, const StepShape &shape,
                 std::optional<StepOfRun> ofRun) {
    const schema::LaunchT &launch = *program.launches[number];
    const schema::KernelT &kernel = *plan.kernels[launch.kernel];
    const schema::GeometryT &geometry = *kernel.geometry;
    const int64_t blocks = rowBlocks(geometry.rowBlock, rows);
    const int64_t steps = !shape.samples ? 0 : ofRun ? ofRun->steps : 1;
    SimLaunch bound{.kernel = kernel.symbol,
                    .grid = {static_cast<uint32_t>(geometry.items),
                             static_cast<uint32_t>(blocks)},
                    .block = {static_cast<uint32_t>(geometry.threads)},
                    .sharedBytes = static_cast<uint32_t>(geometry.scratchBytes),
                    .rows =
                        static_cast<int32_t>(geometry.resident ? steps : rows),
                    .dependent = geometry.dependent,
                    .cluster = static_cast<uint32_t>(geometry.cluster)};
    if (geometry.resident)
      bound.makeResident(device.residentBlocks());
    for (const schema::Operand &operand : launch.operands)
      bound.args.push_back(addressOf(operand, bindings));
    if (ofRun)
      moveToStep(
          plan, program, launch,
          bindings.inputs[static_cast<size_t>(schema::InputRole::Tokens)],
          shape.rows, ofRun->step, bound.args);
    for (SimTensorMap &map : maps[number])
      bound.args.push_back(&map);
    return bound;
  }
  /// The next launch needs counters that are 0.
  absl::Status checkCounters() const {
    const auto *words = static_cast<const uint32_t *>(bindings.counters);
    for (uint64_t i = 0; i < plan.counterBytes / sizeof(uint32_t); ++i)
      if (words[i] != 0)
        return deviceError(absl::StrCat("program ", program.name, ": counter ",
                                        i, ": expected 0 after the step, got ",
                                        words[i]));
    return absl::OkStatus();
  }

  const SimModule &moduleOf(size_t launch) const {
    return *modules[program.launches[launch]->kernel];
  }

  SimDevice &device;
  const std::vector<const SimModule *> &modules; ///< Modules by kernel.
  const schema::PlanT &plan;
  ProgramBindings bindings;
  std::vector<std::vector<SimTensorMap>> maps; ///< Maps by launch.
};

/// Nothing is in flight: all is done when it is queued.
class SimStepQueue final : public StepQueue {
public:
  explicit SimStepQueue(SimDevice &device) : device(device) {}

  absl::Status write(Buffer &to, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override {
    return device.write(to, offset, bytes);
  }
  absl::Status copy(Buffer &to, uint64_t toOffset, const Buffer &from,
                    uint64_t fromOffset, uint64_t size) override {
    std::vector<uint8_t> staging;
    LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                            device.read(from, fromOffset, size, staging));
    return device.write(to, toOffset, bytes);
  }
  absl::Status run(PreparedProgram &program, const StepShape &shape,
                   int steps) override {
    return static_cast<SimProgram &>(program).runSteps(shape, steps);
  }
  absl::Status fetch(const Buffer &from, uint64_t offset,
                     uint64_t size) override {
    std::vector<uint8_t> staging;
    LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                            device.read(from, offset, size, staging));
    results.emplace_back(bytes.begin(), bytes.end());
    return absl::OkStatus();
  }
  absl::StatusOr<absl::Span<const uint8_t>> take() override {
    if (results.empty())
      return internalError("runs in flight: expected one to take, got none");
    taken = std::move(results.front());
    results.pop_front();
    return absl::MakeConstSpan(taken);
  }
  absl::Status finish() override {
    results.clear();
    return absl::OkStatus();
  }

private:
  SimDevice &device;
  std::deque<std::vector<uint8_t>> results; ///< Results of runs that were not
                                            ///< taken yet.
  std::vector<uint8_t> taken;
};

class SimCode final : public LoadedCode {
public:
  SimCode(SimDevice &device, std::shared_ptr<const PlanReader> plan,
          std::unique_ptr<SimModule> module, std::string flavour)
      : device(device), plan(std::move(plan)), module(std::move(module)),
        flavour(std::move(flavour)) {}

  absl::Status findKernels() {
    const auto &kernels = plan->plan().kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const SimModule *from = module.get();
      if (const std::string *code = plan->codeOf(i)) {
        std::unique_ptr<SimModule> &opened = variants[code];
        if (!opened) {
          LLAMAC_ASSIGN_OR_RETURN(
              opened,
              SimModule::open(
                  {reinterpret_cast<const uint8_t *>(code->data()),
                   code->size()},
                  absl::StrCat("code of tuned kernel ", kernels[i]->symbol)));
        }
        from = opened.get();
      }
      LLAMAC_RETURN_IF_ERROR(from->kernel(kernels[i]->symbol).status());
      modules.push_back(from);
    }
    return absl::OkStatus();
  }

  std::string isa() const override { return flavour; }
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, const ProgramBindings &bindings) override {
    const schema::PlanT &manifest = plan->plan();
    device.rename(bindings.arena, "the arena");
    device.rename(bindings.counters, "the counters");
    for (size_t i = 0; i < bindings.weights.size(); ++i)
      device.rename(bindings.weights[i], manifest.weights[i]->name);
    for (size_t i = 0; i < bindings.kv.size(); ++i)
      device.rename(bindings.kv[i], absl::StrCat("KV cache of layer ", i));
    for (size_t i = 0; i < bindings.inputs.size(); ++i)
      device.rename(bindings.inputs[i], schema::EnumNameInputRole(
                                            static_cast<schema::InputRole>(i)));
    auto prepared = std::make_unique<SimProgram>(
        device, modules, manifest, *manifest.programs[program], bindings);
    LLAMAC_RETURN_IF_ERROR(prepared->prepare());
    return prepared;
  }

private:
  SimDevice &device;
  std::shared_ptr<const PlanReader> plan;
  std::unique_ptr<SimModule> module;
  /// Modules of kernels that are variants, by their bytes.
  std::map<const std::string *, std::unique_ptr<SimModule>> variants;
  std::vector<const SimModule *> modules; ///< Modules by kernel.
  std::string flavour;
};

} // namespace

absl::StatusOr<std::unique_ptr<StepQueue>>
SimDevice::newStepQueue(int /*depth*/, uint64_t /*runBytes*/) {
  return std::make_unique<SimStepQueue>(*this);
}

absl::StatusOr<std::unique_ptr<LoadedCode>>
SimDevice::loadCode(std::shared_ptr<const PlanReader> plan) {
  const schema::PlanT &manifest = plan->plan();
  auto code = std::find_if(
      manifest.code.begin(), manifest.code.end(), [&](const auto &object) {
        return (object->isa == simCheckedCode) == options.checked;
      });
  if (code == manifest.code.end())
    return deviceError(absl::StrCat(
        plan->path(), ": expected ",
        options.checked ? simCheckedCode : simFastCode,
        " code for sim, got none; compile the plan with --target sim",
        options.checked ? " --sim-check" : ""));
  const uint32_t section = (*code)->section;
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<SimModule> module,
      SimModule::open(plan->bytes(section),
                      absl::StrCat(plan->path(), ": section ", section)));
  auto loaded = std::make_unique<SimCode>(*this, std::move(plan),
                                          std::move(module), (*code)->isa);
  LLAMAC_RETURN_IF_ERROR(loaded->findKernels());
  return loaded;
}

} // namespace llamac
