// Operands, attributes and result types that the ops' verifiers refuse.
// MLIR adds "failed to infer returned types" to what the inference has said.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics

func.func @inferred_type(%tokens: tensor<?xi32>, %table: tensor<100x8xf32>) {
  // expected-error @below {{'llama.embedding' op inferred type(s) 'tensor<?x8xf32>' are incompatible with return type(s) of operation 'tensor<?x9xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.embedding %tokens, %table : (tensor<?xi32>, tensor<100x8xf32>) -> tensor<?x9xf32>
  return
}

// -----

func.func @inferred_rows(%tokens: tensor<3xi32>, %table: tensor<100x8xf32>) {
  // expected-error @below {{'llama.embedding' op inferred type(s) 'tensor<3x8xf32>' are incompatible with return type(s) of operation 'tensor<?x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.embedding %tokens, %table : (tensor<3xi32>, tensor<100x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @token_type(%tokens: tensor<?xi64>, %table: tensor<100x8xf32>) {
  // expected-error @below {{'llama.embedding' op operand #0 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?xi64>'}}
  %0 = llama.embedding %tokens, %table : (tensor<?xi64>, tensor<100x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_width(%x: tensor<?x8xf32>, %w: tensor<9xf32>) {
  // expected-error @below {{'llama.rms_norm' op expects the columns of x to equal the size of the weight, got 8 and 9}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.rms_norm %x, %w eps = 1.0e-5 : (tensor<?x8xf32>, tensor<9xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_eps(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'llama.rms_norm' op attribute 'eps' failed to satisfy constraint: 64-bit float attribute that is positive and finite}}
  %0 = llama.rms_norm %x, %w eps = -1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_weight(%x: tensor<?x8xf32>, %w: tensor<1x8xf32>) {
  // expected-error @below {{'llama.rms_norm' op operand #1 must be statically shaped 1D tensor of f32, f16, bf16 or a block format values, but got 'tensor<1x8xf32>'}}
  %0 = llama.rms_norm %x, %w eps = 1.0e-5 : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_width(%x: tensor<?x8xf32>, %w: tensor<4x16xbf16>) {
  // expected-error @below {{'llama.linear' op expects the columns of x to equal the columns of the weight, got 8 and 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.linear %x, %w : (tensor<?x8xf32>, tensor<4x16xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_activations(%x: tensor<?x8xbf16>, %w: tensor<4x8xbf16>) {
  // expected-error @below {{'llama.linear' op operand #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x8xbf16>'}}
  %0 = llama.linear %x, %w : (tensor<?x8xbf16>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_weight(%x: tensor<?x8xf32>, %w: tensor<?x8xbf16>) {
  // expected-error @below {{'llama.linear' op operand #1 must be statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<?x8xbf16>'}}
  %0 = llama.linear %x, %w : (tensor<?x8xf32>, tensor<?x8xbf16>) -> tensor<?x?xf32>
  return
}

// -----

func.func @split_remainder(%x: tensor<?x8xf32>) {
  // expected-error @below {{'llama.split_heads' op expects heads to divide the columns of x, got 3 and 8}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.split_heads %x heads = 3 : (tensor<?x8xf32>) -> tensor<?x3x2xf32>
  return
}

// -----

func.func @split_none(%x: tensor<?x8xf32>) {
  // expected-error @below {{'llama.split_heads' op expects heads to divide the columns of x, got 0 and 8}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.split_heads %x heads = 0 : (tensor<?x8xf32>) -> tensor<?x0x2xf32>
  return
}

// -----

func.func @split_unknown(%x: tensor<?x?xf32>) {
  // expected-error @below {{'llama.split_heads' op expects heads and the columns of x to be static}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.split_heads %x heads = 2 : (tensor<?x?xf32>) -> tensor<?x2x?xf32>
  return
}

// -----

func.func @merge_unknown(%x: tensor<?x2x?xf32>) {
  // expected-error @below {{'llama.merge_heads' op expects the heads of x and their size to be static, got 'tensor<?x2x?xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.merge_heads %x : (tensor<?x2x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @add_shapes(%x: tensor<?x8xf32>, %y: tensor<?x9xf32>) {
  // expected-error @below {{'llama.add' op expects each dimension of the left to equal that of the right operand, got 8 and 9}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.add %x, %y : (tensor<?x8xf32>, tensor<?x9xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @mul_ranks(%x: tensor<?x8xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{'llama.mul' op expects operands of one rank, got 'tensor<?x8xf32>' and 'tensor<8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.mul %x, %y : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @silu_shape(%x: tensor<?x8xf32>) {
  // expected-error @below {{'llama.silu' op inferred type(s) 'tensor<?x8xf32>' are incompatible with return type(s) of operation 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.silu %x : (tensor<?x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scale_factor(%x: tensor<?x8xf32>) {
  // expected-error @below {{'llama.scale' op attribute 'factor' failed to satisfy constraint: 64-bit float attribute that is positive and finite}}
  %0 = llama.scale %x by 0x7FF0000000000000 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @no_frequencies(%p: tensor<?xi32>) {
  // expected-error @below {{'llama.rope_table' op expects frequencies of rank 1, at least one, got 'tensor<0xf64>'}}
  %0 = llama.rope_table %p frequencies = dense<> : tensor<0xf64> : (tensor<?xi32>) -> tensor<?x0x2xf32>
  return
}

// -----

func.func @negative_frequency(%p: tensor<?xi32>) {
  // expected-error @below {{'llama.rope_table' op expects frequency 1 to be finite and not negative, got -1.000000e-01 : f64}}
  %0 = llama.rope_table %p frequencies = dense<[1.0, -0.1]> : tensor<2xf64> : (tensor<?xi32>) -> tensor<?x2x2xf32>
  return
}

// -----

func.func @frequency_type(%p: tensor<?xi32>) {
  // expected-error @below {{attribute 'frequencies' failed to satisfy constraint: 64-bit float elements attribute}}
  %0 = "llama.rope_table"(%p) {frequencies = dense<1.0> : tensor<2xf32>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  return
}

// -----

func.func @rope_rows(%x: tensor<4x3x8xf32>, %t: tensor<5x4x2xf32>) {
  // expected-error @below {{'llama.rope' op expects the rows of x to equal the rows of the table, got 4 and 5}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.rope %x, %t : (tensor<4x3x8xf32>, tensor<5x4x2xf32>) -> tensor<4x3x8xf32>
  return
}

// -----

func.func @rope_size(%x: tensor<?x3x8xf32>, %t: tensor<?x8x2xf32>) {
  // expected-error @below {{'llama.rope' op expects the head size of x to equal twice the pairs of the table, got 8 and 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.rope %x, %t : (tensor<?x3x8xf32>, tensor<?x8x2xf32>) -> tensor<?x3x8xf32>
  return
}

// -----

func.func @rope_table_pairs(%x: tensor<?x3x8xf32>, %t: tensor<?x4x3xf32>) {
  // expected-error @below {{'llama.rope' op expects the last dimension of the table to equal a cosine and a sine, got 3 and 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.rope %x, %t : (tensor<?x3x8xf32>, tensor<?x4x3xf32>) -> tensor<?x3x8xf32>
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @append_rows(%kv: !kv, %k: tensor<4x3x8xf32>, %v: tensor<5x3x8xf32>, %p: tensor<4xi32>, %s: tensor<4xi32>) {
  // expected-error @below {{'llama.cache_append' op expects the rows of key to equal the rows of value, got 4 and 5}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, tensor<4x3x8xf32>, tensor<5x3x8xf32>, tensor<4xi32>, tensor<4xi32>) -> !kv
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @append_positions(%kv: !kv, %k: tensor<4x3x8xf32>, %v: tensor<4x3x8xf32>, %p: tensor<3xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.cache_append' op expects the rows of key to equal the positions, got 4 and 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, tensor<4x3x8xf32>, tensor<4x3x8xf32>, tensor<3xi32>, tensor<?xi32>) -> !kv
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @append_sequences(%kv: !kv, %k: tensor<4x3x8xf32>, %v: tensor<4x3x8xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) {
  // expected-error @below {{'llama.cache_append' op expects the rows of key to equal the sequences, got 4 and 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, tensor<4x3x8xf32>, tensor<4x3x8xf32>, tensor<?xi32>, tensor<3xi32>) -> !kv
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @append_heads(%kv: !kv, %k: tensor<?x9x8xf32>, %v: tensor<?x3x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.cache_append' op expects the heads of the KV cache to equal the heads of key, got 3 and 9}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, tensor<?x9x8xf32>, tensor<?x3x8xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @append_value_heads(%kv: !kv, %k: tensor<?x3x8xf32>, %v: tensor<?x9x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.cache_append' op expects the heads of the KV cache to equal the heads of value, got 3 and 9}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, tensor<?x3x8xf32>, tensor<?x9x8xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @append_size(%kv: !kv, %k: tensor<?x3x16xf32>, %v: tensor<?x3x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.cache_append' op expects the head size of the KV cache to equal the head size of key, got 8 and 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, tensor<?x3x16xf32>, tensor<?x3x8xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @append_value_size(%kv: !kv, %k: tensor<?x3x8xf32>, %v: tensor<?x3x16xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.cache_append' op expects the head size of the KV cache to equal the head size of value, got 8 and 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, tensor<?x3x8xf32>, tensor<?x3x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @index_rows(%kv: !kv, %p: tensor<4xi32>, %s: tensor<5xi32>) {
  // expected-error @below {{'llama.cache_index' op expects the positions to equal the sequences, got 4 and 5}}
  // expected-error @below {{failed to infer returned types}}
  %0, %1 = llama.cache_index %kv, %p, %s : (!kv, tensor<4xi32>, tensor<5xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  return
}

// -----

func.func @mask_rows(%p: tensor<4xi32>, %s: tensor<5xi32>, %kp: tensor<?xi32>, %ks: tensor<?xi32>) {
  // expected-error @below {{'llama.causal_mask' op expects the positions to equal the sequences, got 4 and 5}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.causal_mask %p, %s, %kp, %ks : (tensor<4xi32>, tensor<5xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @mask_keys(%p: tensor<?xi32>, %s: tensor<?xi32>, %kp: tensor<6xi32>, %ks: tensor<7xi32>) {
  // expected-error @below {{'llama.causal_mask' op expects the key positions to equal the key sequences, got 6 and 7}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.causal_mask %p, %s, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<6xi32>, tensor<7xi32>) -> tensor<?x6xf32>
  return
}

// -----

func.func @scores_groups(%q: tensor<?x9x8xf32>, %k: tensor<?x2x8xf32>) {
  // expected-error @below {{'llama.attention_scores' op expects the heads of the keys to divide the heads of the query, got 2 and 9}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention_scores %q, %k : (tensor<?x9x8xf32>, tensor<?x2x8xf32>) -> tensor<9x?x?xf32>
  return
}

// -----

func.func @scores_unknown_heads(%q: tensor<?x?x8xf32>, %k: tensor<?x2x8xf32>) {
  // expected-error @below {{'llama.attention_scores' op expects the heads of the keys and the heads of the query to be static}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention_scores %q, %k : (tensor<?x?x8xf32>, tensor<?x2x8xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

func.func @scores_size(%q: tensor<?x9x8xf32>, %k: tensor<?x3x16xf32>) {
  // expected-error @below {{'llama.attention_scores' op expects the head size of the query to equal the head size of the keys, got 8 and 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention_scores %q, %k : (tensor<?x9x8xf32>, tensor<?x3x16xf32>) -> tensor<9x?x?xf32>
  return
}

// -----

func.func @add_mask_rows(%s: tensor<9x4x?xf32>, %m: tensor<5x?xf32>) {
  // expected-error @below {{'llama.add_mask' op expects the rows of the scores to equal the rows of the mask, got 4 and 5}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.add_mask %s, %m : (tensor<9x4x?xf32>, tensor<5x?xf32>) -> tensor<9x4x?xf32>
  return
}

// -----

func.func @add_mask_keys(%s: tensor<9x?x6xf32>, %m: tensor<?x7xf32>) {
  // expected-error @below {{'llama.add_mask' op expects the keys of the scores to equal the keys of the mask, got 6 and 7}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.add_mask %s, %m : (tensor<9x?x6xf32>, tensor<?x7xf32>) -> tensor<9x?x6xf32>
  return
}

// -----

func.func @softmax_shape(%s: tensor<9x?x?xf32>) {
  // expected-error @below {{'llama.softmax' op inferred type(s) 'tensor<9x?x?xf32>' are incompatible with return type(s) of operation 'tensor<3x?x?xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.softmax %s : (tensor<9x?x?xf32>) -> tensor<3x?x?xf32>
  return
}

// -----

func.func @values_groups(%p: tensor<9x?x?xf32>, %v: tensor<?x2x8xf32>) {
  // expected-error @below {{'llama.attention_values' op expects the heads of the values to divide the heads of the probabilities, got 2 and 9}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention_values %p, %v : (tensor<9x?x?xf32>, tensor<?x2x8xf32>) -> tensor<?x9x8xf32>
  return
}

// -----

func.func @values_keys(%p: tensor<9x?x6xf32>, %v: tensor<7x3x8xf32>) {
  // expected-error @below {{'llama.attention_values' op expects the keys of the probabilities to equal the rows of the values, got 6 and 7}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention_values %p, %v : (tensor<9x?x6xf32>, tensor<7x3x8xf32>) -> tensor<?x9x8xf32>
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @attention_rows(%q: tensor<4x9x8xf32>, %kv: !kv, %p: tensor<5xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.attention' op expects the rows of the query to equal the positions, got 4 and 5}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention %q, %kv, %p, %s scale = 0.125 : (tensor<4x9x8xf32>, !kv, tensor<5xi32>, tensor<?xi32>) -> tensor<4x9x8xf32>
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @attention_sequences(%q: tensor<?x9x8xf32>, %kv: !kv, %p: tensor<5xi32>, %s: tensor<6xi32>) {
  // expected-error @below {{'llama.attention' op expects the positions to equal the sequences, got 5 and 6}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention %q, %kv, %p, %s scale = 0.125 : (tensor<?x9x8xf32>, !kv, tensor<5xi32>, tensor<6xi32>) -> tensor<5x9x8xf32>
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @attention_groups(%q: tensor<?x8x8xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.attention' op expects the heads of the KV cache to divide the heads of the query, got 3 and 8}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention %q, %kv, %p, %s scale = 0.125 : (tensor<?x8x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8x8xf32>
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @attention_size(%q: tensor<?x9x16xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.attention' op expects the head size of the query to equal the head size of the KV cache, got 16 and 8}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.attention %q, %kv, %p, %s scale = 0.125 : (tensor<?x9x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x9x16xf32>
  return
}

// -----

!kv = !llama.kv<heads = 3, size = 8>
func.func @attention_scale(%q: tensor<?x9x8xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'llama.attention' op attribute 'scale' failed to satisfy constraint: 64-bit float attribute that is positive and finite}}
  %0 = llama.attention %q, %kv, %p, %s scale = 0.0 : (tensor<?x9x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x9x8xf32>
  return
}

// -----

func.func @gather_rows(%x: tensor<?x8xf32>, %rows: tensor<2xi32>) {
  // expected-error @below {{'llama.gather_rows' op inferred type(s) 'tensor<2x8xf32>' are incompatible with return type(s) of operation 'tensor<3x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.gather_rows %x, %rows : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<3x8xf32>
  return
}

// -----

// expected-error @below {{#llama.approximation expects exp or a positive top_k, got exp = exact, top_k = 0}}
func.func @approximation_of_nothing() attributes {llama.approximation = #llama.approximation<top_k = 0>} {
  return
}

// -----

// expected-error @below {{#llama.approximation expects exp or a positive top_k, got exp = poly3, top_k = -1}}
func.func @negative_top_k() attributes {llama.approximation = #llama.approximation<exp = poly3, top_k = -1>} {
  return
}

// -----

func.func @shard_of_no_dimension() {
  // expected-error @below {{expects a shard of one of its 1 dimensions, got #llama.shard<dim = 1, parts = 2, ranks = 2>}}
  %w = llama.weight "norm" {shard = #llama.shard<dim = 1, parts = 2, ranks = 2>} : tensor<64xf32>
  return
}

// -----

func.func @shard_of_parts_that_do_not_divide() {
  // expected-error @below {{#llama.shard expects a dimension, and parts that divide the ranks, got dimension 0, 3 parts and 4 ranks}}
  %w = llama.weight "norm" {shard = #llama.shard<dim = 0, parts = 3, ranks = 4>} : tensor<64xf32>
  return
}

// -----

func.func @leaves_that_do_not_divide(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>) {
  // expected-error @below {{'llama.linear' op expects leaves to divide the columns of x, got 16 and 8}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.linear %x, %w {leaves = 16 : i64} : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @leaves_of_no_tree(%x: tensor<?x12xf32>, %w: tensor<4x12xbf16>) {
  // expected-error @below {{attribute 'leaves' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 2 that is a power of two}}
  %0 = llama.linear %x, %w {leaves = 3 : i64} : (tensor<?x12xf32>, tensor<4x12xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @tree_over_three(%x: tensor<?x8xf32>) {
  // expected-error @below {{'llama.all_reduce' op expects a power of two of ranks for a tree, got 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = llama.all_reduce %x over 3 {tree} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}
