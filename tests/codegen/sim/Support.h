//===- Support.h - Kernels of the tests, compiled and run -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_SIM_SUPPORT_H
#define LLAMAC_TESTS_CODEGEN_SIM_SUPPORT_H

#include "codegen/sim/Simulator.h"

#include <string>
#include <vector>

namespace llamac {

/// The text of a file beside this one.
std::string readTestSource(const std::string &name);

/// That file compiled; it lives as long as the process.
const SimModule &testModule(const std::string &name, bool checked);

/// Forward, reverse and three random schedules, fast or checked.
std::vector<SimOptions> testSchedules(bool checked);

/// For messages: "checked, random 2".
std::string describe(const SimOptions &options);

} // namespace llamac

#endif // LLAMAC_TESTS_CODEGEN_SIM_SUPPORT_H
