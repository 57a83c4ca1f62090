// A target whose cache rounds heads in blocks keeps the append a launch of whole
// heads: products stay in front of it, and norms of more than a head.
// RUN: llamac-opt %s --fuse-norm --fuse-qkv --split-input-file | FileCheck %s

!kv = !llama.kv<heads = 2, size = 16>

module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 512, kv_type = "fp8", gpu = "sm_90a">} {
  // CHECK-LABEL: func.func @plain
  // CHECK-NEXT: %[[Q:.*]], %[[K:.*]], %[[V:.*]] = kernel.qkv_products %arg0, %arg1, %arg1, %arg1 :
  // CHECK-NEXT: kernel.rope_append %[[Q]], %[[K]], %[[V]], %arg2 into %arg3 at
  func.func @plain(%x: tensor<?x64xf32>, %w: tensor<32x64xbf16>, %t: tensor<?x8x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x32xf32>, !kv) {
    %q = kernel.matmul %x, %w epilogue {
    ^bb0(%acc: f32):
      kernel.yield %acc
    } : (tensor<?x64xf32>, tensor<32x64xbf16>) -> tensor<?x32xf32>
    %k = kernel.matmul %x, %w epilogue {
    ^bb0(%acc: f32):
      kernel.yield %acc
    } : (tensor<?x64xf32>, tensor<32x64xbf16>) -> tensor<?x32xf32>
    %v = kernel.matmul %x, %w epilogue {
    ^bb0(%acc: f32):
      kernel.yield %acc
    } : (tensor<?x64xf32>, tensor<32x64xbf16>) -> tensor<?x32xf32>
    %turned, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
      : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !kv)
    return %turned, %new : tensor<?x32xf32>, !kv
  }

  // CHECK-LABEL: func.func @norms_of_a_head
  // CHECK-NEXT: kernel.rope_append %arg0, %arg0, %arg0, %{{.*}} norms(%arg1, %arg1)
  func.func @norms_of_a_head(%q: tensor<?x32xf32>, %n: tensor<16xf32>, %t: tensor<?x8x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x32xf32>, !kv) {
    %0 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<16xf32>) -> tensor<?x32xf32>
    %1 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<16xf32>) -> tensor<?x32xf32>
    %turned, %new = kernel.rope_append %0, %1, %q, %t into %kv at %p, %s
      : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !kv)
    return %turned, %new : tensor<?x32xf32>, !kv
  }

  // CHECK-LABEL: func.func @norms_of_rows
  // CHECK-COUNT-2: kernel.rms_norm
  // CHECK: kernel.rope_append
  // CHECK-NOT: norms
  // CHECK: return
  func.func @norms_of_rows(%q: tensor<?x32xf32>, %n: tensor<32xf32>, %t: tensor<?x8x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x32xf32>, !kv) {
    %0 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
    %1 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
    %turned, %new = kernel.rope_append %0, %1, %q, %t into %kv at %p, %s
      : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !kv)
    return %turned, %new : tensor<?x32xf32>, !kv
  }
}
