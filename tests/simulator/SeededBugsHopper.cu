//===- SeededBugsHopper.cu - Bugs of tensor copies, wgmma ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seeded bugs in what sm_90a has, as in SeededBugs.cu: two kernels, whose
// template parameter says what is wrong with them. A warp copies tiles of `in`
// into a ring of stages; four others multiply them, in the second one what
// another warp has made of them. `map` is of `in` as bfloat16, rows of 64 (128
// bytes, swizzled) in boxes of 32: a small integer as a float is a zero and
// then itself. So out[m][n] = (m % 5) * the sum of row n of all tiles + tiles.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx_sm90a.cuh"

using namespace llamac;

enum class Bug {
  None,
  MissingFence,
  FenceBeforeChange,
  SumsReadEarly,
  SumsWrittenEarly,
  OperandsChangedEarly,
  StageFreedEarly,
  WrongParity,
  TooFewBytes,
  TooManyBytes,
  NoSwizzle,
  WrongStride,
  OtherOperand,
  StartInsidePattern,
  ProductNotAwaited,
  MissingWait,
  MisalignedStage,
  NoClusterSync,
  FreedHereOnly,
  EndsEarly,
  OneBlockWaits,
  UnpackedWithoutFence,
  FenceBeforeUnpacking,
  OneLaneFences,
  PackedFreedEarly,
  OperandFreedEarly,
};

template <Bug bug, int cluster>
LLAMAC_DEVICE void productRing(float *out, const TensorMap &map, int rows) {
  constexpr int stages = 2, boxBytes = 4096, stageBytes = 2 * boxBytes;
  LLAMAC_SHARED_DYNAMIC(bytes);
  LLAMAC_SHARED(full, uint64_t[stages]);
  LLAMAC_SHARED(empty, uint64_t[stages]);
  const int t = threadIdx.x;
  if (t == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage], 4 * cluster);
    }
    mbarrierInitFence();
  }
  syncThreads();
  if constexpr (cluster > 1 && bug != Bug::NoClusterSync) {
    clusterArrive();
    if (bug != Bug::OneBlockWaits || clusterRank() == 0)
      clusterWait();
    else
      // caught below by oneBlockWaits
      clusterArrive();
  }
  const int tiles = rows / 2048;
  if (t < 128) {
    for (int tile = 0; t == 0 && tile < tiles; ++tile) {
      const int stage = tile % stages;
      const int phase = tile / stages % 2 ^ (bug == Bug::WrongParity ? 0 : 1);
      // caught below by wrongParity tooFewBytes tooManyBytes
      mbarrierWait(&empty[stage], phase);
      mbarrierArriveExpect(&full[stage], bug == Bug::TooFewBytes ? boxBytes
                                         : bug == Bug::TooManyBytes
                                             ? stageBytes + 16
                                             : stageBytes);
      for (int half = 0; half < 2; ++half) {
        unsigned char *to = bytes + stage * stageBytes + half * boxBytes +
                            (bug == Bug::MisalignedStage ? 64 : 0);
        const int row = tile * 64 + half * 32;
        if constexpr (cluster == 1)
          // caught below by wrongParity stageFreedEarly missingTensorWait
          // misalignedStage tooFewBytes
          tensorLoad(to, map, 0, row, &full[stage]);
        else if (half == static_cast<int>(clusterRank()))
          // caught below by noClusterSync freedHereOnly
          tensorLoadMulticast(to, map, 0, row, &full[stage], 3);
      }
    }
  } else {
    const int row = (t - 128) / 32 * 16 + laneIndex() / 4;
    float d[32] = {};
    uint32_t a[4];
    for (int i = 0; i < 4; ++i)
      a[i] = packBf16(1, (row + i % 2 * 8) % 5);
    auto release = [&](int stage) {
      syncWarp();
      if (laneIndex() != 0)
        return;
      mbarrierArrive(&empty[stage]);
      if constexpr (cluster > 1 && bug == Bug::FreedHereOnly)
        mbarrierArrive(&empty[stage]);
      else if constexpr (cluster > 1)
        // caught below by endsEarly
        mbarrierArriveCluster(&empty[stage], clusterRank() ^ 1);
    };
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % stages;
      if constexpr (bug == Bug::FenceBeforeChange)
        wgmmaFence();
      for (int i = 0; i < 32; ++i)
        d[i] += 1;
      if constexpr (bug != Bug::FenceBeforeChange && bug != Bug::MissingFence)
        wgmmaFence();
      if constexpr (bug != Bug::MissingWait)
        // caught below by wrongParity tooFewBytes tooManyBytes freedHereOnly
        mbarrierWait(&full[stage], tile / stages % 2);
      const uint64_t operand = matrixDescriptor(
          bytes +
              (bug == Bug::OtherOperand && t >= 224 ? 0 : stage * stageBytes) +
              (bug == Bug::StartInsidePattern ? 128 : 0),
          0, bug == Bug::WrongStride ? 512 : 1024,
          bug == Bug::NoSwizzle ? Swizzle::None : Swizzle::Bytes128);
      for (int k = 0; k < 4; ++k)
        // caught below by missingProductFence fenceBeforeChange
        // sumsWrittenEarly operandsChangedEarly stageFreedEarly otherOperand
        // startInsidePattern missingTensorWait productNotAwaited wrongParity
        // tooFewBytes freedHereOnly
        wgmmaBf16(d, a, operand + 2 * k);
      wgmmaCommit();
      if constexpr (bug == Bug::SumsReadEarly)
        // caught below by sumsReadEarly
        out[t] = d[0];
      if constexpr (bug == Bug::SumsWrittenEarly)
        // caught below by sumsWrittenEarly
        d[5] = 0;
      if constexpr (bug == Bug::OperandsChangedEarly)
        // caught below by operandsChangedEarly
        a[2] += tile + 1;
      if constexpr (bug == Bug::StageFreedEarly)
        release(stage);
      if constexpr (bug != Bug::ProductNotAwaited)
        // caught below by wrongParity stageFreedEarly
        wgmmaWait<0>();
      if constexpr (bug != Bug::StageFreedEarly)
        release(stage);
    }
    for (int i = 0; i < 32; ++i)
      // caught below by productNotAwaited
      out[blockIdx.x * 4096 + (row + i / 2 % 2 * 8) * 64 + i / 4 * 8 +
          laneIndex() % 4 * 2 + i % 2] = d[i];
  }
  if constexpr (cluster > 1 && bug != Bug::EndsEarly) {
    clusterArrive();
    clusterWait();
  }
}

