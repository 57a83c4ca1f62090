//===- DoctorCommand.cpp - What runs on this machine ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each part of the report is found out as a run would: the driver is opened,
// GPUs get a context, caches are judged by the same rules.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/cpu/IsaLevel.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/Nvrtc.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/DiskCache.h"
#include "runtime/io/JsonText.h"
#include "runtime/threads/Topology.h"
#include "tools/ToolVerbs.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace llamac {

using Json = nlohmann::ordered_json;

static std::string messageOf(const absl::Status &status) {
  return std::string(status.message());
}

static std::string contentsOf(const char *path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

static Json processorJson() {
  Json json = {{"model", processorDescription()},
               {"isa", std::string(isaLevelName(hostIsaLevel()))},
               {"processors", std::thread::hardware_concurrency()},
               {"threads", usablePhysicalCores()}};
  // The level that runs use; LLAMAC_ISA may lower it, or be wrong.
  const auto used = usableIsaLevel();
  if (used.ok())
    json["used_isa"] = std::string(isaLevelName(*used));
  else
    json["error"] = messageOf(used.status());
  return json;
}

/// Bytes of "Name:   123 kB" in /proc/meminfo; 0 when it is not there.
static uint64_t memoryField(const std::string &text, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t number = 0;
    if (words.size() >= 2 && words[0] == name &&
        absl::SimpleAtoi(words[1], &number))
      return words.size() == 3 ? number << 10 : number;
  }
  return 0;
}

