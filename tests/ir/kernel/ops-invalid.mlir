// The verifiers of the kernel dialect refuse these: of each op every operand's
// rank, element type and size. attention-invalid.mlir has the ops of attention.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics

func.func @embed_tokens_rank(%t: tensor<?x1xi32>, %w: tensor<9x8xf32>) {
  // expected-error @below {{'kernel.embed' op operand #0 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x1xi32>'}}
  %0 = kernel.embed %t, %w : (tensor<?x1xi32>, tensor<9x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @embed_table_rank(%t: tensor<?xi32>, %w: tensor<8xf32>) {
  // expected-error @below {{'kernel.embed' op operand #1 must be statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<8xf32>'}}
  %0 = kernel.embed %t, %w : (tensor<?xi32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @embed_result_rank(%t: tensor<?xi32>, %w: tensor<9x8xf32>) {
  // expected-error @below {{'kernel.embed' op result #0 must be 2D tensor of 32-bit float values, but got 'tensor<8xf32>'}}
  %0 = kernel.embed %t, %w : (tensor<?xi32>, tensor<9x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @embed_positions_without_frequencies(%t: tensor<?xi32>, %w: tensor<9x8xbf16>) {
  // expected-error @below {{'kernel.embed' op needs positions, frequencies and a second result, or none of them}}
  %0, %1 = kernel.embed %t, %w cos_sin(%t) : (tensor<?xi32>, tensor<9x8xbf16>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>)
  return
}

// -----

func.func @embed_angles_size(%t: tensor<?xi32>, %w: tensor<9x8xbf16>) {
  // expected-error @below {{'kernel.embed' op number of frequencies is 2, expected 3}}
  %0, %1 = kernel.embed %t, %w cos_sin(%t) {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>, tensor<9x8xbf16>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x3x2xf32>)
  return
}

// -----

func.func @embed_angles_type(%t: tensor<?xi32>, %w: tensor<9x8xbf16>) {
  // expected-error @below {{'kernel.embed' op result #1 must be 3D tensor of 32-bit float values, but got 'tensor<?x2x2xf16>'}}
  %0, %1 = kernel.embed %t, %w cos_sin(%t) {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>, tensor<9x8xbf16>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf16>)
  return
}

// -----

func.func @embed_width(%t: tensor<?xi32>, %w: tensor<9x8xf32>) {
  // expected-error @below {{'kernel.embed' op result's width is 16, expected 8}}
  %0 = kernel.embed %t, %w : (tensor<?xi32>, tensor<9x8xf32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @norm_input_rank(%x: tensor<8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'kernel.rms_norm' op operand #0 must be 2D tensor of 32-bit float values, but got 'tensor<8xf32>'}}
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @norm_weight_rank(%x: tensor<?x8xf32>, %w: tensor<1x8xf32>) {
  // expected-error @below {{'kernel.rms_norm' op operand #1 must be statically shaped 1D tensor of 32-bit float values, but got 'tensor<1x8xf32>'}}
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_result(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'kernel.rms_norm' op failed to verify that all of {input, result} have same shape}}
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @norm_width(%x: tensor<?x8xf32>, %w: tensor<9xf32>) {
  // expected-error @below {{'kernel.rms_norm' op weight's size is 9, expected a divisor of 8}}
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<9xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_extras(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'kernel.rms_norm' op has extra operands and no epilogue}}
  %0 = kernel.rms_norm %x, %w extras(%x) {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_extras_width(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %r: tensor<?x4xf32>) {
  // expected-error @below {{'kernel.rms_norm' op element-wise operand is 'tensor<?x4xf32>', expected the result's shape in f32, 'tensor<?x8xf32>'}}
  %0 = kernel.rms_norm %x, %w extras(%r) epilogue {
  ^bb0(%a: f32, %b: f32):
    kernel.yield %a
  } {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_epilogue(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'kernel.rms_norm' op region takes 2 scalars, expected 1}}
  %0 = kernel.rms_norm %x, %w epilogue {
  ^bb0(%a: f32, %b: f32):
    kernel.yield %a
  } {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_epilogue_blocks(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'kernel.rms_norm' op epilogue has more than one block}}
  %0 = kernel.rms_norm %x, %w epilogue {
  ^bb0(%a: f32):
    kernel.yield %a
  ^bb1(%b: f32):
    kernel.yield %b
  } {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @gather_rows_rank(%x: tensor<?x8xf32>, %i: tensor<?x1xi32>) {
  // expected-error @below {{'kernel.gather_rows' op operand #1 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x1xi32>'}}
  %0 = kernel.gather_rows %x, %i : (tensor<?x8xf32>, tensor<?x1xi32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @gather_input_rank(%x: tensor<8xf32>, %i: tensor<?xi32>) {
  // expected-error @below {{'kernel.gather_rows' op operand #0 must be 2D tensor of 32-bit float values or 1D tensor of 32-bit signless integer values, but got 'tensor<8xf32>'}}
  %0 = kernel.gather_rows %x, %i : (tensor<8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @gather_result_rank(%x: tensor<?x8xf32>, %i: tensor<?xi32>) {
  // expected-error @below {{'kernel.gather_rows' op result #0 must be 2D tensor of 32-bit float values or 1D tensor of 32-bit signless integer values, but got 'tensor<8xf32>'}}
  %0 = kernel.gather_rows %x, %i : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @gather_width(%x: tensor<?x8xf32>, %i: tensor<?xi32>) {
  // expected-error @below {{'kernel.gather_rows' op result is 'tensor<?x9xf32>', expected rows of 'tensor<?x8xf32>'}}
  %0 = kernel.gather_rows %x, %i : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x9xf32>
  return
}

// -----

func.func @matmul_input_rank(%x: tensor<8xf32>, %w0: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op operand #0 must be 2D tensor of 32-bit float or bfloat16 type values, but got 'tensor<8xf32>'}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  }
    : (tensor<8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_result_rank(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op result #0 must be 2D tensor of 32-bit float or bfloat16 type values, but got 'tensor<4xf32>'}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<4xf32>
  return
}

// -----

func.func @matmul_three_weights(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %w1: tensor<4x8xbf16>, %w2: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op takes one or two weights, got 3}}
  %0 = kernel.matmul %x, %w0, %w1, %w2 epilogue {
  ^bb0(%a0: f32, %a1: f32, %a2: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_weight_rank(%x: tensor<?x8xf32>, %w0: tensor<8xbf16>) {
  // expected-error @below {{'kernel.matmul' op operand #1 must be variadic of statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<8xbf16>'}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_weight_columns(%x: tensor<?x8xf32>, %w0: tensor<4x16xbf16>) {
  // expected-error @below {{'kernel.matmul' op weight's columns is 16, expected 8}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x16xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_weight_rows(%x: tensor<?x8xf32>, %w0: tensor<5x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op weight's rows is 5, expected 4}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<5x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_weights_differ(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %w1: tensor<4x8xf16>) {
  // expected-error @below {{'kernel.matmul' op weights differ in type: 'tensor<4x8xbf16>' and 'tensor<4x8xf16>'}}
  %0 = kernel.matmul %x, %w0, %w1 epilogue {
  ^bb0(%a0: f32, %a1: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4x8xf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_norm_alone(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<8xf32>) {
  // expected-error @below {{'kernel.matmul' op needs both a norm and eps, or neither}}
  %0 = kernel.matmul %x, %w0 norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_eps_alone(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op needs both a norm and eps, or neither}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } {eps = 1.0e-5 : f64}
    : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_norm_rank(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<1x8xf32>) {
  // expected-error @below {{'kernel.matmul' op norm is 'tensor<1x8xf32>', expected weights of 8 numbers, or squares of the rows of 'tensor<?x8xf32>'}}
  %0 = kernel.matmul %x, %w0 norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } {eps = 1.0e-5 : f64}
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<1x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_norm_parts(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<?x3xf32>) {
  // expected-error @below {{'kernel.matmul' op norm has squares of 3 parts, expected a divisor of 8}}
  %0 = kernel.matmul %x, %w0 norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } {eps = 1.0e-5 : f64}
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<?x3xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_next_norm_alone(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<4xf32>) {
  // expected-error @below {{'kernel.matmul' op gives 1 results, expected 3 with a next norm}}
  %0 = kernel.matmul %x, %w0 next_norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_no_next_norm(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op gives 3 results, expected 1 without a next norm}}
  %0, %1, %2 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> (tensor<?x4xf32>, tensor<?x4xbf16>, tensor<?x1xf32>)
  return
}

// -----

func.func @matmul_next_norm_rows(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<4xf32>) {
  // expected-error @below {{'kernel.matmul' op gives 'tensor<?x4xf32>', 'tensor<?x4xf32>', 'tensor<?x1xf32>' with a next norm, expected rows in f32, the same rows in bf16 and their squares in f32}}
  %0, %1, %2 = kernel.matmul %x, %w0 next_norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x1xf32>)
  return
}

// -----

func.func @matmul_next_norm_size(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<8xf32>) {
  // expected-error @below {{'kernel.matmul' op next norm's size is 8, expected 4}}
  %0, %1, %2 = kernel.matmul %x, %w0 next_norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<8xf32>) -> (tensor<?x4xf32>, tensor<?x4xbf16>, tensor<?x1xf32>)
  return
}

// -----

func.func @matmul_next_norm_parts(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<4xf32>) {
  // expected-error @below {{'kernel.matmul' op third result has squares of 3 parts, expected a divisor of 4}}
  %0, %1, %2 = kernel.matmul %x, %w0 next_norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4xf32>) -> (tensor<?x4xf32>, tensor<?x4xbf16>, tensor<?x3xf32>)
  return
}

// -----

func.func @matmul_norm_size(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %n: tensor<4xf32>) {
  // expected-error @below {{'kernel.matmul' op norm weight's size is 4, expected 8}}
  %0 = kernel.matmul %x, %w0 norm(%n) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } {eps = 1.0e-5 : f64}
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_extra(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %e0: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.matmul' op element-wise operand is 'tensor<?x8xf32>', expected the result's shape in f32, 'tensor<?x4xf32>'}}
  %0 = kernel.matmul %x, %w0 extras(%e0) epilogue {
  ^bb0(%a0: f32, %a1: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<?x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_scalars(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op region takes 2 scalars, expected 1}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32, %a1: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_scalars_with_extra(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %e0: tensor<?x4xf32>) {
  // expected-error @below {{'kernel.matmul' op region takes 1 scalars, expected 2}}
  %0 = kernel.matmul %x, %w0 extras(%e0) epilogue {
  ^bb0(%a0: f32):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_scalar_type(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>, %w1: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op region argument 1 must be f32, got 'bf16'}}
  %0 = kernel.matmul %x, %w0, %w1 epilogue {
  ^bb0(%a0: f32, %a1: bf16):
    kernel.yield %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_no_yield(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op region must end with kernel.yield}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
    %s = kernel.silu %a0
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @matmul_empty_region(%x: tensor<?x8xf32>, %w0: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op region must end with kernel.yield}}
  %0 = kernel.matmul %x, %w0 epilogue {
  ^bb0(%a0: f32):
  }
    : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @pointwise_nothing() {
  // expected-error @below {{'kernel.pointwise' op takes at least one operand}}
  %0 = "kernel.pointwise"() ({
    %c = arith.constant 0.0 : f32
    kernel.yield %c
  }) : () -> tensor<?x8xf32>
  return
}

// -----

func.func @pointwise_operand(%x0: tensor<?x8xf32>, %x1: tensor<?x9xf32>) {
  // expected-error @below {{'kernel.pointwise' op element-wise operand is 'tensor<?x9xf32>', expected the result's shape in f32, 'tensor<?x8xf32>'}}
  %0 = kernel.pointwise %x0, %x1 body {
  ^bb0(%a0: f32, %a1: f32):
    kernel.yield %a0
  } : (tensor<?x8xf32>, tensor<?x9xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @pointwise_rank(%x0: tensor<8xf32>) {
  // expected-error @below {{'kernel.pointwise' op result #0 must be 2D tensor of 32-bit float or bfloat16 type values, but got 'tensor<8xf32>'}}
  %0 = kernel.pointwise %x0 body {
  ^bb0(%a0: f32):
    kernel.yield %a0
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @pointwise_scalars(%x0: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.pointwise' op region takes 2 scalars, expected 1}}
  %0 = kernel.pointwise %x0 body {
  ^bb0(%a0: f32, %a1: f32):
    kernel.yield %a0
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @pointwise_scalar_type(%x0: tensor<?x8xf32>, %x1: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.pointwise' op region argument 0 must be f32, got 'f16'}}
  %0 = kernel.pointwise %x0, %x1 body {
  ^bb0(%a0: f16, %a1: f32):
    kernel.yield %a1
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @pointwise_no_yield(%x0: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.pointwise' op region must end with kernel.yield}}
  %0 = kernel.pointwise %x0 body {
  ^bb0(%a0: f32):
    %s = kernel.silu %a0
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @silu_type(%x: tensor<?x8xf32>) {
  %0 = kernel.pointwise %x body {
  ^bb0(%a: f32):
    // expected-note @above {{prior use here}}
    // expected-error @below {{use of value '%a' expects different type than prior uses: 'f64' vs 'f32'}}
    %s = "kernel.silu"(%a) : (f64) -> f64
    kernel.yield %a
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @yield_outside(%x: f32) {
  // expected-error @below {{'kernel.yield' op expects parent op to be one of 'kernel.all_reduce, kernel.matmul, kernel.pointwise, kernel.rms_norm'}}
  kernel.yield %x
}

// -----

// expected-error @below {{expected ::llamac::kernel::MatmulFamily to be one of: gemv, gemm}}
// expected-error @below {{failed to parse Kernel_MatmulConfigAttr parameter 'family'}}
func.func private @matmul_family() attributes {config = #kernel.matmul_config<family = outer, rowBlock = 1>}

// -----

func.func @sample_logits_rank(%logits: tensor<512xf32>, %draws: tensor<?x4xi32>) {
  // expected-error @below {{'kernel.sample' op operand #0 must be 2D tensor of 32-bit float values, but got 'tensor<512xf32>'}}
  %0 = kernel.sample %logits by %draws : (tensor<512xf32>, tensor<?x4xi32>) -> tensor<?xi32>
  return
}

// -----

func.func @sample_draws_rank(%logits: tensor<?x512xf32>, %draws: tensor<?xi32>) {
  // expected-error @below {{'kernel.sample' op operand #1 must be 2D tensor of 32-bit signless integer values, but got 'tensor<?xi32>'}}
  %0 = kernel.sample %logits by %draws : (tensor<?x512xf32>, tensor<?xi32>) -> tensor<?xi32>
  return
}

// -----

func.func @sample_draws_words(%logits: tensor<?x512xf32>, %draws: tensor<?x3xi32>) {
  // expected-error @below {{'kernel.sample' op number of sampling params is 3, expected 4}}
  %0 = kernel.sample %logits by %draws : (tensor<?x512xf32>, tensor<?x3xi32>) -> tensor<?xi32>
  return
}

// -----

func.func @sample_result(%logits: tensor<?x512xf32>, %draws: tensor<?x4xi32>) {
  // expected-error @below {{'kernel.sample' op result #0 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?xf32>'}}
  %0 = kernel.sample %logits by %draws : (tensor<?x512xf32>, tensor<?x4xi32>) -> tensor<?xf32>
  return
}

// -----

// expected-error @below {{has 'kernel.target' = 4096 : i64; the kernel dialect knows 'kernel.target', a #kernel.target on a module}}
module attributes {kernel.target = 4096} {
}

// -----

// expected-error @below {{has 'kernel.targets' = }}
module attributes {kernel.targets = #kernel.target<name = "cpu", context_size = 64>} {
}

// -----

// expected-error @below {{a #kernel.target on a module}}
func.func private @target_of_a_function() attributes {kernel.target = #kernel.target<name = "cpu", context_size = 64>}

// -----

func.func @gather_of_other_ranks(%x: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.all_gather' op result's width is 24, expected 16}}
  %0 = kernel.all_gather %x over 2 : (tensor<?x8xf32>) -> tensor<?x24xf32>
  return
}

// -----

func.func @sum_of_one_rank(%x: tensor<?x8xf32>) {
  // expected-error @below {{attribute 'ranks' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 2}}
  %0 = kernel.all_reduce %x over 1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @sum_of_what_nothing_takes(%x: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.all_reduce' op has extra operands and no epilogue}}
  %0 = kernel.all_reduce %x over 2 extras(%x) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @tree_over_three(%x: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.all_reduce' op has a tree over 3 ranks, expected a power of two}}
  %0 = kernel.all_reduce %x over 3 {tree} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @leaves_that_do_not_divide(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>) {
  // expected-error @below {{'kernel.matmul' op cuts 8 columns into 16 leaves, which do not divide them}}
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {leaves = 16 : i64} : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @no_depth(%x: tensor<?x0xf32>, %w: tensor<4x0xbf16>) {
  // expected-error @below {{'kernel.matmul' op takes or gives 'tensor<?x0xf32>', expected sizes of 1 to 2147483647, of which rows alone may be dynamic}}
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x0xf32>, tensor<4x0xbf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @norm_by_nothing(%x: tensor<?x8xf32>, %w: tensor<0xf32>) {
  // expected-error @below {{'kernel.rms_norm' op takes or gives 'tensor<0xf32>', expected sizes of 1 to 2147483647}}
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<0xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @width_unknown(%x: tensor<?x?xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'kernel.rms_norm' op takes or gives 'tensor<?x?xf32>', expected sizes of 1 to 2147483647}}
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<?x?xf32>, tensor<8xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @table_of_unknown_rows(%tokens: tensor<?xi32>, %w: tensor<?x8xbf16>) {
  // expected-error @below {{'kernel.embed' op operand #1 must be statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<?x8xbf16>'}}
  %0 = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<?x8xbf16>) -> tensor<?x8xf32>
  return
}

// -----

func.func @too_wide(%x: tensor<?x4294967296xf32>) {
  // expected-error @below {{'kernel.all_gather' op takes or gives 'tensor<?x4294967296xf32>', expected sizes of 1 to 2147483647}}
  %0 = kernel.all_gather %x over 2 : (tensor<?x4294967296xf32>) -> tensor<?x8589934592xf32>
  return
}

// -----

func.func @too_many_ranks(%x: tensor<?x8xf32>) {
  // expected-error @below {{'kernel.all_reduce' op attribute 'ranks' failed to satisfy constraint}}
  %0 = kernel.all_reduce %x over 65 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

// expected-error @below {{tile 'panels': expected a size of 0 to 2147483647 in i64, got "two"}}
func.func @tiles_without_a_size() attributes {a = #kernel.matmul_config<family = gemv, rowBlock = 1, tiles = {panels = "two"}>}

// -----

// expected-error @below {{#kernel.matmul_config expects a rowBlock of 0 to 2147483647, got -1}}
func.func @rows_below_none() attributes {a = #kernel.matmul_config<family = gemv, rowBlock = -1>}

// -----

// expected-error @below {{#kernel.target expects a context_size of 1 to 1048576, got 0}}
module attributes {kernel.target = #kernel.target<name = "cpu", context_size = 0>} {}

// -----

// expected-error @below {{#kernel.target of sim expects an isa of fast, checked or hostile-rounding, got avx2}}
module attributes {kernel.target = #kernel.target<name = "sim", context_size = 64, isa = "avx2">} {}

// -----

func.func @no_phase(%x: tensor<?x8xf32>) {
  %0 = kernel.resident %x phases {
  ^bb0(%y: tensor<?x8xf32>):
    // expected-error @below {{'arith.constant' op is no phase of a resident step}}
    %z = arith.constant 1.0 : f32
    kernel.return %y : tensor<?x8xf32>
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @other_results(%x: tensor<?x8xf32>) {
  %0 = kernel.resident %x phases {
  ^bb0(%y: tensor<?x8xf32>):
    // expected-error @below {{'kernel.return' op gives 'tensor<?x8xf32>', expected 'tensor<?x9xf32>'}}
    kernel.return %y : tensor<?x8xf32>
  } : (tensor<?x8xf32>) -> tensor<?x9xf32>
  return
}

// -----

func.func @uneven_layers(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  %0 = kernel.resident %x, %w phases {
  ^bb0(%y: tensor<?x8xf32>, %u: tensor<8xf32>):
    // expected-error @below {{'kernel.layers' op has 3 operands for each of 2 layers}}
    %z = kernel.layers 2 shared() carried(%y) each(%u, %u, %u) {
    ^bb0(%h: tensor<?x8xf32>, %v: tensor<8xf32>):
      kernel.return %h : tensor<?x8xf32>
    } : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    kernel.return %z : tensor<?x8xf32>
  } : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @layers_of_other_types(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %u: tensor<4xf32>) {
  %0 = kernel.resident %x, %w, %u phases {
  ^bb0(%y: tensor<?x8xf32>, %a: tensor<8xf32>, %b: tensor<4xf32>):
    // expected-error @below {{'kernel.layers' op has 'tensor<4xf32>' for layer 1, but 'tensor<8xf32>' for layer 0}}
    %z = kernel.layers 2 shared() carried(%y) each(%a, %b) {
    ^bb0(%h: tensor<?x8xf32>, %v: tensor<8xf32>):
      kernel.return %h : tensor<?x8xf32>
    } : (tensor<?x8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
    kernel.return %z : tensor<?x8xf32>
  } : (tensor<?x8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @carries_another_type(%x: tensor<?x8xf32>, %w: tensor<?x4xf32>) {
  %0 = kernel.resident %x, %w phases {
  ^bb0(%y: tensor<?x8xf32>, %a: tensor<?x4xf32>):
    // expected-error @below {{'kernel.layers' op takes 'tensor<?x8xf32>' for the first layer, and gives others}}
    %z = kernel.layers 2 shared(%a) carried(%y) each() {
    ^bb0(%b: tensor<?x4xf32>, %h: tensor<?x8xf32>):
      kernel.return %b : tensor<?x4xf32>
    } : (tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x4xf32>
    kernel.return %z : tensor<?x4xf32>
  } : (tensor<?x8xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}
