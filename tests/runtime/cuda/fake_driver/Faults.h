//===- Faults.h - Calls of the fakes that fail ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_FAULTS_H
#define LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_FAULTS_H

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unistd.h>

namespace llamac::fake {

/// Whether `text` is a path where a file is: a test makes one to have something
/// fail from then on.
inline bool isFile(const std::string &text) {
  return text.starts_with('/') && access(text.c_str(), F_OK) == 0;
}

/// Whether this call of `function` is the one that the environment's `variable`
/// names: "cuMemAlloc_v2" for every call, "cuMemAlloc_v2:3" for the third,
/// "cuMemAlloc_v2:/path" for every one while there is a file of that path.
inline bool isNamed(const std::string &variable, const char *function) {
  struct Counter {
    std::string of;
    int calls = 0;
  };
  static std::mutex counting;
  static std::map<std::string, Counter> counters;
  const char *named = std::getenv(variable.c_str());
  if (!named)
    return false;
  const std::string text(named);
  const size_t colon = text.find(':');
  if (text.substr(0, colon) != function)
    return false;
  if (colon == std::string::npos)
    return true;
  if (text[colon + 1] == '/')
    return isFile(text.substr(colon + 1));
  const std::lock_guard<std::mutex> lock(counting);
  Counter &counter = counters[variable];
  if (counter.of != text)
    counter = {text};
  return ++counter.calls == std::atoi(text.c_str() + colon + 1);
}

/// Whether this call of `function` fails.
inline bool isInjected(const char *function) {
  return isNamed("LLAMAC_FAKE_FAILS", function);
}

/// Whether it finds no memory.
inline bool isRefused(const char *function) {
  return isNamed("LLAMAC_FAKE_REFUSES", function);
}

} // namespace llamac::fake

#endif // LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_FAULTS_H
