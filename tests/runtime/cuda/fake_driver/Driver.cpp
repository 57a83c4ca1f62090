//===- Driver.cpp - A libcuda that runs kernels on the simulator ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPUs of the capabilities in LLAMAC_FAKE_CAPABILITY ("8.6,9.0"; one of 9.0
// when it is not set), which share one context and the host's memory. A module
// is the source that the fake NVRTC was given: its kernels are those
// that a plan for sim has of the same text. LLAMAC_FAKE_PLAN names the
// plans, with colons between; a name X.sim is that of an object alone, of the
// source X.cu, whose kernels take two operands. What a stream is given is done
// as late as may be, when the host waits for it, so that nothing works that a
// GPU's haste makes work by chance. A launch that faults makes every later call
// fail; the kernel LLAMAC_FAKE_FAULT does always, and every one while there is
// a file of that path; the kernel LLAMAC_FAKE_HANG never ends. With
// LLAMAC_FAKE_IDLE kernels do nothing, where only the driver's calls matter,
// and what NVRTC itself has compiled can be loaded. The driver is of the CUDA
// version in LLAMAC_FAKE_VERSION, 13000 without. LLAMAC_FAKE_MEMORY bounds the
// memory; LLAMAC_FAKE_REFUSES names a call that finds none. A GPU goes on while
// the host waits for another that waits for it. When the last context goes,
// what was not given back is written to the file LLAMAC_FAKE_LEAKS. A GPU has
// LLAMAC_FAKE_MULTIPROCESSORS (132), each of which runs LLAMAC_FAKE_OCCUPANCY
// blocks at once (1), of at most LLAMAC_FAKE_SHARED bytes of shared memory
// (232448), and no cooperative launches where
// LLAMAC_FAKE_COOPERATIVE is 0. A test may have all kernels itself
// (HostKernels.h).
//
//===----------------------------------------------------------------------===//

#include "tests/runtime/cuda/fake_driver/Faults.h"
#include "tests/runtime/cuda/fake_driver/Gpu.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

using namespace llamac;
using namespace llamac::cuda;
using namespace llamac::fake;

/// The parameters of kernel `name`, which a driver reads from the module. An
/// object alone has `operands` of them, and a map where its macro says so.
static Parameters parametersOf(const std::string &name,
                               const std::string &source, int operands) {
  if (operands >= 0)
    return {operands,
            absl::StrContains(source, "TIER_WRAPPER(" + name + ")") ? 1 : 0};
  const size_t begin = source.find(name + "(");
  if (begin == std::string::npos)
    return {};
  const std::string table = "void *at[";
  if (absl::StartsWith(source.substr(begin + name.size()), "(LLAMAC_TABLE(")) {
    const size_t count = source.find(table) + table.size();
    return {.operands = std::atoi(source.c_str() + count), .isTable = true};
  }
  const std::string text =
      source.substr(begin, source.find("int rows", begin) - begin);
  const std::string map = "LLAMAC_TENSOR_MAP(";
  Parameters result{
      static_cast<int>(std::count(text.begin(), text.end(), ','))};
  for (size_t at = text.find(map); at != std::string::npos;
       at = text.find(map, at + 1))
    ++result.maps;
  result.operands -= result.maps;
  return result;
}

/// Copies and graphs that a capture would hold are not needed so far.
static Result enqueue(Stream stream, std::function<void()> work,
                      std::function<bool()> isReady = {}) {
  if (gpu().streams.count(stream) == 0 || stream->captured)
    return invalidValue;
  return gpu().enqueue(stream, {std::move(work), std::move(isReady)});
}

