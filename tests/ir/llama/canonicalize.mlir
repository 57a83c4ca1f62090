// What folds away, and what must not.
// RUN: llamac-opt %s --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @split_of_merge
// CHECK-SAME: (%[[X:.*]]: tensor<?x3x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @split_of_merge(%x: tensor<?x3x8xf32>) -> tensor<?x3x8xf32> {
  %0 = llama.merge_heads %x : (tensor<?x3x8xf32>) -> tensor<?x24xf32>
  %1 = llama.split_heads %0 heads = 3 : (tensor<?x24xf32>) -> tensor<?x3x8xf32>
  return %1 : tensor<?x3x8xf32>
}

// CHECK-LABEL: func.func @split_into_other_heads
// CHECK: llama.merge_heads
// CHECK: llama.split_heads
func.func @split_into_other_heads(%x: tensor<?x3x8xf32>) -> tensor<?x6x4xf32> {
  %0 = llama.merge_heads %x : (tensor<?x3x8xf32>) -> tensor<?x24xf32>
  %1 = llama.split_heads %0 heads = 6 : (tensor<?x24xf32>) -> tensor<?x6x4xf32>
  return %1 : tensor<?x6x4xf32>
}

// CHECK-LABEL: func.func @merge_of_split
// CHECK-SAME: (%[[X:.*]]: tensor<?x24xf32>)
// CHECK-NEXT: return %[[X]]
func.func @merge_of_split(%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %0 = llama.split_heads %x heads = 3 : (tensor<?x24xf32>) -> tensor<?x3x8xf32>
  %1 = llama.merge_heads %0 : (tensor<?x3x8xf32>) -> tensor<?x24xf32>
  return %1 : tensor<?x24xf32>
}

// CHECK-LABEL: func.func @scale_by_one
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @scale_by_one(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = llama.scale %x by 1.0 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @scale_by_another_factor
// CHECK: llama.scale
func.func @scale_by_another_factor(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = llama.scale %x by 1.0000000000000002 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// Two ops with one name are one value.
// CHECK-LABEL: func.func @weight_twice
// CHECK: %[[W:.*]] = llama.weight "output"
// CHECK-NOT: llama.weight
// CHECK: return %[[W]], %[[W]]
func.func @weight_twice() -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = llama.weight "output" : tensor<4x8xf32>
  %1 = llama.weight "output" : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @sum_either_way
// CHECK: %[[S:.*]] = llama.add
// CHECK-NEXT: return %[[S]], %[[S]]
func.func @sum_either_way(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = llama.add %x, %y : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.add %y, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// An append and a read nobody uses cost nothing.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%kv: !llama.kv<layers = 1, heads = 1, size = 8>, %k: tensor<?x1x8xf32>, %p: tensor<?xi32>) {
  %0 = llama.cache_append %kv, %k, %k, %p, %p layer = 0 : (!llama.kv<layers = 1, heads = 1, size = 8>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>) -> !llama.kv<layers = 1, heads = 1, size = 8>
  %1, %2 = llama.cache_read %0 layer = 0 : (!llama.kv<layers = 1, heads = 1, size = 8>) -> (tensor<?x1x8xf32>, tensor<?x1x8xf32>)
  return
}
