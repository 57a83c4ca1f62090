//===- ChatSettings.h - Options that a chat can change ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// They are those of requestOptions() that concern one answer with text.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_CHATSETTINGS_H
#define LLAMAC_TOOLS_CHATSETTINGS_H

#include "text/request/RequestOptions.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>

namespace llamac {

/// Whether an option makes sense where there is one answer, shown as text.
bool isOfChats(const NamedOption<Request> &option);

class ChatSettings {
public:
  /// `defaults` are the options that the user begins with, and comes back to.
  explicit ChatSettings(Request defaults)
      : defaults(defaults), current(std::move(defaults)) {}

  /// The options of the next request; without a prompt.
  const Request &request() const { return current; }

  /// Sets the option that is called `name`, or whose name alone begins so, to
  /// `value`: JSON, text where the option takes one, or "default". `check` sees
  /// the request before it counts, and may add to it. Usage error for an
  /// unknown name and a wrong value; those of `check`.
  absl::Status set(absl::string_view name, absl::string_view value,
                   absl::FunctionRef<absl::Status(Request &)> check);

  /// "name value" of an option; errors as set().
  absl::StatusOr<std::string> show(absl::string_view name) const;

  /// A line for each option: its name, value and meaning.
  std::string list() const;

private:
  Request defaults;
  Request current;
};

} // namespace llamac

#endif // LLAMAC_TOOLS_CHATSETTINGS_H
