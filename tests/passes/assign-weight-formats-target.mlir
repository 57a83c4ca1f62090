// A type that the target's kernels read as another one is said once, with how
// many matrices have it; one that they take is not mentioned.
// RUN: llamac-opt %s --assign-weight-formats --verify-diagnostics | FileCheck %s

module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 64>} {
  func.func @step(%x: tensor<?x64xf32>) -> tensor<?x8xf32> {
    // CHECK: llama.weight "first" : tensor<8x64xf32>
    // expected-warning @below {{f32 is read as bf16: target cuda has no kernels for f32; 1 more matrix likewise}}
    %0 = llama.weight "first" : tensor<8x64xf32>
    %1 = llama.weight "second" : tensor<8x64xf32>
    %2 = llama.weight "third" : tensor<8x64xbf16>
    %3 = llama.linear %x, %0 : (tensor<?x64xf32>, tensor<8x64xf32>) -> tensor<?x8xf32>
    %4 = llama.linear %x, %1 : (tensor<?x64xf32>, tensor<8x64xf32>) -> tensor<?x8xf32>
    %5 = llama.linear %x, %2 : (tensor<?x64xf32>, tensor<8x64xbf16>) -> tensor<?x8xf32>
    %6 = llama.add %3, %4 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %7 = llama.add %6, %5 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    return %7 : tensor<?x8xf32>
  }
}
