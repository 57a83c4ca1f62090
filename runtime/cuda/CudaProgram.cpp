//===- CudaProgram.cpp - A plan bound to a GPU ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaProgram.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

namespace llamac {

namespace {

/// Memory with the parts of all ranks. All programs share it, as the device's
/// stream orders what they do.
struct Gathered {
  GatherLayout layout;
  std::unique_ptr<Buffer> memory;

  cuda::Address start() const {
    return reinterpret_cast<cuda::Address>(memory->address());
  }
};

struct CudaKernel {
  cuda::Function function = nullptr;
  /// Blocks of a launch along x: all items, or as many of a resident kernel as
  /// run at once.
  int64_t blocks = 0;
  std::string unfit; ///< Why the GPU cannot run it; empty: it can.
};

class CudaCode final : public LoadedCode {
public:
  CudaCode(CudaDevice &device, std::shared_ptr<const PlanReader> plan,
           std::string architecture)
      : device(device), plan(std::move(plan)),
        architecture(std::move(architecture)) {}
  ~CudaCode() override;

  absl::Status load(const std::vector<std::string> &images);

  std::string isa() const override { return architecture; }
  std::vector<UnfitProgram> unfitPrograms() const override;
  absl::Status compileAhead(size_t kernel, size_t variant) override {
    return device.compileAhead(*plan, kernel, variant);
  }
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, const ProgramBindings &bindings) override;

private:
  cuda::Result askForShared(cuda::Function function, uint64_t bytes) const;
  absl::Status setAttributes(const schema::KernelT &kernel,
                             cuda::Function function);
  absl::Status fitResident(const schema::KernelT &kernel, CudaKernel &loaded);
  absl::Status allocateGathered();

  CudaDevice &device;
  std::shared_ptr<const PlanReader> plan;
  std::string architecture;
  std::vector<cuda::Module> modules;
  std::vector<CudaKernel> kernels; ///< Numbered as in the plan.
  std::mutex preparing;
  /// The gathered parts, for one of several ranks, once a program is prepared.
  std::optional<Gathered> gathered;
};

class CudaProgram final : public CudaSteps {
public:
  CudaProgram(CudaDevice &device, const schema::PlanT &plan,
              const schema::ProgramT &program,
              const std::vector<CudaKernel> &kernels, const Gathered *gathered,
              const ProgramBindings &bindings);
  ~CudaProgram() override;

  /// Makes the tensor maps, once.
  absl::Status prepare();

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> meanwhile) override;
  absl::StatusOr<std::vector<double>> runTimed(const StepShape &shape) override;
  absl::Status runLaunch(size_t launch, const StepShape &shape) override;
  absl::Status enqueue(const StepShape &shape, int steps) override {
    return enqueueSteps({shape, /*isTimed=*/false, steps});
  }
  absl::Status explain(absl::Status status) const override;

private:
  /// The work of a graph: one step, or `steps` as StepQueue::run() has them.
  struct Work {
    StepShape shape;
    bool isTimed = false;
    int steps = 0; ///< 0: one step that is no part of a run.

    auto key() const {
      return std::tuple(shape.rows, shape.outputRows, shape.samples, isTimed,
                        steps);
    }
    bool operator<(const Work &other) const { return key() < other.key(); }
  };

  absl::Status enqueueSteps(const Work &work);
  absl::Status gatherFor(size_t launch, const Work &work, cuda::Stream stream);
  absl::Status enqueueLaunch(size_t launch, const Work &work, int step,
                             cuda::Stream stream);
  absl::Status enqueueAll(const Work &work, cuda::Stream stream);
  std::vector<void *> operandsOf(size_t launch, const Work &work,
                                 int step) const;
  absl::Status makeMarks();
  /// Null where there is no memory for one.
  absl::StatusOr<cuda::GraphExec> graphFor(const Work &work);
  absl::StatusOr<cuda::GraphExec> capture(const Work &work);
  absl::Status finish();

