//===- EmittedModel.cpp - The source of a published shape -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/codegen/cuda/EmittedModel.h"

#include "codegen/cuda/CudaBackend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

namespace llamac {

EmittedModel::EmittedModel(const std::string &shape, const std::string &gpu,
                           const std::string &weights, const char *withoutPass,
                           const char *residentStep, const char *cache) {
  const std::filesystem::path model =
      std::filesystem::path(LLAMAC_SHAPES) / shape;
  auto opened = openConfig(
      (model / (std::filesystem::exists(model / "params.json") ? "params.json"
                                                               : "config.json"))
          .string());
  EXPECT_TRUE(opened.ok()) << opened.status();
  checkpoint = std::make_unique<Checkpoint>(*std::move(opened));
  CompileOptions options;
  options.target = "cuda";
  options.gpu = gpu;
  options.weightFormat = weights;
  options.residentStep = residentStep;
  options.kvFormat = cache;
  if (withoutPass)
    options.skipPasses = {withoutPass};
  auto created = Compilation::create(*checkpoint, options);
  EXPECT_TRUE(created.ok()) << created.status();
  compilation = *std::move(created);
  EXPECT_TRUE(compilation->runTo(Phase::Emit).ok());
  EXPECT_TRUE(compilation->writeSourceFiles(folder.name()).ok());
}

std::vector<std::string> EmittedModel::kernels() const {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder.name()))
    if (entry.path().extension() == ".cu")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string EmittedModel::source(const std::string &kernel) const {
  std::ostringstream text;
  text << std::ifstream(folder.file(kernel + ".cu")).rdbuf();
  return text.str();
}

int numberIn(const std::string &source, const std::string &pattern) {
  std::smatch match;
  return std::regex_search(source, match, std::regex(pattern))
             ? std::atoi(match[1].str().c_str())
             : 0;
}

CudaSource cudaSource(const std::string &kernel, const std::string &text) {
  CudaSource source{kernel + ".cu", text, {}};
  for (const KernelHeader &header : CudaBackend({}).headers())
    source.headers.push_back({header.name.str(), header.text.str()});
  return source;
}

} // namespace llamac
