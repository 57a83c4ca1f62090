//===- KernelBench.cpp - Speed of the cpu kernels -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times every product of Shapes.h, beside what the machine can do: read
// bandwidth for gemv, multiply-adds in f32 for gemm. Weights of a gemv are
// copies that together exceed the caches, taken in turn.
//
// usage: llamac_kernel_bench UNIT [FILTER] [THREADS]
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "runtime/cpu/KernelAbi.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace llamac;

namespace {
using Clock = std::chrono::steady_clock;

// Threads that run each task together and spin between tasks.
class Team {
public:
  explicit Team(int size) : size(size) {
    for (int i = 1; i < size; ++i)
      threads.emplace_back([this, i] { work(i); });
  }
  ~Team() {
    stop = true;
    round.fetch_add(1);
    for (std::thread &thread : threads)
      thread.join();
  }
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  void run(const std::function<void(int)> &body) {
    task = &body;
    left = size - 1;
    round.fetch_add(1);
    body(0);
    while (left.load() != 0)
      ;
  }

  const int size;

private:
  void work(int index) {
    for (int seen = 0;;) {
      while (round.load() == seen)
        ;
      ++seen;
      if (stop)
        return;
      (*task)(index);
      left.fetch_sub(1);
    }
  }

  std::vector<std::thread> threads;
  std::atomic<int> round{0}, left{0};
  std::atomic<bool> stop{false};
  const std::function<void(int)> *task = nullptr;
};

struct Bench {
  void *library;
  Team team;
  std::string filter;
  std::vector<uint8_t *> scratch;
  uint8_t *pool;
  int64_t poolBytes = 1LL << 30;
  double bandwidth = 0, flops = 0;
};
} // namespace

