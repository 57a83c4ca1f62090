//===- Runner.h - Launches on the simulator ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_DEVICE_RUNNER_H
#define LLAMAC_TESTS_CODEGEN_DEVICE_RUNNER_H

#include "Cases.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace llamac::cuda {

/// How kernels are run.
struct RunMode {
  const char *name;
  bool checked; ///< Races, bounds and initialised bytes.
  bool random;  ///< A random order of threads, instead of forward.
};

/// Memory aligned as a GPU's allocations are. New memory holds bytes 0xff,
/// which are NaNs in every float format.
class DeviceBytes {
public:
  explicit DeviceBytes(size_t size);

  template <class T>
  explicit DeviceBytes(const std::vector<T> &values)
      : DeviceBytes(values.size() * sizeof(T)) {
    std::copy(values.begin(), values.end(), as<T>());
  }

  DeviceBytes(const DeviceBytes &other);
  DeviceBytes(DeviceBytes &&) = default;

  uint8_t *data() const { return memory.get(); }
  size_t size() const { return bytes; }
  template <class T> T *as() const { return reinterpret_cast<T *>(data()); }

private:
  std::unique_ptr<uint8_t, decltype(&std::free)> memory;
  size_t bytes;
};

/// The role of an operand in a launch, which the checker holds the kernel to:
/// it may not write an input, nor read what it has not written of an output.
enum class Contents { Input, Output, InPlace };

struct Operand {
  DeviceBytes *bytes;
  Contents contents;
};

inline Operand reads(DeviceBytes &bytes) { return {&bytes, Contents::Input}; }
inline Operand writes(DeviceBytes &bytes) { return {&bytes, Contents::Output}; }
inline Operand updates(DeviceBytes &bytes) {
  return {&bytes, Contents::InPlace};
}

/// The kernels of Kernels.cu for one model.
class Runner {
public:
  Runner(const ModelCase &model, const RunMode &mode);
  ~Runner();

  /// Empty, or what went wrong. A map without rows is of all of its operand.
  std::string run(const std::string &kernel, const LaunchShape &shape,
                  int64_t rows, const std::vector<Operand> &operands,
                  const std::vector<MapShape> &maps = {});

private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation;
};

} // namespace llamac::cuda

#endif // LLAMAC_TESTS_CODEGEN_DEVICE_RUNNER_H
