// Scores, scale, causal mask, softmax and values become one op; what only
// resembles them does not.
// RUN: llamac-opt %s --split-input-file --fuse-attention | FileCheck %s
// RUN: llamac-opt %s --split-input-file --fuse-attention --fuse-attention | FileCheck %s

!kv = !llama.kv<heads = 2, size = 16>

// CHECK-LABEL: func.func @fuses
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{.*}}, %{{.*}}, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %{{.*}})
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01
// CHECK-NEXT: return %[[O]]
func.func @fuses(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
                 %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> tensor<?x4x16xf32> {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Another user needs the tensor.
// CHECK-LABEL: func.func @scores_used_twice
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @scores_used_twice(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>, tensor<4x?x?xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4, %0 : tensor<?x4x16xf32>, tensor<4x?x?xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Another user needs the tensor.
// CHECK-LABEL: func.func @scaled_scores_used_twice
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @scaled_scores_used_twice(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>, tensor<4x?x?xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4, %1 : tensor<?x4x16xf32>, tensor<4x?x?xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Another user needs the tensor.
// CHECK-LABEL: func.func @masked_scores_used_twice
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @masked_scores_used_twice(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>, tensor<4x?x?xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4, %2 : tensor<?x4x16xf32>, tensor<4x?x?xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Another user needs the tensor.
// CHECK-LABEL: func.func @probabilities_used_twice
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @probabilities_used_twice(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>, tensor<4x?x?xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4, %3 : tensor<?x4x16xf32>, tensor<4x?x?xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Scores that are not masked.
// CHECK-LABEL: func.func @unmasked
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @unmasked(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %1 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// No softmax between.
// CHECK-LABEL: func.func @without_softmax
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @without_softmax(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %2, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The mask is an argument: nothing says it is causal.
// CHECK-LABEL: func.func @mask_from_outside
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @mask_from_outside(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %other: tensor<?x?xf32>) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %other : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The mask is for other positions than those appended.
// CHECK-LABEL: func.func @mask_of_other_rows
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @mask_of_other_rows(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %pos2: tensor<?xi32>) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos2, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The mask is for other sequences than those appended.
// CHECK-LABEL: func.func @mask_of_other_sequences
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @mask_of_other_sequences(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %seq2: tensor<?xi32>) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq2, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The key index is of a cache that has other rows than before the step.
// CHECK-LABEL: func.func @mask_of_another_step
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @mask_of_another_step(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %kv0: !kv) -> (tensor<?x4x16xf32>) {
  %old = llama.cache_append %kv0, %k, %v, %seq, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %kp, %ks = llama.cache_index %old, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The key index is of the state after the append, where it must be of the one before.
// CHECK-LABEL: func.func @mask_of_the_state_after
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @mask_of_the_state_after(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>) {
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %kp, %ks = llama.cache_index %kv1, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Positions and sequences of the keys in each other's place.
// CHECK-LABEL: func.func @index_halves_swapped
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @index_halves_swapped(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %ks, %kp : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The append is of other positions than the mask.
// CHECK-LABEL: func.func @append_of_other_rows
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @append_of_other_rows(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %pos2: tensor<?xi32>) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos2, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The layer that is read has not been appended in this step.
// CHECK-LABEL: func.func @layer_not_appended
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @layer_not_appended(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %other: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %other : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The state that is read lacks the step's own rows.
// CHECK-LABEL: func.func @read_of_the_state_before
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @read_of_the_state_before(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Keys and values are of different layers.
// CHECK-LABEL: func.func @keys_of_another_layer
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @keys_of_another_layer(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %other: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %other1 = llama.cache_append %other, %v, %k, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys0, %values0 = llama.cache_read %other1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %keys0 : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Keys and values in each other's place.
// CHECK-LABEL: func.func @values_as_keys
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @values_as_keys(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %values : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %keys : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// Keys that do not come from the cache.
// CHECK-LABEL: func.func @keys_from_outside
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @keys_from_outside(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> (tensor<?x4x16xf32>) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x2x16xf32>, tensor<?x2x16xf32>)
  %0 = llama.attention_scores %q, %k : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.scale %0 by 0.25 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.add_mask %1, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %3 = llama.softmax %2 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %4 = llama.attention_values %3, %values : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %4 : tensor<?x4x16xf32>
}
