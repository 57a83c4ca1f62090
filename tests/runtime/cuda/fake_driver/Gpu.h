//===- Gpu.h - The GPUs of the fake driver ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state that calls of the driver change, and the work that is done later:
// streams, graphs and kernels, which run on the simulator.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_GPU_H
#define LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_GPU_H

#include "runtime/cuda/Driver.h"
#include "simulator/SimCode.h"
#include "simulator/SimTensorMap.h"
#include "simulator/Simulator.h"
#include "tests/runtime/cuda/fake_driver/HostKernels.h"

#include "absl/functional/function_ref.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace llamac::fake {

using cuda::Result;

inline constexpr Result success = 0, invalidValue = 1, outOfMemory = 2,
                        noDevice = 100, invalidContext = 201, notFound = 500,
                        launchFailed = 719, cooperativeLaunchTooLarge = 720,
                        notSupported = 801, injected = 999;

/// Whether kernels do nothing.
bool isIdle();

/// Compiled kernels of one source.
struct KernelCode {
  std::shared_ptr<const SimModule> module;
  int operands = -1; ///< Operands of each kernel; -1: as its parameters say.
};

struct KernelLaunch {
  const SimModule *module;
  SimLaunch launch;
  std::shared_ptr<std::vector<SimTensorMap>> maps; ///< Maps that `launch`
                                                   ///< names.
};

/// The parameters of a kernel before the last, the rows or steps.
struct Parameters {
  int operands = -1;    ///< -1: there is no such kernel.
  int maps = 0;         ///< They follow the operands.
  bool isTable = false; ///< All operands are one structure of addresses.
};

using Clock = std::chrono::steady_clock;

/// The work that a stream is given.
struct Task {
  std::function<void()> work;
  /// False while it must wait for what other streams do; may be null.
  std::function<bool()> isReady = {};
};

} // namespace llamac::fake

namespace llamac::cuda {
struct ContextTag {};
struct ModuleTag {
  std::string source;
  fake::KernelCode code;
  std::map<std::string, std::unique_ptr<FunctionTag>> functions;
};
struct FunctionTag {
  std::string name;
  const SimModule *module;
  fake::Parameters parameters;
  uint64_t sharedLimit = 48 << 10; ///< Shared memory of a block, until more is
                                   ///< asked for.
};
struct GraphTag {
  std::vector<fake::Task> nodes; ///< One after the other.
  bool endsInEvent = false;
};
struct GraphExecTag {
  std::vector<fake::Task> nodes;
};
struct StreamTag {
  std::unique_ptr<GraphTag> captured; ///< Not null while it captures.
  std::deque<fake::Task> pending;
};
struct EventTag {
  /// Whether the last record was reached; also the stream's, which may outlive
  /// the event.
  std::shared_ptr<bool> reached;
  std::shared_ptr<fake::Clock::time_point> time =
      std::make_shared<fake::Clock::time_point>();
  Stream stream = nullptr;
};
} // namespace llamac::cuda

namespace llamac::fake {

/// All state of the GPU.
class Gpu {
public:
  std::mutex mutex;
  int contexts = 0;
  cuda::ContextTag context;
  Result sticky = success;
  size_t used = 0;
  std::map<cuda::Address, std::unique_ptr<uint8_t[]>> memory;
  std::map<cuda::Address, size_t> sizes;
  std::set<cuda::Module> modules;
  std::set<cuda::Stream> streams;
  std::set<cuda::Event> events;
  std::map<const uint8_t *, size_t> pinned; ///< Pinned memory of the host, by
                                            ///< its start.
  size_t copiesToDevice = 0;                ///< Copies that were asked for.
  std::set<cuda::Graph> graphs;
  std::set<cuda::GraphExec> graphExecs;
  size_t communicators = 0; ///< Communicators of the fake NCCL.

  /// When a stream is given something, or need not wait any more.
  std::condition_variable changed;

  size_t memoryBytes() const {
    const char *bytes = std::getenv("LLAMAC_FAKE_MEMORY");
    return bytes ? std::strtoull(bytes, nullptr, 10) : size_t{1} << 34;
  }

  /// The number in the environment's `variable`, or `otherwise`.
  static int numberOf(const char *variable, int otherwise) {
    const char *number = std::getenv(variable);
    return number ? std::atoi(number) : otherwise;
  }
  int multiprocessors() const {
    return numberOf("LLAMAC_FAKE_MULTIPROCESSORS", 132);
  }
  /// Blocks of any kernel that a multiprocessor runs at once.
  int occupancy() const { return numberOf("LLAMAC_FAKE_OCCUPANCY", 1); }
  bool launchesCooperatively() const {
    return numberOf("LLAMAC_FAKE_COOPERATIVE", 1) != 0;
  }

  bool loadKernels();
  void run(const KernelLaunch &launch);
  void run(const HostLaunch &launch);
  /// Adds `task` to `stream`, or to the graph that it captures.
  Result enqueue(cuda::Stream stream, Task task);
  bool advance(cuda::Stream stream, const bool *until = nullptr);
  Result finish(std::unique_lock<std::mutex> &lock, cuda::Stream stream,
                const bool *until = nullptr);
  bool isPinned(const void *address) const;
  size_t liveObjects() const {
    return memory.size() + pinned.size() + modules.size() + streams.size() +
           events.size() + graphs.size() + graphExecs.size() + communicators;
  }
  void reportLeaks() const;

  std::map<std::string, KernelCode> kernels;     ///< Kernels by the source.
  std::map<std::string, HostKernel> hostKernels; ///< Host kernels by name.
  std::unique_ptr<Simulator> simulator;

private:
  bool loadPlan(const std::string &path);
  bool loadObject(const std::string &path);
  void run(const std::string &kernel, absl::FunctionRef<absl::Status()> work);

  bool isChecked = false;
};

/// The one that all calls are of.
Gpu &gpu();

} // namespace llamac::fake

#endif // LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_GPU_H
