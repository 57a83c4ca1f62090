//===- SimModule.cpp - Kernels compiled for the simulator -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/SimModule.h"

#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"
#include "simulator/Machine.h"
#include "simulator/SimCode.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <dlfcn.h>
#include <link.h>

namespace llamac {

/// Where the loader put the object that has code at `base`.
struct LoadedRange {
  uintptr_t base;
  uintptr_t end;
};

static int findRange(dl_phdr_info *info, size_t, void *data) {
  auto *range = static_cast<LoadedRange *>(data);
  if (info->dlpi_addr != range->base)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      range->end = std::max<uintptr_t>(
          range->end, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
                          info->dlpi_phdr[i].p_memsz);
  return 1;
}

absl::StatusOr<std::unique_ptr<SimModule>>
SimModule::open(absl::Span<const uint8_t> object, absl::string_view name) {
  const absl::string_view bytes(reinterpret_cast<const char *>(object.data()),
                                object.size());
  constexpr size_t footer = 8 + simTrailer.size();
  uint64_t tableBytes = 0;
  bool hasTable = bytes.size() >= footer &&
                  bytes.substr(bytes.size() - simTrailer.size()) == simTrailer;
  if (hasTable) {
    for (size_t i = 0; i < 8; ++i)
      tableBytes |= static_cast<uint64_t>(object[object.size() - footer + i])
                    << 8 * i;
    hasTable = tableBytes <= bytes.size() - footer;
  }
  if (!hasTable)
    return badPlanError(absl::StrCat(
        name, ": expected kernels compiled for the simulator, got something "
              "else; compile it again"));
  const size_t elfBytes = bytes.size() - footer - tableBytes;

  std::unique_ptr<SimModule> module(new SimModule);
  for (absl::string_view line : absl::StrSplit(
           bytes.substr(elfBytes, tableBytes), '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    uint64_t address = 0;
    if (!absl::SimpleHexAtoi(parts.first, &address))
      return badPlanError(
          absl::StrCat(name, ": expected an address and its place, got '", line,
                       "'; compile it again"));
    module->rows.push_back({address, std::string(parts.second)});
  }
  LLAMAC_ASSIGN_OR_RETURN(module->code,
                          CodeObject::open(object.first(elfBytes), name));
  LLAMAC_ASSIGN_OR_RETURN(void *known, module->code->address("llamacSimBytes"));
  if (*static_cast<const unsigned long *>(known) != sizeof(SimCalls))
    return badPlanError(absl::StrCat(
        name, ": its kernels were compiled for another version of the "
              "simulator; compile it again"));
  LLAMAC_ASSIGN_OR_RETURN(void *table, module->code->address("llamacSim"));
  *static_cast<const SimCalls **>(table) = &sim::calls();
  Dl_info info;
  if (!dladdr(table, &info))
    return internalError(absl::StrCat(name, ": the loader has lost it"));
  LoadedRange range{reinterpret_cast<uintptr_t>(info.dli_fbase), 0};
  dl_iterate_phdr(findRange, &range);
  module->base = range.base;
  module->end = range.end;
  return module;
}

absl::StatusOr<std::unique_ptr<SimModule>>
SimModule::load(const std::string &path) {
  LLAMAC_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  return open(file->span(), path);
}

absl::StatusOr<const void *> SimModule::kernel(const std::string &name) const {
  return code->address(name);
}

std::string SimModule::place(const void *site) const {
  // A call returns behind itself.
  const uint64_t address = reinterpret_cast<uintptr_t>(site) - base - 1;
  auto row = std::upper_bound(
      rows.begin(), rows.end(), address,
      [](uint64_t a, const Row &row) { return a < row.address; });
  return row == rows.begin() ? "unknown place" : std::prev(row)->place;
}

bool SimModule::contains(const void *address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return at >= base && at < end;
}

} // namespace llamac
