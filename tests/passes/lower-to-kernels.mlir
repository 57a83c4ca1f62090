// Each op of the graph becomes the launch that does its work.
// RUN: llamac-opt %s --split-input-file --lower-to-kernels | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[TOKENS:.*]]: tensor<?xi32>, %[[WANTED:.*]]: tensor<?xi32>)
func.func @rows(%tokens: tensor<?xi32>, %wanted: tensor<?xi32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: %[[E:.*]] = llama.weight "tok_embeddings"
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  // CHECK-NEXT: %[[X:.*]] = kernel.embed %[[TOKENS]], %[[E]]
  %0 = llama.embedding %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  // CHECK-NEXT: %[[N:.*]] = llama.weight "norm"
  %n = llama.weight "norm" : tensor<8xf32>
  // CHECK-NEXT: %[[Y:.*]] = kernel.rms_norm %[[X]], %[[N]] {eps = 1.000000e-05 : f64}
  %1 = llama.rms_norm %0, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: %[[W:.*]] = llama.weight "w"
  %w = llama.weight "w" : tensor<8x8xbf16>
  // CHECK-NEXT: %[[P:.*]] = kernel.matmul %[[Y]], %[[W]] epilogue {
  // CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32):
  // CHECK-NEXT: kernel.yield %[[ACC]]
  // CHECK-NEXT: }
  %2 = llama.linear %1, %w : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // CHECK-NEXT: %[[S:.*]] = kernel.pointwise %[[P]] body {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32):
  // CHECK-NEXT: %[[R:.*]] = kernel.silu %[[A]]
  // CHECK-NEXT: kernel.yield %[[R]]
  %3 = llama.silu %2 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: %[[M:.*]] = kernel.pointwise %[[S]], %[[P]] body {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK-NEXT: %[[R:.*]] = arith.mulf %[[A]], %[[B]] : f32
  %4 = llama.mul %3, %2 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // A value that is read twice is one operand.
  // CHECK: %[[D:.*]] = kernel.pointwise %[[M]] body {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32):
  // CHECK-NEXT: %[[R:.*]] = arith.addf %[[A]], %[[A]] : f32
  %5 = llama.add %4, %4 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // A factor is a constant of the region, a bias a vector.
  // CHECK: %[[F:.*]] = kernel.pointwise %[[D]] body {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32):
  // CHECK-NEXT: %[[C:.*]] = arith.constant 2.500000e-01 : f32
  // CHECK-NEXT: arith.mulf %[[A]], %[[C]] : f32
  %f = llama.scale %5 by 0.25 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: %[[B:.*]] = kernel.pointwise %[[F]], %[[N]] body {
  // CHECK: : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %b = llama.bias %f, %n : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK: %[[G:.*]] = kernel.gather_rows %[[B]], %[[WANTED]]
  %6 = llama.gather_rows %b, %wanted : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  // CHECK-NEXT: return %[[G]]
  return %6 : tensor<?x8xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The turns of q and k and the append of the layer are one launch; heads are a
// view of the width.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<?x64xf32>, %[[K:.*]]: tensor<?x32xf32>, %[[V:.*]]: tensor<?x32xf32>, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %[[KV:.*]]: !kv)
// CHECK-NEXT: %[[T:.*]] = kernel.rope_table %[[POS]] {frequencies = dense<1.000000e+00> : tensor<8xf64>}
// CHECK-NEXT: %[[ROTATED:.*]], %[[NEW:.*]] = kernel.rope_append %[[Q]], %[[K]], %[[V]], %[[T]] into %[[KV]] at %[[POS]], %[[SEQ]]
// CHECK-NEXT: %[[O:.*]] = kernel.attention %[[ROTATED]] over %[[NEW]] at %[[POS]], %[[SEQ]] {scale = 2.500000e-01 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
// CHECK-NEXT: return %[[O]], %[[NEW]]
func.func @attention(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>,
                     %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x64xf32>, !kv) {
  %table = llama.rope_table %pos frequencies = dense<1.0> : tensor<8xf64> : (tensor<?xi32>) -> tensor<?x8x2xf32>
  %q3 = llama.split_heads %q heads = 4 : (tensor<?x64xf32>) -> tensor<?x4x16xf32>
  %k3 = llama.split_heads %k heads = 2 : (tensor<?x32xf32>) -> tensor<?x2x16xf32>
  %v3 = llama.split_heads %v heads = 2 : (tensor<?x32xf32>) -> tensor<?x2x16xf32>
  %qt = llama.rope %q3, %table : (tensor<?x4x16xf32>, tensor<?x8x2xf32>) -> tensor<?x4x16xf32>
  %kt = llama.rope %k3, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  %kv1 = llama.cache_append %kv, %kt, %v3, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %0 = llama.attention %qt, %kv1, %pos, %seq scale = 0.25 : (tensor<?x4x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  %1 = llama.merge_heads %0 : (tensor<?x4x16xf32>) -> tensor<?x64xf32>
  return %1, %kv1 : tensor<?x64xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Attention of some of the rows: all are rotated and appended.
// CHECK-LABEL: func.func @attention_of_gathered_rows
// CHECK: %[[ROTATED:.*]], %[[NEW:.*]] = kernel.rope_append
// CHECK-NEXT: %[[G:.*]] = kernel.gather_rows %[[ROTATED]], %{{.*}} : (tensor<?x32xf32>, tensor<?xi32>) -> tensor<?x32xf32>
// CHECK-NEXT: %[[POS:.*]] = kernel.gather_rows %{{.*}} : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
// CHECK-NEXT: %[[SEQ:.*]] = kernel.gather_rows %{{.*}} : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
// CHECK-NEXT: kernel.attention %[[G]] over %[[NEW]] at %[[POS]], %[[SEQ]]
func.func @attention_of_gathered_rows(%q2: tensor<?x32xf32>, %k2: tensor<?x32xf32>, %table: tensor<?x8x2xf32>,
                                      %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %rows: tensor<?xi32>) -> (tensor<?x32xf32>, !kv) {
  %q3 = llama.split_heads %q2 heads = 2 : (tensor<?x32xf32>) -> tensor<?x2x16xf32>
  %k3 = llama.split_heads %k2 heads = 2 : (tensor<?x32xf32>) -> tensor<?x2x16xf32>
  %qt = llama.rope %q3, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  %kt = llama.rope %k3, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  %kv1 = llama.cache_append %kv, %kt, %k3, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %qg = llama.gather_rows %qt, %rows : (tensor<?x2x16xf32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  %pg = llama.gather_rows %pos, %rows : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %sg = llama.gather_rows %seq, %rows : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %0 = llama.attention %qg, %kv1, %pg, %sg scale = 0.25 : (tensor<?x2x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  %1 = llama.merge_heads %0 : (tensor<?x2x16xf32>) -> tensor<?x32xf32>
  return %1, %kv1 : tensor<?x32xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The query, its turn and what makes it may stand behind the append that turns
// it.
// CHECK-LABEL: func.func @query_turned_late
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<32x8xbf16>,
// CHECK-NEXT: %[[Q:.*]] = kernel.matmul %[[X]], %[[W]]
// CHECK: kernel.rope_append %[[Q]],
// CHECK-NEXT: kernel.attention
// CHECK-NEXT: return
func.func @query_turned_late(%x: tensor<?x8xf32>, %wq: tensor<32x8xbf16>, %k2: tensor<?x32xf32>, %table: tensor<?x8x2xf32>,
                             %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> !kv {
  %k3 = llama.split_heads %k2 heads = 2 : (tensor<?x32xf32>) -> tensor<?x2x16xf32>
  %kt = llama.rope %k3, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  %kv1 = llama.cache_append %kv, %kt, %k3, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %q2 = llama.linear %x, %wq : (tensor<?x8xf32>, tensor<32x8xbf16>) -> tensor<?x32xf32>
  %q3 = llama.split_heads %q2 heads = 2 : (tensor<?x32xf32>) -> tensor<?x2x16xf32>
  %qt = llama.rope %q3, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  %0 = llama.attention %qt, %kv1, %pos, %seq scale = 0.25 : (tensor<?x2x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  return %kv1 : !kv
}
