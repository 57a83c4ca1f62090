// Three products of one input that a rope_append alone reads become one launch.
// RUN: llamac-opt %s --fuse-qkv --split-input-file | FileCheck %s
// RUN: llamac-opt %s --fuse-qkv --fuse-qkv --split-input-file | FileCheck %s
// RUN: llamac-opt %s --fuse-qkv=explain --split-input-file --verify-diagnostics -o %t

!kv = !llama.kv<heads = 2, size = 8>
!table = tensor<?x4x2xf32>
!ids = tensor<?xi32>

// Grouped queries, a norm, and a value weight of its own type.
// CHECK-LABEL: func.func @grouped
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>, %[[N:.*]]: tensor<64xf32>, %[[Q:.*]]: tensor<32x64xbf16>, %[[K:.*]]: tensor<16x64xbf16>, %[[V:.*]]: tensor<16x64xf32>, %[[T:.*]]: tensor<?x4x2xf32>, %[[KV:.*]]: !kv, %[[P:.*]]: tensor<?xi32>, %[[S:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[ROTATED:.*]], %[[NEW:.*]] = kernel.qkv %[[X]], %[[Q]], %[[K]], %[[V]] norm(%[[N]]) rotated by %[[T]] into %[[KV]] at %[[P]], %[[S]] {eps = 1.000000e-05 : f64}
// CHECK-NEXT: return %[[ROTATED]], %[[NEW]]
func.func @grouped(%x: tensor<?x64xf32>, %n: tensor<64xf32>, %wq: tensor<32x64xbf16>, %wk: tensor<16x64xbf16>, %wv: tensor<16x64xf32>, %t: !table, %kv: !kv, %p: !ids, %s: !ids) -> (tensor<?x32xf32>, !kv) {
  %q = kernel.matmul %x, %wq norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<64xf32>) -> tensor<?x32xf32>
  %k = kernel.matmul %x, %wk norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<64xf32>) -> tensor<?x16xf32>
  %v = kernel.matmul %x, %wv norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<16x64xf32>, tensor<64xf32>) -> tensor<?x16xf32>
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, !table, !kv, !ids, !ids) -> (tensor<?x32xf32>, !kv)
  return %turned, %new : tensor<?x32xf32>, !kv
}

// There are as many query heads as key heads and no norm; the order of the
// products is no concern.
// CHECK-LABEL: func.func @plain
// CHECK-NEXT: kernel.qkv %{{.*}}, %arg1, %arg2, %arg3 rotated by
func.func @plain(%x: tensor<?x64xf32>, %wq: tensor<16x64xbf16>, %wk: tensor<16x64xbf16>, %wv: tensor<16x64xbf16>, %t: !table, %kv: !kv, %p: !ids, %s: !ids) -> (tensor<?x16xf32>, !kv) {
  %v = kernel.matmul %x, %wv epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %wk epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %q = kernel.matmul %x, %wq epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, !table, !kv, !ids, !ids) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}

// Each product adds a bias.
// CHECK-LABEL: func.func @biased
// CHECK-SAME: %[[BQ:[a-z0-9]+]]: tensor<16xf32>, %[[BK:[a-z0-9]+]]: tensor<16xf32>, %[[BV:[a-z0-9]+]]: tensor<16xf32>, %{{[^:]*}}: tensor<?x4x2xf32>
// CHECK-NEXT: kernel.qkv %{{.*}} bias(%[[BQ]], %[[BK]], %[[BV]]) rotated by
func.func @biased(%x: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %bq: tensor<16xf32>, %bk: tensor<16xf32>, %bv: tensor<16xf32>, %t: !table, %kv: !kv, %p: !ids, %s: !ids) -> (tensor<?x16xf32>, !kv) {
  %q = kernel.matmul %x, %w extras(%bq) epilogue {
  ^bb0(%acc: f32, %b: f32):
    %0 = arith.addf %acc, %b : f32
    kernel.yield %0
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<16xf32>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w extras(%bk) epilogue {
  ^bb0(%acc: f32, %b: f32):
    %0 = arith.addf %acc, %b : f32
    kernel.yield %0
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<16xf32>) -> tensor<?x16xf32>
  %v = kernel.matmul %x, %w extras(%bv) epilogue {
  ^bb0(%acc: f32, %b: f32):
    %0 = arith.addf %b, %acc : f32
    kernel.yield %0
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<16xf32>) -> tensor<?x16xf32>
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, !table, !kv, !ids, !ids) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

// Only some products have a bias, or what they add is not one vector.
// CHECK-LABEL: func.func @some_biased
// CHECK-COUNT-3: kernel.matmul
// CHECK: kernel.rope_append
func.func @some_biased(%x: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %b: tensor<16xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x16xf32>, !kv) {
  %q = kernel.matmul %x, %w extras(%b) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %0 = arith.addf %acc, %e : f32
    kernel.yield %0
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<16xf32>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %v = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the key has a bias, or the query has one, and not both}}
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