/// Begins a call: leaves it when it is to fail, or the GPU has.
#define FAKE_CALL(function)                                                    \
  const std::lock_guard<std::mutex> lock(gpu().mutex);                         \
  if (isInjected(#function))                                                   \
    return injected;                                                           \
  if (isRefused(#function))                                                    \
    return outOfMemory;                                                        \
  if (gpu().sticky != success)                                                 \
    return gpu().sticky;

/// FAKE_CALL() for a call that is of the calling thread's context.
#define FAKE_WORK(function)                                                    \
  FAKE_CALL(function)                                                          \
  if (!entered)                                                                \
    return invalidContext;

/// The context of this thread.
static thread_local Context entered = nullptr;

extern "C" {

/// Not of the driver: what was made and not given back.
size_t fakeLiveObjects() {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  return gpu().liveObjects();
}

/// Not of the driver: copies from the host to the GPU.
size_t fakeCopiesToDevice() {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  return gpu().copiesToDevice;
}

/// Not of the driver: what streams were given and have not done.
size_t fakePendingWork() {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  size_t count = 0;
  for (Stream stream : gpu().streams)
    count += stream->pending.size();
  return count;
}

/// Not of the driver: see HostKernels.h.
void fakeSetHostKernel(const char *name, const HostKernel *kernel) {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (kernel)
    gpu().hostKernels[name] = *kernel;
  else
    gpu().hostKernels.clear();
}

/// Not of the driver: what only another process sees of one, a GPU after a
/// fault.
void fakeRecover() {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  gpu().sticky = success;
}

/// Not used by us: NVRTC itself asks a driver that it finds, and goes on
/// without an answer.
Result cuGetExportTable(const void **table, const void *) {
  *table = nullptr;
  return notFound;
}

Result cuInit(unsigned) {
  FAKE_CALL(cuInit)
  return success;
}

Result cuDriverGetVersion(int *version) {
  FAKE_CALL(cuDriverGetVersion)
  const char *named = std::getenv("LLAMAC_FAKE_VERSION");
  *version = named ? std::atoi(named) : 13000;
  return success;
}

Result cuGetErrorName(Result error, const char **name) {
  *name = error == injected       ? "CUDA_ERROR_UNKNOWN"
          : error == launchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
          : error == outOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == noDevice     ? "CUDA_ERROR_NO_DEVICE"
          : error == cooperativeLaunchTooLarge
              ? "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
              : "CUDA_ERROR_INVALID_VALUE";
  return success;
}

Result cuGetErrorString(Result, const char **words) {
  *words = "as the fake driver was told";
  return success;
}

static std::vector<std::string> capabilities() {
  const char *named = std::getenv("LLAMAC_FAKE_CAPABILITY");
  return absl::StrSplit(named ? named : "9.0", ',');
}

Result cuDeviceGetCount(int *count) {
  FAKE_CALL(cuDeviceGetCount)
  *count = static_cast<int>(capabilities().size());
  return success;
}

Result cuDeviceGet(DeviceId *device, int ordinal) {
  FAKE_CALL(cuDeviceGet)
  *device = ordinal;
  return ordinal < static_cast<int>(capabilities().size()) ? success : noDevice;
}

Result cuDeviceGetName(char *name, int size, DeviceId device) {
  FAKE_CALL(cuDeviceGetName)
  std::snprintf(name, size, device == 0 ? "Fake GPU" : "Fake GPU %d", device);
  return success;
}

Result cuDeviceGetAttribute(int *value, int attribute, DeviceId device) {
  FAKE_CALL(cuDeviceGetAttribute)
  int major = 9, minor = 0;
  std::sscanf(capabilities()[device].c_str(), "%d.%d", &major, &minor);
  switch (attribute) {
  case CapabilityMajor:
    *value = major;
    return success;
  case CapabilityMinor:
    *value = minor;
    return success;
  case MultiprocessorCount:
    *value = gpu().multiprocessors();
    return success;
  case CooperativeLaunch:
    *value = gpu().launchesCooperatively();
    return success;
  case ClockRate:
    *value = 1980000;
    return success;
  case MemoryClockRate:
    *value = 3201000;
    return success;
  default:
    return invalidValue;
  }
}

Result cuDevicePrimaryCtxRetain(Context *context, DeviceId) {
  FAKE_CALL(cuDevicePrimaryCtxRetain)
  ++gpu().contexts;
  *context = &gpu().context;
  return success;
}

Result cuDevicePrimaryCtxRelease_v2(DeviceId) {
  // Also after a fault: whoever counts is to see what is left.
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (--gpu().contexts == 0)
    gpu().reportLeaks();
  return success;
}

Result cuCtxSetCurrent(Context context) {
  FAKE_CALL(cuCtxSetCurrent)
  entered = context;
  return context == &gpu().context ? success : invalidContext;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  FAKE_WORK(cuMemGetInfo_v2)
  *total = gpu().memoryBytes();
  *free = *total - gpu().used;
  return success;
}

Result cuMemAlloc_v2(Address *address, size_t bytes) {
  FAKE_WORK(cuMemAlloc_v2)
  if (bytes == 0)
    return invalidValue;
  if (bytes > gpu().memoryBytes() - gpu().used)
    return outOfMemory;
  // A driver aligns to 256 bytes.
  constexpr size_t alignment = 256;
  std::unique_ptr<uint8_t[]> block(new uint8_t[bytes + alignment]);
  *address = (reinterpret_cast<Address>(block.get()) + alignment - 1) /
             alignment * alignment;
  std::memset(block.get(), 0xff, bytes + alignment);
  gpu().memory[*address] = std::move(block);
  gpu().sizes[*address] = bytes;
  gpu().used += bytes;
  if (gpu().simulator)
    gpu().simulator->memory().add("memory", reinterpret_cast<void *>(*address),
                                  bytes);
  return success;
}

Result cuMemFree_v2(Address address) {
  // Works after a fault too, so that leaks are told from what a fault left.
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (isInjected("cuMemFree_v2"))
    return injected;
  // A driver waits for what may still use it.
  for (Stream stream : gpu().streams)
    gpu().advance(stream);
  auto size = gpu().sizes.find(address);
  if (size == gpu().sizes.end())
    return invalidValue;
  if (gpu().simulator)
    gpu().simulator->memory().remove(reinterpret_cast<void *>(address));
  gpu().used -= size->second;
  gpu().sizes.erase(size);
  gpu().memory.erase(address);
  return success;
}

Result cuMemsetD8Async(Address address, unsigned char value, size_t bytes,
                       Stream stream) {
  FAKE_WORK(cuMemsetD8Async)
  return enqueue(stream, [=] {
    std::memset(reinterpret_cast<void *>(address), value, bytes);
  });
}

Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes,
                            Stream stream) {
  FAKE_WORK(cuMemcpyHtoDAsync_v2)
  ++gpu().copiesToDevice;
  if (gpu().isPinned(from))
    return enqueue(stream, [=] {
      std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    });
  // Pageable memory is copied to the driver's own at once.
  const auto *source = static_cast<const uint8_t *>(from);
  std::vector<uint8_t> held(source, source + bytes);
  return enqueue(stream, [to, held = std::move(held)] {
    std::memcpy(reinterpret_cast<void *>(to), held.data(), held.size());
  });
}

Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes,
                            Stream stream) {
  FAKE_WORK(cuMemcpyDtoHAsync_v2)
  return enqueue(stream, [=] {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  });
}

Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes,
                            Stream stream) {
  FAKE_WORK(cuMemcpyDtoDAsync_v2)
  return enqueue(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to),
                reinterpret_cast<const void *>(from), bytes);
  });
}

Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  FAKE_WORK(cuMemHostAlloc)
  auto *start = new uint8_t[bytes];
  std::memset(start, 0xff, bytes);
  gpu().pinned[start] = bytes;
  *memory = start;
  return success;
}

