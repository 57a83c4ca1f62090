// The verifiers of the kernel dialect refuse these: of each op every operand's
// rank, element type and size.
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

func.func @rope_table_positions_rank(%p: tensor<i32>) {
  // expected-error @below {{'kernel.rope_table' op operand #0 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<i32>) -> tensor<?x2x2xf32>
  return
}

// -----

func.func @rope_table_result_rank(%p: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_table' op result #0 must be 3D tensor of 32-bit float values, but got 'tensor<?x4xf32>'}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @rope_table_pairs(%p: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_table' op cos/sin's last dimension is 3, expected 2}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x3xf32>
  return
}

// -----

func.func @rope_table_frequencies(%p: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_table' op number of frequencies is 2, expected 3}}
  %0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x3x2xf32>
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

func.func @append_kv(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: i32, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #4 must be !llama.kv, but got 'i32'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, i32, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, i32)
  return
}

// -----

func.func @append_new_kv(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op failed to verify that all of {kv, newKv} have same type}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 3, size = 8>)
  return
}

// -----

func.func @append_query_rank(%q: tensor<?x2x8xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x2x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x2x8xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x8xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_key_rank(%q: tensor<?x32xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #1 must be 2D tensor of 32-bit float values, but got 'tensor<?x2x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x2x8xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_value_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x2x8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #2 must be 2D tensor of 32-bit float values, but got 'tensor<?x2x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x2x8xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_table_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x8xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #3 must be 3D tensor of 32-bit float values, but got 'tensor<?x8xf32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x8xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_positions_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<i32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op operand #5 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<i32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_sequences_rank(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<i32>) {
  // expected-error @below {{'kernel.rope_append' op operand #6 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<i32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_query_width(%q: tensor<?x24xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op query's width is 24, expected a multiple of 16}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x24xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x24xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_key_width(%q: tensor<?x32xf32>, %k: tensor<?x32xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op key's width is 32, expected 16}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_value_width(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op value's width is 8, expected 16}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_table_pairs(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x8x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op table's pairs is 8, expected 4}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x8x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_turned(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op failed to verify that all of {query, rotated} have same type}}
  %0:2 = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @attention_kv(%q: tensor<?x32xf32>, %kv: f32, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #1 must be !llama.kv, but got 'f32'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, f32, tensor<?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @attention_query_rank(%q: tensor<?x4x8xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x4x8xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x4x8xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x8xf32>
  return
}

// -----

func.func @attention_positions_rank(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?x?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #2 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x?xi32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?x?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @attention_sequences_rank(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?x?xi32>) {
  // expected-error @below {{'kernel.attention' op operand #3 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x?xi32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?x?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @attention_query_width(%q: tensor<?x40xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op query's width is 40, expected a multiple of 16}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x40xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x40xf32>
  return
}

// -----

func.func @attention_result(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result is 'tensor<?x16xf32>', expected the shape of 'tensor<?x32xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @whole_attention_result(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result is 'tensor<?x4x2x10xf32>', expected the shape of 'tensor<?x32xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x2x10xf32>
  return
}

// -----

func.func @split_rank(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result is 'tensor<?x32xf32>', expected partial results of 'tensor<?x32xf32>'}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @split_type(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op result #0 must be 2D tensor of 32-bit float or bfloat16 type values or 4D tensor of 32-bit float values, but got 'tensor<?x4x2x10xf16>'}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x2x10xf16>
  return
}

// -----

func.func @split_heads(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op partial results' heads is 2, expected 4}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x2x10xf32>
  return
}

// -----

func.func @split_splits(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op partial results' splits is 3, expected 2}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x3x10xf32>
  return
}

// -----

func.func @split_partial(%q: tensor<?x32xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention' op partial results' last dimension is 8, expected 10}}
  %0 = kernel.attention %q over %kv at %p, %s {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, scale = 0.5 : f64}
    : (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x2x8xf32>
  return
}

// -----

func.func @merge_partials_rank(%q: tensor<?x32xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op operand #0 must be 4D tensor of 32-bit float values, but got 'tensor<?x32xf32>'}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x32xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_result_rank(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op result #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x4x8xf32>'}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x4x8xf32>
  return
}

// -----

func.func @merge_positions_rank(%q: tensor<?x4x2x10xf32>, %p: tensor<i32>) {
  // expected-error @below {{'kernel.attention_merge' op operand #1 must be 1D tensor of 32-bit signless integer values, but got 'tensor<i32>'}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<i32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_family(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op config is #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, expected the split_kv family}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_splits(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op partial results' splits is 2, expected 4}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 4, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_partial(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op partial results' last dimension is 10, expected 12}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 12>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_width(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op result's width is 30, expected a multiple of 4 heads}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 2 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x30xf32>
  return
}

// -----

func.func @merge_kv_heads(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op kvHeads is 3, expected a divisor of 4 heads}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 3 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @merge_no_kv_heads(%q: tensor<?x4x2x10xf32>, %p: tensor<?xi32>) {
  // expected-error @below {{'kernel.attention_merge' op kvHeads is 0, expected a divisor of 4 heads}}
  %0 = kernel.attention_merge %q at %p {config = #kernel.attention_config<family = split_kv, splits = 2, partial = 10>, kvHeads = 0 : i64, scale = 0.5 : f64}
    : (tensor<?x4x2x10xf32>, tensor<?xi32>) -> tensor<?x32xf32>
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

// expected-error @below {{expected ::llamac::kernel::AttentionFamily to be one of: unsplit, split_kv, merged}}
// expected-error @below {{failed to parse Kernel_AttentionConfigAttr parameter 'family'}}
func.func private @attention_family() attributes {config = #kernel.attention_config<family = ring, splits = 1, partial = 1>}

// -----

// expected-error @below {{#kernel.attention_config expects rows of 0 where another launch merges, got 4}}
func.func private @attention_rows() attributes {config = #kernel.attention_config<family = split_kv, splits = 1, partial = 1, rows = 4>}

// -----

func.func @qkv_input_rank(%x: tensor<64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #0 must be 2D tensor of 32-bit float or bfloat16 type values, but got 'tensor<64xf32>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_turned_rank(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op result #0 must be 2D tensor of 32-bit float values, but got 'tensor<?x4x8xf32>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x8xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_turned_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op rotated query's width is 16, expected 32}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x16xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_query_weight_type(%x: tensor<?x64xf32>, %q: tensor<32x64xi8>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #1 must be statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<32x64xi8>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xi8>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_query_weight_columns(%x: tensor<?x64xf32>, %q: tensor<32x32xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op query weight's columns is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x32xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_query_weight_rows(%x: tensor<?x64xf32>, %q: tensor<24x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op query's width is 24, expected a multiple of 16}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<24x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_key_weight_rank(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #2 must be statically shaped 2D tensor of f32, f16, bf16 or a block format values, but got 'tensor<16xbf16>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_key_weight_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x32xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op key weight's columns is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x32xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_key_weight_rows(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<24x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op key weight's rows is 24, expected 16}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<24x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_value_weight_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x32xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op value weight's columns is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x32xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_value_weight_rows(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<8x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op value weight's rows is 8, expected 16}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<8x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_norm_without_eps(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op needs both a norm and eps, or neither}}
  %0:2 = kernel.qkv %x, %q, %k, %v norm(%n) rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<64xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_eps_without_norm(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op needs both a norm and eps, or neither}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s {eps = 1.0e-5 : f64}
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_norm_size(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<32xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op norm weight's size is 32, expected 64}}
  %0:2 = kernel.qkv %x, %q, %k, %v norm(%n) rotated by %t into %kv at %p, %s {eps = 1.0e-5 : f64}
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<32xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_table_pairs(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x8x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op table's pairs is 8, expected 4}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x8x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_kv(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: i32, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #5 must be !llama.kv, but got 'i32'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, i32, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, i32)
  return
}

// -----

func.func @qkv_new_kv(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op failed to verify that all of {kv, newKv} have same type}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 3, size = 8>)
  return
}

// -----

func.func @qkv_positions(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi64>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #6 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?xi64>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi64>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @qkv_sequences(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?x1xi32>) {
  // expected-error @below {{'kernel.qkv' op operand #7 must be 1D tensor of 32-bit signless integer values, but got 'tensor<?x1xi32>'}}
  %0:2 = kernel.qkv %x, %q, %k, %v rotated by %t into %kv at %p, %s
    : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?x1xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

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

func.func @append_one_norm(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op needs two norms and eps, or neither}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n) {eps = 1.0e-5 : f64}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<8xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_norms_without_eps(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op needs two norms and eps, or neither}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n, %n)
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_norm_of_half_heads(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<4xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op norm's size is 4, expected heads of 8 that divide 32}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n, %n) {eps = 1.0e-5 : f64}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @append_norm_of_more_than_the_key(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<32xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) {
  // expected-error @below {{'kernel.rope_append' op norm's size is 32, expected heads of 8 that divide 16}}
  %0:2 = kernel.rope_append %q, %k, %k, %t into %kv at %p, %s norms(%n, %n) {eps = 1.0e-5 : f64}
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return
}

// -----

func.func @products_norm(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op needs both a norm and eps, or neither}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v norm(%n) : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<64xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_query_columns(%x: tensor<?x64xf32>, %q: tensor<32x32xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op query weight's columns is 32, expected 64}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x32xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_key_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x32xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op key weight's columns is 32, expected 64}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x32xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_value_columns(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x32xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op value weight's columns is 32, expected 64}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x32xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_query_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op query's width is 16, expected 32}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_key_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op key's width is 32, expected 16}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>)
  return
}

// -----

func.func @products_value_width(%x: tensor<?x64xf32>, %q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x64xbf16>, %n: tensor<64xf32>) {
  // expected-error @below {{'kernel.qkv_products' op value's width is 8, expected 16}}
  %0:3 = kernel.qkv_products %x, %q, %k, %v : (tensor<?x64xf32>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x8xf32>)
  return
}

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

// expected-error @below {{#kernel.attention_config expects splits of 1 to 2147483647, got 0}}
func.func @split_into_nothing() attributes {a = #kernel.attention_config<family = split_kv, splits = 0, partial = 10>}

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
