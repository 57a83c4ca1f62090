//===- EngineObject.h - An engine as C holds it -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CAPI_ENGINEOBJECT_H
#define LLAMAC_CAPI_ENGINEOBJECT_H

#include "engine/scheduler/AsyncEngine.h"
#include "text/request/ChatFormat.h"

#include "absl/status/statusor.h"

#include <memory>

namespace llamac {

struct EngineObject {
  std::unique_ptr<AsyncEngine> requests;
  /// How conversations are written, or why there are none.
  absl::StatusOr<std::unique_ptr<const ChatFormat>> chat;
};

} // namespace llamac

#endif // LLAMAC_CAPI_ENGINEOBJECT_H