Result cuMemFreeHost(void *memory) {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  auto *start = static_cast<uint8_t *>(memory);
  if (gpu().pinned.erase(start) == 0)
    return invalidValue;
  delete[] start;
  return success;
}

Result cuEventCreate(Event *event, unsigned) {
  FAKE_WORK(cuEventCreate)
  *event = *gpu().events.insert(new EventTag).first;
  return success;
}

Result cuEventRecord(Event event, Stream stream) {
  FAKE_WORK(cuEventRecord)
  event->stream = stream;
  event->reached = std::make_shared<bool>(false);
  return enqueue(stream, [reached = event->reached, time = event->time] {
    *reached = true;
    *time = Clock::now();
  });
}

Result cuEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  FAKE_WORK(cuEventRecordWithFlags)
  // The flag is invalid outside of a capture; without it a capture has no node.
  if (gpu().streams.count(stream) == 0 ||
      flags != (stream->captured ? eventRecordExternal : 0))
    return invalidValue;
  if (stream->captured)
    stream->captured->endsInEvent = true;
  return gpu().enqueue(stream,
                       {[time = event->time] { *time = Clock::now(); }});
}

Result cuEventElapsedTime(float *milliseconds, Event from, Event to) {
  FAKE_WORK(cuEventElapsedTime)
  *milliseconds =
      std::chrono::duration<float, std::milli>(*to->time - *from->time).count();
  return success;
}

