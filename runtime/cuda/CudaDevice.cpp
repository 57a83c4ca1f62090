//===- CudaDevice.cpp - Plans run by an NVIDIA GPU ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaDevice.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/CudaProgram.h"
#include "runtime/cuda/Nvrtc.h"
#include "runtime/plan/SourceBundle.h"
#include "runtime/threads/ParallelFor.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace llamac {

//===----------------------------------------------------------------------===//
// The GPU
//===----------------------------------------------------------------------===//

absl::StatusOr<std::shared_ptr<CudaDevice>>
CudaDevice::create(const CudaDeviceOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(auto functions, cuda::Driver::open(options.driver));
  std::shared_ptr<CudaDevice> device(new CudaDevice(std::move(functions)));
  LLAMAC_RETURN_IF_ERROR(device->start(options));
  return device;
}

/// The GPU of the local rank.
static absl::StatusOr<cuda::DeviceId> gpuOf(const cuda::Driver &driver,
                                            const CudaDeviceOptions &options) {
  int index = options.index + options.localRank, count = 0;
  LLAMAC_RETURN_IF_ERROR(
      driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (options.localRank != 0 && index >= count) {
    const char *shares = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (!shares || std::string(shares) != "1")
      return deviceError(absl::StrCat(
          "ranks: expected GPU ", index, " for rank ", options.localRank,
          " of this machine, got ", count,
          " GPUs; compile with fewer --ranks, or set "
          "NCCL_MULTI_RANK_GPU_ENABLE=1 to run several on one GPU"));
    index %= std::max(count, 1);
  }
  return driver.deviceAt(index);
}

absl::Status CudaDevice::start(const CudaDeviceOptions &options) {
  description.threads =
      options.threads != 0
          ? options.threads
          : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  LLAMAC_RETURN_IF_ERROR(functions->check(
      functions->cuDriverGetVersion(&driverVersion), "cuDriverGetVersion"));
  nccl = options.nccl;
  LLAMAC_ASSIGN_OR_RETURN(device, gpuOf(*functions, options));
  char text[256] = {};
  LLAMAC_RETURN_IF_ERROR(functions->check(
      functions->cuDeviceGetName(text, sizeof text - 1, device),
      "cuDeviceGetName"));
  name = text;
  description.name = absl::StrCat("cuda, ", name);
  LLAMAC_ASSIGN_OR_RETURN(const ComputeCapability capability,
                          functions->capabilityOf(device));
  // A GPU that is not in the table may be a later one of its generation.
  const GpuSpec *spec = gpuSpecFor(capability);
  if (!spec && capability.major < 8)
    return deviceError(absl::StrCat(
        name, ": expected a GPU of compute capability 8.0 or higher, got ",
        capability.major, ".", capability.minor, "; use --target cpu"));
  hasDependentLaunches = capability.major >= 9;
  target = spec ? std::string(spec->name)
                : absl::StrCat("sm_", capability.major, capability.minor);
  LLAMAC_RETURN_IF_ERROR(
      functions->check(functions->cuDevicePrimaryCtxRetain(&context, device),
                       absl::StrCat(name, ": cuDevicePrimaryCtxRetain")));
  hasContext = true;
  LLAMAC_RETURN_IF_ERROR(enter());
  LLAMAC_RETURN_IF_ERROR(functions->check(
      functions->cuStreamCreate(&work, cuda::streamNonBlocking),
      "cuStreamCreate"));
  blocks = std::make_unique<CudaMemory>(*functions, work, name);
  return absl::OkStatus();
}

CudaDevice::~CudaDevice() {
  // NCCL makes its own GPUs the thread's.
  shared.reset();
  // Errors cannot be reported any more.
  enter().IgnoreError();
  blocks.reset();
  if (work)
    functions->cuStreamDestroy_v2(work);
  if (hasContext)
    functions->cuDevicePrimaryCtxRelease_v2(device);
}

absl::Status CudaDevice::enter() const {
  // The context is entered after a fault, too: memory that is freed then
  // belongs to it.
  const absl::Status entered =
      functions->check(functions->cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const std::lock_guard<std::mutex> lock(keeping);
  return fault.ok() ? entered : fault;
}

absl::Status CudaDevice::keepFault(absl::Status status) {
  const std::lock_guard<std::mutex> lock(keeping);
  fault.Update(std::move(status));
  return fault;
}

absl::StatusOr<int> CudaDevice::attribute(cuda::DeviceAttribute which) const {
  int value = 0;
  LLAMAC_RETURN_IF_ERROR(
      functions->check(functions->cuDeviceGetAttribute(&value, which, device),
                       absl::StrCat(name, ": cuDeviceGetAttribute")));
  return value;
}

std::string CudaDevice::identity(const schema::PlanT &) const {
  // An attribute that a driver does not have counts as 0.
  auto numberOf = [&](cuda::DeviceAttribute which) {
    return attribute(which).value_or(0);
  };
  const auto nvrtc = Nvrtc::open();
  return absl::StrCat(
      describe(), ", ", numberOf(cuda::MultiprocessorCount),
      " multiprocessors, ", numberOf(cuda::ClockRate) / 1000, " MHz, memory ",
      numberOf(cuda::MemoryClockRate) / 1000, " MHz, driver for CUDA ",
      driverVersion / 1000, ".", driverVersion % 1000 / 10,
      nvrtc.ok() ? absl::StrCat(", NVRTC ", nvrtc->version()) : "");
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

absl::StatusOr<std::vector<std::shared_ptr<Device>>>
createCudaRanks(int ranks, const CudaDeviceOptions &options) {
  std::vector<std::shared_ptr<CudaDevice>> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    CudaDeviceOptions own = options;
    own.localRank = rank;
    LLAMAC_ASSIGN_OR_RETURN(devices.emplace_back(), CudaDevice::create(own));
  }
  LLAMAC_ASSIGN_OR_RETURN(const cuda::NcclId place,
                          Collectives::newPlace(options.nccl));
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<Collectives> collectives,
                          Collectives::connect(
                              place, {.count = ranks, .ranks = ranks},
                              [&](int rank) { return devices[rank]->enter(); },
                              options.nccl));
  for (int rank = 0; rank < ranks; ++rank)
    devices[rank]->setRank(collectives, rank);
  return std::vector<std::shared_ptr<Device>>(devices.begin(), devices.end());
}

absl::StatusOr<std::vector<uint8_t>> CudaDevice::newId() {
  LLAMAC_ASSIGN_OR_RETURN(const cuda::NcclId place,
                          Collectives::newPlace(nccl));
  return std::vector<uint8_t>(place.bytes, place.bytes + sizeof place.bytes);
}

absl::Status CudaDevice::join(absl::Span<const uint8_t> id, int rank,
                              int ranks) {
  cuda::NcclId place;
  if (id.size() != sizeof place.bytes)
    return deviceError(absl::StrCat("ranks: expected an id of ",
                                    sizeof place.bytes, " bytes, got ",
                                    id.size()));
  std::ranges::copy(id, place.bytes);
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<Collectives> collectives,
                          Collectives::connect(
                              place, {.first = rank, .ranks = ranks},
                              [&](int) { return enter(); }, nccl));
  setRank(std::move(collectives), rank);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static cuda::Address addressOf(const Buffer &buffer) {
  return reinterpret_cast<cuda::Address>(buffer.address());
}

namespace {

class CudaBuffer final : public Buffer {
public:
  CudaBuffer(const CudaDevice &device, CudaMemory &blocks,
             cuda::Address address, uint64_t size)
      // The driver's addresses are numbers.
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      : Buffer(reinterpret_cast<void *>(address), size), device(device),
        blocks(blocks) {}
  ~CudaBuffer() override {
    if (size() == 0)
      return;
    device.enter().IgnoreError();
    blocks.giveBack(addressOf(*this), size());
  }

private:
  const CudaDevice &device;
  CudaMemory &blocks;
};

} // namespace

absl::StatusOr<std::optional<DeviceMemory>> CudaDevice::memory() {
  LLAMAC_RETURN_IF_ERROR(enter());
  return blocks->ofDevice();
}

// The bandwidth of a copy, whose bytes are read and written.
absl::StatusOr<std::optional<DeviceLimits>> CudaDevice::measureLimits() {
  LLAMAC_RETURN_IF_ERROR(enter());
  // Larger than every cache, as far as memory is free.
  LLAMAC_ASSIGN_OR_RETURN(const DeviceMemory left, blocks->ofDevice());
  const uint64_t size = std::min(left.free / 4, uint64_t{512} << 20);
  if (size < (uint64_t{128} << 20))
    return std::nullopt;
  LLAMAC_ASSIGN_OR_RETURN(const auto from, allocate(size));
  LLAMAC_ASSIGN_OR_RETURN(const auto to, allocate(size));
  std::array<cuda::Event, 2> marks = {};
  const auto destroyMarks = absl::MakeCleanup([&] {
    for (cuda::Event mark : marks)
      if (mark)
        functions->cuEventDestroy_v2(mark);
  });
  for (cuda::Event &mark : marks)
    LLAMAC_RETURN_IF_ERROR(
        functions->check(functions->cuEventCreate(&mark, 0), "cuEventCreate"));
  // The first copy warms up.
  constexpr int copies = 8;
  for (int i = 0; i <= copies; ++i) {
    if (i == 1)
      LLAMAC_RETURN_IF_ERROR(functions->check(
          functions->cuEventRecord(marks[0], work), "cuEventRecord"));
    LLAMAC_RETURN_IF_ERROR(
        functions->check(functions->cuMemcpyDtoDAsync_v2(
                             addressOf(*to), addressOf(*from), size, work),
                         "cuMemcpyDtoDAsync"));
  }
  LLAMAC_RETURN_IF_ERROR(functions->check(
      functions->cuEventRecord(marks[1], work), "cuEventRecord"));
  LLAMAC_RETURN_IF_ERROR(
      functions->check(functions->cuStreamSynchronize(work), "a copy"));
  float milliseconds = 0;
  LLAMAC_RETURN_IF_ERROR(functions->check(
      functions->cuEventElapsedTime(&milliseconds, marks[0], marks[1]),
      "cuEventElapsedTime"));
  return DeviceLimits{.bandwidth = 2.0 * copies * static_cast<double>(size) /
                                   (milliseconds * 1e-3),
                      .bandwidthOf = "a copy"};
}

absl::Status CudaDevice::check() {
  LLAMAC_RETURN_IF_ERROR(enter());
  return ended(
      functions->check(functions->cuStreamSynchronize(work), describe()));
}

absl::Status CudaDevice::reserve(uint64_t size) {
  LLAMAC_RETURN_IF_ERROR(enter());
  return blocks->reserve(size);
}

absl::StatusOr<std::unique_ptr<Buffer>> CudaDevice::allocate(uint64_t size,
                                                             MemoryUse use) {
  if (size == 0)
    return std::make_unique<CudaBuffer>(*this, *blocks, 0, 0);
  LLAMAC_RETURN_IF_ERROR(enter());
  LLAMAC_ASSIGN_OR_RETURN(const cuda::Address address, blocks->take(size));
  auto buffer = std::make_unique<CudaBuffer>(*this, *blocks, address, size);
  if (use != MemoryUse::Filled)
    LLAMAC_RETURN_IF_ERROR(functions->check(
        functions->cuMemsetD8Async(address, 0, size, work), "cuMemsetD8Async"));
  return buffer;
}

absl::Status CudaDevice::write(Buffer &buffer, uint64_t offset,
                               absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(checkInside(buffer, offset, bytes.size()));
  if (bytes.empty())
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(enter());
  // From pageable memory: the driver has its own copy when this returns.
  return functions->check(
      functions->cuMemcpyHtoDAsync_v2(addressOf(buffer) + offset, bytes.data(),
                                      bytes.size(), work),
      "cuMemcpyHtoDAsync");
}

absl::StatusOr<std::unique_ptr<Upload>>
CudaDevice::newUpload(uint64_t pieceBytes) {
  return newCudaUpload(*this, pieceBytes);
}

absl::StatusOr<absl::Span<const uint8_t>>
CudaDevice::read(const Buffer &buffer, uint64_t offset, uint64_t size,
                 std::vector<uint8_t> &staging) {
  LLAMAC_RETURN_IF_ERROR(checkInside(buffer, offset, size));
  staging.resize(size);
  if (size == 0)
    return absl::Span<const uint8_t>();
  LLAMAC_RETURN_IF_ERROR(enter());
  LLAMAC_RETURN_IF_ERROR(functions->check(
      functions->cuMemcpyDtoHAsync_v2(staging.data(),
                                      addressOf(buffer) + offset, size, work),
      "cuMemcpyDtoHAsync"));
  LLAMAC_RETURN_IF_ERROR(
      functions->check(functions->cuStreamSynchronize(work), "a copy"));
  return absl::MakeConstSpan(staging);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

/// The files of a plan's source.
class PlanSource {
public:
  static absl::StatusOr<PlanSource> read(const PlanReader &plan);

  /// Gives the source of kernel number `kernel`, or of a variant of it, with
  /// all headers.
  absl::StatusOr<CudaSource> of(size_t kernel,
                                const schema::VariantT *variant) const;

private:
  explicit PlanSource(const PlanReader &plan) : plan(plan) {}

  const PlanReader &plan;
  std::vector<SourceFile> files;
  std::vector<SourceHeader> headers;
};

} // namespace

absl::StatusOr<PlanSource> PlanSource::read(const PlanReader &plan) {
  const int32_t section = plan.plan().sourceSection;
  if (section < 0)
    return badPlanError(absl::StrCat(
        plan.path(), ": expected the kernels' source, got none; compile it "
                     "again"));
  const absl::Span<const uint8_t> bytes = plan.bytes(section);
  PlanSource source(plan);
  source.files = unbundleSources(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  for (const SourceFile &file : source.files)
    if (!absl::EndsWith(file.name, ".cu"))
      source.headers.push_back({file.name, file.text});
  return source;
}

absl::StatusOr<CudaSource>
PlanSource::of(size_t kernel, const schema::VariantT *variant) const {
  const schema::KernelT &of = *plan.plan().kernels[kernel];
  const std::string name =
      absl::StrCat(variant ? variant->symbol : of.symbol, ".cu");
  std::string text = variant ? variant->source : "";
  if (text.empty()) {
    auto file =
        std::find_if(files.begin(), files.end(), [&](const SourceFile &known) {
          return known.name == name;
        });
    if (file == files.end())
      return badPlanError(absl::StrCat(plan.path(), ": expected the source ",
                                       name, ", got none; compile it again"));
    text = file->text;
  }
  return CudaSource{name, withOverlap(text, of.overlap), headers};
}

namespace {

/// Gives the code of kernels, compiled where it is not cached.
class KernelCompiler {
public:
  KernelCompiler(const std::string &architecture, int driverVersion)
      : architecture(architecture), driverVersion(driverVersion) {}

  absl::StatusOr<std::string> image(const CudaSource &source);

private:
  absl::StatusOr<const Nvrtc *> open();

  const std::string &architecture;
  int driverVersion;
  std::mutex opening;
  std::optional<Nvrtc> nvrtc;
};

} // namespace

/// A driver loads code of the compilers of its own major version, and of those
/// before.
absl::StatusOr<const Nvrtc *> KernelCompiler::open() {
  const std::lock_guard<std::mutex> lock(opening);
  if (nvrtc)
    return &*nvrtc;
  LLAMAC_ASSIGN_OR_RETURN(Nvrtc opened, Nvrtc::open());
  int major = 0;
  if (absl::SimpleAtoi(opened.version().substr(0, opened.version().find('.')),
                       &major) &&
      major > driverVersion / 1000)
    return deviceError(absl::StrCat(
        "the GPU's driver: expected one for CUDA ", major, ", as NVRTC at ",
        opened.path(), " is, got one for CUDA ", driverVersion / 1000,
        "; update the driver or name an older NVRTC's "
        "folder in LLAMAC_NVRTC_PATH"));
  return &nvrtc.emplace(std::move(opened));
}

absl::StatusOr<std::string> KernelCompiler::image(const CudaSource &source) {
  LLAMAC_ASSIGN_OR_RETURN(const Nvrtc *compiler, open());
  auto image = compiler->image(source, architecture);
  if (!image.ok())
    return deviceError(image.status().message());
  return image;
}

absl::StatusOr<std::vector<std::string>>
CudaDevice::compileKernels(const PlanReader &plan) const {
  LLAMAC_ASSIGN_OR_RETURN(const PlanSource source, PlanSource::read(plan));
  std::vector<CudaSource> sources;
  for (size_t i = 0; i < plan.plan().kernels.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(sources.emplace_back(),
                            source.of(i, plan.variantOf(i)));
  }
  KernelCompiler compiler(target, driverVersion);
  std::vector<absl::StatusOr<std::string>> images(sources.size());
  parallelFor(threads(), sources.size(),
              [&](size_t i) { images[i] = compiler.image(sources[i]); });
  std::vector<std::string> result;
  for (auto &image : images) {
    LLAMAC_ASSIGN_OR_RETURN(result.emplace_back(), std::move(image));
  }
  return result;
}

absl::Status CudaDevice::compileAhead(const PlanReader &plan, size_t kernel,
                                      size_t variant) const {
  LLAMAC_ASSIGN_OR_RETURN(const PlanSource files, PlanSource::read(plan));
  LLAMAC_ASSIGN_OR_RETURN(
      const CudaSource source,
      files.of(kernel, plan.plan().kernels[kernel]->variants[variant].get()));
  return KernelCompiler(target, driverVersion).image(source).status();
}

/// Kernels of a tier of one GPU only are for no other.
absl::Status CudaDevice::checkTier(const schema::PlanT &plan) const {
  const GpuSpec *from = findGpuSpec(plan.gpu);
  if (!from)
    return badPlanError(absl::StrCat("gpu: expected one of ", gpuNames(),
                                     ", got '", plan.gpu, "'"));
  if (from->tier == KernelTier::Sm80 || target == from->name)
    return absl::OkStatus();
  return deviceError(absl::StrCat(
      name, ": expected a GPU that runs the plan's kernels, which are for ",
      from->name, " only, got one of ", target,
      "; compile the model again here, or with --gpu ",
      findGpuSpec(target) ? target : gpuSpecs().front().name));
}

absl::StatusOr<std::unique_ptr<StepQueue>>
CudaDevice::newStepQueue(int depth, uint64_t runBytes) {
  return newCudaStepQueue(*this, depth, runBytes);
}

absl::StatusOr<std::unique_ptr<LoadedCode>>
CudaDevice::loadCode(std::shared_ptr<const PlanReader> plan) {
  LLAMAC_RETURN_IF_ERROR(checkTier(plan->plan()));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> images,
                          compileKernels(*plan));
  return loadCudaCode(*this, std::move(plan), images, target);
}

} // namespace llamac
