//===- ModelFlags.h - A model given by flags --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_IR_MODELFLAGS_H
#define LLAMAC_TESTS_IR_MODELFLAGS_H

#include "runtime/base/ModelConfig.h"

#include "llvm/Support/CommandLine.h"

#include <cstdint>

namespace llamac {

/// The hyperparameters of a model as command-line flags; the defaults are a
/// tiny model.
struct ModelFlags {
  llvm::cl::opt<int64_t> dim{"dim", llvm::cl::init(64)};
  llvm::cl::opt<int64_t> layers{"layers", llvm::cl::init(1)};
  llvm::cl::opt<int64_t> heads{"heads", llvm::cl::init(4)};
  llvm::cl::opt<int64_t> kvHeads{"kv-heads", llvm::cl::init(2)};
  llvm::cl::opt<int64_t> headSize{"head-size", llvm::cl::init(16)};
  llvm::cl::opt<int64_t> ffn{"ffn", llvm::cl::init(96)};
  llvm::cl::opt<int64_t> vocab{"vocab", llvm::cl::init(101)};
  llvm::cl::opt<double> eps{"eps", llvm::cl::init(1e-5)};
  llvm::cl::opt<double> theta{"theta", llvm::cl::init(10000.0)};
  llvm::cl::opt<double> ropeScale{
      "rope-scale", llvm::cl::init(0.0),
      llvm::cl::desc("Llama 3.1's factor; 0: unscaled")};
  llvm::cl::opt<bool> tied{"tied"};

  ModelConfig config() const {
    ModelConfig config;
    config.dim = dim;
    config.numLayers = layers;
    config.numHeads = heads;
    config.numKvHeads = kvHeads;
    config.headSize = headSize;
    config.ffnDim = ffn;
    config.vocabSize = vocab;
    config.maxContext = 2048;
    config.normEps = eps;
    config.ropeTheta = theta;
    config.tiedEmbeddings = tied;
    if (ropeScale > 0)
      config.ropeScaling = RopeScaling{.factor = ropeScale};
    return config;
  }
};

} // namespace llamac

#endif // LLAMAC_TESTS_IR_MODELFLAGS_H
