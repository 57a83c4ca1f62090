//===- Gpu.cpp - The GPUs of the fake driver ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/runtime/cuda/fake_driver/Gpu.h"

#include "runtime/plan/PlanReader.h"
#include "runtime/plan/SourceBundle.h"
#include "tests/runtime/cuda/fake_driver/Faults.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include <cstdio>
#include <fstream>
#include <thread>

namespace llamac::fake {

bool isIdle() { return std::getenv("LLAMAC_FAKE_IDLE"); }

/// It is never destroyed: what a program keeps in static variables goes later.
Gpu &gpu() {
  static Gpu &instance = *new Gpu;
  return instance;
}

bool Gpu::loadPlan(const std::string &path) {
  auto reader = PlanReader::open(path, {});
  if (!reader.ok() || (*reader)->plan().code.empty())
    return false;
  const schema::CodeObjectT &code = *(*reader)->plan().code.front();
  auto module = SimModule::open((*reader)->bytes(code.section), path);
  if (!module.ok())
    return false;
  const KernelCode loaded{*std::move(module)};
  const auto source = (*reader)->bytes((*reader)->plan().sourceSection);
  for (SourceFile &file : unbundleSources(
           {reinterpret_cast<const char *>(source.data()), source.size()}))
    if (absl::EndsWith(file.name, ".cu"))
      kernels[std::move(file.text)] = loaded;
  isChecked = isChecked || code.isa == simCheckedCode;
  return true;
}

bool Gpu::loadObject(const std::string &path) {
  std::ifstream source(path.substr(0, path.size() - 3) + "cu");
  auto module = SimModule::load(path);
  if (!source || !module.ok())
    return false;
  const std::string text{std::istreambuf_iterator<char>(source), {}};
  kernels[text] = {*std::move(module), 2};
  return true;
}

bool Gpu::loadKernels() {
  if (simulator)
    return true;
  const char *paths = std::getenv("LLAMAC_FAKE_PLAN");
  const std::vector<std::string> list = absl::StrSplit(paths ? paths : "", ':');
  for (const std::string &path : list)
    if (!(absl::EndsWith(path, ".sim") ? loadObject(path) : loadPlan(path)))
      return false;
  simulator = std::make_unique<Simulator>(SimOptions{.checked = isChecked});
  for (const auto &[address, bytes] : sizes)
    simulator->memory().add("memory", reinterpret_cast<void *>(address), bytes);
  return true;
}

/// Whether the environment's `variable` names `kernel`.
static bool isNamed(const char *variable, const std::string &kernel) {
  const char *named = std::getenv(variable);
  return named && (kernel == named || isFile(named));
}

void Gpu::run(const KernelLaunch &launch) {
  run(launch.launch.kernel,
      [&] { return simulator->run(*launch.module, launch.launch); });
}

void Gpu::run(const HostLaunch &launch) {
  run(launch.kernel, [&] {
    hostKernels.at(launch.kernel).run(launch);
    return absl::OkStatus();
  });
}

void Gpu::run(const std::string &kernel,
              absl::FunctionRef<absl::Status()> work) {
  if (sticky != success || isIdle())
    return;
  while (isNamed("LLAMAC_FAKE_HANG", kernel))
    std::this_thread::sleep_for(std::chrono::hours(1));
  const absl::Status status = isNamed("LLAMAC_FAKE_FAULT", kernel)
                                  ? absl::InternalError("injected fault")
                                  : work();
  if (status.ok())
    return;
  std::fprintf(stderr, "fake driver: %s\n",
               std::string(status.message()).c_str());
  sticky = launchFailed;
}

Result Gpu::enqueue(cuda::Stream stream, Task task) {
  if (streams.count(stream) == 0)
    return invalidValue;
  if (stream->captured) {
    stream->captured->nodes.push_back(std::move(task));
  } else {
    stream->pending.push_back(std::move(task));
    changed.notify_all();
  }
  return success;
}

/// Does what `stream` was given, up to what must wait, or until `until` holds;
/// whether that was anything.
bool Gpu::advance(cuda::Stream stream, const bool *until) {
  bool any = false;
  while (!stream->pending.empty() && !(until && *until)) {
    Task &first = stream->pending.front();
    if (first.isReady && !first.isReady())
      break;
    const Task task = std::move(first);
    stream->pending.pop_front();
    if (task.work)
      task.work();
    any = true;
  }
  return any;
}

/// Does all that `stream` was given, or until `until` holds; other streams go
/// on where it waits for them. A stream that captures is given nothing.
Result Gpu::finish(std::unique_lock<std::mutex> &lock, cuda::Stream stream,
                   const bool *until) {
  while (true) {
    if (streams.count(stream) == 0 || stream->captured)
      return invalidValue;
    bool any = advance(stream, until);
    if (stream->pending.empty() || (until && *until))
      return sticky;
    for (cuda::Stream other : streams)
      any = (other != stream && advance(other)) || any;
    // Another process does not say that it has come.
    if (!any)
      changed.wait_for(lock, std::chrono::milliseconds(1));
  }
}

bool Gpu::isPinned(const void *address) const {
  const auto *byte = static_cast<const uint8_t *>(address);
  const auto next = pinned.upper_bound(byte);
  return next != pinned.begin() &&
         byte < std::prev(next)->first + std::prev(next)->second;
}

void Gpu::reportLeaks() const {
  const char *path = std::getenv("LLAMAC_FAKE_LEAKS");
  if (!path)
    return;
  if (std::FILE *file = std::fopen(path, "a")) {
    std::fprintf(file,
                 "memory %zu pinned %zu modules %zu streams %zu events %zu "
                 "graphs %zu communicators %zu\n",
                 memory.size(), pinned.size(), modules.size(), streams.size(),
                 events.size(), graphs.size() + graphExecs.size(),
                 communicators);
    std::fclose(file);
  }
}

} // namespace llamac::fake