  CudaDevice &device;
  const schema::PlanT &plan;
  const std::vector<CudaKernel> &kernels;
  const schema::KernelT *resident; ///< Kernel of the one launch; else null.
  const Gathered *gathered;        ///< Null for the only rank.
  void *exchange;                  ///< The area of this rank.
  std::vector<std::vector<void *>> addresses; ///< Each launch's operands'.
  void *tokens;                               ///< The input.
  std::vector<std::vector<cuda::DeviceTensorMap>> maps; ///< Each launch's.
  std::map<Work, cuda::GraphExec> graphs;               ///< See graphFor().
  std::vector<cuda::Event> marks; ///< Before each launch, and behind the last.
};

} // namespace

/// `status`, unless it is ok, with what to do next.
static absl::Status advised(const absl::Status &status,
                            absl::string_view advice) {
  return status.ok() ? status
                     : remade(status, status.code(),
                              absl::StrCat(status.message(), "; ", advice));
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

CudaCode::~CudaCode() {
  device.enter().IgnoreError();
  for (cuda::Module module : modules)
    device.driver().cuModuleUnload(module);
}

absl::Status CudaCode::load(const std::vector<std::string> &images) {
  const cuda::Driver &driver = device.driver();
  LLAMAC_RETURN_IF_ERROR(device.enter());
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string &symbol = plan->plan().kernels[i]->symbol;
    cuda::Module module = nullptr;
    LLAMAC_RETURN_IF_ERROR(
        driver.check(driver.cuModuleLoadData(&module, images[i].data()),
                     absl::StrCat("kernel ", symbol, ": cuModuleLoadData")));
    modules.push_back(module);
    LLAMAC_RETURN_IF_ERROR(driver.check(
        driver.cuModuleGetFunction(&kernels.emplace_back().function, module,
                                   symbol.c_str()),
        absl::StrCat("kernel ", symbol, ": cuModuleGetFunction")));
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    const schema::KernelT &kernel = *plan->plan().kernels[i];
    kernels[i].blocks = kernel.geometry->items;
    LLAMAC_RETURN_IF_ERROR(kernel.geometry->resident
                               ? fitResident(kernel, kernels[i])
                               : setAttributes(kernel, kernels[i].function));
  }
  return absl::OkStatus();
}

/// More dynamic shared memory than every GPU gives must be asked for.
cuda::Result CudaCode::askForShared(cuda::Function function,
                                    uint64_t bytes) const {
  constexpr uint64_t always = 48 << 10;
  return bytes > always
             ? device.driver().cuFuncSetAttribute(
                   function, cuda::functionSharedBytes, static_cast<int>(bytes))
             : 0;
}

absl::Status CudaCode::setAttributes(const schema::KernelT &kernel,
                                     cuda::Function function) {
  const cuda::Driver &driver = device.driver();
  const uint64_t scratch = kernel.geometry->scratchBytes;
  cuda::Result result = askForShared(function, scratch);
  if (result == 0 && kernel.geometry->dependent)
    result =
        driver.cuFuncSetAttribute(function, cuda::functionSharedCarveout, 100);
  return driver.check(result, absl::StrCat("kernel ", kernel.symbol, ": ",
                                           scratch, " bytes of shared memory"));
}