Result cuEventSynchronize(Event event) {
  std::unique_lock<std::mutex> lock(gpu().mutex);
  // An event that was never recorded is reached.
  const std::shared_ptr<bool> reached = event->reached;
  const Result result =
      reached ? gpu().finish(lock, event->stream, reached.get()) : success;
  return isInjected("cuEventSynchronize") ? injected : result;
}

Result cuEventDestroy_v2(Event event) {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (gpu().events.erase(event) == 0)
    return invalidValue;
  delete event;
  return success;
}

Result cuModuleLoadData(Module *module, const void *image) {
  FAKE_WORK(cuModuleLoadData)
  if (image && isIdle() && std::memcmp(image, "\177ELF", 4) == 0) {
    *module = *gpu().modules.insert(new ModuleTag).first;
    return success;
  }
  if (!gpu().hostKernels.empty()) {
    *module = *gpu().modules.insert(new ModuleTag).first;
    return success;
  }
  if (!image || !gpu().loadKernels())
    return invalidValue;
  // The simulator's kernels let the next launch begin in one way only.
  absl::string_view source = static_cast<const char *>(image);
  if (absl::StartsWith(source, "#define LLAMAC_OVERLAP "))
    source.remove_prefix(source.find('\n') + 1);
  const auto code = gpu().kernels.find(std::string(source));
  if (code == gpu().kernels.end())
    return notFound;
  *module =
      *gpu().modules.insert(new ModuleTag{code->first, code->second, {}}).first;
  return success;
}

Result cuModuleUnload(Module module) {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (gpu().modules.erase(module) == 0)
    return invalidValue;
  delete module;
  return success;
}

Result cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  FAKE_WORK(cuModuleGetFunction)
  if (gpu().modules.count(module) == 0)
    return invalidValue;
  const KernelCode &code = module->code;
  if (code.module == nullptr) {
    if (!gpu().hostKernels.empty() && !gpu().hostKernels.contains(name))
      return notFound;
    auto &known = module->functions[name];
    known = std::make_unique<FunctionTag>(FunctionTag{name, nullptr, {}});
    *function = known.get();
    return success;
  }
  const Parameters parameters =
      parametersOf(name, module->source, code.operands);
  if (!code.module->kernel(name).ok() || parameters.operands < 0)
    return notFound;
  auto &known = module->functions[name];
  if (!known)
    known = std::make_unique<FunctionTag>(
        FunctionTag{name, code.module.get(), parameters});
  *function = known.get();
  return success;
}

Result cuFuncSetAttribute(Function function, int attribute, int value) {
  FAKE_WORK(cuFuncSetAttribute)
  if (attribute == functionSharedBytes) {
    if (value > Gpu::numberOf("LLAMAC_FAKE_SHARED", 232448))
      return invalidValue;
    function->sharedLimit = value;
  }
  return attribute == functionSharedBytes ||
                 (attribute == functionSharedCarveout && value >= -1 &&
                  value <= 100)
             ? success
             : invalidValue;
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                   Function function, int,
                                                   size_t sharedBytes) {
  FAKE_WORK(cuOccupancyMaxActiveBlocksPerMultiprocessor)
  if (sharedBytes > function->sharedLimit)
    return invalidValue;
  *blocks = gpu().occupancy();
  return success;
}

