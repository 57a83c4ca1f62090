//===- Nvrtc.cpp - A libnvrtc that compiles nothing -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Its cubin is the source, by which the fake driver knows the
// kernel. Source that holds "#error" does not compile.
//
//===----------------------------------------------------------------------===//

#include "tests/runtime/cuda/fake_driver/Faults.h"

#include <cstring>
#include <string>

using namespace llamac;

namespace {
struct Program {
  std::string source;
};
} // namespace

static const std::string errorLog = "kernel.cu(1): error: #error directive\n";

#define FAKE_CALL(function)                                                    \
  if (fake::isInjected(#function))                                             \
    return 11; // NVRTC_ERROR_INTERNAL_ERROR

extern "C" {

int nvrtcVersion(int *major, int *minor) {
  FAKE_CALL(nvrtcVersion)
  *major = 13;
  *minor = 0;
  return 0;
}

const char *nvrtcGetErrorString(int) { return "NVRTC_ERROR_INTERNAL_ERROR"; }

int nvrtcCreateProgram(Program **program, const char *source, const char *, int,
                       const char *const *, const char *const *) {
  FAKE_CALL(nvrtcCreateProgram)
  *program = new Program{source};
  return 0;
}

int nvrtcCompileProgram(Program *program, int, const char *const *) {
  FAKE_CALL(nvrtcCompileProgram)
  return program->source.find("#error") == std::string::npos ? 0 : 6;
}

int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  FAKE_CALL(nvrtcGetProgramLogSize)
  const bool failed = program->source.find("#error") != std::string::npos;
  *size = failed ? errorLog.size() + 1 : 1;
  return 0;
}

int nvrtcGetProgramLog(Program *, char *log) {
  std::memcpy(log, errorLog.c_str(), errorLog.size() + 1);
  return 0;
}

int nvrtcGetCUBINSize(Program *program, size_t *size) {
  FAKE_CALL(nvrtcGetCUBINSize)
  *size = program->source.size() + 1;
  return 0;
}

int nvrtcGetCUBIN(Program *program, char *image) {
  FAKE_CALL(nvrtcGetCUBIN)
  std::memcpy(image, program->source.c_str(), program->source.size() + 1);
  return 0;
}

int nvrtcDestroyProgram(Program **program) {
  delete *program;
  *program = nullptr;
  return 0;
}

} // extern "C"
