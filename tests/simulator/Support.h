//===- Support.h - Kernels of the tests, compiled and run -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_SIMULATOR_SUPPORT_H
#define LLAMAC_TESTS_SIMULATOR_SUPPORT_H

#include "codegen/sim/SimCompiler.h"
#include "simulator/Simulator.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <new>
#include <string>
#include <vector>

namespace llamac {

/// The text of a file beside this one.
std::string readTestSource(const std::string &name);

/// The file compiled; it lives as long as the process.
const SimModule &testModule(const std::string &name, SimFlavour flavour);
inline const SimModule &testModule(const std::string &name, bool checked) {
  return testModule(name, checked ? SimFlavour::Checked : SimFlavour::Fast);
}

/// Forward, reverse and three random schedules, fast or checked; of blocks that
/// run together also those in which each of three stands still.
std::vector<SimOptions> testSchedules(bool checked, bool together = false);

/// For messages: "checked, random 2".
std::string describe(const SimOptions &options);

/// 16-byte aligned copies of values, as device memory has.
template <typename T> class DeviceVector {
public:
  DeviceVector(size_t count, T value)
      : storage(new(std::align_val_t(64)) T[count]), count(count) {
    std::fill_n(storage, count, value);
  }
  explicit DeviceVector(const std::vector<T> &values)
      : DeviceVector(values.size(), T{}) {
    std::copy(values.begin(), values.end(), storage);
  }
  DeviceVector(const DeviceVector &) = delete;
  DeviceVector &operator=(const DeviceVector &) = delete;
  ~DeviceVector() { operator delete[](storage, std::align_val_t(64)); }

  T *data() { return storage; }
  uint64_t bytes() const { return count * sizeof(T); }
  std::vector<T> values() const { return {storage, storage + count}; }

private:
  T *storage;
  size_t count;
};

/// Runs `body` with the kernels of a file on a simulator of every kind.
template <typename Body>
void onEverySimulator(const std::string &source, Body body,
                      bool together = false) {
  for (const bool checked : {false, true})
    for (const SimOptions &options : testSchedules(checked, together)) {
      SCOPED_TRACE(describe(options));
      Simulator simulator(options);
      body(simulator, testModule(source, checked));
    }
}

template <typename T>
void *input(Simulator &simulator, DeviceVector<T> &values,
            const char *name = "in") {
  simulator.memory().add(name, values.data(), values.bytes(),
                         SimContents::ReadOnly);
  return values.data();
}

template <typename T>
void *output(Simulator &simulator, DeviceVector<T> &values,
             const char *name = "out") {
  simulator.memory().add(name, values.data(), values.bytes(),
                         SimContents::Undefined);
  return values.data();
}

} // namespace llamac

#endif // LLAMAC_TESTS_SIMULATOR_SUPPORT_H