/// Applies one attribute to `launch`; false for one that a driver refuses.
/// Programmatic edges of a graph are between kernels only.
static bool apply(const LaunchAttribute &attribute, const GraphTag *captured,
                  SimLaunch &launch, bool &overlaps) {
  switch (attribute.id) {
  case LaunchAttribute::Cooperative:
    launch.cooperative = attribute.value[0] != 0;
    return attribute.value[0] <= 1;
  case LaunchAttribute::ClusterDimension: {
    const auto [x, y, z] =
        std::tuple(attribute.value[0], attribute.value[1], attribute.value[2]);
    launch.cluster = x;
    return x > 0 && x <= 8 && launch.grid.x % x == 0 && y == 1 && z == 1;
  }
  case LaunchAttribute::ProgrammaticSerialization:
    overlaps = attribute.value[0] != 0;
    return attribute.value[0] <= 1 && !(captured && captured->endsInEvent);
  default:
    return false;
  }
}

/// A launch of `kernel`, with its parameters as they are now.
static HostLaunch hostLaunch(const HostKernel &kernel, const SimLaunch &launch,
                             bool overlaps, Stream stream, void **parameters) {
  HostLaunch made{.kernel = launch.kernel,
                  .blocks = launch.grid.x,
                  .rowBlocks = launch.grid.y,
                  .threads = launch.block.x,
                  .sharedBytes = launch.sharedBytes,
                  .isCooperative = launch.cooperative,
                  .overlaps = overlaps,
                  .isOfGraph = stream->captured != nullptr};
  for (int i = 0; i < kernel.operands; ++i)
    made.operands.push_back(kernel.isResident
                                ? static_cast<void **>(parameters[0])[i]
                                : *static_cast<void **>(parameters[i]));
  made.last = *static_cast<int32_t *>(
      parameters[kernel.isResident ? 1 : kernel.operands]);
  return made;
}

Result cuLaunchKernelEx(const LaunchConfig *config, Function function,
                        void **parameters, void **) {
  FAKE_WORK(cuLaunchKernelEx)
  Stream stream = config->stream;
  if (gpu().streams.count(stream) == 0)
    return invalidValue;
  SimLaunch launch{.kernel = function->name,
                   .grid = {config->gridX, config->gridY, config->gridZ},
                   .block = {config->blockX, config->blockY, config->blockZ},
                   .sharedBytes = config->sharedBytes};
  bool overlaps = false;
  for (unsigned i = 0; i < config->attributeCount; ++i)
    if (!apply(config->attributes[i], stream->captured.get(), launch, overlaps))
      return invalidValue;
  if (launch.cooperative && !gpu().launchesCooperatively())
    return notSupported;
  if (launch.cooperative &&
      launch.grid.count() > static_cast<uint64_t>(gpu().multiprocessors()) *
                                static_cast<uint64_t>(gpu().occupancy()))
    return cooperativeLaunchTooLarge;
  if (stream->captured)
    stream->captured->endsInEvent = false;
  if (const auto host = gpu().hostKernels.find(function->name);
      host != gpu().hostKernels.end()) {
    const HostLaunch whole =
        hostLaunch(host->second, launch, overlaps, stream, parameters);
    return gpu().enqueue(stream, {[whole] { gpu().run(whole); }});
  }
  if (!function->module)
    return success;
  const auto [operands, maps, isTable] = function->parameters;
  if (launch.cooperative != isTable)
    return notSupported;
  if (isTable) {
    launch.makeResident();
    void **table = static_cast<void **>(parameters[0]);
    launch.args.assign(table, table + operands);
    launch.rows = *static_cast<int32_t *>(parameters[1]);
    KernelLaunch whole{function->module, std::move(launch), nullptr};
    return gpu().enqueue(stream, {[whole] { gpu().run(whole); }});
  }
  for (int i = 0; i < operands; ++i)
    launch.args.push_back(*static_cast<void **>(parameters[i]));
  auto copies = std::make_shared<std::vector<SimTensorMap>>(maps);
  for (int i = 0; i < maps; ++i) {
    (*copies)[i] = *static_cast<const SimTensorMap *>(parameters[operands + i]);
    launch.args.push_back(&(*copies)[i]);
  }
  launch.rows = *static_cast<int32_t *>(parameters[operands + maps]);
  KernelLaunch whole{function->module, std::move(launch), std::move(copies)};
  return gpu().enqueue(stream, {[whole] { gpu().run(whole); }});
}

