// Without both bounds of rows there is nothing to choose by.
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
