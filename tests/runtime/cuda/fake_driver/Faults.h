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
#include <mutex>
#include <string>
#include <unistd.h>

namespace llamac::fake {

/// Whether `text` is a path where a file is: a test makes one to have something
/// fail from then on.
inline bool isFile(const std::string &text) {
  return text.starts_with('/') && access(text.c_str(), F_OK) == 0;
}

/// Whether this call of `function` is the one that LLAMAC_FAKE_FAILS names:
/// "cuMemAlloc_v2" for every call, "cuMemAlloc_v2:3" for the third,
/// "cuMemAlloc_v2:/path" for every one while there is a file of that path.
inline bool isInjected(const char *function) {
  static std::mutex counting;
  static std::string counted;
  static int calls = 0;
  const char *named = std::getenv("LLAMAC_FAKE_FAILS");
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
  if (counted != text) {
    counted = text;
    calls = 0;
  }
  return ++calls == std::atoi(text.c_str() + colon + 1);
}

} // namespace llamac::fake

#endif // LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_FAULTS_H
