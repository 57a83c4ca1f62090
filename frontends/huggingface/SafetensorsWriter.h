//===- SafetensorsWriter.h - Writer of .safetensors files ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_HUGGINGFACE_SAFETENSORSWRITER_H
#define LLAMAC_FRONTENDS_HUGGINGFACE_SAFETENSORSWRITER_H

#include "frontends/TensorStream.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llamac {

/// Writes `tensors` in their order to `path`, which is replaced at the end.
absl::Status writeSafetensors(absl::string_view path,
                              absl::Span<const TensorStream> tensors);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_HUGGINGFACE_SAFETENSORSWRITER_H
