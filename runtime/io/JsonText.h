//===- JsonText.h - JSON as text --------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_JSONTEXT_H
#define LLAMAC_RUNTIME_IO_JSONTEXT_H

#include <nlohmann/json.hpp>

#include <string>

namespace llamac {

/// `value`, of nlohmann's json or ordered_json, in one line, or in several with
/// steps of `indent` spaces. Bytes that are not UTF-8 become U+FFFD; they would
/// be an exception otherwise.
template <typename Json>
std::string jsonText(const Json &value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_JSONTEXT_H
