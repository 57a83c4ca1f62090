// Products by wgmma take their input in bf16: whoever makes it rounds it.
// RUN: llamac-opt %s --round-inputs | FileCheck %s
// RUN: llamac-opt %s --round-inputs --round-inputs | FileCheck %s

#wgmma = #kernel.matmul_config<family = wgmma, rowBlock = 64>
#gemv = #kernel.matmul_config<family = gemv, rowBlock = 4>
!kv = !llama.kv<heads = 2, size = 16>

module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 512, gpu = "sm_90a">} {

// Two products of one norm share its launch, where the first of them stands.
// CHECK-LABEL: func.func @norm
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>, %[[N:.*]]: tensor<64xf32>, %[[W:.*]]: tensor<32x64xbf16>)
// CHECK-NEXT: %[[B:.*]] = kernel.rms_norm %[[X]], %[[N]] {eps = 1.000000e-05 : f64} : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xbf16>
// CHECK-NEXT: kernel.matmul %[[B]], %[[W]] epilogue
// CHECK-NOT: eps
// CHECK: -> tensor<?x32xf32>
// CHECK-NEXT: kernel.matmul %[[B]], %[[W]] epilogue
// CHECK-NOT: kernel.rms_norm
func.func @norm(%x: tensor<?x64xf32>, %n: tensor<64xf32>, %w: tensor<32x64xbf16>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %0 = kernel.matmul %x, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<64xf32>) -> tensor<?x32xf32>
  %1 = kernel.matmul %x, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<64xf32>) -> tensor<?x32xf32>
  return %0, %1 : tensor<?x32xf32>, tensor<?x32xf32>
}

// Attention and a product that a product alone reads round what they give.
// CHECK-LABEL: func.func @makers
// CHECK: %[[A:.*]] = kernel.attention {{.*}} -> tensor<?x64xbf16>
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[A]],
// CHECK: -> tensor<?x32xbf16>
// CHECK-NEXT: kernel.matmul %[[H]],
// CHECK: -> tensor<?x64xf32>
func.func @makers(%q: tensor<?x64xf32>, %kv: !kv, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %w: tensor<32x64xbf16>, %v: tensor<64x32xbf16>) -> tensor<?x64xf32> {
  %0 = kernel.attention %q over %kv at %pos, %seq {scale = 0.25 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  %1 = kernel.matmul %0, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xf32>, tensor<32x64xbf16>) -> tensor<?x32xf32>
  %2 = kernel.matmul %1, %v epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x32xf32>, tensor<64x32xbf16>) -> tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}

// Packed weights are multiplied by columns in the order of lanes, those in bf16
// by columns in their own. Who makes a value for both rounds it for neither.
// CHECK-LABEL: func.func @orders
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>, %[[N:.*]]: tensor<64xf32>,
// CHECK-NEXT: %[[LANES:.*]] = kernel.rms_norm %[[X]], %[[N]] {{.*}} -> tensor<?x64xbf16, #kernel.lane_order>
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[LANES]],
// CHECK: -> tensor<?x64xf32>
// CHECK-NEXT: %[[HL:.*]] = kernel.pointwise %[[H]] body
// CHECK: -> tensor<?x64xbf16, #kernel.lane_order>
// CHECK-NEXT: kernel.matmul %[[HL]],
// CHECK: %[[HB:.*]] = kernel.pointwise %[[H]] body
// CHECK: -> tensor<?x64xbf16>{{$}}
// CHECK-NEXT: kernel.matmul %[[HB]],
func.func @orders(%x: tensor<?x64xf32>, %n: tensor<64xf32>, %q: tensor<64x64x!llama.quant<q8_0>>, %b: tensor<64x64xbf16>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = kernel.matmul %x, %q norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<64x64x!llama.quant<q8_0>>, tensor<64xf32>) -> tensor<?x64xf32>
  %1 = kernel.matmul %0, %q epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xf32>, tensor<64x64x!llama.quant<q8_0>>) -> tensor<?x64xf32>
  %2 = kernel.matmul %0, %b epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xf32>, tensor<64x64xbf16>) -> tensor<?x64xf32>
  return %1, %2 : tensor<?x64xf32>, tensor<?x64xf32>
}

// What another op reads too stays in f32, and so does what comes from outside:
// a launch makes a copy, one for all products.
// CHECK-LABEL: func.func @copies
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>,
// CHECK-NEXT: %[[C:.*]] = kernel.pointwise %[[X]] body {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
// CHECK-NEXT: kernel.yield %[[E]]
// CHECK-NEXT: } : (tensor<?x64xf32>) -> tensor<?x64xbf16>
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[C]],
// CHECK: -> tensor<?x64xf32>
// CHECK-NEXT: %[[D:.*]] = kernel.pointwise %[[H]] body
// CHECK: -> tensor<?x64xbf16>
// CHECK-NEXT: kernel.matmul %[[D]], {{.*}} extras(%[[H]])
// CHECK: kernel.matmul %[[C]],
func.func @copies(%x: tensor<?x64xf32>, %w: tensor<64x64xbf16>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xf32>, tensor<64x64xbf16>) -> tensor<?x64xf32>
  %1 = kernel.matmul %0, %w extras(%0) epilogue {
  ^bb0(%acc: f32, %r: f32):
    %s = arith.addf %r, %acc : f32
    kernel.yield %s
  } {config = #wgmma} : (tensor<?x64xf32>, tensor<64x64xbf16>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %2 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xf32>, tensor<64x64xbf16>) -> tensor<?x64xf32>
  return %1, %2 : tensor<?x64xf32>, tensor<?x64xf32>
}

// Other families normalise and round by themselves.
// CHECK-LABEL: func.func @few_rows
// CHECK-NEXT: kernel.matmul %{{.*}}, %{{.*}} norm(%{{.*}}) epilogue
// CHECK-NOT: bf16>) -> tensor<?x64xbf16>
func.func @few_rows(%x: tensor<?x64xf32>, %n: tensor<64xf32>, %w: tensor<32x64xbf16>) -> tensor<?x32xf32> {
  %0 = kernel.matmul %x, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #gemv, eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<64xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}
}