static Json memoryJson() {
  const std::string text = contentsOf("/proc/meminfo");
  Json json = {{"total", memoryField(text, "MemTotal:")},
               {"available", memoryField(text, "MemAvailable:")}};
  // The control group's limit (version 2), unless that is "max".
  uint64_t limit = 0;
  if (absl::SimpleAtoi(contentsOf("/sys/fs/cgroup/memory.max"), &limit))
    json["limit"] = limit;
  // "always [madvise] never"
  const std::string modes =
      contentsOf("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t first = modes.find('['), last = modes.find(']');
  json["transparent_huge_pages"] =
      first < last && last != std::string::npos
          ? modes.substr(first + 1, last - first - 1)
          : "unknown";
  json["reserved_huge_pages"] = memoryField(text, "HugePages_Total:");
  json["huge_page_bytes"] = memoryField(text, "Hugepagesize:");
  return json;
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

/// "13.0" of 13000.
static std::string cudaVersion(int number) {
  return absl::StrCat(number / 1000, ".", number % 1000 / 10);
}

static absl::Status describeGpu(const cuda::Driver &driver, int index,
                                Json &json) {
  LLAMAC_ASSIGN_OR_RETURN(const cuda::DeviceId id, driver.deviceAt(index));
  char name[256] = {};
  LLAMAC_RETURN_IF_ERROR(driver.check(
      driver.cuDeviceGetName(name, sizeof name - 1, id), "cuDeviceGetName"));
  json["name"] = name;
  LLAMAC_ASSIGN_OR_RETURN(const ComputeCapability capability,
                          driver.capabilityOf(id));
  json["capability"] = absl::StrCat(capability.major, ".", capability.minor);
  // Whether it runs plans shows where a context is made.
  LLAMAC_ASSIGN_OR_RETURN(const auto device,
                          CudaDevice::create({.threads = 1, .index = index}));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                          device->memory());
  if (memory) {
    json["memory"] = memory->total;
    json["free"] = memory->free;
  }
  return absl::OkStatus();
}

static absl::Status describeDriver(Json &json) {
  LLAMAC_ASSIGN_OR_RETURN(const auto driver, cuda::Driver::open());
  int version = 0, count = 0;
  LLAMAC_RETURN_IF_ERROR(driver->check(driver->cuDriverGetVersion(&version),
                                       "cuDriverGetVersion"));
  json["driver"] = cudaVersion(version);
  LLAMAC_RETURN_IF_ERROR(
      driver->check(driver->cuDeviceGetCount(&count), "cuDeviceGetCount"));
  for (int index = 0; index < count; ++index) {
    Json gpu = {{"index", index}};
    if (const absl::Status status = describeGpu(*driver, index, gpu);
        !status.ok())
      gpu["error"] = messageOf(status);
    json["gpus"].push_back(std::move(gpu));
  }
  return absl::OkStatus();
}

static Json cudaJson() {
  Json json = {{"gpus", Json::array()}};
  if (const absl::Status status = describeDriver(json); !status.ok())
    json["error"] = messageOf(status);
  if (const auto nvrtc = Nvrtc::open(); nvrtc.ok())
    json["nvrtc"] = {{"version", nvrtc->version()}, {"path", nvrtc->path()}};
  else
    json["nvrtc"] = {{"error", messageOf(nvrtc.status())}};
  // One GPU alone needs none.
  if (json["gpus"].size() > 1)
    if (const auto nccl = cuda::Nccl::open(); !nccl.ok())
      json["nccl"] = {{"error", messageOf(nccl.status())}};
  return json;
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

/// Where a shell finds mpirun, which starts a process for each rank; empty:
/// nowhere.
static std::string mpirunPath() {
  const char *folders = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(folders ? folders : "", ':', absl::SkipEmpty()))
    if (const std::string path = absl::StrCat(folder, "/mpirun");
        access(path.c_str(), X_OK) == 0)
      return path;
  return "";
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// Why nothing can be cached in `folder`, which need not be there yet.
static absl::Status checkFolder(const std::string &folder) {
  struct stat info;
  if (stat(folder.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode))
      return usageError(
          absl::StrCat(folder, ": expected a folder, got a file"));
    LLAMAC_RETURN_IF_ERROR(checkTrusted(folder, info));
  }
  std::filesystem::path there = std::filesystem::absolute(folder);
  std::error_code error;
  while (!std::filesystem::exists(there, error) && there.has_relative_path())
    there = there.parent_path();
  if (access(there.c_str(), W_OK) != 0)
    return usageError(absl::StrCat(there.string(), ": cannot be written"));
  return absl::OkStatus();
}

static Json cachesJson() {
  Json rows = Json::array();
  for (const CacheKind kind : cacheKinds) {
    const DiskCache cache(kind);
    Json row = {{"cache", std::string(cache.name())},
                {"folder", cache.folder().value_or("")}};
    uint64_t bytes = 0;
    const std::vector<CacheFile> files = cache.files();
    for (const CacheFile &file : files)
      bytes += file.bytes;
    row["files"] = files.size();
    row["bytes"] = bytes;
    absl::Status status = cache.folder().status();
    if (status.ok() && cache.folder()->empty())
      status = usageError("turned off by LLAMAC_OBJECT_CACHE");
    if (status.ok())
      status = checkFolder(*cache.folder());
    if (!status.ok())
      row["error"] = messageOf(status);
    rows.push_back(std::move(row));
  }
  const CacheLimit limit = cacheLimit();
  return {{"folders", std::move(rows)},
          {"limit", limit.bytes},
          {"limit_source", std::string(limit.source)}};
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

/// Why plans for cuda do not run; empty where they do.
static std::string cudaProblem(const Json &cuda) {
  if (cuda.contains("error"))
    return cuda["error"];
  if (cuda["gpus"].empty())
    return "the driver shows no GPU";
  for (const Json &gpu : cuda["gpus"])
    if (!gpu.contains("error"))
      return cuda["nvrtc"].value("error", "");
  return cuda["gpus"][0]["error"];
}

/// Each target with what runs it here, or why nothing does.
static Json targetsJson(const ToolParts &parts, const Json &report) {
  Json rows = Json::array();
  for (const DeviceKind &kind : parts.devices) {
    Json row = {{"target", std::string(kind.target)}};
    std::string problem, place;
    if (!kind.create) {
      problem = kind.hint;
    } else if (kind.target == "cpu") {
      const Json &processor = report["processor"];
      problem = processor.value("error", "");
      place = absl::StrCat(processor.value("used_isa", ""), ", ",
                           processor["threads"].get<int>(), " threads");
    } else if (kind.target == "cuda") {
      problem = cudaProblem(report["cuda"]);
      for (const Json &gpu : report["cuda"]["gpus"])
        if (!gpu.contains("error"))
          absl::StrAppend(&place, place.empty() ? "" : "; ", "GPU ",
                          gpu["index"].get<int>(), ", ",
                          gpu["name"].get<std::string>());
    } else {
      place = "the host, to test plans for cuda";
    }
    row["runs"] = problem.empty();
    row[problem.empty() ? "on" : "error"] = problem.empty() ? place : problem;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Warnings about parts that work, but worse than they could.
static Json warningsJson(const Json &report) {
  Json warnings = Json::array();
  const Json &processor = report["processor"], &memory = report["memory"];
  if (processor["isa"] == std::string(isaLevelName(IsaLevel::Portable)))
    warnings.push_back("the processor has no AVX2: plans run by portable "
                       "kernels, which are slow");
  if (memory["transparent_huge_pages"] == "never")
    warnings.push_back(
        "transparent huge pages are off: weights that are packed "
        "at load are read more slowly; write madvise to "
        "/sys/kernel/mm/transparent_hugepage/enabled");
  if (report["cuda"].contains("nccl"))
    warnings.push_back(
        absl::StrCat("plans for several ranks do not run on the GPUs: ",
                     report["cuda"]["nccl"]["error"].get<std::string>()));
  for (const Json &row : report["caches"]["folders"])
    if (row.contains("error"))
      warnings.push_back(
          absl::StrCat(row["cache"].get<std::string>(),
                       " are not cached: ", row["error"].get<std::string>()));
  return warnings;
}

static Json examine(const ToolParts &parts) {
  Json report = {{"tool", parts.name},
                 {"version", LLAMAC_VERSION},
                 {"build", toolBuildId()},
                 {"libraries", Json::object()}};
  for (const auto &[library, version] : libraryVersions(parts))
    report["libraries"][library] = version;
  report["processor"] = processorJson();
  report["memory"] = memoryJson();
  report["cuda"] = cudaJson();
  report["mpirun"] = mpirunPath();
  report["caches"] = cachesJson();
  report["targets"] = targetsJson(parts, report);
  report["warnings"] = warningsJson(report);
  // The cpu comes first.
  report["usable"] = report["targets"][0]["runs"];
  return report;
}

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

static void printRow(absl::string_view name, const std::string &text) {
  std::printf("%-13s %s\n", std::string(name).c_str(), printable(text).c_str());
}

static std::string bytesOf(const Json &json, const char *key) {
  return formatBytes(json[key].get<uint64_t>());
}

static void printReport(const Json &report) {
  const std::string tool = report["tool"];
  printRow(tool, absl::StrCat(report["version"].get<std::string>(), ", build ",
                              report["build"].get<std::string>()));
  for (const auto &[library, version] : report["libraries"].items())
    printRow(library, version);

  const Json &processor = report["processor"], &memory = report["memory"];
  printRow("processor", processor["model"]);
  const std::string isa = processor["isa"];
  const std::string used =
      processor.value("used_isa", processor.value("error", ""));
  printRow("instructions",
           used == isa ? isa : absl::StrCat(isa, "; LLAMAC_ISA: ", used));
  printRow("threads", absl::StrCat(processor["threads"].get<int>(), " of ",
                                   processor["processors"].get<int>(),
                                   " processors: one on each usable core"));
  printRow("memory", absl::StrCat(bytesOf(memory, "total"), ", ",
                                  bytesOf(memory, "available"), " available",
                                  memory.contains("limit")
                                      ? absl::StrCat("; limited to ",
                                                     bytesOf(memory, "limit"))
                                      : ""));
  printRow("huge pages",
           absl::StrCat("transparent: ",
                        memory["transparent_huge_pages"].get<std::string>(),
                        "; ", memory["reserved_huge_pages"].get<uint64_t>(),
                        " reserved of ", bytesOf(memory, "huge_page_bytes")));

  const Json &cuda = report["cuda"];
  printRow("GPU driver",
           cuda.contains("driver")
               ? absl::StrCat("CUDA ", cuda["driver"].get<std::string>())
               : cuda["error"].get<std::string>());
  for (const Json &gpu : cuda["gpus"])
    printRow(
        absl::StrCat("GPU ", gpu["index"].get<int>()),
        absl::StrCat(gpu.value("name", "unknown"), ", compute capability ",
                     gpu.value("capability", "unknown"),
                     gpu.contains("memory")
                         ? absl::StrCat(", ", bytesOf(gpu, "memory"), ", ",
                                        bytesOf(gpu, "free"), " free")
                         : "",
                     gpu.contains("error")
                         ? absl::StrCat(": ", gpu["error"].get<std::string>())
                         : ""));

  const std::string mpirun = report["mpirun"];
  printRow("mpirun",
           mpirun.empty() ? "not found: one process runs all ranks" : mpirun);

  const Json &caches = report["caches"];
  for (const Json &row : caches["folders"])
    printRow(
        row["cache"].get<std::string>(),
        absl::StrCat(row["files"].get<uint64_t>(), " files, ",
                     bytesOf(row, "bytes"), " in ",
                     row["folder"].get<std::string>(),
                     row.contains("error")
                         ? absl::StrCat(": ", row["error"].get<std::string>())
                         : ""));
  printRow("cache limit",
           absl::StrCat(bytesOf(caches, "limit"), " (",
                        caches["limit_source"].get<std::string>(), ")"));

  for (const Json &row : report["targets"])
    printRow(absl::StrCat("runs ", row["target"].get<std::string>()),
             row["runs"]
                 ? absl::StrCat("yes: ", row["on"].get<std::string>())
                 : absl::StrCat("no: ", row["error"].get<std::string>()));
  for (const Json &warning : report["warnings"])
    printRow("warning", warning);
}

void addDoctorCommand(CLI::App &app, const ToolParts &parts,
                      absl::Status &status) {
  auto json = std::make_shared<bool>(false);
  CLI::App *verb =
      app.add_subcommand("doctor", "Say what this machine has and can run");
  verb->add_flag("--json", *json, "Print one JSON object");
  verb->footer("Plans for the cpu are what must run: where they do not, the "
               "exit code is 7.");
  verb->callback([parts, json, &status] {
    const Json report = examine(parts);
    if (*json)
      std::printf("%s\n", jsonText(report, 2).c_str());
    else
      printReport(report);
    status =
        report["usable"]
            ? absl::OkStatus()
            : deviceError(report["targets"][0]["error"].get<std::string>());
  });
}

} // namespace llamac
