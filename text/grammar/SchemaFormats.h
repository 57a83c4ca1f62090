//===- SchemaFormats.h - Formats of JSON schemas ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_SCHEMAFORMATS_H
#define LLAMAC_TEXT_GRAMMAR_SCHEMAFORMATS_H

#include "absl/strings/string_view.h"

#include <string>

namespace llamac {

/// A regex that matches, as a whole, strings that are certainly of the format
/// `name` of draft 2020-12; null where there is no such format. None of them
/// needs an escape in JSON.
const char *formatPattern(absl::string_view name);

/// formatPattern() for the format `name`, which there is, with its anchors.
std::string wholeFormat(absl::string_view name);

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_SCHEMAFORMATS_H
