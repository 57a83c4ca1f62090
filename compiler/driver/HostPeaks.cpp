//===- HostPeaks.cpp - The speed of this machine's cores ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/HostPeaks.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/MappedFile.h"
#include "runtime/threads/Topology.h"

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>

namespace llamac {

/// The peaks of `device` that the file at `path` keeps.
static absl::StatusOr<kernel::Peaks> readPeaks(const std::string &path,
                                               const std::string &device) {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJson(path, file->text()));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> measured,
                          root.optionalString("device"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> bandwidth,
                          root.optionalNumber("bandwidth"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> operations,
                          root.optionalNumber("f32_operations"));
  if (measured != device || bandwidth.value_or(0) <= 0 ||
      operations.value_or(0) <= 0)
    return badFileError(absl::StrCat(path, ": expected speeds of ", device));
  return kernel::Peaks{*bandwidth, *operations};
}

absl::StatusOr<kernel::Peaks> hostPeaks() {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<CpuDevice> device,
                          CpuDevice::create());
  const std::string name =
      absl::StrCat(processorDescription(), ", ", device->threads(), " threads");
  const absl::StatusOr<std::string> folder = cacheFolder("peaks");
  const std::string path = folder.ok() ? *folder + "/cpu.json" : "";
  if (folder.ok())
    if (absl::StatusOr<kernel::Peaks> kept = readPeaks(path, name); kept.ok())
      return kept;
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceLimits> limits,
                          device->measureLimits());
  const kernel::Peaks peaks = {limits->bandwidth, limits->f32Operations};
  const nlohmann::json json = {{"device", name},
                               {"bandwidth", peaks.bandwidth},
                               {"f32_operations", peaks.operations}};
  // Peaks that cannot be kept are measured again.
  if (folder.ok())
    (void)writeFileAtomically(path, json.dump(1) + "\n");
  return peaks;
}

} // namespace llamac
