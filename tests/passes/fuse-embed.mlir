// The angles of the step's positions become a second result of the embedding.
// RUN: llamac-opt %s --fuse-embed | FileCheck %s
// RUN: llamac-opt %s --fuse-embed --fuse-embed | FileCheck %s

// The first two arguments have the same rows; readers of both read the one op.
// CHECK-LABEL: func.func @both
// CHECK-SAME: (%[[TOKENS:.*]]: tensor<?xi32>, %[[POS:.*]]: tensor<?xi32>)
// CHECK: %[[W:.*]] = llama.weight
// CHECK-NEXT: %[[X:.*]], %[[T:.*]] = kernel.embed %[[TOKENS]], %[[W]] cos_sin(%[[POS]]) {frequencies = dense<[1.000000e+00, 1.000000e-01]> : tensor<2xf64>}
// CHECK-NEXT: return %[[X]], %[[T]]
func.func @both(%tokens: tensor<?xi32>, %pos: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>) {
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  %w = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  return %x, %t : tensor<?x8xf32>, tensor<?x2x2xf32>
}

// The table stands behind the embedding, and a reader of its rows between them.
// CHECK-LABEL: func.func @table_last
// CHECK: kernel.embed {{.*}} cos_sin(
// CHECK-NEXT: kernel.rms_norm
// CHECK-NOT: kernel.rope_table
func.func @table_last(%tokens: tensor<?xi32>, %pos: tensor<?xi32>, %w: tensor<9x8xbf16>, %n: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>) {
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %y = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  return %y, %t : tensor<?x8xf32>, tensor<?x2x2xf32>
}

// Positions of other rows stay by themselves.
// CHECK-LABEL: func.func @gathered
// CHECK: kernel.embed %{{.*}}, %{{.*}} : (
// CHECK: kernel.rope_table
func.func @gathered(%tokens: tensor<?xi32>, %pos: tensor<?xi32>, %w: tensor<9x8xbf16>, %wanted: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>) {
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %p = kernel.gather_rows %pos, %wanted : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %t = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  return %x, %t : tensor<?x8xf32>, tensor<?x2x2xf32>
}

// One without the other is left.
// CHECK-LABEL: func.func @alone
// CHECK: kernel.rope_table
func.func @alone(%pos: tensor<?xi32>) -> tensor<?x2x2xf32> {
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  return %t : tensor<?x2x2xf32>
}

// A reader of the table comes ahead of the embedding's weight.
// CHECK-LABEL: func.func @read_early
// CHECK: kernel.rope_table
// CHECK: kernel.embed %{{.*}}, %{{.*}} : (
func.func @read_early(%tokens: tensor<?xi32>, %pos: tensor<?xi32>, %q: tensor<?x4xf32>, %kv: !llama.kv<heads = 1, size = 4>, %s: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  %r, %kv1 = kernel.rope_append %q, %q, %q, %t into %kv at %pos, %s
    : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x2x2xf32>, !llama.kv<heads = 1, size = 4>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4xf32>, !llama.kv<heads = 1, size = 4>)
  %w = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  return %x, %r : tensor<?x8xf32>, tensor<?x4xf32>
}

// The rank comes behind both.
// CHECK-LABEL: func.func @rank_last
// CHECK: kernel.gather_rows
// CHECK-NEXT: kernel.embed {{.*}} cos_sin(
// CHECK-NOT: kernel.rope_table
func.func @rank_last(%tokens: tensor<?xi32>, %pos: tensor<?xi32>, %w: tensor<9x8xbf16>, %ranks: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>) {
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  %r = kernel.gather_rows %ranks, %pos : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %x = kernel.embed %tokens, %w rank(%r) : (tensor<?xi32>, tensor<9x8xbf16>, tensor<?xi32>) -> tensor<?x8xf32>
  return %x, %t : tensor<?x8xf32>, tensor<?x2x2xf32>
}