static uint8_t *allocate(int64_t bytes) {
  auto *memory = static_cast<uint8_t *>(
      std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  // Bytes that are small numbers in every format.
  uint64_t state = 1;
  for (int64_t i = 0; i < bytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    memory[i] = (state >> 40 & 0x0f) | (i % 2 ? 0x30 : state >> 50 & 0x70);
  }
  return memory;
}

// The best time of several of `body`, in seconds.
template <class Body> static double bestTime(double budget, const Body &body) {
  double best = 1e9, total = 0;
  for (int i = 0; i < 3 || total < budget; ++i) {
    auto start = Clock::now();
    body();
    double seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

static CpuKernel find(const Bench &bench, const std::string &name) {
  if (name.find(bench.filter) == std::string::npos)
    return nullptr;
  return reinterpret_cast<CpuKernel>(dlsym(bench.library, name.c_str()));
}

static void launch(Bench &bench, CpuKernel kernel, long items, long rows,
                   void *const *args) {
  bench.team.run([&](int index) {
    CpuLaunch part = {args, rows, items * index / bench.team.size,
                      items * (index + 1) / bench.team.size,
                      bench.scratch[index]};
    kernel(&part);
  });
}

static void readBandwidth(Bench &bench) {
  using Line = int64_t __attribute__((vector_size(64)));
  double seconds = bestTime(2, [&] {
    bench.team.run([&](int index) {
      int64_t share = bench.poolBytes / bench.team.size / 256 * 256;
      const uint8_t *from = bench.pool + index * share;
      Line sum[4] = {};
      for (int64_t i = 0; i < share; i += 256)
        for (int j = 0; j < 4; ++j) {
          __builtin_prefetch(from + i + 2048 + 64 * j);
          sum[j] += *reinterpret_cast<const Line *>(from + i + 64 * j);
        }
      Line all = sum[0] + sum[1] + sum[2] + sum[3];
      asm volatile("" ::"m"(all));
    });
  });
  bench.bandwidth = double(bench.poolBytes) / seconds;
}

static void multiplyAdds(Bench &bench) {
#if defined(__AVX512F__)
  constexpr int lanes = 16;
#else
  constexpr int lanes = 8;
#endif
  using Vector = float __attribute__((vector_size(4 * lanes)));
  constexpr long rounds = 20000000;
  double seconds = bestTime(0.5, [&] {
    bench.team.run([&](int) {
      Vector sum[10] = {}, factor = Vector{} + 0.5f;
      for (long i = 0; i < rounds; ++i)
        for (Vector &s : sum) {
          s = s * factor + factor;
          asm volatile("" : "+x"(s));
        }
    });
  });
  bench.flops = 10.0 * rounds * lanes * 2 * bench.team.size / seconds;
}

static void products(Bench &bench, const char *name, cpu::MatmulConfig config) {
  std::string suffix = std::string("_") + name + "_" +
                       std::to_string(config.outputs) + "_" +
                       std::to_string(config.depth);
  int64_t bytes =
      panelCount(config.outputs) * panelBytes(config.format, config.depth);
  auto *x = reinterpret_cast<float *>(allocate(512 * config.depth * 4));
  auto *y = reinterpret_cast<float *>(allocate(512 * config.outputs * 4));
  for (long i = 0; i < 512 * config.depth; ++i)
    x[i] = float(i * 7919 % 255 - 127) / 64;
  if (CpuKernel kernel = find(bench, "gemv" + suffix)) {
    int64_t copies = std::max<int64_t>(1, bench.poolBytes / bytes);
    double seconds = bestTime(0.3, [&] {
      for (int64_t copy = 0; copy < copies; ++copy) {
        void *args[] = {x, bench.pool + copy * bytes, y};
        launch(bench, kernel, gemvShape(config).items, 1, args);
      }
    });
    double rate = double(bytes * copies) / seconds;
    std::printf("%-24s %8.1f GB/s    %4.0f %% of read bandwidth\n",
                ("gemv" + suffix).c_str(), rate / 1e9,
                100 * rate / bench.bandwidth);
  }
  if (CpuKernel kernel = find(bench, "gemm" + suffix)) {
    for (long rows : {512, 64, 4}) {
      long block = gemmShape(config).rowBlock;
      long items = gemmShape(config).items * ((rows + block - 1) / block);
      void *args[] = {x, bench.pool, y};
      double seconds =
          bestTime(0.2, [&] { launch(bench, kernel, items, rows, args); });
      double rate =
          2.0 * double(rows) * double(config.outputs * config.depth) / seconds;
      std::printf("%-24s %8.1f GFLOP/s %5.2f of the f32 peak, %ld rows\n",
                  ("gemm" + suffix).c_str(), rate / 1e9, rate / bench.flops,
                  rows);
    }
  }
  std::free(x);
  std::free(y);
}

static void attention(Bench &bench, cpu::AttentionConfig config) {
  const cpu::KvConfig &kv = config.kv;
  std::string suffix = "_" + std::to_string(config.heads) + "_" +
                       std::to_string(kv.kvHeads) + "_" +
                       std::to_string(kv.headSize);
  long width = config.heads * kv.headSize, context = 4096;
  auto *q = reinterpret_cast<float *>(allocate(512 * width * 4));
  auto *out = allocate(
      std::max(512 * width * 4, cpu::attentionPartialRowBytes(config)));
  for (long i = 0; i < 512 * width; ++i)
    q[i] = float(i * 7919 % 255 - 127) / 640;
  std::vector<int> table(kv.pagesPerSequence), sequences(512, 0),
      positions(512);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<int>(i);
  if (CpuKernel kernel = find(bench, "attention" + suffix))
    for (long past : {0L, context - 512}) {
      for (int i = 0; i < 512; ++i)
        positions[i] = static_cast<int>(past + i);
      void *args[] = {
          q, bench.pool, table.data(), positions.data(), sequences.data(), out};
      cpu::LaunchShape shape = attentionShape(config);
      long items = shape.items * ((512 + shape.rowBlock - 1) / shape.rowBlock);
      double seconds =
          bestTime(0.3, [&] { launch(bench, kernel, items, 512, args); });
      double rate = 4.0 * double(width) * 512 * (past + 256.5) / seconds;
      std::printf("%-24s %8.1f GFLOP/s %5.2f of the f32 peak, 512 rows after "
                  "%ld\n",
                  ("attention" + suffix).c_str(), rate / 1e9,
                  rate / bench.flops, past);
    }
  if (CpuKernel kernel = find(bench, "attentionSplit" + suffix))
    for (long past : {511L, context - 1}) {
      positions[0] = static_cast<int>(past);
      int64_t bytes = table.size() * kvPageBytes(kv);
      int64_t copies = bench.poolBytes / bytes;
      double seconds = bestTime(0.3, [&] {
        for (int64_t copy = 0; copy < copies; ++copy) {
          void *args[] = {q,
                          bench.pool + copy * bytes,
                          table.data(),
                          positions.data(),
                          sequences.data(),
                          out};
          launch(bench, kernel, attentionSplitShape(config).items, 1, args);
        }
      });
      double rate =
          double(copies * (past + 1) * kv.kvHeads * kv.headSize * 4) / seconds;
      std::printf("%-24s %8.1f GB/s    %4.0f %% of read bandwidth, after %ld\n",
                  ("attentionSplit" + suffix).c_str(), rate / 1e9,
                  100 * rate / bench.bandwidth, past);
    }
  std::free(q);
  std::free(out);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s UNIT [FILTER] [THREADS]\n", argv[0]);
    return 2;
  }
  int threads = argc > 3
                    ? std::atoi(argv[3])
                    : static_cast<int>(std::thread::hardware_concurrency());
  Bench bench{dlopen(argv[1], RTLD_NOW | RTLD_LOCAL),
              Team(threads),
              argc > 2 ? argv[2] : "",
              {},
              nullptr};
  if (!bench.library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  bench.pool = allocate(bench.poolBytes);
  for (int i = 0; i < threads; ++i)
    bench.scratch.push_back(allocate(16 << 20));
  readBandwidth(bench);
  multiplyAdds(bench);
  std::printf("%d threads, read %.1f GB/s, f32 multiply-add %.1f GFLOP/s\n",
              threads, bench.bandwidth / 1e9, bench.flops / 1e9);
#define SHAPE(f, n, k)                                                         \
  products(bench, #f, {.format = PanelFormat::f, .outputs = n, .depth = k});
  LLAMAC_BENCH_CASES(SHAPE)
#define ATTENTION(h, g, s) attention(bench, cpu::bench::attention(h, g, s));
  LLAMAC_BENCH_ATTENTION(ATTENTION)
  return 0;
}
