//===- TorchWriter.h - Writer of PyTorch's .pth files --------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_META_TORCHWRITER_H
#define LLAMAC_FRONTENDS_META_TORCHWRITER_H

#include "frontends/TensorStream.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <string>

namespace llamac {

/// A second name in the state dict for the storage of another tensor.
struct TensorAlias {
  std::string name;
  std::string of; ///< The name of a tensor that is written.
};

/// Writes `tensors` and then `aliases` as the ordered state dict of a file that
/// torch.load(weights_only=True) reads, to `path`, which is replaced at the
/// end. Storages are stored entries aligned to 64 bytes, as torch's own.
absl::Status writeTorchFile(absl::string_view path,
                            absl::Span<const TensorStream> tensors,
                            absl::Span<const TensorAlias> aliases);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_META_TORCHWRITER_H
