// Without both bounds of rows and a target there is nothing to choose by.
// RUN: llamac-opt %s --split-input-file --choose-kernels --verify-diagnostics

// expected-error @below {{has no row bounds: run specialise-rows first}}
func.func @step(%x: tensor<?x8xf32>) {
  return
}

// -----

// expected-error @below {{has no row bounds: run specialise-rows first}}
func.func @rows_alone(%x: tensor<?x8xf32>) attributes {llamac.max_rows = 1 : i64} {
  return
}

// -----

// expected-error @below {{has no kernel.target: attach-target must come first}}
module {
  func.func @no_target(%x: tensor<?x8xf32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
    return
  }
}

// -----

// expected-error @below {{target: expected cpu, cuda or sim, got tpu}}
module attributes {kernel.target = #kernel.target<name = "tpu", context_size = 64>} {
  func.func @unknown_target(%x: tensor<?x8xf32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
    return
  }
}

// -----

// expected-error @below {{target cuda: expected a cache of f16, bf16, q8_0 or fp8, got q4_0}}
module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 64, kv_type = "q4_0">} {
  func.func @unknown_cache(%x: tensor<?x8xf32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
    return
  }
}

// -----

// expected-error @below {{target cuda: expected one of sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a, got sm_70}}
module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 64, gpu = "sm_70">} {
  func.func @unknown_gpu(%x: tensor<?x8xf32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
    return
  }
}

// -----

// expected-error @below {{target cpu: expected one of generic, znver3, znver4, got z80}}
module attributes {kernel.target = #kernel.target<name = "cpu", context_size = 64, tune_cpu = "z80">} {
  func.func @unknown_processor(%x: tensor<?x8xf32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
    return
  }
}

// -----

// expected-error @below {{target cpu: expected levels of portable, x86-64-v3, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-amx, got x86-64-v2}}
module attributes {kernel.target = #kernel.target<name = "cpu", context_size = 64, isa = "portable,x86-64-v2">} {
  func.func @unknown_level(%x: tensor<?x8xf32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
    return
  }
}
