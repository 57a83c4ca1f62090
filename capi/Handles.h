//===- Handles.h - What the handles of C stand for --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handle is a number in the form of a pointer, and one table says what it
// stands for. Numbers are never used again, so a closed handle is found out
// whatever its memory is used for by then, at the price of a look-up a call.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CAPI_HANDLES_H
#define LLAMAC_CAPI_HANDLES_H

#include "llamac/llamac.h"
#include "runtime/base/Forks.h"
#include "runtime/base/Status.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>

namespace llamac {

class ModelObject;
class OptionsObject;
struct EngineObject;
class AnswerObject;
class QueueObject;
class SequenceObject;
class LogitsObject;

/// The type of object that a type of handle stands for, and its name in errors.
template <typename Handle> struct HandleTraits;
#define LLAMAC_HANDLE(HANDLE, OBJECT)                                          \
  template <> struct HandleTraits<llamac_##HANDLE> {                           \
    using Object = OBJECT;                                                     \
    static constexpr absl::string_view name = #HANDLE;                         \
  };
LLAMAC_HANDLE(model, ModelObject)
LLAMAC_HANDLE(options, OptionsObject)
LLAMAC_HANDLE(engine, EngineObject)
LLAMAC_HANDLE(answer, AnswerObject)
LLAMAC_HANDLE(queue, QueueObject)
LLAMAC_HANDLE(sequence, SequenceObject)
LLAMAC_HANDLE(logits, LogitsObject)
#undef LLAMAC_HANDLE

template <typename Handle>
using ObjectOf = typename HandleTraits<std::remove_const_t<Handle>>::Object;

/// All open handles of the process; used by any thread, and in forked children.
class HandleTable {
public:
  static HandleTable &get();

  /// A number for a handle to come.
  uint64_t newNumber();
  void insert(uint64_t number, absl::string_view type,
              std::shared_ptr<void> object);

  /// Purpose of a look-up.
  enum class Use {
    InAnyProcess,
    Here, ///< In the process that opened the handle, not in a child.
    Close,
  };

  /// The object of handle `number`, which has this type. Usage error when there
  /// is none, and device error in a child that must not use it. Close gives
  /// null for `number` 0 and in a child, where the object stays as it is.
  absl::StatusOr<std::shared_ptr<void>> find(uint64_t number,
                                             absl::string_view type, Use use);

private:
  struct Entry {
    absl::string_view type;
    std::shared_ptr<void> object;
    ForkGeneration generation = {};
  };

  HandleTable();

  std::mutex mutex;
  uint64_t last = 0;
  absl::flat_hash_map<uint64_t, Entry> entries;
};

template <typename Handle> uint64_t numberOf(Handle *handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

/// The handle `number`.
template <typename Handle> Handle *handleOf(uint64_t number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<Handle *>(static_cast<uintptr_t>(number));
}

/// Opens a handle for `object`.
template <typename Handle>
Handle *openHandle(std::shared_ptr<ObjectOf<Handle>> object) {
  HandleTable &table = HandleTable::get();
  const uint64_t number = table.newNumber();
  table.insert(number, HandleTraits<Handle>::name, std::move(object));
  return handleOf<Handle>(number);
}

/// The object that `handle` stands for, kept while the caller has it. Usage
/// error for a handle that is NULL, closed or of another type.
template <typename Handle>
absl::StatusOr<std::shared_ptr<ObjectOf<Handle>>>
objectOf(Handle *handle,
         HandleTable::Use use = HandleTable::Use::InAnyProcess) {
  LLAMAC_ASSIGN_OR_RETURN(
      std::shared_ptr<void> object,
      HandleTable::get().find(numberOf(handle),
                              HandleTraits<std::remove_const_t<Handle>>::name,
                              use));
  return std::static_pointer_cast<ObjectOf<Handle>>(std::move(object));
}

/// The object that `handle` stands for, as above; device error in a child that
/// was forked since.
template <typename Handle> auto objectHere(Handle *handle) {
  return objectOf(handle, HandleTable::Use::Here);
}

/// The object that `handle` stands for, as above; null where it is NULL.
template <typename Handle>
absl::StatusOr<std::shared_ptr<ObjectOf<Handle>>>
optionalObjectOf(Handle *handle) {
  if (!handle)
    return nullptr;
  return objectOf(handle);
}

/// Closes `handle`, and gives what it stood for; null for NULL and in a child
/// that was forked since.
template <typename Handle> auto closeHandle(Handle *handle) {
  return objectOf(handle, HandleTable::Use::Close);
}

} // namespace llamac

#endif // LLAMAC_CAPI_HANDLES_H
