// Vectors become f32, matrices take the format that is asked for.
// RUN: llamac-opt %s --assign-weight-formats | FileCheck %s --check-prefixes=CHECK,KEEP
// RUN: llamac-opt %s --assign-weight-formats=format=keep | FileCheck %s --check-prefixes=CHECK,KEEP
// RUN: llamac-opt %s --assign-weight-formats=format=bf16 | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: llamac-opt %s --assign-weight-formats=format=q8_0 | FileCheck %s --check-prefixes=CHECK,Q8
// RUN: llamac-opt %s --assign-weight-formats=format=mxfp8 | FileCheck %s --check-prefixes=CHECK,MXFP8
// RUN: llamac-opt %s --assign-weight-formats=format=fp8 | FileCheck %s --check-prefixes=CHECK,FP8
// RUN: llamac-opt %s --assign-weight-formats=format=q4_0 | FileCheck %s --check-prefixes=CHECK,Q4
// RUN: llamac-opt %s --assign-weight-formats=format=q4_0 --assign-weight-formats=format=q4_0 | FileCheck %s --check-prefixes=CHECK,Q4

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<?x64xf32>) -> tensor<?x40xf32> {
  // CHECK-NEXT: %[[NORM:.*]] = llama.weight "norm" : tensor<64xf32>
  %norm = llama.weight "norm" : tensor<64xbf16>
  // CHECK-NEXT: %[[Y:.*]] = llama.rms_norm %{{.*}}, %[[NORM]] eps = 1.000000e-05 : (tensor<?x64xf32>, tensor<64xf32>)
  %0 = llama.rms_norm %x, %norm eps = 1.0e-5 : (tensor<?x64xf32>, tensor<64xbf16>) -> tensor<?x64xf32>
  // KEEP-NEXT: %[[W:.*]] = llama.weight "w1" : tensor<40x64xf16>
  // BF16-NEXT: %[[W:.*]] = llama.weight "w1" : tensor<40x64xbf16>
  // Q8-NEXT: %[[W:.*]] = llama.weight "w1" : tensor<40x64x!llama.quant<q8_0>>
  // MXFP8-NEXT: %[[W:.*]] = llama.weight "w1" : tensor<40x64x!llama.quant<mxfp8>>
  // FP8-NEXT: %[[W:.*]] = llama.weight "w1" : tensor<40x64x!llama.quant<fp8>>
  // Q4-NEXT: %[[W:.*]] = llama.weight "w1" : tensor<40x64x!llama.quant<q4_0>>
  %w1 = llama.weight "w1" : tensor<40x64xf16>
  // Its users see the new type.
  // KEEP-NEXT: llama.linear %[[Y]], %[[W]] : (tensor<?x64xf32>, tensor<40x64xf16>)
  // BF16-NEXT: llama.linear %[[Y]], %[[W]] : (tensor<?x64xf32>, tensor<40x64xbf16>)
  // Q8-NEXT: llama.linear %[[Y]], %[[W]] : (tensor<?x64xf32>, tensor<40x64x!llama.quant<q8_0>>)
  // MXFP8-NEXT: llama.linear %[[Y]], %[[W]] : (tensor<?x64xf32>, tensor<40x64x!llama.quant<mxfp8>>)
  // FP8-NEXT: llama.linear %[[Y]], %[[W]] : (tensor<?x64xf32>, tensor<40x64x!llama.quant<fp8>>)
  // Q4-NEXT: llama.linear %[[Y]], %[[W]] : (tensor<?x64xf32>, tensor<40x64x!llama.quant<q4_0>>)
  %1 = llama.linear %0, %w1 : (tensor<?x64xf32>, tensor<40x64xf16>) -> tensor<?x40xf32>
  return %1 : tensor<?x40xf32>
}

// A block format gives way to another.
// CHECK-LABEL: func.func @blocks
func.func @blocks(%x: tensor<?x256xf32>) -> tensor<?x8xf32> {
  // KEEP: tensor<8x256x!llama.quant<q6_k>>
  // BF16: tensor<8x256xbf16>
  // Q8: tensor<8x256x!llama.quant<q8_0>>
  // MXFP8: tensor<8x256x!llama.quant<mxfp8>>
  // FP8: tensor<8x256x!llama.quant<fp8>>
  // Q4: tensor<8x256x!llama.quant<q4_0>>
  %w = llama.weight "w" : tensor<8x256x!llama.quant<q6_k>>
  %0 = llama.linear %x, %w : (tensor<?x256xf32>, tensor<8x256x!llama.quant<q6_k>>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
