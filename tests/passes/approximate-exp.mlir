// Attention gets the kind of exponentials that is asked for; softmax as an op
// of its own stays exact.
// RUN: llamac-opt %s --attach-target --approximate-exp=poly=3 | FileCheck %s -DKIND=poly3
// RUN: llamac-opt %s --attach-target --approximate-exp=table=256 | FileCheck %s -DKIND=table256
// RUN: llamac-opt %s --attach-target="name=cuda" --approximate-exp=poly=3 | FileCheck %s -DKIND=poly3

!kv = !llama.kv<heads = 2, size = 16>

// CHECK-LABEL: func.func @step
// CHECK: llama.softmax %{{.*}} : (tensor<4x?x?xf32>)
// CHECK: llama.attention %{{.*}} scale = 2.500000e-01 {approximation = #llama.approximation<exp = [[KIND]]>}
func.func @step(%q: tensor<?x4x16xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>, %scores: tensor<4x?x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?x?xf32>) {
  %0 = llama.softmax %scores : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %1 = llama.attention %q, %kv, %p, %s scale = 0.25 : (tensor<?x4x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  return %1, %0 : tensor<?x4x16xf32>, tensor<4x?x?xf32>
}
