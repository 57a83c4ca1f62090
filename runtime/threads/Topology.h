//===- Topology.h - The cores a process may use -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_THREADS_TOPOLOGY_H
#define LLAMAC_RUNTIME_THREADS_TOPOLOGY_H

#include <cstdint>
#include <string>

namespace llamac {

/// Physical cores that threads started by the caller may run on: its affinity
/// mask and its control group's processor quota are respected. A share of them
/// where `processes` have this machine and each may use all of it. At least 1.
int usablePhysicalCores(int processes = 1);

/// The model of the processor, as the system names it, with the sizes of its
/// caches: "Intel(R) Xeon(R) Processor, L2 2 MiB, L3 260 MiB".
std::string processorDescription();

/// The most threads a user may ask for.
inline constexpr int maxThreads = 1024;

} // namespace llamac

#endif // LLAMAC_RUNTIME_THREADS_TOPOLOGY_H
