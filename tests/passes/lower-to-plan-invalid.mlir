// Functions that cannot become programs are refused where they stand.
// RUN: llamac-opt %s --split-input-file --attach-target --lower-to-plan --verify-diagnostics

// expected-error @below {{has no row bounds: run specialise-rows first}}
func.func @step(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}) {
  return
}

// -----

// expected-error @below {{argument 1: expected a llama.role, which says what it is}}
func.func @nameless(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  return
}

// -----

func.func @graph_op(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !llama.kv<heads = 1, size = 8> {llama.role = #llama.role<kv, layer = 0>})
    -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %w = llama.weight "w" : tensor<8x8xbf16>
  // expected-error @below {{cannot become a launch: lower-to-kernels must come first}}
  %x = llama.embedding %tokens, %w : (tensor<?xi32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

func.func @product_without_config(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !llama.kv<heads = 1, size = 8> {llama.role = #llama.role<kv, layer = 0>})
    -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %w = llama.weight "w" : tensor<8x8xbf16>
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // expected-error @below {{no kernel family of target cpu implements kernel.matmul as it is: choose-kernels must come first}}
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

!kv = !llama.kv<heads = 1, size = 8>

func.func @attention_without_config(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !kv {llama.role = #llama.role<kv, layer = 0>})
    -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %w = llama.weight "w" : tensor<8x8xbf16>
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // expected-error @below {{no kernel family of target cpu implements kernel.attention as it is: choose-kernels must come first}}
  %0 = kernel.attention %x over %kv at %pos, %seq {scale = 0.25 : f64} : (tensor<?x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @nothing_given() attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  // expected-error @below {{expected logits as the first result}}
  return
}

// -----

// expected-error @below {{llamac.max_rows: expected 1 to 1048576 in i64, got -1 : i64}}
func.func @rows_below_none() attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = -1 : i64} {
  return
}

// -----

// expected-error @below {{llamac.max_logits_rows: expected 1 to 1048576 in i64, got 1 : i8}}
func.func @rows_of_another_type() attributes {llamac.max_logits_rows = 1 : i8, llamac.max_rows = 1 : i64} {
  return
}
