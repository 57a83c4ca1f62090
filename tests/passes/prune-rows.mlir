// A gather moves up through what works row by row, as far as nothing else
// reads the other rows.
// RUN: llamac-opt %s --prune-rows | FileCheck %s
// RUN: llamac-opt %s --prune-rows --prune-rows | FileCheck %s

!kv = !llama.kv<heads = 2, size = 16>

// CHECK-LABEL: func.func @through_every_row_wise_op
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[R:.*]]: tensor<3xi32>)
// CHECK-NEXT: %[[G:.*]] = llama.gather_rows %[[X]], %[[R]] : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<3x8xf32>
// CHECK-NEXT: %[[H:.*]] = llama.split_heads %[[G]] heads = 2 : (tensor<3x8xf32>) -> tensor<3x2x4xf32>
// CHECK-NEXT: %[[M:.*]] = llama.merge_heads %[[H]] : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
// CHECK-NEXT: %[[L:.*]] = llama.linear %[[M]], %[[W]] : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT: %[[S:.*]] = llama.silu %[[L]]
// CHECK-NEXT: %[[P:.*]] = llama.mul %[[S]], %[[L]]
// CHECK-NEXT: %[[A:.*]] = llama.add %[[P]], %[[G]]
// CHECK-NEXT: %[[Y:.*]] = llama.rms_norm %[[A]], %[[N]] eps = 1.000000e-05 : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @through_every_row_wise_op(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %n: tensor<8xf32>, %rows: tensor<3xi32>) -> tensor<3x8xf32> {
  %0 = llama.split_heads %x heads = 2 : (tensor<?x8xf32>) -> tensor<?x2x4xf32>
  %1 = llama.merge_heads %0 : (tensor<?x2x4xf32>) -> tensor<?x8xf32>
  %2 = llama.linear %1, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %3 = llama.silu %2 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = llama.mul %3, %2 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %5 = llama.add %4, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %6 = llama.rms_norm %5, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %7 = llama.gather_rows %6, %rows : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<3x8xf32>
  return %7 : tensor<3x8xf32>
}

