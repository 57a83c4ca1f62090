// Products by wgmma take their input in bf16: whoever makes it rounds it.
// RUN: llamac-opt %s --round-inputs | FileCheck %s
// RUN: llamac-opt %s --round-inputs --round-inputs | FileCheck %s

#wgmma = #kernel.matmul_config<family = wgmma, rowBlock = 64>
#prompts = #kernel.matmul_config<family = wgmma, rowBlock = 256>
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

// A norm between two products needs no launch: the first gives its rows in bf16
// with the gain, and squares of each 64 columns; all that read them share these.
// What else reads the rows has them in f32.
// CHECK-LABEL: func.func @shared
// CHECK: %[[N:.*]] = llama.weight "n"
// CHECK-NEXT: %[[Y:.*]], %[[F:.*]]:2 = kernel.matmul %{{.*}}, %{{.*}} next_norm(%[[N]]) epilogue
// CHECK: -> (tensor<?x128xf32>, tensor<?x128xbf16>, tensor<?x2xf32>)
// CHECK: kernel.matmul %[[F]]#0, %{{.*}} norm(%[[F]]#1) extras(%[[Y]]) epilogue
// CHECK: eps = 1.000000e-05 : f64
// CHECK: kernel.matmul %[[F]]#0, %{{.*}} norm(%[[F]]#1) epilogue
// CHECK-NOT: kernel.rms_norm
// CHECK: return
func.func @shared(%x: tensor<?x64xbf16>, %w: tensor<128x64xbf16>, %v: tensor<128x128xbf16>) -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xbf16>, tensor<128x64xbf16>) -> tensor<?x128xf32>
  %n = llama.weight "n" : tensor<128xf32>
  %1 = kernel.matmul %0, %v norm(%n) extras(%0) epilogue {
  ^bb0(%acc: f32, %r: f32):
    %s = arith.addf %r, %acc : f32
    kernel.yield %s
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128xbf16>, tensor<128xf32>, tensor<?x128xf32>) -> tensor<?x128xf32>
  %2 = kernel.matmul %0, %v norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128xbf16>, tensor<128xf32>) -> tensor<?x128xf32>
  return %1, %2 : tensor<?x128xf32>, tensor<?x128xf32>
}

// A sum over ranks and a norm that adds a residual share the norm behind them
// with the product too.
// CHECK-LABEL: func.func @other_makers
// CHECK: %[[S:.*]], %[[F:.*]]:2 = kernel.all_reduce %{{.*}} over 2 next_norm(%{{.*}}) : (tensor<?x128xf32>, tensor<128xf32>) -> (tensor<?x128xf32>, tensor<?x128xbf16>, tensor<?x2xf32>)
// CHECK-NEXT: %[[P:.*]] = kernel.matmul %[[F]]#0, %{{.*}} norm(%[[F]]#1) epilogue
// CHECK: %[[Y:.*]], %[[G:.*]]:2 = kernel.rms_norm %[[P]], %{{.*}} next_norm(%{{.*}}) extras(%[[S]]) epilogue
// CHECK: kernel.matmul %[[G]]#0, %{{.*}} norm(%[[G]]#1) epilogue
func.func @other_makers(%x: tensor<?x128xf32>, %v: tensor<128x128xbf16>, %n: tensor<128xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = kernel.all_reduce %x over 2 : (tensor<?x128xf32>) -> tensor<?x128xf32>
  %1 = kernel.matmul %0, %v norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128xbf16>, tensor<128xf32>) -> tensor<?x128xf32>
  %2 = kernel.rms_norm %1, %n extras(%0) epilogue {
  ^bb0(%normed: f32, %r: f32):
    %s = arith.addf %r, %normed : f32
    kernel.yield %s
  } {eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128xf32>, tensor<?x128xf32>) -> tensor<?x128xf32>
  %3 = kernel.matmul %2, %v norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128xbf16>, tensor<128xf32>) -> tensor<?x128xf32>
  return %2, %3 : tensor<?x128xf32>, tensor<?x128xf32>
}

// One norm is shared. Others of the same rows are launches: of another gain, or
// of columns in another order.
// CHECK-LABEL: func.func @one_is_shared
// CHECK-SAME: %[[N:[a-z0-9]*]]: tensor<128xf32>, %[[M:[a-z0-9]*]]: tensor<128xf32>
// CHECK: %[[Y:.*]], %[[F:.*]]:2 = kernel.matmul %{{.*}}, %{{.*}} next_norm(%[[N]]) epilogue
// CHECK: kernel.matmul %[[F]]#0, %{{.*}} norm(%[[F]]#1) epilogue
// CHECK: kernel.rms_norm %[[Y]], %[[M]] {{.*}} -> tensor<?x128xbf16>
// CHECK: kernel.rms_norm %[[Y]], %[[N]] {{.*}} -> tensor<?x128xbf16, #kernel.lane_order>
func.func @one_is_shared(%x: tensor<?x64xbf16>, %w: tensor<128x64xbf16>, %v: tensor<128x128xbf16>, %q: tensor<128x128x!llama.quant<q8_0>>, %n: tensor<128xf32>, %m: tensor<128xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xbf16>, tensor<128x64xbf16>) -> tensor<?x128xf32>
  %1 = kernel.matmul %0, %v norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128xbf16>, tensor<128xf32>) -> tensor<?x128xf32>
  %2 = kernel.matmul %0, %v norm(%m) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128xbf16>, tensor<128xf32>) -> tensor<?x128xf32>
  %3 = kernel.matmul %0, %q norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128x!llama.quant<q8_0>>, tensor<128xf32>) -> tensor<?x128xf32>
  return %1, %2, %3 : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>
}

// Prompts have launches for norms, and so have rows that no kernel cuts into
// parts of 64 columns.
// CHECK-LABEL: func.func @not_shared
// CHECK-COUNT-2: kernel.rms_norm
// CHECK-NOT: next_norm
func.func @not_shared(%x: tensor<?x64xbf16>, %w: tensor<128x64xbf16>, %v: tensor<128x128xbf16>, %n: tensor<128xf32>, %w96: tensor<96x64xbf16>, %v96: tensor<128x96xbf16>, %n96: tensor<96xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #prompts} : (tensor<?x64xbf16>, tensor<128x64xbf16>) -> tensor<?x128xf32>
  %1 = kernel.matmul %0, %v norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #prompts, eps = 1.0e-5 : f64} : (tensor<?x128xf32>, tensor<128x128xbf16>, tensor<128xf32>) -> tensor<?x128xf32>
  %2 = kernel.matmul %x, %w96 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma} : (tensor<?x64xbf16>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  %3 = kernel.matmul %2, %v96 norm(%n96) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #wgmma, eps = 1.0e-5 : f64} : (tensor<?x96xf32>, tensor<128x96xbf16>, tensor<96xf32>) -> tensor<?x128xf32>
  return %1, %3 : tensor<?x128xf32>, tensor<?x128xf32>
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

// A value that another op reads too stays in f32, and so does one from outside:
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
