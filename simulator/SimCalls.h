//===- SimCalls.h - What simulated kernels call -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The border between a kernel compiled for the simulator and the simulator: a
// table of functions that the loader puts into the kernel's shared object. It
// is compiled on both sides and includes nothing. Each function is the twin of
// one wrapper in codegen/cuda/kernels/ptx*.cuh, which says what it does.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SIMCALLS_H
#define LLAMAC_SIMULATOR_SIMCALLS_H

namespace llamac {

struct SimShuffle {
  enum Kind { Lane, Xor, Down, Up };
};
struct SimReduce {
  enum Kind { Add, MinSigned, MaxSigned, MinUnsigned, MaxUnsigned, Or };
};
struct SimMma {
  enum Kind { Bf16, Half, Int8 };
};
struct SimOrder {
  enum Kind { Relaxed, AcqRel };
};

/// Which index or size SimCalls::coordinate gives, plus 0, 1, 2 for x, y, z.
struct SimCoordinate {
  enum Kind { Thread = 0, Block = 3, BlockSize = 6, GridSize = 9 };
};

/// A product of a warpgroup as one thread issues it: d (+)= a b, with `columns`
/// columns, a in registers or, when `aRegisters` is null, by its descriptor.
struct SimWgmma {
  int kind; ///< SimMma::Bf16 or Half.
  unsigned columns;
  float *d;
  const unsigned *aRegisters;
  unsigned long a;
  unsigned long b;
  bool accumulate;
  bool transposeB;
  int site; ///< The caller's place, like that of mma.
};

struct SimCalls {
  unsigned (*coordinate)(int which);

  /// The block's static shared variable that `key` stands for.
  void *(*sharedStatic)(const void *key, const char *name, unsigned size,
                        unsigned alignment);
  void *(*sharedDynamic)();
  unsigned (*sharedAddress)(const void *shared);

  float (*halfToFloat)(unsigned short bits);
  unsigned short (*floatToHalf)(float value);
  unsigned short (*floatToBf16)(float value);
  unsigned (*e4m3x2ToHalf2)(unsigned pair);
  unsigned (*fmaHalf2)(unsigned a, unsigned b, unsigned c);
  unsigned (*fmaBf162)(unsigned a, unsigned b, unsigned c);

  unsigned (*shuffle)(unsigned mask, int kind, unsigned value, unsigned by);
  unsigned (*ballot)(unsigned mask, bool condition);
  unsigned (*reduce)(unsigned mask, int kind, unsigned value);
  void (*syncWarp)(unsigned mask);
  void (*ldmatrix)(unsigned *fragment, int count, bool transpose,
                   const void *row);
  /// `site` is the source line under hostile rounding (shim.h), else 0.
  void (*mma)(int kind, void *d, const void *a, const void *b, int site);

  /// `threads` 0 means the whole block.
  void (*barrier)(unsigned id, unsigned threads, bool wait);
  void (*fence)();

  void (*checkReadOnly)(const void *global, unsigned size);
  unsigned (*loadAcquire)(const unsigned *global);
  void (*storeRelease)(unsigned *global, unsigned value);
  /// Loads 1, 2 or 4 words.
  void (*loadRelaxed)(unsigned *words, const unsigned *global, unsigned count);
  void (*storeRelaxed)(unsigned *global, const unsigned *words, unsigned count);
  unsigned (*atomicAdd)(unsigned *global, unsigned value, int order);
  unsigned (*atomicAddShared)(unsigned *shared, unsigned value);

  void (*cpAsync)(void *shared, const void *global, unsigned size,
                  unsigned valid);
  void (*cpAsyncCommit)();
  void (*cpAsyncWait)(unsigned pending);

  void (*mbarrierInit)(unsigned long *barrier, unsigned arrivals);
  void (*mbarrierArrive)(unsigned long *barrier, unsigned expectedBytes);
  bool (*mbarrierTryWait)(unsigned long *barrier, unsigned parity);
  void (*bulkCopy)(void *shared, const void *global, unsigned bytes,
                   unsigned long *barrier);
  void (*bulkPrefetch)(const void *global, unsigned bytes);

  void (*fenceProxyAsync)();

  unsigned (*clusterRank)();
  void (*clusterArrive)();
  void (*clusterWait)();
  void (*mbarrierArriveCluster)(unsigned long *barrier, unsigned rank);
  /// `map` as simulator/SimTensorMap.h encodes it; `blocks` 0 means the own.
  void (*tensorLoad)(void *shared, const void *map, int column, int row,
                     unsigned long *barrier, unsigned blocks);
  void (*wgmma)(const SimWgmma &product);
  void (*wgmmaFence)();
  void (*wgmmaCommit)();
  void (*wgmmaWait)(unsigned pending);
  void (*gridDependencyWait)();
  void (*trap)();

  /// Checked objects: `site` is the place in the code of an access to
  /// `address`.
  void (*access)(const void *address, unsigned long size, bool isWrite,
                 const void *site);

  /// Checked objects, ahead of an access to the vector at `address`.
  void (*checkAlignment)(const void *address, unsigned alignment);
};

} // namespace llamac

#endif // LLAMAC_SIMULATOR_SIMCALLS_H
