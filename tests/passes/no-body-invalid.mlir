// A step that is only declared is refused by each pass that looks at its ops.
// RUN: not llamac-opt %s --shard=ranks=2 2>&1 | FileCheck %s
// RUN: not llamac-opt %s --prune-rows 2>&1 | FileCheck %s
// RUN: not llamac-opt %s --lower-to-kernels 2>&1 | FileCheck %s
// RUN: not llamac-opt %s --fuse-embed 2>&1 | FileCheck %s
// RUN: not llamac-opt %s --append-sampling 2>&1 | FileCheck %s
// RUN: not llamac-opt %s --attach-target --specialise-rows 2>&1 | FileCheck %s
// RUN: not llamac-opt %s --attach-target --choose-kernels 2>&1 | FileCheck %s
// RUN: not llamac-opt %s --attach-target --lower-to-plan 2>&1 | FileCheck %s
// CHECK: error: expected a body of one block, got 0 blocks

// Passes that look for patterns find none.
// RUN: llamac-opt %s --canonicalize --cse --assign-weight-formats --fuse-attention --fuse-epilogue --fuse-norm --fuse-qkv | FileCheck %s --check-prefix=NOTHING
// NOTHING: func.func private @step
func.func private @step(tensor<?xi32>) -> (tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64}