// The query's rows take their positions and sequences along; the append keeps
// all rows. What turns the query turns the keys, so it stays.
// CHECK-LABEL: func.func @through_the_query_of_attention
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %[[K:.*]]: tensor<?x2x16xf32>, %[[T:.*]]: tensor<?x8x2xf32>, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %[[KV:.*]]: !kv, %[[R:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[Q1:.*]] = llama.rope %[[Q]], %[[T]]
// CHECK-NEXT: %[[KV1:.*]] = llama.cache_append %[[KV]], %[[K]], %[[K]], %[[POS]], %[[SEQ]]
// CHECK-NEXT: %[[Q2:.*]] = llama.gather_rows %[[Q1]], %[[R]] : (tensor<?x4x16xf32>, tensor<?xi32>) -> tensor<?x4x16xf32>
// CHECK-NEXT: %[[POS2:.*]] = llama.gather_rows %[[POS]], %[[R]] : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
// CHECK-NEXT: %[[SEQ2:.*]] = llama.gather_rows %[[SEQ]], %[[R]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q2]], %[[KV1]], %[[POS2]], %[[SEQ2]]
// CHECK-NEXT: return %[[O]], %[[KV1]]
func.func @through_the_query_of_attention(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>,
    %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %rows: tensor<?xi32>) -> (tensor<?x4x16xf32>, !kv) {
  %0 = llama.rope %q, %table : (tensor<?x4x16xf32>, tensor<?x8x2xf32>) -> tensor<?x4x16xf32>
  %kv1 = llama.cache_append %kv, %k, %k, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %1 = llama.attention %0, %kv1, %pos, %seq scale = 0.25 : (tensor<?x4x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  %2 = llama.gather_rows %1, %rows : (tensor<?x4x16xf32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  return %2, %kv1 : tensor<?x4x16xf32>, !kv
}

// Two readers of the same rows need one gather, in front of both.
// CHECK-LABEL: func.func @two_gathers_of_the_same_rows
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[R:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[G:.*]] = llama.gather_rows %[[X]], %[[R]]
// CHECK-NEXT: %[[S:.*]] = llama.silu %[[G]]
// CHECK-NEXT: return %[[S]], %[[S]]
func.func @two_gathers_of_the_same_rows(%x: tensor<?x8xf32>, %rows: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = llama.silu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.gather_rows %0, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  %2 = llama.gather_rows %0, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @other_rows_are_wanted_too
// CHECK-NEXT: %[[S:.*]] = llama.silu
// CHECK-NEXT: llama.gather_rows %[[S]]
// CHECK-NEXT: llama.gather_rows %[[S]]
func.func @other_rows_are_wanted_too(%x: tensor<?x8xf32>, %rows: tensor<?xi32>, %others: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = llama.silu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.gather_rows %0, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  %2 = llama.gather_rows %0, %others : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @all_rows_are_returned
// CHECK-NEXT: %[[S:.*]] = llama.silu
// CHECK-NEXT: llama.gather_rows %[[S]]
func.func @all_rows_are_returned(%x: tensor<?x8xf32>, %rows: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = llama.silu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.gather_rows %0, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// Rows that are not there yet where the op stands.
// CHECK-LABEL: func.func @rows_made_later
// CHECK-NEXT: %[[S:.*]] = llama.silu
// CHECK-NEXT: %[[R:.*]] = llama.gather_rows
// CHECK-NEXT: llama.gather_rows %[[S]], %[[R]]
func.func @rows_made_later(%x: tensor<?x8xf32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = llama.silu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.gather_rows %rows, %rows : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  %2 = llama.gather_rows %0, %1 : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// The residual may stand on either side.
// CHECK-LABEL: func.func @residual_first
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[R:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[G:.*]] = llama.gather_rows %[[X]], %[[R]]
// CHECK-NEXT: %[[L:.*]] = llama.linear %[[G]], %[[W]]
// CHECK-NEXT: %[[A:.*]] = llama.add %[[G]], %[[L]]
// CHECK-NEXT: return %[[A]]
// CHECK-LABEL: func.func @residual_second
// CHECK: %[[G:.*]] = llama.gather_rows
// CHECK-NEXT: %[[L:.*]] = llama.linear %[[G]]
// CHECK-NEXT: %[[A:.*]] = llama.add %[[L]], %[[G]]
// CHECK-NEXT: return %[[A]]
func.func @residual_first(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = llama.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %1 = llama.add %x, %0 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = llama.gather_rows %1, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
func.func @residual_second(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = llama.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %1 = llama.add %0, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = llama.gather_rows %1, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @through_a_scale
// CHECK-NEXT: llama.gather_rows
// CHECK-NEXT: llama.scale
// CHECK-NEXT: return
func.func @through_a_scale(%x: tensor<?x8xf32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = llama.scale %x by 0.5 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = llama.gather_rows %0, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// One head of keys or as many as there are of queries: rows are rows.
// CHECK-LABEL: func.func @one_key_head
// CHECK-NEXT: llama.gather_rows %{{.*}} : (tensor<?x4x16xf32>, tensor<?xi32>) -> tensor<?x4x16xf32>
// CHECK-NEXT: llama.gather_rows
// CHECK-NEXT: llama.gather_rows
// CHECK-NEXT: llama.attention %
// CHECK-NEXT: return
func.func @one_key_head(%q: tensor<?x4x16xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !llama.kv<heads = 1, size = 16>, %rows: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %0 = llama.attention %q, %kv, %pos, %seq scale = 0.25 : (tensor<?x4x16xf32>, !llama.kv<heads = 1, size = 16>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  %1 = llama.gather_rows %0, %rows : (tensor<?x4x16xf32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  return %1 : tensor<?x4x16xf32>
}

// Scores mix rows with keys.
// CHECK-LABEL: func.func @values_of_probabilities
// CHECK-NEXT: llama.attention_values
// CHECK-NEXT: llama.gather_rows
// CHECK-NEXT: return
func.func @values_of_probabilities(%p: tensor<4x?x?xf32>, %v: tensor<?x2x16xf32>, %rows: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %0 = llama.attention_values %p, %v : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  %1 = llama.gather_rows %0, %rows : (tensor<?x4x16xf32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  return %1 : tensor<?x4x16xf32>
}
