// With explain, what is left unfused is remarked on where it stands.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics --fuse-attention=explain --fuse-epilogue=explain --fuse-norm=explain

!kv = !llama.kv<layers = 2, heads = 2, size = 16>

func.func @unscaled(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>, %mask: tensor<?x?xf32>) -> tensor<?x4x16xf32> {
  %0 = llama.attention_scores %q, %k : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  %1 = llama.add_mask %0, %mask : (tensor<4x?x?xf32>, tensor<?x?xf32>) -> tensor<4x?x?xf32>
  %2 = llama.softmax %1 : (tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  // expected-remark @below {{not fused: the scores are not scaled}}
  %3 = llama.attention_values %2, %v : (tensor<4x?x?xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  return %3 : tensor<?x4x16xf32>
}

// -----

// The caller reads the product too.
func.func @product_read_twice(%x: tensor<?x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // expected-remark @below {{not fused: no operand is made by a pointwise op for this op alone}}
  // expected-remark @below {{not fused: no operand is made by a product for this op alone}}
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

func.func @norm_returned(%x: tensor<?x8xf32>, %n: tensor<8xf32>) -> tensor<?x8xf32> {
  // expected-remark @below {{not fused: not every reader is a product whose input this is and that has no norm yet}}
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// What is fused is not spoken of.
func.func @fused(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %2 = kernel.pointwise %1 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
