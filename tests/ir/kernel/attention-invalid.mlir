// The verifiers of the kernel dialect refuse these: the ops of attention, of its
// keys and values, and of their rotation.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics

func.func @rope_table_positions_rank(%p: tensor<i32>) {
  // expected-error @below {{'kernel.rope_table' op operand #0 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<i32>) -> tensor<?x2x2xf32>
  return
}

// -----

func.func @rope_table_result_rank(%p: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_table' op result #0 must be 3D tensor of 32-bit float values, but got 'tensor<?x4xf32>'}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @rope_table_pairs(%p: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_table' op cos/sin's last dimension is 3, expected 2}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x3xf32>
  return
}

// -----

func.func @rope_table_frequencies(%p: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_table' op number of frequencies is 2, expected 3}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x3x2xf32>
  return
}

// -----

func.func @append_kv(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: i32, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #4 must be !llama.kv, but got 'i32'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, i32, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, i32)
  return
}

// -----

func.func @append_new_kv(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op failed to verify that all of {kv, newKv} have same type}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 3, size = 8>)
  return
}

// -----

func.func @append_query_rank(%q: tensor<?x2x8xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x2x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x2x8xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x8xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_key_rank(%q: tensor<?x32xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #1 must be 2D tensor of 32-bit float values, but got 'tensor<?x2x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x2x8xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_value_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x2x8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #2 must be 2D tensor of 32-bit float values, but got 'tensor<?x2x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x2x8xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_table_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x8xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #3 must be 3D tensor of 32-bit float values, but got 'tensor<?x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x8xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_positions_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<i32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #5 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<i32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_sequences_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<i32>) {
  // expected-error @below {{'kernel.rope_append' op operand #6 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<i32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_query_width(%q: tensor<?x24xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op query's width is 24, expected a multiple of 16}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x24xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x24xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_key_width(%q: tensor<?x32xf32>, %k: tensor<?x32xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op key's width is 32, expected 16}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_value_width(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op value's width is 8, expected 16}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_table_pairs(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x8x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op table's pairs is 8, expected 4}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x8x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_turned(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op failed to verify that all of {query, rotated} have same type}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @attention_kv(%q: tensor<?x32xf32>, %kv: f32, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #1 must be !llama.kv, but got 'f32'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, f32, tensor<?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @attention_query_rank(%q: tensor<?x4x8xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x4x8xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x4x8xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x8xf32>
  return
}

// -----

func.func @attention_positions_rank(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?x?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #2 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x?xi32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?x?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @attention_sequences_rank(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?x?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #3 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x?xi32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?x?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @attention_query_width(%q: tensor<?x40xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op query's width is 40, expected a multiple of 16}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x40xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x40xf32>
  return
}

// -----

func.func @attention_result(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result is 'tensor<?x16xf32>', expected the shape of 'tensor<?x32xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @whole_attention_result(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result is 'tensor<?x4x2x10xf32>', expected the shape of 'tensor<?x32xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x2x10xf32>
  return
}

// -----

func.func @split_rank(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result is 'tensor<?x32xf32>', expected partial results of 'tensor<?x32xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @split_type(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result #0 must be 2D tensor of 32-bit float or bfloat16 type values or 4D tensor of 32-bit float values, but got 'tensor<?x4x2x10xf16>'}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x2x10xf16>
  return
}

// -----

func.func @split_heads(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op partial results' heads is 2, expected 4}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x2x10xf32>
  return
}

// -----

func.func @split_splits(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op partial results' splits is 3, expected 2}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x3x10xf32>
  return
}

// -----

func.func @split_partial(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op partial results' last dimension is 8, expected 10}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x2x8xf32>
  return
}

// -----

func.func @merge_partials_rank(%q: tensor<?x32xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op operand #0 must be 4D tensor of 32-bit float values, but got 'tensor<?x32xf32>'}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x32xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_result_rank(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op result #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x4x8xf32>'}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x4x8xf32>
  return
}

// -----

func.func @merge_positions_rank(%q: tensor<?x4x2x10xf32>, %p: tensor<i32>) {
  // expected-error @below {{'kernel.attention_merge' op operand #1 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<i32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_family(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op config is #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, expected the split_kv family}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_splits(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op partial results' splits is 2, expected 4}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 4, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_partial(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op partial results' last dimension is 10, expected 12}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 12>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_width(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op result's width is 30, expected a multiple of 4 heads}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x30xf32>
  return
}

// -----

func.func @merge_kv_heads(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op kvHeads is 3, expected a divisor of 4 heads}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 3 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_no_kv_heads(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op kvHeads is 0, expected a divisor of 4 heads}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 0 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

// expected-error @below {{expected ::llamac::kernel::AttentionFamily to be one of: unsplit, split_kv, merged}}
// expected-error @below {{failed to parse Kernel_AttentionConfigAttr parameter 'family'}}
func.func private @attention_family() attributes {config = #kernel.attention_config<family = ring, splits = 1, partial = 1>}

// -----

// expected-error @below {{#kernel.attention_config expects rows of 0 where another launch merges, got 4}}
func.func private @attention_rows() attributes {config = #kernel.attention_config<family = split_kv, splits = 1, partial = 1, rows = 4>}

// -----

func.func @qkv_input_rank(%x: tensor<64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #0 must be 2D tensor of 32-bit float or bfloat16 type values, but got 'tensor<64xf32>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_turned_rank(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op result #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x4x8xf32>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x8xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_turned_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op rotated query's width is 16, expected 32}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_query_weight_type(%x: tensor<?x64xf32>, %q: tensor<32x64xi8>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #1 must be statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<32x64xi8>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xi8>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_query_weight_columns(%x: tensor<?x64xf32>, %q: tensor<32x32xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op query weight's columns is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x32xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_query_weight_rows(%x: tensor<?x64xf32>, %q: tensor<24x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op query's width is 24, expected a multiple of 16}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<24x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_key_weight_rank(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #2 must be statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<16xbf16>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_key_weight_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x32xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op key weight's columns is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x32xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_key_weight_rows(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<24x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op key weight's rows is 24, expected 16}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<24x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_value_weight_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x32xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op value weight's columns is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x32xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_value_weight_rows(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<8x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op value weight's rows is 8, expected 16}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<8x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_norm_without_eps(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op needs both a norm and eps, or neither}}
  %0:2 = kernel.qkv %x, %q, %k, %v norm(%n) rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<64xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_eps_without_norm(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op needs both a norm and eps, or neither}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s {eps = 1.0e-5 : f64}
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_norm_size(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<32xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op norm weight's size is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v norm(%n) rotated by %t into %kv at %p, %s {eps = 1.0e-5 : f64}
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<32xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_table_pairs(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x8x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op table's pairs is 8, expected 4}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x8x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_kv(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: i32, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #5 must be !llama.kv, but got 'i32'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, i32, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, i32)
  return
}

// -----

func.func @qkv_new_kv(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op failed to verify that all of {kv, newKv} have same type}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 3, size = 8>)
  return
}

// -----

func.func @qkv_positions(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #6 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?xi64>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi64>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_sequences(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?x1xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #7 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x1xi32>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?x1xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_one_norm(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op needs two norms and eps, or neither}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n) {eps = 1.0e-5 : f64}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<8xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_norms_without_eps(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op needs two norms and eps, or neither}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n, %n)
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_norm_of_half_heads(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<4xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op norm's size is 4, expected heads of 8 that divide 32}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n, %n) {eps = 1.0e-5 : f64}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_norm_of_more_than_the_key(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<32xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op norm's size is 32, expected heads of 8 that divide 16}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n, %n) {eps = 1.0e-5 : f64}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @products_norm(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op needs both a norm and eps, or neither}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v norm(%n) : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<64xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_query_columns(%x: tensor<?x64xf32>, %q: tensor<32x32xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op query weight's columns is 32, expected 64}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x32xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_key_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x32xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op key weight's columns is 32, expected 64}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x32xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_value_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x32xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op value weight's columns is 32, expected 64}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x32xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_query_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op query's width is 16, expected 32}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_key_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op key's width is 32, expected 16}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_value_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op value's width is 8, expected 16}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x8xf32>)
  return
}

// -----

// expected-error @below {{#kernel.attention_config expects splits of 1 to 2147483647, got 0}}
func.func @split_into_nothing() attributes {a = #kernel.attention_config<family = split_kv, splits = 0, partial = 10>}
