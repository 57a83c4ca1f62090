//===- ToyKernels.cpp - A model whose logits can be told ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of a model that only remembers: it keeps each token in the KV pages
// of two layers, hashes what they hold of a sequence up to a row's position,
// and gives the logits that ToyModel.h says. A wrong page, position, sequence,
// chunk or barrier changes the hash. Freestanding, like the real ones.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/KernelAbi.h"
#include "tests/engine/toy/ToyShapes.h"

using namespace llamac;
using namespace llamac::toy;

// The place of a token in the pages of one layer.
static unsigned *slotOf(void *pool, const int *pageTable, int sequence,
                        int position) {
  const int page =
      pageTable[sequence * pagesPerSequence + position / pageTokens];
  char *bytes = static_cast<char *>(pool) + static_cast<long>(page) * pageBytes;
  return reinterpret_cast<unsigned *>(bytes) + position % pageTokens;
}

// One item a row. Operands: tokens, positions, sequences, page table, the
// layer's pool, the layer's embedding [vocab].
extern "C" void toyRemember(const CpuLaunch *launch) {
  const auto *tokens = static_cast<const int *>(launch->args[0]);
  const auto *positions = static_cast<const int *>(launch->args[1]);
  const auto *sequences = static_cast<const int *>(launch->args[2]);
  const auto *pageTable = static_cast<const int *>(launch->args[3]);
  const auto *embedding = static_cast<const float *>(launch->args[5]);
  for (long row = launch->begin; row < launch->end; ++row)
    *slotOf(launch->args[4], pageTable, sequences[row], positions[row]) =
        static_cast<unsigned>(embedding[tokens[row]]);
}

// toyRemember() with the program's number as one operand more, which decides
// the stored value.
extern "C" void toyRememberKind(const CpuLaunch *launch) {
  const auto *positions = static_cast<const int *>(launch->args[1]);
  const auto *sequences = static_cast<const int *>(launch->args[2]);
  const auto *pageTable = static_cast<const int *>(launch->args[3]);
  const auto *program = static_cast<const float *>(launch->args[6]);
  toyRemember(launch);
  for (long row = launch->begin; row < launch->end; ++row)
    *slotOf(launch->args[4], pageTable, sequences[row], positions[row]) +=
        1000 * static_cast<unsigned>(*program);
}

// One item a row. Operands: positions, sequences, page table, both pools, and
// the hashes u32 [rows].
extern "C" void toyHash(const CpuLaunch *launch) {
  const auto *positions = static_cast<const int *>(launch->args[0]);
  const auto *sequences = static_cast<const int *>(launch->args[1]);
  const auto *pageTable = static_cast<const int *>(launch->args[2]);
  auto *hashes = static_cast<unsigned *>(launch->args[5]);
  for (long row = launch->begin; row < launch->end; ++row) {
    unsigned hash = hashStart;
    for (int position = 0; position <= positions[row]; ++position) {
      hash = mixHash(
          hash, *slotOf(launch->args[3], pageTable, sequences[row], position));
      hash = mixHash(
          hash, *slotOf(launch->args[4], pageTable, sequences[row], position));
    }
    hashes[row] = hash;
  }
}

// Adds to the hashes what one layer keeps of a row's window. One item a row.
// Operands: positions, sequences, page table, the layer's pool, and the hashes.
extern "C" void toyHashWindow(const CpuLaunch *launch) {
  const auto *positions = static_cast<const int *>(launch->args[0]);
  const auto *sequences = static_cast<const int *>(launch->args[1]);
  const auto *pageTable = static_cast<const int *>(launch->args[2]);
  auto *hashes = static_cast<unsigned *>(launch->args[4]);
  for (long row = launch->begin; row < launch->end; ++row) {
    const int end = positions[row] + 1;
    for (int position = end > window ? end - window : 0; position < end;
         ++position)
      hashes[row] = mixHash(hashes[row], *slotOf(launch->args[3], pageTable,
                                                 sequences[row], position));
  }
}

// Variants of toyHash, for the tuner: one that takes long, and one that is
// wrong but for eight rows.
extern "C" void toyHashSlow(const CpuLaunch *launch) {
  for (volatile int i = 0; i < 20000; i = i + 1)
    ;
  toyHash(launch);
}

// And one that is faster than that, but at the last position of a sequence
// alone: elsewhere it takes twice as long.
extern "C" void toyHashLate(const CpuLaunch *launch) {
  if (static_cast<const int *>(launch->args[0])[launch->begin] != context - 1) {
    toyHashSlow(launch);
    toyHashSlow(launch);
  } else {
    toyHash(launch);
  }
}

extern "C" void toyHashWrong(const CpuLaunch *launch) {
  toyHash(launch);
  if (launch->rows != 8)
    static_cast<unsigned *>(launch->args[5])[launch->begin] ^= 1;
}

// vocab / 8 items for each output row, through scratch memory. Operands:
// hashes, output rows, the program's number, and the logits.
extern "C" void toyLogits(const CpuLaunch *launch) {
  const auto *hashes = static_cast<const unsigned *>(launch->args[0]);
  const auto *outputs = static_cast<const int *>(launch->args[1]);
  const auto *program = static_cast<const float *>(launch->args[2]);
  auto *logits = static_cast<float *>(launch->args[3]);
  auto *block = static_cast<float *>(launch->scratch);
  constexpr long blocks = vocab / logitsBlock;
  for (long item = launch->begin; item < launch->end; ++item) {
    const long row = item / blocks;
    const long first = item % blocks * logitsBlock;
    const unsigned hash = hashes[outputs[row]];
    for (int i = 0; i < logitsBlock; ++i)
      block[i] = logitOf(hash, static_cast<int>(first) + i, *program);
    for (int i = 0; i < logitsBlock; ++i)
      logits[row * vocab + first + i] = block[i];
  }
}

// toyLogits(), but no sequence gives a logit that is NaN.
extern "C" void toyLogitsSound(const CpuLaunch *launch) {
  toyLogits(launch);
  auto *logits = static_cast<float *>(launch->args[3]);
  for (long item = launch->begin; item < launch->end; ++item)
    for (int i = 0; i < logitsBlock; ++i) {
      float &logit = logits[item * logitsBlock + i];
      logit = logit == logit ? logit : -50;
    }
}

// One item an output row. Operands: logits, sampling params and tokens.
extern "C" void toySample(const CpuLaunch *launch) {
  const auto *logits = static_cast<const float *>(launch->args[0]);
  const auto *draws = static_cast<const unsigned *>(launch->args[1]);
  auto *tokens = static_cast<int *>(launch->args[2]);
  for (long row = launch->begin; row < launch->end; ++row) {
    const float *values = logits + row * vocab;
    const unsigned *draw = draws + row * 4;
    int argmax = 0;
    bool finite = true;
    for (int id = 0; id < vocab; ++id) {
      finite = finite && values[id] - values[id] == 0;
      argmax = values[id] > values[argmax] ? id : argmax;
    }
    const int token =
        draw[0] == 0 ? argmax : drawnToken(draw[3], static_cast<int>(draw[1]));
    tokens[row] = finite ? token : -1;
  }
}
