//===- Tables.h - Filters, tests, methods and functions ------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_TABLES_H
#define LLAMAC_TEXT_TEMPLATES_TABLES_H

#include "text/templates/Value.h"

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llamac::chat {

/// The filter or test of that name, or null. Its receiver is the input.
const Function *findFilter(absl::string_view name);
const Function *findTest(absl::string_view name);

/// The method `name` of values of the kind of `receiver`, or null. Methods that
/// would change a list or dictionary have no call: the sandbox forbids them.
const Function *findMethod(const Value &receiver, absl::string_view name);

/// The functions that every template may call: range, dict, namespace, ...
absl::Span<const Function> globalFunctions();

/// The filters of text, and those of sequences; findFilter() looks in both.
absl::Span<const Function> textFilters();
absl::Span<const Function> sequenceFilters();

/// The function of that name in a table.
const Function *findIn(absl::Span<const Function> table,
                       absl::string_view name);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_TABLES_H
