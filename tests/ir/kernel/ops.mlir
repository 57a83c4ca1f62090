// Every op and attribute of the kernel dialect round-trips through its text
// form and through the generic one.
// RUN: llamac-opt %s | llamac-opt | FileCheck %s
// RUN: llamac-opt %s --mlir-print-op-generic | llamac-opt | FileCheck %s

// CHECK: !kv = !llama.kv<heads = 3, size = 64>
!kv = !llama.kv<heads = 3, size = 64>

// CHECK-LABEL: func.func @embed
func.func @embed(%tokens: tensor<?xi32>, %table: tensor<49152x576x!llama.quant<q6_k>>) {
  // CHECK: kernel.embed %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<49152x576x!llama.quant<q6_k>>) -> tensor<?x576xf32>
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<49152x576x!llama.quant<q6_k>>) -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @embed_with_cos_sin
func.func @embed_with_cos_sin(%tokens: tensor<?xi32>, %table: tensor<9x8xbf16>, %positions: tensor<?xi32>) {
  // CHECK: %{{.*}}, %{{.*}} = kernel.embed %{{.*}}, %{{.*}} cos_sin(%{{.*}}) {frequencies = dense<[1.000000e+00, 1.000000e-01]> : tensor<2xf64>} : (tensor<?xi32>, tensor<9x8xbf16>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>)
  %0, %1 = kernel.embed %tokens, %table cos_sin(%positions) {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>, tensor<9x8xbf16>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>)
  return
}

// CHECK-LABEL: func.func @rope_table
func.func @rope_table(%positions: tensor<?xi32>) {
  // All digits of a frequency stay.
  // CHECK: kernel.rope_table %{{.*}} {frequencies = dense<[1.000000e+00, 5.623413251903491E-4]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  %0 = kernel.rope_table %positions {frequencies = dense<[1.0, 5.623413251903491E-4]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  return
}

// CHECK-LABEL: func.func @rms_norm
func.func @rms_norm(%x: tensor<?x576xf32>, %w: tensor<576xf32>) {
  // CHECK: kernel.rms_norm %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64} : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xf32>
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xf32>
  // CHECK: kernel.rms_norm %{{.*}}, %{{.*}} extras(%{{.*}}) epilogue {
  // CHECK: kernel.yield
  // CHECK: } {eps = 1.000000e-05 : f64} : (tensor<?x576xf32>, tensor<576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  %1 = kernel.rms_norm %x, %w extras(%x) epilogue {
  ^bb0(%normed: f32, %residual: f32):
    %s = arith.addf %residual, %normed : f32
    kernel.yield %s
  } {eps = 1.0e-5 : f64} : (tensor<?x576xf32>, tensor<576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @gather_rows
func.func @gather_rows(%x: tensor<?x576xf32>, %rows: tensor<4xi32>) {
  // CHECK: kernel.gather_rows %{{.*}}, %{{.*}} : (tensor<?x576xf32>, tensor<4xi32>) -> tensor<4x576xf32>
  %0 = kernel.gather_rows %x, %rows : (tensor<?x576xf32>, tensor<4xi32>) -> tensor<4x576xf32>
  // CHECK: kernel.gather_rows %{{.*}}, %{{.*}} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = kernel.gather_rows %rows, %rows : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @matmul
func.func @matmul(%x: tensor<?x64xf32>, %w: tensor<32x64xbf16>, %w3: tensor<32x64xbf16>,
                  %norm: tensor<64xf32>, %r: tensor<?x32xf32>) {
  // CHECK: kernel.matmul %{{.*}}, %{{.*}} epilogue {
  // CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32):
  // CHECK-NEXT: kernel.yield %[[ACC]]
  // CHECK-NEXT: } : (tensor<?x64xf32>, tensor<32x64xbf16>) -> tensor<?x32xf32>
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x64xf32>, tensor<32x64xbf16>) -> tensor<?x32xf32>

  // CHECK: kernel.matmul %{{.*}}, %{{.*}}, %{{.*}} norm(%{{.*}}) epilogue {
  // CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32):
  // CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
  // CHECK-NEXT: %[[P:.*]] = arith.mulf %[[S]], %[[UP]] : f32
  // CHECK-NEXT: kernel.yield %[[P]]
  // CHECK-NEXT: } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>, eps = 1.000000e-05 : f64}
  %1 = kernel.matmul %x, %w, %w3 norm(%norm) epilogue {
  ^bb0(%gate: f32, %up: f32):
    %s = kernel.silu %gate
    %p = arith.mulf %s, %up : f32
    kernel.yield %p
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>, eps = 1.0e-5 : f64}
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<32x64xbf16>, tensor<64xf32>) -> tensor<?x32xf32>

  // CHECK: kernel.matmul %{{.*}}, %{{.*}} extras(%{{.*}}) epilogue {
  // CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[R:.*]]: f32):
  // CHECK: } {config = #kernel.matmul_config<family = gemm, rowBlock = 0>}
  %2 = kernel.matmul %x, %w extras(%r) epilogue {
  ^bb0(%acc: f32, %residual: f32):
    %s = arith.addf %residual, %acc : f32
    kernel.yield %s
  } {config = #kernel.matmul_config<family = gemm, rowBlock = 0>}
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<?x32xf32>) -> tensor<?x32xf32>
  return
}

