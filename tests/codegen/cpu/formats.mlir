// Every element type of weights is named by its own panel format, in products
// and in the embedding alike.
// RUN: llamac-emit-unit < %s | FileCheck %s

// CHECK: embed<EmbedConfig{.format = PanelFormat::F32, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::F32,
plan.kernel @embed_f32(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256xf32>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256xf32>) -> tensor<?x256xf32>
}
plan.kernel @gemv_f32(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256xf32>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256xf32>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::F16, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::F16,
plan.kernel @embed_f16(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256xf16>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256xf16>) -> tensor<?x256xf32>
}
plan.kernel @gemv_f16(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256xf16>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256xf16>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::BF16, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::BF16,
plan.kernel @embed_bf16(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256xbf16>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256xbf16>) -> tensor<?x256xf32>
}
plan.kernel @gemv_bf16(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256xbf16>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256xbf16>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q8_0, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q8_0,
plan.kernel @embed_q8_0(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q8_0>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q8_0>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q8_0(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q8_0>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q8_0>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q4_0, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q4_0,
plan.kernel @embed_q4_0(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q4_0>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q4_0>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q4_0(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q4_0>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q4_0>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q4_1, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q4_1,
plan.kernel @embed_q4_1(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q4_1>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q4_1>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q4_1(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q4_1>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q4_1>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q5_0, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q5_0,
plan.kernel @embed_q5_0(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q5_0>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q5_0>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q5_0(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q5_0>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q5_0>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q5_1, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q5_1,
plan.kernel @embed_q5_1(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q5_1>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q5_1>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q5_1(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q5_1>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q5_1>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q4_K, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q4_K,
plan.kernel @embed_q4_k(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q4_k>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q4_k>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q4_k(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q4_k>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q4_k>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q5_K, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q5_K,
plan.kernel @embed_q5_k(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q5_k>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q5_k>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q5_k(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q5_k>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q5_k>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q6_K, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q6_K,
plan.kernel @embed_q6_k(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q6_k>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q6_k>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q6_k(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q6_k>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q6_k>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::MXFP8, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::MXFP8,
plan.kernel @embed_mxfp8(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<mxfp8>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<mxfp8>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_mxfp8(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<mxfp8>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<mxfp8>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q2_K, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q2_K,
plan.kernel @embed_q2_k(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q2_k>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q2_k>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q2_k(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q2_k>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q2_k>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::Q3_K, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::Q3_K,
plan.kernel @embed_q3_k(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q3_k>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q3_k>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_q3_k(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<q3_k>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<q3_k>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::IQ4_NL, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::IQ4_NL,
plan.kernel @embed_iq4_nl(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<iq4_nl>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<iq4_nl>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_iq4_nl(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<iq4_nl>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<iq4_nl>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::IQ4_XS, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::IQ4_XS,
plan.kernel @embed_iq4_xs(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<iq4_xs>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<iq4_xs>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_iq4_xs(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<iq4_xs>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<iq4_xs>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::MXFP4, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::MXFP4,
plan.kernel @embed_mxfp4(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<mxfp4>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<mxfp4>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_mxfp4(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<mxfp4>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<mxfp4>>) -> tensor<?x9xf32>
}
// CHECK: embed<EmbedConfig{.format = PanelFormat::FP8, .width = 256}>
// CHECK: constexpr MatmulConfig config{
// CHECK-NEXT: .format = PanelFormat::FP8,
plan.kernel @embed_fp8(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<fp8>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<fp8>>) -> tensor<?x256xf32>
}
plan.kernel @gemv_fp8(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %w: tensor<9x256x!llama.quant<fp8>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x256xf32>, tensor<9x256x!llama.quant<fp8>>) -> tensor<?x9xf32>
}
