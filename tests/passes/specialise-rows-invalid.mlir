// A module without @step, such as one that was specialised before, is refused.
// RUN: llamac-opt %s --split-input-file --specialise-rows --verify-diagnostics

// expected-error @below {{no function @step to specialise by rows}}
module {
  func.func @decode(%x: tensor<?x8xf32>) {
    return
  }
}

// -----

// A program of that name is no function.
// expected-error @below {{no function @step to specialise by rows}}
module {
  plan.program @step {
  } {max_logits_rows = 1 : i64, max_rows = 1 : i64}
}