// Two products that share a norm.
// CHECK-LABEL: func.func @shared_norm
func.func @shared_norm(%x: tensor<?x64xf32>, %w: tensor<32x64xbf16>, %v: tensor<64x32xbf16>, %norm: tensor<32xf32>, %r: tensor<?x32xf32>) {
  // CHECK: %[[Y:.*]], %[[F:.*]]:2 = kernel.matmul %{{.*}}, %{{.*}} next_norm(%{{.*}}) extras(%{{.*}}) epilogue {
  // CHECK: } : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<32xf32>, tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xbf16>, tensor<?x2xf32>)
  %y, %rounded, %squares = kernel.matmul %x, %w next_norm(%norm) extras(%r) epilogue {
  ^bb0(%acc: f32, %residual: f32):
    %s = arith.addf %residual, %acc : f32
    kernel.yield %s
  } : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<32xf32>, tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xbf16>, tensor<?x2xf32>)
  // CHECK: kernel.matmul %[[F]]#0, %{{.*}} norm(%[[F]]#1) epilogue {
  // CHECK: } {eps = 1.000000e-05 : f64} : (tensor<?x32xbf16>, tensor<64x32xbf16>, tensor<?x2xf32>) -> tensor<?x64xf32>
  %z = kernel.matmul %rounded, %v norm(%squares) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-5 : f64} : (tensor<?x32xbf16>, tensor<64x32xbf16>, tensor<?x2xf32>) -> tensor<?x64xf32>
  return
}

// CHECK-LABEL: func.func @rope_append
func.func @rope_append(%q: tensor<?x576xf32>, %k: tensor<?x192xf32>, %table: tensor<?x32x2xf32>, %kv: !kv,
                       %positions: tensor<?xi32>, %sequences: tensor<?xi32>) {
  // CHECK: %{{.*}}, %{{.*}} = kernel.rope_append %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}} at %{{.*}}, %{{.*}} : (tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32>, tensor<?x32x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x576xf32>, !kv)
  %rotated, %new = kernel.rope_append %q, %k, %k, %table into %kv at %positions, %sequences
    : (tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32>, tensor<?x32x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x576xf32>, !kv)
  return
}

// CHECK-LABEL: func.func @rope_append_behind_norms
func.func @rope_append_behind_norms(%q: tensor<?x576xf32>, %k: tensor<?x192xf32>, %table: tensor<?x32x2xf32>, %kv: !kv,
                                    %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %n: tensor<64xf32>) {
  // CHECK: %{{.*}}, %{{.*}} = kernel.rope_append %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}} at %{{.*}}, %{{.*}} norms(%{{.*}}, %{{.*}}) {eps = 1.000000e-05 : f64}
  %rotated, %new = kernel.rope_append %q, %k, %k, %table into %kv at %positions, %sequences norms(%n, %n) {eps = 1.0e-5 : f64}
    : (tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32>, tensor<?x32x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<?x576xf32>, !kv)
  return
}

