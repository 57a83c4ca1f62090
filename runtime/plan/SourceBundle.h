//===- SourceBundle.h - Source files as one text ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The source section of a plan holds every file that its kernels are made of.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_SOURCEBUNDLE_H
#define LLAMAC_RUNTIME_PLAN_SOURCEBUNDLE_H

#include "runtime/plan/plan_generated.h"

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <string>
#include <vector>

namespace llamac {

struct SourceFile {
  std::string name;
  std::string text;
};

/// `files` as one text: the text of a single file as it is, else each under a
/// line with its name.
std::string joinSources(absl::Span<const SourceFile> files);

/// The files that joinSources() made `text` of; none for a single one.
std::vector<SourceFile> unbundleSources(absl::string_view text);

/// The CUDA source of a kernel made to let the next launch begin as `overlap`
/// says (codegen/cuda/kernels/chain.cuh).
std::string withOverlap(const std::string &source, schema::Overlap overlap);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_SOURCEBUNDLE_H