// The value is a product of something else.
// CHECK-LABEL: func.func @other_input
// CHECK-COUNT-3: kernel.matmul
// CHECK: kernel.rope_append
func.func @other_input(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x16xf32>, !kv) {
  %q = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %v = kernel.matmul %y, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the value is a product of another input than the query}}
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

// The caller sees the key before it is rotated.
// CHECK-LABEL: func.func @key_returned
// CHECK: kernel.rope_append
func.func @key_returned(%x: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x16xf32>, !kv, tensor<?x16xf32>) {
  %q = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %v = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the key has another reader}}
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !kv)
  return %turned, %new, %k : tensor<?x16xf32>, !kv, tensor<?x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

// Something is added to the query, as a bias would be.
// CHECK-LABEL: func.func @query_with_epilogue
// CHECK: kernel.rope_append
func.func @query_with_epilogue(%x: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %b: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x16xf32>, !kv) {
  %q = kernel.matmul %x, %w extras(%b) epilogue {
  ^bb0(%acc: f32, %bias: f32):
    %sum = arith.addf %acc, %bias : f32
    kernel.yield %sum
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the query is not a plain product}}
  %turned, %new = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

// Norms of heads stand between the products and RoPE: the append keeps them,
// and the products become one.
// CHECK-LABEL: func.func @norms_of_heads
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<16x64xbf16>, %[[QN:.*]]: tensor<8xf32>, %[[KN:.*]]: tensor<16xf32>, %[[T:.*]]: tensor<?x4x2xf32>
// CHECK-NEXT: %[[Q:.*]], %[[K:.*]], %[[V:.*]] = kernel.qkv_products %[[X]], %[[W]], %[[W]], %[[W]] : (
// CHECK-NEXT: kernel.rope_append %[[Q]], %[[K]], %[[V]], %[[T]] into %{{.*}} norms(%[[QN]], %[[KN]]) {eps = 1.000000e-05 : f64}
func.func @norms_of_heads(%x: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %qn: tensor<8xf32>, %kn: tensor<16xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x16xf32>, !kv) {
  %q = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %v = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s norms(%qn, %kn) {eps = 1.0e-5 : f64}
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>, tensor<8xf32>, tensor<16xf32>) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

// No family has both.
// CHECK-LABEL: func.func @biases_and_norms
// CHECK-COUNT-3: kernel.matmul
// CHECK: kernel.rope_append
func.func @biases_and_norms(%x: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %b: tensor<16xf32>, %n: tensor<8xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x16xf32>, !kv) {
  %q = kernel.matmul %x, %w extras(%b) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %sum = arith.addf %acc, %e : f32
    kernel.yield %sum
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<16xf32>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w extras(%b) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %sum = arith.addf %acc, %e : f32
    kernel.yield %sum
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<16xf32>) -> tensor<?x16xf32>
  %v = kernel.matmul %x, %w extras(%b) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %sum = arith.addf %acc, %e : f32
    kernel.yield %sum
  } : (tensor<?x64xf32>, tensor<16x64xbf16>, tensor<16xf32>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the query has a bias and a norm of heads}}
  %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s norms(%n, %n) {eps = 1.0e-5 : f64}
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

// The leaves of a sum would be lost.
// CHECK-LABEL: func.func @query_by_leaves
// CHECK: kernel.rope_append
func.func @query_by_leaves(%x: tensor<?x64xf32>, %w: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x16xf32>, !kv) {
  %q = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {leaves = 2 : i64} : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  %k = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<16x64xbf16>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the query is not a plain product}}
  %turned, %new = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !kv)
  return %turned, %new : tensor<?x16xf32>, !kv
}