/// How many blocks of a resident kernel run at once is what the driver says of
/// the GPU, or of the part of it that a process has.
absl::Status CudaCode::fitResident(const schema::KernelT &kernel,
                                   CudaKernel &loaded) {
  const cuda::Driver &driver = device.driver();
  const schema::GeometryT &geometry = *kernel.geometry;
  LLAMAC_ASSIGN_OR_RETURN(const int isCooperative,
                          device.attribute(cuda::CooperativeLaunch));
  LLAMAC_ASSIGN_OR_RETURN(const int multiprocessors,
                          device.attribute(cuda::MultiprocessorCount));
  int each = 0;
  // More shared memory than a block may have is an invalid value.
  cuda::Result result = askForShared(loaded.function, geometry.scratchBytes);
  if (result == 0)
    result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &each, loaded.function, geometry.threads, geometry.scratchBytes);
  if (result != cuda::errorInvalidValue)
    LLAMAC_RETURN_IF_ERROR(driver.check(
        result, absl::StrCat("kernel ", kernel.symbol,
                             ": cuOccupancyMaxActiveBlocksPerMultiprocessor")));
  const int64_t fit =
      isCooperative != 0 ? int64_t{each} * multiprocessors : int64_t{0};
  // With fewer, launches of their own are faster.
  const int64_t least = (geometry.items - 1) / 4 + 1;
  loaded.blocks = std::min(geometry.items, fit);
  if (loaded.blocks < least)
    loaded.unfit = absl::StrCat(
        "kernel ", kernel.symbol, ": expected a GPU that runs at least ", least,
        " of its ", geometry.items, " blocks at once, of ", geometry.threads,
        " threads and ", geometry.scratchBytes,
        " bytes of shared memory each, got ", device.describe(), ", ",
        isCooperative != 0
            ? absl::StrCat("which runs ", fit, ": ", each, " on each of ",
                           multiprocessors, " multiprocessors")
            : "which has no cooperative launches");
  return absl::OkStatus();
}

std::vector<UnfitProgram> CudaCode::unfitPrograms() const {
  std::vector<UnfitProgram> unfit;
  const auto &programs = plan->plan().programs;
  for (size_t i = 0; i < programs.size(); ++i)
    for (const auto &launch : programs[i]->launches)
      if (const std::string &reason = kernels[launch->kernel].unfit;
          !reason.empty())
        unfit.push_back({i, reason});
  return unfit;
}

