//===- ReferenceLogits.cpp - Logits of a model given by flags -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference without a checkpoint: hyperparameters come from flags, weights
// from a folder of raw fp32 files with their canonical names. The logits of all
// rows go to stdout as raw fp32.
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/ReferenceModel.h"
#include "frontends/GraphBuilder.h"
#include "runtime/base/Status.h"
#include "tests/ir/ModelFlags.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace cl = llvm::cl;

namespace llamac {

/// Reads rows of `width` values from the raw file named like the weight.
static absl::Status readRows(const std::string &folder, int64_t width,
                             absl::string_view name, int64_t firstRow,
                             int64_t numRows, float *out) {
  const std::string path = absl::StrCat(folder, "/", name);
  std::ifstream file(path, std::ios::binary);
  const auto rowBytes = static_cast<std::streamoff>(width * sizeof(float));
  file.seekg(firstRow * rowBytes);
  file.read(reinterpret_cast<char *>(out), numRows * rowBytes);
  if (!file)
    return badFileError(absl::StrCat(path, ": too short"));
  return absl::OkStatus();
}

static absl::Status run(const ModelConfig &config, const std::string &weights,
                        const std::vector<int32_t> &tokens, size_t chunk) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = buildStepGraph(
      context, config, [](absl::string_view) { return DataType::F32; });
  LLAMAC_ASSIGN_OR_RETURN(
      auto model,
      reference::ReferenceModel::create(
          *module, [&](const reference::Weight &weight, int64_t firstRow,
                       int64_t numRows, float *out) {
            return readRows(weights, weight.cols, weight.name, firstRow,
                            numRows, out);
          }));
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const size_t rows = std::min(chunk, tokens.size() - begin);
    std::vector<int32_t> positions(rows), wanted(rows);
    std::iota(positions.begin(), positions.end(), begin);
    std::iota(wanted.begin(), wanted.end(), 0);
    LLAMAC_ASSIGN_OR_RETURN(
        std::vector<float> logits,
        model->step(absl::MakeConstSpan(tokens).subspan(begin, rows), positions,
                    std::vector<int32_t>(rows, 0), wanted));
    llvm::outs().write(reinterpret_cast<const char *>(logits.data()),
                       logits.size() * sizeof(float));
  }
  return absl::OkStatus();
}

} // namespace llamac

int main(int argc, char **argv) {
  llamac::ModelFlags model;
  cl::opt<std::string> weights("weights", cl::Required);
  cl::opt<unsigned> chunk("chunk", cl::init(512));
  cl::list<int32_t> tokens("tokens", cl::CommaSeparated, cl::OneOrMore);
  cl::ParseCommandLineOptions(argc, argv);
  absl::Status status =
      llamac::run(model.config(), weights,
                  std::vector<int32_t>(tokens.begin(), tokens.end()), chunk);
  if (!status.ok())
    llvm::errs() << std::string(status.message()) << "\n";
  return static_cast<int>(llamac::exitCode(status));
}
