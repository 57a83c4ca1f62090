//===- TokenNoise.h - The random numbers of a draw --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A draw is an exponential race, which is the Gumbel-max trick without its
// logarithm: each token has an exponential random number, and that with the
// least quotient of the number and its weight is drawn, which it is with the
// probability that its weight is of all. The number is that of the token's id,
// so that two models that give nearly the same weights mostly draw the same
// token by one key.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SAMPLING_TOKENNOISE_H
#define LLAMAC_ENGINE_SAMPLING_TOKENNOISE_H

#include <cmath>
#include <cstdint>

namespace llamac {

/// A hash of the key of a draw and of a token's id; those of one key differ.
/// The mixing is [16 21f0aaad 15 d35a2d97 15] of the hash prospector
/// (github.com/skeeto/hash-prospector). The key enters a second time between
/// the multiplications: two keys that differ in a few bits would else have the
/// same numbers for ids in another order. Kernels that sample have the same
/// function (codegen/cuda/kernels/sampling.cuh).
inline uint32_t tokenNoise(uint32_t key, uint32_t id) {
  uint32_t mixed = id ^ key;
  mixed = (mixed ^ mixed >> 16) * 0x21f0aaad ^ key * 0x9e3779b9;
  mixed = (mixed ^ mixed >> 15) * 0xd35a2d97;
  return mixed ^ mixed >> 15;
}

/// A number in (0, 1), uniform where `noise` is.
inline double uniformOf(uint32_t noise) { return (noise + 0.5) * 0x1p-32; }

/// An exponential random number of mean 1; no less than uniformOf().
inline double exponentialOf(uint32_t noise) {
  return -std::log1p(-uniformOf(noise));
}

} // namespace llamac

#endif // LLAMAC_ENGINE_SAMPLING_TOKENNOISE_H
