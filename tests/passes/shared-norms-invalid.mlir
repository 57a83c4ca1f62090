// A norm is shared by ops that have kernels for it alone.
// RUN: llamac-opt %s --split-input-file --lower-to-plan --verify-diagnostics

// Blocks of products of more rows go through several tiles of them.
module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 512, gpu = "sm_90a">} {
func.func @rows(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>})
    -> tensor<?x128xf32> attributes {llamac.max_logits_rows = 256 : i64, llamac.max_rows = 256 : i64} {
  %w = llama.weight "w" : tensor<128x128xbf16>
  %q = llama.weight "q" : tensor<128x128x!llama.quant<q8_0>>
  %n = llama.weight "n" : tensor<128xf32>
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<128x128xbf16>) -> tensor<?x128xf32>
  %0, %1, %2 = kernel.rms_norm %x, %n next_norm(%n) {eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128xf32>, tensor<128xf32>) -> (tensor<?x128xf32>, tensor<?x128xbf16, #kernel.lane_order>, tensor<?x2xf32>)
  // expected-error @below {{no kernel family of target cuda implements kernel.matmul as it is}}
  %3 = kernel.matmul %1, %q norm(%2) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = wgmma, rowBlock = 256>, eps = 1.0e-5 : f64} : (tensor<?x128xbf16, #kernel.lane_order>, tensor<128x128x!llama.quant<q8_0>>, tensor<?x2xf32>) -> tensor<?x128xf32>
  return %3 : tensor<?x128xf32>
}
}

// -----

// A part of a row that is normalised by itself has less than a square's columns.
module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 512, gpu = "sm_90a">} {
func.func @parts(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>})
    -> tensor<?x128xf32> attributes {llamac.max_logits_rows = 16 : i64, llamac.max_rows = 16 : i64} {
  %w = llama.weight "w" : tensor<128x128xbf16>
  %n = llama.weight "n" : tensor<32xf32>
  %m = llama.weight "m" : tensor<128xf32>
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<128x128xbf16>) -> tensor<?x128xf32>
  // expected-error @below {{no kernel family of target cuda implements kernel.rms_norm as it is}}
  %0, %1, %2 = kernel.rms_norm %x, %n next_norm(%m) {eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<32xf32>, tensor<128xf32>) -> (tensor<?x128xf32>, tensor<?x128xbf16>, tensor<?x2xf32>)
  return %0 : tensor<?x128xf32>
}
}

// -----

// The cpu target's kernels share none.
module attributes {kernel.target = #kernel.target<name = "cpu", context_size = 512>} {
func.func @cpu(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>})
    -> tensor<?x128xf32> attributes {llamac.max_logits_rows = 16 : i64, llamac.max_rows = 16 : i64} {
  %w = llama.weight "w" : tensor<128x128xbf16>
  %m = llama.weight "m" : tensor<128xf32>
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<128x128xbf16>) -> tensor<?x128xf32>
  // expected-error @below {{no kernel family of target cpu implements kernel.rms_norm as it is}}
  %0, %1, %2 = kernel.rms_norm %x, %m next_norm(%m) {eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128xf32>, tensor<128xf32>) -> (tensor<?x128xf32>, tensor<?x128xbf16>, tensor<?x2xf32>)
  return %0 : tensor<?x128xf32>
}
}
