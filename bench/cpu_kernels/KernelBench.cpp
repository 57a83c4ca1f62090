//===- KernelBench.cpp - Speed of the cpu kernels -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times every kernel of Shapes.h with Google Benchmark, beside what the machine
// was measured to do in the same process: read bandwidth for one row, and
// multiply-adds in f32 for many. What one row reads lies in copies that
// together exceed the caches, taken in turn.
//
// usage: llamac_kernel_bench UNIT [THREADS] [--benchmark_filter=REGEX ...]
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "runtime/cpu/KernelAbi.h"
#include "runtime/cpu/MachineLimits.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <vector>

using namespace llamac;

namespace {

/// Zeroed memory of 64-byte alignment.
template <typename T> class Array {
public:
  Array(CpuDevice &device, int64_t count)
      : buffer(*device.allocate(static_cast<uint64_t>(count) * sizeof(T),
                                MemoryUse::Dense)) {}

  T *data() const { return static_cast<T *>(buffer->address()); }

private:
  std::unique_ptr<Buffer> buffer;
};

class Bench {
public:
  Bench(void *library, std::shared_ptr<CpuDevice> device);

  /// Null if the unit has no such kernel.
  CpuKernel find(const std::string &name) const {
    return reinterpret_cast<CpuKernel>(dlsym(library, name.c_str()));
  }

  /// All `items` of a launch, in equal ranges.
  void launch(CpuKernel kernel, int64_t items, int64_t rows,
              void *const *args) const;

  void reportBytes(benchmark::State &state, double bytes) const;
  /// `ofInt8`: they are in products of int8, else in f32.
  void reportOperations(benchmark::State &state, double operations,
                        bool ofInt8) const;

  static constexpr int64_t poolBytes = int64_t(1) << 30;

  void *const library;
  const std::shared_ptr<CpuDevice> device;
  const DeviceLimits limits;
  const Array<uint8_t> pool; ///< Weights and caches of any kernel.

private:
  std::vector<Array<uint8_t>> scratch; ///< One for each thread.
};

} // namespace

Bench::Bench(void *library, std::shared_ptr<CpuDevice> cpu)
    : library(library), device(std::move(cpu)),
      limits(**device->measureLimits()), pool(*device, poolBytes) {
  // Bytes that are small numbers in every format.
  uint64_t state = 1;
  for (int64_t i = 0; i < poolBytes; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    pool.data()[i] = static_cast<uint8_t>((state >> 40 & 0x0f) |
                                          (i % 2 ? 0x30 : state >> 50 & 0x70));
  }
  for (int i = 0; i < device->threads(); ++i)
    scratch.emplace_back(*device, 16 << 20);
}

void Bench::launch(CpuKernel kernel, int64_t items, int64_t rows,
                   void *const *args) const {
  const int64_t threads = device->threads();
  const auto job = [&](int thread) {
    const CpuLaunch call = {args,
                            rows,
                            items * thread / threads,
                            items * (thread + 1) / threads,
                            scratch[static_cast<size_t>(thread)].data(),
                            /*lastBlock=*/-1};
    kernel(&call);
  };
  device->run(job).IgnoreError(); // The process is the one that made it.
}

// Google Benchmark divides a rate by the time of all iterations.
void Bench::reportBytes(benchmark::State &state, double bytes) const {
  const double all = bytes * static_cast<double>(state.iterations());
  state.counters["GB/s"] =
      benchmark::Counter(all * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_read"] =
      benchmark::Counter(all / limits.bandwidth, benchmark::Counter::kIsRate);
}

void Bench::reportOperations(benchmark::State &state, double operations,
                             bool ofInt8) const {
  const double all = operations * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] =
      benchmark::Counter(all * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(
      all / (ofInt8 ? limits.int8Operations : limits.f32Operations),
      benchmark::Counter::kIsRate);
}

template <typename Body>
static void add(const std::string &name, const Body &body) {
  benchmark::RegisterBenchmark(name.c_str(), body)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

/// `count` numbers between -scale and scale.
static void fill(float *values, int64_t count, float scale) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i * 7919 % 255 - 127) / 127 * scale;
}

