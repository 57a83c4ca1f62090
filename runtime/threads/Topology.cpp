//===- Topology.cpp - The cores a process may use -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/Topology.h"

#include "runtime/base/Progress.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <fstream>
#include <hwloc.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace llamac {

namespace {

struct Cores {
  int usable = 0;     ///< 0 when unknown.
  bool areAll = true; ///< Whether these are all of the machine.
};

} // namespace

// Cores that share a bit with the calling thread's affinity mask, which the
// threads it starts get too.
static Cores coresOfAffinity() {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0)
    return {};
  // Only cores are asked about: looking for caches and devices takes longer.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE,
                                 HWLOC_TYPE_FILTER_KEEP_ALL);
  Cores cores;
  hwloc_bitmap_t mask = hwloc_bitmap_alloc();
  if (hwloc_topology_load(topology) == 0 &&
      hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_THREAD) == 0) {
    const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    for (int i = 0; i < count; ++i) {
      hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, i);
      cores.usable += hwloc_bitmap_intersects(core->cpuset, mask);
    }
    cores.areAll = cores.usable == count;
  }
  hwloc_bitmap_free(mask);
  hwloc_topology_destroy(topology);
  return cores;
}

static int64_t cacheBytes(int name) {
  return std::max<int64_t>(sysconf(name), 0);
}

// Processors that a control group (version 2) lets the process use, rounded
// up; 0 when there is no limit. "cpu.max" holds "quota period" or "max period".
static int coresOfQuota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0)
    return 0;
  return static_cast<int>(std::min((quota + period - 1) / period, 1e6));
}

std::string processorDescription() {
  // x86 has "model name : ..."; elsewhere the parts of a number must do.
  std::ifstream file("/proc/cpuinfo");
  std::string name, line;
  while (name.empty() && std::getline(file, line))
    for (const char *field : {"model name", "CPU part"})
      if (line.rfind(field, 0) == 0 && line.find(": ") != std::string::npos)
        name = line.substr(line.find(": ") + 2);
  return absl::StrCat(name.empty() ? "unknown processor" : name, ", L2 ",
                      formatBytes(cacheBytes(_SC_LEVEL2_CACHE_SIZE)), ", L3 ",
                      formatBytes(cacheBytes(_SC_LEVEL3_CACHE_SIZE)));
}

int usablePhysicalCores(int processes) {
  const auto [usable, areAll] = coresOfAffinity();
  int cores = usable != 0
                  ? usable
                  : static_cast<int>(std::thread::hardware_concurrency());
  if (const int quota = coresOfQuota(); quota != 0)
    cores = std::min(cores, quota);
  return std::clamp(areAll ? cores / processes : cores, 1, maxThreads);
}

} // namespace llamac