Result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *base,
                              const uint64_t *extents, const uint64_t *strides,
                              const uint32_t *box, const uint32_t *steps,
                              int interleave, int swizzle, int, int fill) {
  FAKE_WORK(cuTensorMapEncodeTiled)
  if (rank != 2 || steps[0] != 1 || steps[1] != 1 || interleave != 0 ||
      fill != 0 || swizzle < 0 || swizzle > 3 ||
      (type != TensorMapType::Float32 && type != TensorMapType::Unsigned16 &&
       type != TensorMapType::Unsigned64))
    return invalidValue;
  const TensorMapShape shape{.elementBytes =
                                 type == TensorMapType::Unsigned64 ? 8U
                                 : type == TensorMapType::Float32  ? 4U
                                                                   : 2U,
                             .columns = extents[0],
                             .rows = extents[1],
                             .rowBytes = strides[0],
                             .boxColumns = box[0],
                             .boxRows = box[1],
                             .swizzleBytes = swizzle ? 16U << swizzle : 0U};
  return encodeSimTensorMap(base, shape, *static_cast<SimTensorMap *>(map)).ok()
             ? success
             : invalidValue;
}

Result cuStreamCreate(Stream *stream, unsigned) {
  FAKE_WORK(cuStreamCreate)
  *stream = *gpu().streams.insert(new StreamTag).first;
  return success;
}

Result cuStreamDestroy_v2(Stream stream) {
  std::unique_lock<std::mutex> lock(gpu().mutex);
  gpu().finish(lock, stream);
  if (gpu().streams.erase(stream) == 0)
    return invalidValue;
  delete stream;
  return success;
}

Result cuStreamSynchronize(Stream stream) {
  std::unique_lock<std::mutex> lock(gpu().mutex);
  const Result result = gpu().finish(lock, stream);
  return isInjected("cuStreamSynchronize") ? injected : result;
}

static Result beginCapture(Stream stream) {
  FAKE_WORK(cuStreamBeginCapture_v2)
  if (stream->captured)
    return invalidValue;
  stream->captured = std::make_unique<GraphTag>();
  return success;
}

Result cuStreamBeginCapture_v2(Stream stream, int) {
  const Result result = beginCapture(stream);
  // Time for other threads to come between, as they may.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return result;
}

Result cuStreamEndCapture(Stream stream, Graph *graph) {
  FAKE_WORK(cuStreamEndCapture)
  if (!stream->captured)
    return invalidValue;
  *graph = *gpu().graphs.insert(stream->captured.release()).first;
  return success;
}

Result cuGraphInstantiateWithFlags(GraphExec *ready, Graph graph,
                                   unsigned long long) {
  FAKE_WORK(cuGraphInstantiateWithFlags)
  *ready = *gpu().graphExecs.insert(new GraphExecTag{graph->nodes}).first;
  return success;
}

Result cuGraphLaunch(GraphExec graph, Stream stream) {
  FAKE_WORK(cuGraphLaunch)
  for (const Task &node : graph->nodes)
    if (const Result result = enqueue(stream, node.work, node.isReady))
      return result;
  return success;
}

Result cuGraphExecDestroy(GraphExec graph) {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (gpu().graphExecs.erase(graph) == 0)
    return invalidValue;
  delete graph;
  return success;
}

Result cuGraphDestroy(Graph graph) {
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (gpu().graphs.erase(graph) == 0)
    return invalidValue;
  delete graph;
  return success;
}

} // extern "C"
