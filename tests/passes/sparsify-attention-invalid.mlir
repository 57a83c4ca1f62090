// Fewer scores than a split has can be kept, on a target that drops any.
// RUN: not llamac-opt %s --attach-target --sparsify-attention 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not llamac-opt %s --attach-target --sparsify-attention=top-k=-1 2>&1 | FileCheck %s --check-prefix=FEWER
// RUN: not llamac-opt %s --attach-target --sparsify-attention=top-k=256 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not llamac-opt %s --attach-target="name=cuda" --sparsify-attention=top-k=64 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: not llamac-opt %s --attach-target --sparsify-attention=top-k=64 2>&1 | FileCheck %s --check-prefix=ROWS

// NONE: error: sparsify-attention: expected a top-k of 1 to 255 for target cpu, got 0
// FEWER: error: sparsify-attention: expected a top-k of 1 to 255 for target cpu, got -1
// ALL: error: sparsify-attention: expected a top-k of 1 to 255 for target cpu, got 256
// GPU: error: sparsify-attention: target cuda drops no scores
// ROWS: error: has no row bounds: run specialise-rows first
func.func @step() {
  return
}