static void addProducts(const Bench &bench, const char *format,
                        cpu::MatmulConfig config) {
  const std::string suffix = std::string("_") + format + "_" +
                             std::to_string(config.outputs) + "_" +
                             std::to_string(config.depth);
  const int64_t bytes =
      panelCount(config.outputs) * panelBytes(config.format, config.depth);
  const auto run = [&bench, config, bytes](
                       benchmark::State &state, CpuKernel kernel,
                       cpu::LaunchShape shape, int64_t rows, int64_t copies) {
    const Array<float> x(*bench.device, rows * config.depth);
    const Array<float> y(*bench.device, rows * config.outputs);
    fill(x.data(), rows * config.depth, 2);
    const int64_t blocks =
        shape.rowBlock ? (rows + shape.rowBlock - 1) / shape.rowBlock : 1;
    int64_t copy = 0;
    for (auto _ : state) {
      void *args[] = {x.data(), bench.pool.data() + copy * bytes, y.data()};
      bench.launch(kernel, shape.items * blocks, rows, args);
      copy = (copy + 1) % copies;
    }
  };
  if (const CpuKernel kernel = bench.find("gemv" + suffix))
    add("gemv" + suffix, [=, &bench](benchmark::State &state) {
      run(state, kernel, gemvShape(config), 1, Bench::poolBytes / bytes);
      bench.reportBytes(state, static_cast<double>(bytes));
    });
  if (const CpuKernel kernel = bench.find("gemm" + suffix))
    for (const int64_t rows : {512, 64, 4})
      add("gemm" + suffix + "/rows:" + std::to_string(rows),
          [=, &bench](benchmark::State &state) {
            run(state, kernel, gemmShape(config), rows, 1);
            bench.reportOperations(
                state,
                2.0 * static_cast<double>(rows * config.outputs * config.depth),
                usesInt8(config));
          });
}

static void addAttention(const Bench &bench, const std::string &format,
                         cpu::AttentionConfig config) {
  const cpu::KvConfig kv = config.kv;
  const std::string suffix = "_" + std::to_string(config.heads) + "_" +
                             std::to_string(kv.kvHeads) + "_" +
                             std::to_string(kv.headSize) + "_" + format;
  const int64_t width = config.heads * kv.headSize;
  const int64_t context = 4096;
  const int64_t cacheBytes = kv.pagesPerSequence * kvPageBytes(kv);
  // `rows` rows after `past` tokens.
  const auto run = [=, &bench](benchmark::State &state, CpuKernel kernel,
                               cpu::LaunchShape shape, int64_t rows,
                               int64_t past, int64_t copies) {
    const Array<float> q(*bench.device, rows * width);
    fill(q.data(), rows * width, 0.2f);
    const Array<uint8_t> out(
        *bench.device,
        std::max(rows * width * 4, cpu::attentionPartialRowBytes(config)));
    std::vector<int> table, positions;
    const std::vector<int> sequences(static_cast<size_t>(rows), 0);
    for (int64_t i = 0; i < kv.pagesPerSequence; ++i)
      table.push_back(static_cast<int>(i));
    for (int64_t i = 0; i < rows; ++i)
      positions.push_back(static_cast<int>(past + i));
    const int64_t blocks =
        shape.rowBlock ? (rows + shape.rowBlock - 1) / shape.rowBlock : 1;
    int64_t copy = 0;
    for (auto _ : state) {
      void *args[] = {
          q.data(),         bench.pool.data() + copy * cacheBytes, table.data(),
          positions.data(), const_cast<int *>(sequences.data()),   out.data()};
      bench.launch(kernel, shape.items * blocks, rows, args);
      copy = (copy + 1) % copies;
    }
  };
  if (const CpuKernel kernel = bench.find("attention" + suffix))
    for (const int64_t past : {int64_t(0), context - 512})
      add("attention" + suffix + "/after:" + std::to_string(past),
          [=, &bench](benchmark::State &state) {
            run(state, kernel, attentionShape(config), 512, past, 1);
            bench.reportOperations(state,
                                   4.0 * static_cast<double>(width) * 512 *
                                       (static_cast<double>(past) + 256.5),
                                   /*ofInt8=*/false);
          });
  if (const CpuKernel kernel = bench.find("attentionSplit" + suffix))
    for (const int64_t past : {int64_t(511), context - 1, int64_t(7999)})
      add("attentionSplit" + suffix + "/after:" + std::to_string(past),
          [=, &bench](benchmark::State &state) {
            run(state, kernel, attentionSplitShape(config), 1, past,
                Bench::poolBytes / cacheBytes);
            bench.reportBytes(
                state, static_cast<double>((past + 1) * kv.kvHeads *
                                           (kvHeadBytes(kv) / kv.pageTokens)));
          });
}

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr,
                 "usage: %s UNIT [THREADS] [--benchmark_filter=REGEX ...]\n",
                 argv[0]);
    return 2;
  }
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  auto device =
      CpuDevice::create({.threads = argc > 2 ? std::atoi(argv[2]) : 0});
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    return 2;
  }
  const Bench bench(library, *device);
  std::printf(
      "%d threads, read %.1f GB/s, %.1f GFLOP/s in f32, %.1f in products "
      "of int8\n",
      (*device)->threads(), bench.limits.bandwidth * 1e-9,
      bench.limits.f32Operations * 1e-9, bench.limits.int8Operations * 1e-9);
#define SHAPE(f, n, k)                                                         \
  addProducts(bench, #f, {.format = PanelFormat::f, .outputs = n, .depth = k});
  LLAMAC_BENCH_CASES(SHAPE)
#define ATTENTION(h, g, s, f)                                                  \
  addAttention(bench, #f, cpu::bench::attention(h, g, s, cpu::KvFormat::f));
  LLAMAC_BENCH_ATTENTION(ATTENTION)
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
