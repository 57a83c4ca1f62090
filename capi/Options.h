//===- Options.h - Options of C, by name ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CAPI_OPTIONS_H
#define LLAMAC_CAPI_OPTIONS_H

#include "engine/scheduler/AsyncEngine.h"
#include "engine/step/Model.h"
#include "llamac/llamac.h"
#include "runtime/base/Status.h"
#include "text/request/RequestOptions.h"

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace llamac {

struct ChatEngineOptions : AsyncEngineOptions {
  std::string chatTemplate; ///< In place of the model's; empty: that.
};

/// The values of all kinds of options.
using OptionValue =
    std::variant<int64_t, double, std::string, std::vector<std::string>,
                 std::vector<int32_t>, TokenWeights>;

/// An option: what C sees of it, and how it changes what it is for.
struct OptionRow {
  llamac_option option;
  /// Usage error for a value of another kind, or out of the field's range.
  std::function<absl::Status(const OptionValue &value)> check;
  std::function<absl::Status(const OptionValue &value, void *target)> apply;
};

/// The scope of the options of a Target.
template <typename Target> constexpr llamac_scope scopeOf();
template <> constexpr llamac_scope scopeOf<ModelOptions>() {
  return LLAMAC_FOR_MODEL;
}
template <> constexpr llamac_scope scopeOf<ChatEngineOptions>() {
  return LLAMAC_FOR_ENGINE;
}
template <> constexpr llamac_scope scopeOf<Request>() {
  return LLAMAC_FOR_REQUEST;
}

/// The options of `scope`; none for a number that is no scope.
absl::Span<const OptionRow> optionRows(llamac_scope scope);

/// Options that were set; used by any thread.
class OptionsObject {
public:
  explicit OptionsObject(llamac_scope scope) : scope(scope) {}

  /// Usage error for an unknown name or an invalid value.
  absl::Status set(const char *name, OptionValue value);

  /// Adds `text` to the list that option `name` is.
  absl::Status add(const char *name, const char *text);

  /// Changes `target` in every option that was set. Usage error for options of
  /// another scope.
  template <typename Target> absl::Status apply(Target &target) const {
    return applyTo(scopeOf<Target>(), &target);
  }

  /// The names of the options that were set.
  std::vector<absl::string_view> names() const;

private:
  absl::StatusOr<const OptionRow *> find(const char *name) const;
  absl::Status setRow(const OptionRow &row, OptionValue value);
  absl::Status applyTo(llamac_scope wanted, void *target) const;

  const llamac_scope scope;
  mutable std::mutex mutex;
  absl::flat_hash_map<const OptionRow *, OptionValue> values;
};

} // namespace llamac

#endif // LLAMAC_CAPI_OPTIONS_H
