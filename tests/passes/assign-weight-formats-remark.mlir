// A matrix whose rows are not whole blocks keeps its type, and the user is told
// which and why.
// RUN: llamac-opt %s --assign-weight-formats=format=q8_0 --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<?x48xf32>, %y: tensor<?x96xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK: llama.weight "narrow" : tensor<8x48xbf16>
  // expected-warning @below {{keeps bf16: its rows of 48 elements are not whole blocks of 32}}
  %0 = llama.weight "narrow" : tensor<8x48xbf16>
  // CHECK: llama.weight "wide" : tensor<8x96x!llama.quant<q8_0>>
  %1 = llama.weight "wide" : tensor<8x96xbf16>
  %2 = llama.linear %x, %0 : (tensor<?x48xf32>, tensor<8x48xbf16>) -> tensor<?x8xf32>
  %3 = llama.linear %y, %1 : (tensor<?x96xf32>, tensor<8x96xbf16>) -> tensor<?x8xf32>
  return %2, %3 : tensor<?x8xf32>, tensor<?x8xf32>
}
