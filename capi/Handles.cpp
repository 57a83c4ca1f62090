//===- Handles.cpp - What the handles of C stand for ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/Handles.h"

#include "absl/strings/str_cat.h"

#include <pthread.h>
#include <utility>

namespace llamac {

// Handles are open until the process ends, and engines run until then: the
// table is never destroyed. A child must not find it locked by a thread that it
// does not have.
HandleTable &HandleTable::get() {
  static HandleTable &table = *new HandleTable;
  return table;
}

HandleTable::HandleTable() {
  pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                 [] { get().mutex.unlock(); });
}

uint64_t HandleTable::newNumber() {
  const std::lock_guard lock(mutex);
  return last += 16; // Keeps handles as aligned as pointers.
}

void HandleTable::insert(uint64_t number, absl::string_view type,
                         std::shared_ptr<void> object) {
  const std::lock_guard lock(mutex);
  entries.emplace(number, Entry{type, std::move(object)});
}

absl::StatusOr<std::shared_ptr<void>>
HandleTable::find(uint64_t number, absl::string_view type, Use use) {
  if (number == 0 && use == Use::Close)
    return nullptr;
  const std::lock_guard lock(mutex);
  const auto found = entries.find(number);
  if (number == 0 || found == entries.end())
    return usageError(absl::StrCat(
        type, ": expected an open handle, got ",
        number == 0 ? "NULL"
                    : "one that was closed, or that no function returned"));
  if (found->second.type != type)
    return usageError(absl::StrCat(type,
                                   ": expected a handle of that type, "
                                   "got one of type ",
                                   found->second.type));
  if (use == Use::Here)
    LLAMAC_RETURN_IF_ERROR(found->second.generation.check(type));
  if (use != Use::Close)
    return found->second.object;
  const Entry entry = std::move(found->second);
  entries.erase(found);
  if (entry.generation.isHere())
    return entry.object;
  // Another thread of the parent may have been changing it.
  static_cast<void>(new std::shared_ptr<void>(entry.object));
  return nullptr;
}

} // namespace llamac
