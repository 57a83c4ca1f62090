// Types, attributes and weights that the verifiers refuse.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{!llama.kv expects heads to be positive, got -3}}
func.func private @heads(!llama.kv<heads = -3, size = 64>)

// -----

// expected-error @below {{!llama.kv expects size to be positive, got 0}}
func.func private @size(!llama.kv<heads = 3, size = 0>)

// -----

// expected-error @below {{expected a block format, one of q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k, mxfp8, q2_k, q3_k, iq4_nl, iq4_xs, mxfp4, fp8, got 'q9_9'}}
// expected-error @below {{failed to parse Llama_Quant parameter 'format'}}
func.func private @format(tensor<2x32x!llama.quant<q9_9>>)

// -----

// expected-error @below {{#llama.model expects kv_heads to be positive, got 0}}
module attributes {llama.model = #llama.model<dim = 576, layers = 30, heads = 9, kv_heads = 0, head_size = 64, ffn = 1536, vocab = 49152, max_context = 2048, norm_eps = 1.0e-05 : f64, rope_theta = 1.0e+05 : f64, tied = true>} {}

// -----

// expected-error @below {{#llama.model expects kv_heads to divide heads, got 2 and 9}}
module attributes {llama.model = #llama.model<dim = 576, layers = 30, heads = 9, kv_heads = 2, head_size = 64, ffn = 1536, vocab = 49152, max_context = 2048, norm_eps = 1.0e-05 : f64, rope_theta = 1.0e+05 : f64, tied = true>} {}

// -----

// expected-error @below {{#llama.model expects norm_eps to be a positive f64, got -1.000000e-05 : f64}}
module attributes {llama.model = #llama.model<dim = 576, layers = 30, heads = 9, kv_heads = 3, head_size = 64, ffn = 1536, vocab = 49152, max_context = 2048, norm_eps = -1.0e-05 : f64, rope_theta = 1.0e+05 : f64, tied = true>} {}

// -----

// expected-error @below {{#llama.model expects rope_theta to be a positive f64, got 1.000000e+05 : f32}}
module attributes {llama.model = #llama.model<dim = 576, layers = 30, heads = 9, kv_heads = 3, head_size = 64, ffn = 1536, vocab = 49152, max_context = 2048, norm_eps = 1.0e-05 : f64, rope_theta = 1.0e+05 : f32, tied = true>} {}

// -----

// expected-error @below {{has 'llama.config' = 1 : i64; the llama dialect knows 'llama.model', a #llama.model on a module}}
module attributes {llama.config = 1} {}

// -----

// expected-error @below {{has 'llama.model' = 1 : i64; the llama dialect knows 'llama.model', a #llama.model on a module}}
module attributes {llama.model = 1} {}

// -----

// expected-error @below {{has 'llama.model' = 1 : i64; the llama dialect knows 'llama.model', a #llama.model on a module}}
func.func private @f() attributes {llama.model = 1}

// -----

func.func @empty_name() {
  // expected-error @below {{'llama.weight' op expects a name, got an empty one}}
  %0 = llama.weight "" : tensor<4xf32>
  return
}

// -----

func.func @empty_dimension() {
  // expected-error @below {{'llama.weight' op expects sizes of 1 to 2147483647, got 'tensor<0x32xf32>'}}
  %0 = llama.weight "w" : tensor<0x32xf32>
  return
}

// -----

func.func @block_of_32() {
  // expected-error @below {{'llama.weight' op expects rows of whole blocks of 32 elements, got 48 elements a row}}
  %0 = llama.weight "w" : tensor<4x48x!llama.quant<q8_0>>
  return
}

// -----

func.func @block_of_256() {
  // expected-error @below {{'llama.weight' op expects rows of whole blocks of 256 elements, got 128 elements a row}}
  %0 = llama.weight "w" : tensor<4x128x!llama.quant<q6_k>>
  return
}

// -----

func.func @dynamic_weight() {
  // expected-error @below {{'llama.weight' op result #0 must be statically shaped 1D/2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<?x32xf32>'}}
  %0 = llama.weight "w" : tensor<?x32xf32>
  return
}

// -----

func.func @integer_weight() {
  // expected-error @below {{'llama.weight' op result #0 must be statically shaped 1D/2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<4x32xi8>'}}
  %0 = llama.weight "w" : tensor<4x32xi8>
  return
}

// -----

// expected-error @below {{argument 0 is #llama.role<tokens> and cannot be of type 'tensor<?xf32>'}}
func.func @tokens_of_floats(%x: tensor<?xf32> {llama.role = #llama.role<tokens>}) {
  return
}

// -----

// expected-error @below {{argument 0 is #llama.role<kv, layer = 0> and cannot be of type 'tensor<?xi32>'}}
func.func @cache_of_indices(%x: tensor<?xi32> {llama.role = #llama.role<kv, layer = 0>}) {
  return
}

// -----

// expected-error @below {{#llama.role expects a layer from 0 on of kv, and of nothing else}}
func.func @layer_of_tokens(%x: tensor<?xi32> {llama.role = #llama.role<tokens, layer = 0>}) {
  return
}

// -----

// expected-error @below {{#llama.role expects a layer from 0 on of kv, and of nothing else}}
func.func @cache_of_no_layer(%x: !llama.kv<heads = 3, size = 64> {llama.role = #llama.role<kv>}) {
  return
}

// -----

// expected-error @below {{#llama.role expects a layer from 0 on of kv, and of nothing else}}
func.func @cache_of_a_layer_below(%x: !llama.kv<heads = 3, size = 64> {llama.role = #llama.role<kv, layer = -1>}) {
  return
}

// -----

// expected-error @below {{arguments 0 and 1 are both #llama.role<kv, layer = 0>}}
func.func @layer_twice(%x: !llama.kv<heads = 3, size = 64> {llama.role = #llama.role<kv, layer = 0>}, %y: !llama.kv<heads = 3, size = 64> {llama.role = #llama.role<kv, layer = 0>}) {
  return
}

// -----

// expected-error @below {{argument 1 is #llama.role<kv, layer = 2>, of a step with 2 caches}}
func.func @layer_missing(%x: !llama.kv<heads = 3, size = 64> {llama.role = #llama.role<kv, layer = 0>}, %y: !llama.kv<heads = 3, size = 64> {llama.role = #llama.role<kv, layer = 2>}) {
  return
}

// -----

// expected-error @below {{argument 0 is #llama.role<positions> and cannot be of type '!llama.kv<heads = 3, size = 64>'}}
func.func @positions_of_a_cache(%x: !llama.kv<heads = 3, size = 64> {llama.role = #llama.role<positions>}) {
  return
}

// -----

// expected-error @below {{arguments 0 and 2 are both #llama.role<positions>}}
func.func @role_twice(%x: tensor<?xi32> {llama.role = #llama.role<positions>}, %y: tensor<?xi32>, %z: tensor<?xi32> {llama.role = #llama.role<positions>}) {
  return
}

// -----

// expected-error @below {{argument 0 has 'llama.part' = "tokens"; the llama dialect knows 'llama.role', a #llama.role on a function's argument}}
func.func @unknown(%x: tensor<?xi32> {llama.part = "tokens"}) {
  return
}
