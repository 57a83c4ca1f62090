// Attention of one row keeps its largest scores, and its kind of exponentials;
// that of several rows stays as it is.
// RUN: llamac-opt %s --attach-target --sparsify-attention=top-k=64 | FileCheck %s
// RUN: llamac-opt %s --attach-target --sparsify-attention=top-k=64 --choose-kernels | FileCheck %s --check-prefix=SPLIT

!kv = !llama.kv<heads = 2, size = 16>

// CHECK-LABEL: func.func @decode
// CHECK: {approximation = #llama.approximation<top_k = 64>, scale = 2.500000e-01 : f64}
// CHECK: {approximation = #llama.approximation<exp = poly3, top_k = 64>, scale = 2.500000e-01 : f64}
// The merge of the splits has nothing to do with it.
// SPLIT-LABEL: func.func @decode
// SPLIT: kernel.attention %{{.*}} {approximation = #llama.approximation<top_k = 64>, config = #kernel.attention_config<family = split_kv
// SPLIT-NOT: approximation
// SPLIT: kernel.attention_merge
func.func @decode(%q: tensor<?x64xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.25 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  %1 = kernel.attention %q over %kv at %p, %s {approximation = #llama.approximation<exp = poly3>, scale = 0.25 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
}

// CHECK-LABEL: func.func @prefill
// CHECK: kernel.attention %{{.*}} {scale = 2.500000e-01 : f64}
func.func @prefill(%q: tensor<?x64xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> tensor<?x64xf32> attributes {llamac.max_logits_rows = 8 : i64, llamac.max_rows = 512 : i64} {
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.25 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
