//===- ServedToy.h - The toy model, served ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_SERVE_SERVEDTOY_H
#define LLAMAC_TESTS_SERVE_SERVEDTOY_H

#include "runtime/base/Status.h"
#include "serve/api/ServedModel.h"
#include "tests/engine/toy/ToyModel.h"

#include <gtest/gtest.h>

namespace llamac::serve {

/// One model, "toy", which has no chat template.
class ServedToyTest : public testing::Test {
protected:
  void SetUp() override {
    auto model = Model::load(file.path(), {.threads = 1});
    ASSERT_TRUE(model.ok()) << model.status();
    auto served = ServedModel::create("toy", *std::move(model),
                                      usageError("no chat template"), {});
    ASSERT_TRUE(served.ok()) << served.status();
    models.push_back(*std::move(served));
  }

  toy::ToyPlanFile file;
  ServedModels models;
};

} // namespace llamac::serve

#endif // LLAMAC_TESTS_SERVE_SERVEDTOY_H
