//===- Source.cpp - Kernels.cu for a model --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "absl/strings/str_cat.h"

#include <fstream>
#include <sstream>

namespace llamac::cuda {

std::string readFile(const std::string &name) {
  std::ifstream file(LLAMAC_KERNEL_CASES "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string modelLiteral(const ModelCase &model) {
  return absl::StrCat(
      "WeightFormat(", static_cast<int>(model.format), "),KvFormat(",
      static_cast<int>(model.kvFormat), "),", model.width, ",", model.heads,
      ",", model.kvHeads, ",", model.headSize, ",", model.hidden, ",",
      model.vocabulary, ",", model.maxRows, ",", model.context, ",",
      model.tileRows, ",", model.splits, ",", model.minSplitTokens);
}

} // namespace llamac::cuda
