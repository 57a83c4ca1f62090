// Some of these fold away, and others must not.
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
func.func @unused(%kv: !llama.kv<heads = 1, size = 8>, %k: tensor<?x1x8xf32>, %p: tensor<?xi32>) {
  %0 = llama.cache_append %kv, %k, %k, %p, %p : (!llama.kv<heads = 1, size = 8>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?xi32>, tensor<?xi32>) -> !llama.kv<heads = 1, size = 8>
  %1, %2 = llama.cache_read %0 : (!llama.kv<heads = 1, size = 8>) -> (tensor<?x1x8xf32>, tensor<?x1x8xf32>)
  return
}

// CHECK-LABEL: func.func @scale_of_scale
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>)
// CHECK-NEXT: %[[S:.*]] = llama.scale %[[X]] by 7.500000e-01
// CHECK-NEXT: return %[[S]]
func.func @scale_of_scale(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = llama.scale %x by 0.5 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.scale %0 by 1.5 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// f32 holds neither product: two steps keep what one would lose.
// CHECK-LABEL: func.func @scale_of_scale_out_of_range
// CHECK-COUNT-4: llama.scale
func.func @scale_of_scale_out_of_range(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = llama.scale %x by 1.0e-30 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.scale %0 by 1.0e-15 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = llama.scale %x by 1.0e30 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = llama.scale %2 by 1.0e15 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1, %3 : tensor<?x8xf32>, tensor<?x8xf32>
}

// Scales move behind what is linear, operand by operand.
// CHECK-LABEL: func.func @scales_move_to_the_scores
// CHECK-SAME: (%[[Q:.*]]: tensor<?x32xf32>, %[[K:.*]]: tensor<?x2x8xf32>, %[[T:.*]]: tensor<?x4x2xf32>, %[[R:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[H:.*]] = llama.split_heads %[[Q]] heads = 4
// CHECK-NEXT: %[[P:.*]] = llama.rope %[[H]], %[[T]]
// CHECK-NEXT: %[[G:.*]] = llama.gather_rows %[[P]], %[[R]]
// CHECK-NEXT: %[[S:.*]] = llama.attention_scores %[[G]], %[[K]]
// CHECK-NEXT: %[[F:.*]] = llama.scale %[[S]] by 1.250000e-01
// CHECK-NEXT: return %[[F]]
func.func @scales_move_to_the_scores(%q: tensor<?x32xf32>, %k: tensor<?x2x8xf32>, %t: tensor<?x4x2xf32>, %r: tensor<?xi32>) -> tensor<4x?x?xf32> {
  %0 = llama.scale %q by 0.25 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %1 = llama.split_heads %0 heads = 4 : (tensor<?x32xf32>) -> tensor<?x4x8xf32>
  %2 = llama.rope %1, %t : (tensor<?x4x8xf32>, tensor<?x4x2xf32>) -> tensor<?x4x8xf32>
  %3 = llama.gather_rows %2, %r : (tensor<?x4x8xf32>, tensor<?xi32>) -> tensor<?x4x8xf32>
  %4 = llama.scale %k by 0.5 : (tensor<?x2x8xf32>) -> tensor<?x2x8xf32>
  %5 = llama.attention_scores %3, %4 : (tensor<?x4x8xf32>, tensor<?x2x8xf32>) -> tensor<4x?x?xf32>
  return %5 : tensor<4x?x?xf32>
}

// One value as query and keys is scaled twice.
// CHECK-LABEL: func.func @scaled_on_both_sides
// CHECK-NEXT: %[[S:.*]] = llama.attention_scores %[[X:.*]], %[[X]]
// CHECK-NEXT: llama.scale %[[S]] by 2.500000e-01
func.func @scaled_on_both_sides(%x: tensor<?x2x8xf32>) -> tensor<2x?x?xf32> {
  %0 = llama.scale %x by 0.5 : (tensor<?x2x8xf32>) -> tensor<?x2x8xf32>
  %1 = llama.attention_scores %0, %0 : (tensor<?x2x8xf32>, tensor<?x2x8xf32>) -> tensor<2x?x?xf32>
  return %1 : tensor<2x?x?xf32>
}

// CHECK-LABEL: func.func @scale_before_merge
// CHECK-NEXT: llama.merge_heads
// CHECK-NEXT: llama.scale
func.func @scale_before_merge(%x: tensor<?x2x8xf32>) -> tensor<?x16xf32> {
  %0 = llama.scale %x by 0.5 : (tensor<?x2x8xf32>) -> tensor<?x2x8xf32>
  %1 = llama.merge_heads %0 : (tensor<?x2x8xf32>) -> tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}

// The norm of scaled rows is not the scaled norm, nor is SiLU linear.
// CHECK-LABEL: func.func @not_linear
// CHECK-NEXT: %[[S:.*]] = llama.scale
// CHECK-NEXT: llama.rms_norm %[[S]]
// CHECK-NEXT: llama.silu %[[S]]
func.func @not_linear(%x: tensor<?x8xf32>, %n: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = llama.scale %x by 0.5 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.rms_norm %0, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %2 = llama.silu %0 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}

// A causal mask is zeros and minus infinities: it may be added after the scale,
// and once.
// CHECK-LABEL: func.func @causal_mask
// CHECK: %[[M:.*]] = llama.causal_mask
// CHECK-NEXT: %[[S:.*]] = llama.scale %{{.*}} by 5.000000e-01
// CHECK-NEXT: %[[A:.*]] = llama.add_mask %[[S]], %[[M]]
// CHECK-NEXT: return %[[A]]
func.func @causal_mask(%s: tensor<2x?x?xf32>, %p: tensor<?xi32>, %kp: tensor<?xi32>) -> tensor<2x?x?xf32> {
  %m = llama.causal_mask %p, %p, %kp, %kp : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %0 = llama.add_mask %s, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  %1 = llama.scale %0 by 0.5 : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %2 = llama.add_mask %1, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  return %2 : tensor<2x?x?xf32>
}

// Another mask holds any numbers, and two masks are two.
// CHECK-LABEL: func.func @any_mask
// CHECK-NEXT: llama.add_mask
// CHECK-NEXT: llama.scale
// CHECK-NEXT: llama.add_mask
func.func @any_mask(%s: tensor<2x?x?xf32>, %m: tensor<?x?xf32>) -> tensor<2x?x?xf32> {
  %0 = llama.add_mask %s, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  %1 = llama.scale %0 by 0.5 : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %2 = llama.add_mask %1, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  return %2 : tensor<2x?x?xf32>
}

// The causal mask hides more than the one before it.
// CHECK-LABEL: func.func @causal_after_another
// CHECK-COUNT-2: llama.add_mask
func.func @causal_after_another(%s: tensor<2x?x?xf32>, %other: tensor<?x?xf32>, %p: tensor<?xi32>, %kp: tensor<?xi32>) -> tensor<2x?x?xf32> {
  %m = llama.causal_mask %p, %p, %kp, %kp : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %0 = llama.add_mask %s, %other : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  %1 = llama.add_mask %0, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  return %1 : tensor<2x?x?xf32>
}

// The masked scores are a result too: they would be made twice.
// CHECK-LABEL: func.func @masked_scores_read_twice
// CHECK: %[[M:.*]] = llama.add_mask
// CHECK-NEXT: %[[S:.*]] = llama.scale %[[M]]
// CHECK-NEXT: return %[[M]], %[[S]]
func.func @masked_scores_read_twice(%s: tensor<2x?x?xf32>, %p: tensor<?xi32>, %kp: tensor<?xi32>) -> (tensor<2x?x?xf32>, tensor<2x?x?xf32>) {
  %m = llama.causal_mask %p, %p, %kp, %kp : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %0 = llama.add_mask %s, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  %1 = llama.scale %0 by 0.5 : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  return %0, %1 : tensor<2x?x?xf32>, tensor<2x?x?xf32>
}

// CHECK-LABEL: func.func @any_mask_twice
// CHECK-COUNT-2: llama.add_mask
func.func @any_mask_twice(%s: tensor<2x?x?xf32>, %m: tensor<?x?xf32>) -> tensor<2x?x?xf32> {
  %0 = llama.add_mask %s, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  %1 = llama.add_mask %0, %m : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> tensor<2x?x?xf32>
  return %1 : tensor<2x?x?xf32>
}

!kv = !llama.kv<heads = 2, size = 8>

// CHECK-LABEL: func.func @scaled_query_of_attention
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x8xf32>,
// CHECK-NEXT: llama.attention %[[Q]], {{.*}} scale = 1.250000e-01
func.func @scaled_query_of_attention(%q: tensor<?x4x8xf32>, %kv: !kv, %p: tensor<?xi32>) -> tensor<?x4x8xf32> {
  %0 = llama.scale %q by 0.5 : (tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  %1 = llama.attention %0, %kv, %p, %p scale = 0.25 : (tensor<?x4x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x8xf32>
  return %1 : tensor<?x4x8xf32>
}
