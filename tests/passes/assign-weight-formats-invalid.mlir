// A format that weights are not converted to is refused, known or not.
// RUN: not llamac-opt %s --assign-weight-formats=format=q9 2>&1 | FileCheck %s --check-prefix=Q9
// RUN: not llamac-opt %s --assign-weight-formats=format=q6_k 2>&1 | FileCheck %s --check-prefix=Q6
// RUN: not llamac-opt %s --assign-weight-formats=format= 2>&1 | FileCheck %s --check-prefix=NONE

// Q9: invalid.mlir:[[# @LINE + 3]]:1: error: weight format is 'q9', expected keep, bf16, q8_0, fp8, mxfp8 or q4_0
// Q6: invalid.mlir:[[# @LINE + 2]]:1: error: weight format is 'q6_k', expected keep, bf16, q8_0, fp8, mxfp8 or q4_0
// NONE: invalid.mlir:[[# @LINE + 1]]:1: error: weight format is '', expected keep, bf16, q8_0, fp8, mxfp8 or q4_0
func.func @step() {
  return
}
