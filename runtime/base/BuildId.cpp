//===- BuildId.cpp - Which build of llamac this is ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The segments that no one writes to are hashed as they are mapped. Of a
// position-independent object they are what the linker wrote: the loader
// relocates others.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BuildId.h"

#include "absl/strings/str_format.h"

#include <cstdint>
#include <link.h>
#include <xxhash.h>

namespace llamac {

namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

} // namespace

/// Sets the id of `data`, a Search, and ends when `object` holds its address.
static int visitObject(dl_phdr_info *object, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  bool isInside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD)
      isInside |= search.address - begin < segment.p_memsz;
  }
  if (!isInside)
    return 0;
  XXH64_hash_t hash = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0)
      // The loader gives addresses as numbers.
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      hash = XXH3_64bits_withSeed(
          reinterpret_cast<const void *>(object->dlpi_addr + segment.p_vaddr),
          segment.p_filesz, hash);
  }
  search.id = absl::StrFormat("%016x", hash);
  return 1;
}

std::string buildIdAt(const void *address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(visitObject, &search);
  return search.id;
}

} // namespace llamac
