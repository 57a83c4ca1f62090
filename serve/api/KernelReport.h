//===- KernelReport.h - Where a step's time goes ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_KERNELREPORT_H
#define LLAMAC_SERVE_API_KERNELREPORT_H

#include "serve/api/ServedModel.h"

#include "absl/status/statusor.h"

#include <nlohmann/json.hpp>

namespace llamac::serve {

/// The kernels of the last step of `model` that was timed, or, before there was
/// one, of a step of one token without times. A launch's limit is the time that
/// its bytes or its operations take as fast as the device was measured to be;
/// it is measured when first asked for while nothing runs, which takes about a
/// second, and null before. Errors: those of the device.
absl::StatusOr<nlohmann::ordered_json> kernelReport(const ServedModel &model);

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_KERNELREPORT_H