absl::Status CudaCode::allocateGathered() {
  const std::lock_guard<std::mutex> lock(preparing);
  if (gathered)
    return absl::OkStatus();
  Gathered made{.layout = GatherLayout(plan->plan()), .memory = {}};
  LLAMAC_ASSIGN_OR_RETURN(made.memory, device.allocate(made.layout.bytes()));
  const std::vector<cuda::Address> tables = made.layout.tables(made.start());
  LLAMAC_RETURN_IF_ERROR(
      device.write(*made.memory, made.layout.partsBytes(),
                   {reinterpret_cast<const uint8_t *>(tables.data()),
                    tables.size() * sizeof(cuda::Address)}));
  gathered = std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
CudaCode::prepare(size_t program, const ProgramBindings &bindings) {
  for (const UnfitProgram &unfit : unfitPrograms())
    if (unfit.number == program)
      return deviceError(unfit.reason);
  if (device.rankLink() == RankLink::Gathers)
    LLAMAC_RETURN_IF_ERROR(allocateGathered());
  auto prepared = std::make_unique<CudaProgram>(
      device, plan->plan(), *plan->plan().programs[program], kernels,
      gathered ? &*gathered : nullptr, bindings);
  LLAMAC_RETURN_IF_ERROR(prepared->prepare());
  return prepared;
}

absl::StatusOr<std::unique_ptr<LoadedCode>>
loadCudaCode(CudaDevice &device, std::shared_ptr<const PlanReader> plan,
             const std::vector<std::string> &images,
             const std::string &architecture) {
  auto code = std::make_unique<CudaCode>(device, std::move(plan), architecture);
  LLAMAC_RETURN_IF_ERROR(code->load(images));
  return code;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

CudaProgram::CudaProgram(CudaDevice &device, const schema::PlanT &plan,
                         const schema::ProgramT &program,
                         const std::vector<CudaKernel> &kernels,
                         const Gathered *gathered,
                         const ProgramBindings &bindings)
    : CudaSteps(program), device(device), plan(plan), kernels(kernels),
      resident(isResident(plan, program)
                   ? plan.kernels[program.launches.front()->kernel].get()
                   : nullptr),
      gathered(gathered), exchange(bindings.exchange),
      tokens(bindings.inputs[static_cast<size_t>(schema::InputRole::Tokens)]) {
  for (const auto &launch : program.launches) {
    addresses.emplace_back();
    for (const schema::Operand &operand : launch->operands)
      // Which table it is depends on the rows of the step.
      addresses.back().push_back(gathered && operand.kind() ==
                                                 schema::OperandKind::Peers
                                     ? nullptr
                                     : addressOf(operand, bindings));
  }
}

absl::Status CudaProgram::prepare() {
  LLAMAC_RETURN_IF_ERROR(device.enter());
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const schema::LaunchT &launch = *program.launches[i];
    maps.emplace_back();
    for (const schema::TensorMap &map :
         plan.kernels[launch.kernel]->geometry->maps) {
      LLAMAC_ASSIGN_OR_RETURN(
          maps.back().emplace_back(),
          device.driver().encodeTensorMap(addresses[i][map.operand()],
                                          shapeOf(map, plan, program, launch)));
    }
  }
  return absl::OkStatus();
}

CudaProgram::~CudaProgram() {
  device.enter().IgnoreError();
  for (const auto &[work, graph] : graphs)
    if (graph)
      device.driver().cuGraphExecDestroy(graph);
  for (cuda::Event mark : marks)
    device.driver().cuEventDestroy_v2(mark);
}

/// Where the operands of a launch are in step `step` of a run.
std::vector<void *> CudaProgram::operandsOf(size_t number, const Work &work,
                                            int step) const {
  const schema::LaunchT &launch = *program.launches[number];
  std::vector<void *> result = addresses[number];
  if (const schema::Operand *peers = peersOf(launch); peers && gathered)
    result[peers - launch.operands.data()] =
        static_cast<uint8_t *>(gathered->memory->address()) +
        gathered->layout.tableAt(peers->index(), rowsOf(launch, work.shape));
  if (work.steps != 0)
    moveToStep(plan, program, launch, tokens, work.shape.rows, step, result);
  return result;
}

/// Brings what launch `number` reads of other ranks.
absl::Status CudaProgram::gatherFor(size_t number, const Work &work,
                                    cuda::Stream stream) {
  const schema::LaunchT &launch = *program.launches[number];
  const schema::Operand *peers = peersOf(launch);
  const int64_t rows = rowsOf(launch, work.shape);
  if (!peers || !gathered || rows == 0)
    return absl::OkStatus();
  return device.gather(
      reinterpret_cast<cuda::Address>(exchange) + peers->offset(),
      gathered->start(), peers->index() * static_cast<uint64_t>(rows), stream);
}

absl::Status CudaProgram::enqueueLaunch(size_t number, const Work &work,
                                        int step, cuda::Stream stream) {
  LLAMAC_RETURN_IF_ERROR(gatherFor(number, work, stream));
  const schema::LaunchT &launch = *program.launches[number];
  const schema::GeometryT &geometry = *plan.kernels[launch.kernel]->geometry;
  const CudaKernel &kernel = kernels[launch.kernel];
  auto rows = static_cast<int32_t>(rowsOf(launch, work.shape));
  if (rows == 0)
    return absl::OkStatus();
  const int64_t blocks = rowBlocks(geometry.rowBlock, rows);
  // The driver takes the place of each argument: the addresses, the maps, M. A
  // resident kernel has all addresses as one, a structure, and then the steps.
  std::vector<void *> operands = operandsOf(number, work, step);
  int32_t steps = work.shape.samples ? std::max(work.steps, 1) : 0;
  std::vector<void *> arguments;
  arguments.reserve(operands.size() + maps[number].size() + 1);
  if (resident) {
    arguments = {static_cast<void *>(operands.data()), &steps};
  } else {
    for (void *&address : operands)
      arguments.push_back(static_cast<void *>(&address));
    for (cuda::DeviceTensorMap &map : maps[number])
      arguments.push_back(&map);
    arguments.push_back(&rows);
  }
  using Attribute = cuda::LaunchAttribute;
  std::vector<Attribute> attributes;
  if (resident)
    attributes.push_back({.id = Attribute::Cooperative, .value = {1}});
  if (geometry.cluster > 1)
    attributes.push_back(
        {.id = Attribute::ClusterDimension,
         .value = {static_cast<uint32_t>(geometry.cluster), 1, 1}});
  // Behind the event of a timed launch, or NCCL's work, there is no kernel of
  // ours to overlap with.
  const bool followsKernel = !work.isTimed && !(gathered && peersOf(launch));
  if (geometry.dependent && device.overlapsLaunches() && followsKernel)
    attributes.push_back(
        {.id = Attribute::ProgrammaticSerialization, .value = {1}});
  const cuda::LaunchConfig config{
      .gridX = static_cast<unsigned>(kernel.blocks),
      .gridY = static_cast<unsigned>(blocks),
      .blockX = static_cast<unsigned>(geometry.threads),
      .sharedBytes = static_cast<unsigned>(geometry.scratchBytes),
      .stream = stream,
      .attributes = attributes.data(),
      .attributeCount = static_cast<unsigned>(attributes.size())};
  const cuda::Driver &driver = device.driver();
  const cuda::Result result = driver.cuLaunchKernelEx(
      &config, kernel.function, arguments.data(), nullptr);
  const absl::Status status = driver.check(
      result, absl::StrCat("kernel ", plan.kernels[launch.kernel]->symbol,
                           ": cuLaunchKernelEx"));
  return result == cuda::errorCooperativeLaunchTooLarge
             ? advised(status, noResidentStepAdvice)
             : status;
}

/// Gives `work` to `stream`: the device's, or one that captures.
absl::Status CudaProgram::enqueueAll(const Work &work, cuda::Stream stream) {
  const cuda::Driver &driver = device.driver();
  // A record by this flag is a node of the graph; elsewhere it is invalid.
  const unsigned recordFlags =
      stream == device.stream() ? 0 : cuda::eventRecordExternal;
  auto mark = [&](size_t place) {
    return !work.isTimed ? absl::OkStatus()
                         : driver.check(driver.cuEventRecordWithFlags(
                                            marks[place], stream, recordFlags),
                                        "cuEventRecordWithFlags");
  };
  const int times = resident ? 1 : std::max(work.steps, 1);
  for (int step = 0; step < times; ++step)
    for (size_t i = 0; i < program.launches.size(); ++i) {
      LLAMAC_RETURN_IF_ERROR(mark(i));
      LLAMAC_RETURN_IF_ERROR(enqueueLaunch(i, work, step, stream));
    }
  return mark(program.launches.size());
}

absl::Status CudaProgram::makeMarks() {
  const cuda::Driver &driver = device.driver();
  while (marks.size() < program.launches.size() + 1) {
    cuda::Event mark = nullptr;
    LLAMAC_RETURN_IF_ERROR(
        driver.check(driver.cuEventCreate(&mark, 0), "cuEventCreate"));
    marks.push_back(mark);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>>
CudaProgram::runTimed(const StepShape &shape) {
  const cuda::Driver &driver = device.driver();
  LLAMAC_RETURN_IF_ERROR(device.enter());
  LLAMAC_RETURN_IF_ERROR(makeMarks());
  LLAMAC_RETURN_IF_ERROR(explain(enqueueSteps({shape, /*isTimed=*/true})));
  LLAMAC_RETURN_IF_ERROR(explain(finish()));
  std::vector<double> seconds(program.launches.size());
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (rowsOf(*program.launches[i], shape) == 0)
      continue;
    float milliseconds = 0;
    LLAMAC_RETURN_IF_ERROR(driver.check(
        driver.cuEventElapsedTime(&milliseconds, marks[i], marks[i + 1]),
        "cuEventElapsedTime"));
    seconds[i] = milliseconds * 1e-3;
  }
  return seconds;
}

absl::StatusOr<cuda::GraphExec> CudaProgram::capture(const Work &work) {
  const cuda::Driver &driver = device.driver();
  cuda::Stream stream = nullptr;
  LLAMAC_RETURN_IF_ERROR(
      driver.check(driver.cuStreamCreate(&stream, cuda::streamNonBlocking),
                   "cuStreamCreate for a graph"));
  const auto destroyStream =
      absl::MakeCleanup([&] { driver.cuStreamDestroy_v2(stream); });
  LLAMAC_RETURN_IF_ERROR(driver.check(
      driver.cuStreamBeginCapture_v2(stream, cuda::captureOfThread),
      "cuStreamBeginCapture"));
  const absl::Status enqueued = enqueueAll(work, stream);
  cuda::Graph graph = nullptr;
  const absl::Status ended = driver.check(
      driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  absl::Status status = enqueued.ok() ? ended : enqueued;
  cuda::GraphExec ready = nullptr;
  if (status.ok())
    status = driver.check(driver.cuGraphInstantiateWithFlags(&ready, graph, 0),
                          "cuGraphInstantiate");
  if (graph)
    driver.cuGraphDestroy(graph);
  if (!status.ok())
    return status;
  return ready;
}

absl::StatusOr<cuda::GraphExec> CudaProgram::graphFor(const Work &work) {
  auto [place, isNew] = graphs.try_emplace(work, nullptr);
  if (!isNew)
    return place->second;
  auto graph = capture(work);
  if (exitCode(graph.status()) == ExitCode::Memory)
    return nullptr;
  if (graph.ok())
    place->second = *graph;
  else
    graphs.erase(place);
  return graph;
}

/// A fault of a kernel shows where the host waits for it.
absl::Status CudaProgram::finish() {
  const cuda::Driver &driver = device.driver();
  return driver.check(driver.cuStreamSynchronize(device.stream()),
                      absl::StrCat("program ", program.name));
}

absl::Status CudaProgram::explain(absl::Status status) const {
  if (!resident || !cuda::Driver::saysFault(status))
    return status;
  // A block that waits longer gives up, which the driver does not tell from
  // other faults.
  constexpr int patience = 10;
  return device.keepFault(advised(
      status,
      absl::StrCat("the blocks of kernel ", resident->symbol, " waited ",
                   patience, " s for each other, or it failed otherwise: ",
                   noResidentStepAdvice)));
}

absl::Status CudaProgram::enqueueSteps(const Work &work) {
  LLAMAC_RETURN_IF_ERROR(checkShape(program, work.shape));
  // Steps of programs for prompts have too many shapes to keep a graph of each;
  // a resident one is a single launch.
  if (isForPrompts(program) || resident)
    return enqueueAll(work, device.stream());
  LLAMAC_ASSIGN_OR_RETURN(cuda::GraphExec graph, graphFor(work));
  if (!graph)
    return enqueueAll(work, device.stream());
  const cuda::Driver &driver = device.driver();
  return driver.check(driver.cuGraphLaunch(graph, device.stream()),
                      "cuGraphLaunch");
}

absl::Status CudaProgram::run(const StepShape &shape,
                              absl::FunctionRef<void()> meanwhile) {
  LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
  absl::Status status = device.enter();
  if (status.ok())
    status = enqueueSteps({shape});
  if (status.ok()) {
    meanwhile();
    status = finish();
  }
  return device.ended(explain(std::move(status)));
}

absl::Status CudaProgram::runLaunch(size_t launch, const StepShape &shape) {
  LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
  LLAMAC_RETURN_IF_ERROR(checkLaunch(program, launch));
  absl::Status status = device.enter();
  if (status.ok())
    status = enqueueLaunch(launch, {shape}, 0, device.stream());
  if (status.ok())
    status = finish();
  return device.ended(explain(std::move(status)));
}

} // namespace llamac