/// The ring for weights that have to be unpacked: a warp moves a tile from its
/// stage to the operand that is multiplied.
template <Bug bug>
LLAMAC_DEVICE void unpackRing(float *out, const TensorMap &map, int rows) {
  constexpr int stages = 2, boxBytes = 4096, tileBytes = 2 * boxBytes;
  LLAMAC_SHARED_DYNAMIC(bytes);
  LLAMAC_SHARED(full, uint64_t[stages]);
  LLAMAC_SHARED(empty, uint64_t[stages]);
  LLAMAC_SHARED(unpacked, uint64_t[stages]);
  LLAMAC_SHARED(used, uint64_t[stages]);
  unsigned char *operands = bytes + stages * tileBytes;
  const int t = threadIdx.x;
  if (t == 0) {
    for (int i = 0; i < stages; ++i) {
      mbarrierInit(&full[i], 1);
      mbarrierInit(&empty[i], 1);
      mbarrierInit(&unpacked[i], 1);
      mbarrierInit(&used[i], 4);
    }
    mbarrierInitFence();
  }
  syncThreads();
  const int tiles = rows / 2048;
  auto release = [&](uint64_t *barrier) {
    syncWarp();
    if (laneIndex() == 0)
      mbarrierArrive(barrier);
  };
  if (t < 32) {
    for (int tile = 0; t == 0 && tile < tiles; ++tile) {
      const int stage = tile % stages;
      mbarrierWait(&empty[stage], tile / stages % 2 ^ 1);
      mbarrierArriveExpect(&full[stage], tileBytes);
      for (int half = 0; half < 2; ++half)
        // caught below by packedFreedEarly
        tensorLoad(bytes + stage * tileBytes + half * boxBytes, map, 0,
                   tile * 64 + half * 32, &full[stage]);
    }
  } else if (t < 64) {
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % stages, phase = tile / stages % 2;
      mbarrierWait(&full[stage], phase);
      mbarrierWait(&used[stage], phase ^ 1);
      if constexpr (bug == Bug::PackedFreedEarly)
        release(&empty[stage]);
      if constexpr (bug == Bug::FenceBeforeUnpacking)
        fenceProxyAsync();
      for (int at = laneIndex() * 16; at < tileBytes; at += 512) {
        const auto *from = reinterpret_cast<const Vec<uint32_t, 4> *>(
            bytes + stage * tileBytes + at);
        auto *to = reinterpret_cast<Vec<uint32_t, 4> *>(operands +
                                                        stage * tileBytes + at);
        // caught below by packedFreedEarly operandFreedEarly
        *to = *from;
      }
      if constexpr (bug != Bug::UnpackedWithoutFence &&
                    bug != Bug::FenceBeforeUnpacking)
        if (bug != Bug::OneLaneFences || laneIndex() == 0)
          fenceProxyAsync();
      release(&unpacked[stage]);
      if constexpr (bug != Bug::PackedFreedEarly)
        release(&empty[stage]);
    }
  } else if (t >= 128) {
    const int row = (t - 128) / 32 * 16 + laneIndex() / 4;
    float d[32] = {};
    uint32_t a[4];
    for (int i = 0; i < 4; ++i)
      a[i] = packBf16(1, (row + i % 2 * 8) % 5);
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % stages;
      for (int i = 0; i < 32; ++i)
        d[i] += 1;
      wgmmaFence();
      mbarrierWait(&unpacked[stage], tile / stages % 2);
      const uint64_t operand = matrixDescriptor(operands + stage * tileBytes, 0,
                                                1024, Swizzle::Bytes128);
      for (int k = 0; k < 4; ++k)
        // caught below by unpackedWithoutFence fenceBeforeUnpacking
        // oneLaneFences operandFreedEarly
        wgmmaBf16(d, a, operand + 2 * k);
      wgmmaCommit();
      if constexpr (bug == Bug::OperandFreedEarly)
        release(&used[stage]);
      wgmmaWait<0>();
      if constexpr (bug != Bug::OperandFreedEarly)
        release(&used[stage]);
    }
    for (int i = 0; i < 32; ++i)
      out[(row + i / 2 % 2 * 8) * 64 + i / 4 * 8 + laneIndex() % 4 * 2 +
          i % 2] = d[i];
  }
}