// CHECK-LABEL: func.func @qkv_products
func.func @qkv_products(%x: tensor<?x576xf32>, %wq: tensor<576x576xbf16>, %wk: tensor<192x576xf16>, %norm: tensor<576xf32>) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = kernel.qkv_products %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} norm(%{{.*}}) {eps = 1.000000e-05 : f64} : (tensor<?x576xf32>, tensor<576x576xbf16>, tensor<192x576xf16>, tensor<192x576xf16>, tensor<576xf32>) -> (tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32>)
  %q, %k, %v = kernel.qkv_products %x, %wq, %wk, %wk norm(%norm) {eps = 1.0e-5 : f64}
    : (tensor<?x576xf32>, tensor<576x576xbf16>, tensor<192x576xf16>, tensor<192x576xf16>, tensor<576xf32>) -> (tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32>)
  return
}

// CHECK-LABEL: func.func @qkv(
func.func @qkv(%x: tensor<?x576xf32>, %wq: tensor<576x576xbf16>, %wk: tensor<192x576xf16>, %norm: tensor<576xf32>, %table: tensor<?x32x2xf32>, %kv: !kv,
               %positions: tensor<?xi32>, %sequences: tensor<?xi32>) {
  // CHECK: %{{.*}}, %{{.*}} = kernel.qkv %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} norm(%{{.*}}) rotated by %{{.*}} into %{{.*}} at %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64} : (tensor<?x576xf32>, tensor<576x576xbf16>, tensor<192x576xf16>, tensor<192x576xf16>, tensor<576xf32>, tensor<?x32x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x576xf32>, !kv)
  %q0, %kv0 = kernel.qkv %x, %wq, %wk, %wk norm(%norm) rotated by %table into %kv at %positions, %sequences {eps = 1.0e-5 : f64}
    : (tensor<?x576xf32>, tensor<576x576xbf16>, tensor<192x576xf16>, tensor<192x576xf16>, tensor<576xf32>, tensor<?x32x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x576xf32>, !kv)
  // CHECK: kernel.qkv %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} rotated by %{{.*}} into %{{.*}} at %{{.*}}, %{{.*}} {config = #kernel.matmul_config<family = gemv, rowBlock = 1>}
  %q1, %kv1 = kernel.qkv %x, %wq, %wk, %wk rotated by %table into %kv at %positions, %sequences {config = #kernel.matmul_config<family = gemv, rowBlock = 1>}
    : (tensor<?x576xf32>, tensor<576x576xbf16>, tensor<192x576xf16>, tensor<192x576xf16>, tensor<?x32x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x576xf32>, !kv)
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<?x576xf32>, %kv: !kv, %positions: tensor<?xi32>, %sequences: tensor<?xi32>) {
  // CHECK: kernel.attention %{{.*}} over %{{.*}} at %{{.*}}, %{{.*}} {scale = 1.250000e-01 : f64} : (tensor<?x576xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x576xf32>
  %0 = kernel.attention %q over %kv at %positions, %sequences {scale = 0.125 : f64}
    : (tensor<?x576xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x576xf32>
  // CHECK: config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>
  %1 = kernel.attention %q over %kv at %positions, %sequences {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.125 : f64}
    : (tensor<?x576xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x576xf32>
  // CHECK: {approximation = #llama.approximation<exp = poly3>, scale = 1.250000e-01 : f64}
  %4 = kernel.attention %q over %kv at %positions, %sequences {approximation = #llama.approximation<exp = poly3>, scale = 0.125 : f64}
    : (tensor<?x576xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x576xf32>
  // CHECK: config = #kernel.attention_config<family = split_kv, splits = 8, partial = 80>
  // CHECK-SAME: -> tensor<?x9x8x80xf32>
  %2 = kernel.attention %q over %kv at %positions, %sequences {config = #kernel.attention_config<family = split_kv, splits = 8, partial = 80>, scale = 0.125 : f64}
    : (tensor<?x576xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x9x8x80xf32>
  // CHECK: kernel.attention_merge %{{.*}} at %{{.*}} {config = #kernel.attention_config<family = split_kv, splits = 8, partial = 80>, kvHeads = 3 : i64, scale = 1.250000e-01 : f64} : (tensor<?x9x8x80xf32>, tensor<?xi32>) -> tensor<?x576xf32>
  %3 = kernel.attention_merge %2 at %positions {config = #kernel.attention_config<family = split_kv, splits = 8, partial = 80>, kvHeads = 3 : i64, scale = 0.125 : f64}
    : (tensor<?x9x8x80xf32>, tensor<?xi32>) -> tensor<?x576xf32>
  return
}

// CHECK-LABEL: func.func @pointwise
func.func @pointwise(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) {
  // CHECK: kernel.pointwise %{{.*}}, %{{.*}} body {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
  // CHECK-NEXT: kernel.yield %[[S]]
  // CHECK-NEXT: } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = kernel.pointwise %x, %y body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @sample
func.func @sample(%logits: tensor<?x512xf32>, %draws: tensor<?x4xi32>) {
  // CHECK: kernel.sample %{{.*}} by %{{.*}} : (tensor<?x512xf32>, tensor<?x4xi32>) -> tensor<?xi32>
  %0 = kernel.sample %logits by %draws : (tensor<?x512xf32>, tensor<?x4xi32>) -> tensor<?xi32>
  return
}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%tokens: tensor<?xi32>, %table: tensor<52x8xbf16>, %rank: tensor<1xi32>, %y: tensor<?x8xf32>) {
  // CHECK: kernel.embed %{{.*}}, %{{.*}} rank(%{{.*}}) : (tensor<?xi32>, tensor<52x8xbf16>, tensor<1xi32>) -> tensor<?x8xf32>
  %x = kernel.embed %tokens, %table rank(%rank) : (tensor<?xi32>, tensor<52x8xbf16>, tensor<1xi32>) -> tensor<?x8xf32>
  // CHECK: kernel.all_reduce %{{.*}} over 2 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = kernel.all_reduce %x over 2 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: kernel.all_reduce %{{.*}} over 4 extras(%{{.*}}) epilogue {
  %1 = kernel.all_reduce %x over 4 extras(%y) epilogue {
  ^bb0(%sum: f32, %residual: f32):
    %s = arith.addf %residual, %sum : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: kernel.all_reduce %{{.*}} over 4 {tree} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = kernel.all_reduce %x over 4 {tree} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: kernel.all_gather %{{.*}} over 2 : (tensor<?x8xf32>) -> tensor<?x16xf32>
  %2 = kernel.all_gather %x over 2 : (tensor<?x8xf32>) -> tensor<?x16xf32>
  return
}

// CHECK-LABEL: func.func @resident
func.func @resident(%x: tensor<?x8xf32>, %positions: tensor<?xi32>, %a: tensor<8xf32>, %b: tensor<8xf32>) {
  // CHECK: %{{.*}} = kernel.resident %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} phases {
  // CHECK-NEXT: ^bb0(
  // CHECK-NEXT: %{{.*}} = kernel.layers 2 shared(%{{.*}}) carried(%{{.*}}) each(%{{.*}}, %{{.*}}) {
  // CHECK: kernel.return %{{.*}} : tensor<?x8xf32>
  // CHECK-NEXT: } : (tensor<?xi32>, tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: kernel.return %{{.*}} : tensor<?x8xf32>
  // CHECK-NEXT: } : (tensor<?x8xf32>, tensor<?xi32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %0 = kernel.resident %x, %positions, %a, %b phases {
  ^bb0(%y: tensor<?x8xf32>, %p: tensor<?xi32>, %c: tensor<8xf32>, %d: tensor<8xf32>):
    %z = kernel.layers 2 shared(%p) carried(%y) each(%c, %d) {
    ^bb0(%q: tensor<?xi32>, %h: tensor<?x8xf32>, %w: tensor<8xf32>):
      %n = kernel.rms_norm %h, %w {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
      kernel.return %n : tensor<?x8xf32>
    } : (tensor<?xi32>, tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    kernel.return %z : tensor<?x8xf32>
  } : (tensor<?x8xf32>, tensor<?xi32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}