#define SEEDED(name, bug, cluster)                                            \
  extern "C" __global__ void __launch_bounds__(256)                            \
      name##Bug(float *out, const float *in, uint32_t *flags,                  \
                LLAMAC_TENSOR_MAP(map), int rows) {                            \
    productRing<bug, cluster>(out, map, rows);                                 \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(256)                            \
      name##Fixed(float *out, const float *in, uint32_t *flags,                \
                  LLAMAC_TENSOR_MAP(map), int rows) {                          \
    productRing<Bug::None, cluster>(out, map, rows);                           \
  }

#define SEEDED_UNPACKING(name, bug)                                           \
  extern "C" __global__ void __launch_bounds__(256)                            \
      name##Bug(float *out, const float *in, uint32_t *flags,                  \
                LLAMAC_TENSOR_MAP(map), int rows) {                            \
    unpackRing<bug>(out, map, rows);                                           \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(256)                            \
      name##Fixed(float *out, const float *in, uint32_t *flags,                \
                  LLAMAC_TENSOR_MAP(map), int rows) {                          \
    unpackRing<Bug::None>(out, map, rows);                                     \
  }

SEEDED(missingProductFence, Bug::MissingFence, 1)
SEEDED(fenceBeforeChange, Bug::FenceBeforeChange, 1)
SEEDED(sumsReadEarly, Bug::SumsReadEarly, 1)
SEEDED(sumsWrittenEarly, Bug::SumsWrittenEarly, 1)
SEEDED(operandsChangedEarly, Bug::OperandsChangedEarly, 1)
SEEDED(stageFreedEarly, Bug::StageFreedEarly, 1)
SEEDED(wrongParity, Bug::WrongParity, 1)
SEEDED(tooFewBytes, Bug::TooFewBytes, 1)
SEEDED(tooManyBytes, Bug::TooManyBytes, 1)
SEEDED(noSwizzle, Bug::NoSwizzle, 1)
SEEDED(wrongStride, Bug::WrongStride, 1)
SEEDED(otherOperand, Bug::OtherOperand, 1)
SEEDED(startInsidePattern, Bug::StartInsidePattern, 1)
SEEDED(productNotAwaited, Bug::ProductNotAwaited, 1)
SEEDED(missingTensorWait, Bug::MissingWait, 1)
SEEDED(misalignedStage, Bug::MisalignedStage, 1)
SEEDED(noClusterSync, Bug::NoClusterSync, 2)
SEEDED(freedHereOnly, Bug::FreedHereOnly, 2)
SEEDED(endsEarly, Bug::EndsEarly, 2)
SEEDED(oneBlockWaits, Bug::OneBlockWaits, 2)
SEEDED_UNPACKING(unpackedWithoutFence, Bug::UnpackedWithoutFence)
SEEDED_UNPACKING(fenceBeforeUnpacking, Bug::FenceBeforeUnpacking)
SEEDED_UNPACKING(oneLaneFences, Bug::OneLaneFences)
SEEDED_UNPACKING(packedFreedEarly, Bug::PackedFreedEarly)
SEEDED_UNPACKING(operandFreedEarly, Bug::OperandFreedEarly)
