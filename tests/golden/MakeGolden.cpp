//===- MakeGolden.cpp - Prints Cutlass.inc --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Asks CUTLASS's host code where operands lie, what describes them and what the
// driver is given, and prints the answers: Cutlass.inc beside this file, for
// Golden.h. The build does not compile this program. To make Cutlass.inc again,
// in an empty folder, with g++ 12 or later; no GPU and no library of CUDA is
// needed:
//
//   git clone --depth 1 --branch v4.7.0 https://github.com/NVIDIA/cutlass
//   pip download --no-deps -d wheels nvidia-cuda-runtime==13.0.* \
//     nvidia-cuda-crt==13.0.* nvidia-cuda-cccl==13.0.*
//   for wheel in wheels/*; do python3 -m zipfile -e $wheel cuda; done
//   include=cuda/nvidia/cu13/include
//   g++ -std=c++20 -w -I cutlass/include -I $include -I $include/cccl \
//     LLAMAC/tests/golden/MakeGolden.cpp -o make_golden
//   ./make_golden > LLAMAC/tests/golden/Cutlass.inc
//
// Every table is linear over bits. The program compares each with all that
// CUTLASS says, and fails where they differ.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

// CUTLASS makes tensor maps where nvcc's version is known, by the driver, which
// is below. Its shared memory is sharedMemory.
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL
#define CUTE_CVTA_GENERIC_TO_SHARED_ACTIVATED 1
alignas(1024) static char sharedMemory[1 << 16];
static std::size_t __cvta_generic_to_shared(const void *pointer) {
  return static_cast<const char *>(pointer) - sharedMemory;
}

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cute/tensor.hpp>
#include <cutlass/version.h>

using namespace cute;

static void check(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "make_golden: %s\n", what);
  std::exit(1);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

using Items = std::vector<std::string>;

static void printComment(const char *text) { std::printf("\n// %s\n", text); }

/// A constant of `type`, in lines of less than 80 columns.
static void printConstant(const char *type, const char *name,
                          const Items &items) {
  std::printf("inline constexpr %s %s = {\n    ", type, name);
  size_t column = 4;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool isLast = i + 1 == items.size();
    std::printf("%s%s", items[i].c_str(), isLast ? "};\n" : ",");
    column += items[i].size() + 2;
    if (isLast)
      continue;
    const bool fits = column + items[i + 1].size() + 2 < 80;
    std::printf("%s", fits ? " " : "\n    ");
    if (!fits)
      column = 4;
  }
}

/// `items` in braces that lines may break between.
static Items braced(Items items) {
  if (items.empty())
    return {"{}"};
  items.front() = "{" + items.front();
  items.back() += "}";
  return items;
}

static void append(Items &items, const Items &more) {
  items.insert(items.end(), more.begin(), more.end());
}

template <class Number>
static Items textOf(const std::vector<Number> &numbers) {
  Items items;
  for (const Number number : numbers)
    items.push_back(std::to_string(number));
  return items;
}

//===----------------------------------------------------------------------===//
// Maps that are linear over bits
//===----------------------------------------------------------------------===//

static int log2Of(int count) {
  int bits = 0;
  while (1 << bits < count)
    ++bits;
  check(1 << bits == count, "expected a power of two");
  return bits;
}

/// The images under `map` of the bits of its arguments, which are below `first`
/// and `second`. Those of all others follow by XOR.
template <class Map>
static std::vector<uint32_t> imagesOf(int first, int second, const Map &map) {
  std::vector<uint32_t> images;
  for (int bit = 1; bit < first; bit *= 2)
    images.push_back(map(bit, 0));
  for (int bit = 1; bit < second; bit *= 2)
    images.push_back(map(0, bit));
  for (int a = 0; a < first; ++a)
    for (int b = 0; b < second; ++b) {
      const int bits = a | b << log2Of(first);
      uint32_t image = 0;
      for (size_t i = 0; i < images.size(); ++i)
        if (bits >> i & 1)
          image ^= images[i];
      check(image == uint32_t(map(a, b)), "a map that is not linear");
    }
  return images;
}

template <class Swizzle> static void printSwizzle(const char *name) {
  printConstant("ByteSwizzle", name,
                braced(textOf(imagesOf(1 << 14, 1, [](int byte, int) {
                  return Swizzle::apply(byte);
                }))));
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Prints the fragment of `placeOf`, which goes from thread and value to row <<
/// 16 | column.
template <class PlaceOf>
static void printFragment(const char *name, int threads, int values,
                          const PlaceOf &placeOf) {
  Items places;
  for (const uint32_t image : imagesOf(threads, values, placeOf))
    places.push_back("{" + std::to_string(image >> 16) + ", " +
                     std::to_string(image & 0xffff) + "}");
  Items items = textOf<int>({log2Of(threads), log2Of(values)});
  append(items, braced(places));
  printConstant("Fragment", name, items);
}

/// Prints the fragment of a layout from thread and value to row + rows *
/// column.
template <class Layout>
static void printFragment(const char *name, int rows, const Layout &layout) {
  printFragment(name, size<0>(layout), size<1>(layout),
                [&](int thread, int value) {
                  const int at = layout(thread, value);
                  return at % rows << 16 | at / rows;
                });
}

/// ldmatrix: the row, numbered by the lane that gives its address, and the
/// element of it that each value comes from.
template <class Op> static void printLoad(const char *name) {
  using Traits = Copy_Traits<Op>;
  typename Traits::SrcLayout from;
  typename Traits::DstLayout to;
  printFragment(name, size<0>(to), size<1>(to) / 16,
                [&](int thread, int value) {
                  for (int lane = 0; lane < 32; ++lane)
                    for (int element = 0; element < 8; ++element)
                      if (from(lane, 16 * element) == to(thread, 16 * value))
                        return lane << 16 | element;
                  check(false, "a value from nowhere");
                  return 0;
                });
}

//===----------------------------------------------------------------------===//
// Matrices in shared memory
//===----------------------------------------------------------------------===//

template <class T, class Layout> static auto tensorOf(const Layout &layout) {
  return make_tensor(make_smem_ptr(reinterpret_cast<T *>(sharedMemory)),
                     layout);
}

template <class T, class Layout>
static void printMatrix(const char *name, const Layout &layout,
                        const Items &descriptors = {}) {
  const int rows = size<0>(layout), columns = size<1>(layout);
  auto tensor = tensorOf<T>(layout);
  Items items = textOf<int>({rows, columns, sizeof(T)});
  append(items, braced(textOf(imagesOf(rows, columns, [&](int row, int column) {
           return reinterpret_cast<char *>(&tensor(row, column)) - sharedMemory;
         }))));
  items.push_back(std::to_string(descriptors.size()));
  append(items, braced(descriptors));
  printConstant("SharedMatrix", name, items);
}

template <class Fragment> static Items descriptorsOf(const Fragment &fragment) {
  check(size<1>(fragment) == 1, "a matrix of several products");
  Items items;
  for (int k = 0; k < size<2>(fragment); ++k) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%016llx",
                  static_cast<unsigned long long>(uint64_t(fragment(0, 0, k))));
    items.push_back(text);
  }
  return items;
}

/// The operand B of `Op`, with the descriptor of each step of its depth; `Left`
/// takes the same for A.
template <class Op, class Left = void, class Layout>
static void printOperand(const char *name, const Layout &layout) {
  auto tensor = tensorOf<bfloat16_t>(layout);
  auto product = make_tiled_mma(MMA_Atom<Op>{}).get_slice(0);
  const Items descriptors =
      descriptorsOf(product.make_fragment_B(product.partition_B(tensor)));
  if constexpr (!std::is_void_v<Left>) {
    auto left = make_tiled_mma(MMA_Atom<Left>{}).get_slice(0);
    check(descriptorsOf(left.make_fragment_A(left.partition_A(tensor))) ==
              descriptors,
          "A has other descriptors than B");
  }
  printMatrix<bfloat16_t>(name, layout, descriptors);
}

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

/// The last operands of the driver's call, except for addresses.
static Items encoded;

extern "C" CUresult cuTensorMapEncodeTiled(
    CUtensorMap *, CUtensorMapDataType type, cuuint32_t rank, void *,
    const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  check(rank == 2, "a map of other than two dimensions");
  encoded = textOf<int>({type, int(rank)});
  append(encoded, braced(textOf<cuuint64_t>({extents[0], extents[1]})));
  append(encoded, braced(textOf<cuuint64_t>({strides[0]})));
  append(encoded, braced(textOf<cuuint32_t>({box[0], box[1]})));
  append(encoded, braced(textOf<cuuint32_t>({steps[0], steps[1]})));
  append(encoded, textOf<int>({interleave, swizzle, promotion, fill}));
  return CUDA_SUCCESS;
}

extern "C" cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDA_VERSION + 1000; // CUTLASS mends the maps of earlier ones.
  return cudaSuccess;
}

/// The map of a matrix of `rows` x `columns` whose boxes lie as `layout` and
/// are shared by the blocks of `cluster`.
template <class T, class Copy, class Layout, class Cluster>
static void printMap(const char *name, Copy copy, int rows, int columns,
                     const Layout &layout, Cluster cluster) {
  auto matrix = make_tensor(
      make_gmem_ptr(reinterpret_cast<const T *>(sharedMemory)),
      make_layout(make_shape(rows, columns), make_stride(columns, Int<1>{})));
  make_tma_copy(copy, matrix, layout, product_each(shape(layout)), cluster);
  printConstant("TensorMapCall", name, encoded);
}

static void printInteger(const char *name, size_t value) {
  std::printf("inline constexpr int %s = %zu;\n", name, value);
}

static void printDriverConstants() {
  printInteger("clockRate", CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  printInteger("multiprocessorCount", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  printInteger("memoryClockRate", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  printInteger("capabilityMajor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  printInteger("capabilityMinor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  printInteger("cooperativeLaunch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  printInteger("functionSharedBytes",
               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  printInteger("functionSharedCarveout",
               CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  printInteger("streamNonBlocking", CU_STREAM_NON_BLOCKING);
  printInteger("eventWithoutTime", CU_EVENT_DISABLE_TIMING);
  printInteger("eventRecordExternal", CU_EVENT_RECORD_EXTERNAL);
  printInteger("captureOfThread", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  printInteger("cooperative", CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  printInteger("clusterDimension", CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  printInteger("programmaticSerialization",
               CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  printInteger("errorIllegalAddress", CUDA_ERROR_ILLEGAL_ADDRESS);
  printInteger("errorLaunchTimeout", CUDA_ERROR_LAUNCH_TIMEOUT);
  printInteger("errorHardwareStack", CUDA_ERROR_HARDWARE_STACK_ERROR);
  printInteger("errorLaunchFailed", CUDA_ERROR_LAUNCH_FAILED);
  printInteger("errorCooperativeLaunchTooLarge",
               CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  printInteger("launchAttributeBytes", sizeof(CUlaunchAttribute));
  printInteger("launchAttributeValueAt", offsetof(CUlaunchAttribute, value));
  printInteger("launchConfigBytes", sizeof(CUlaunchConfig));
  printInteger("launchConfigStreamAt", offsetof(CUlaunchConfig, hStream));
  printInteger("launchConfigAttributesAt", offsetof(CUlaunchConfig, attrs));
  printInteger("launchConfigCountAt", offsetof(CUlaunchConfig, numAttrs));
  printInteger("tensorMapBytes", sizeof(CUtensorMap));
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

template <class Op> using LayoutA = typename MMA_Traits<Op>::ALayout;
template <class Op> using LayoutB = typename MMA_Traits<Op>::BLayout;
template <class Op> using LayoutC = typename MMA_Traits<Op>::CLayout;

static void printFragments() {
  printComment("mma.m16n8k16 of bf16 and f16, mma.m16n8k32 of s8");
  using Bf16 = SM80_16x8x16_F32BF16BF16F32_TN;
  using Half = SM80_16x8x16_F32F16F16F32_TN;
  static_assert(std::is_same_v<LayoutA<Bf16>, LayoutA<Half>> &&
                std::is_same_v<LayoutB<Bf16>, LayoutB<Half>> &&
                std::is_same_v<LayoutC<Bf16>, LayoutC<Half>>);
  using Int8 = SM80_16x8x32_S32S8S8S32_TN;
  printFragment("mma16A", 16, LayoutA<Bf16>{});
  printFragment("mma16B", 8, LayoutB<Bf16>{});
  printFragment("mma16C", 16, LayoutC<Bf16>{});
  printFragment("mma8A", 16, LayoutA<Int8>{});
  printFragment("mma8B", 8, LayoutB<Int8>{});
  printFragment("mma8C", 16, LayoutC<Int8>{});

  printComment("ldmatrix");
  printLoad<SM75_U32x1_LDSM_N>("matrices1");
  printLoad<SM75_U32x2_LDSM_N>("matrices2");
  printLoad<SM75_U32x4_LDSM_N>("matrices4");
  printLoad<SM75_U16x2_LDSM_T>("transposed1");
  printLoad<SM75_U16x4_LDSM_T>("transposed2");
  printLoad<SM75_U16x8_LDSM_T>("transposed4");
}

static void printProducts() {
  constexpr auto K = GMMA::Major::K, MN = GMMA::Major::MN;
  using N16 = SM90_64x16x16_F32BF16BF16_RS<K, K>;
  using N32 = SM90_64x32x16_F32BF16BF16_RS<K, K>;
  using N64 = SM90_64x64x16_F32BF16BF16_RS<K, K>;
  using N64Half = SM90_64x64x16_F32F16F16_RS<K, K>;
  using N64Shared = SM90_64x64x16_F32BF16BF16_SS<K, K>;
  using N64Transposed = SM90_64x64x16_F32BF16BF16_RS<K, MN>;
  using N128 = SM90_64x128x16_F32BF16BF16_RS<K, K>;
  using N128Transposed = SM90_64x128x16_F32BF16BF16_RS<K, MN>;
  using N256 = SM90_64x256x16_F32BF16BF16_RS<K, K>;
  printComment("wgmma.m64nNk16 of bf16 and f16");
  static_assert(std::is_same_v<LayoutA<N64>, LayoutA<N64Half>> &&
                std::is_same_v<LayoutC<N64>, LayoutC<N64Half>> &&
                std::is_same_v<LayoutC<N64>, LayoutC<N64Shared>>);
  printFragment("wgmmaA", 64, LayoutA<N64>{});
  printFragment("wgmmaC16", 64, LayoutC<N16>{});
  printFragment("wgmmaC32", 64, LayoutC<N32>{});
  printFragment("wgmmaC64", 64, LayoutC<N64>{});
  printFragment("wgmmaC128", 64, LayoutC<N128>{});
  printFragment("wgmmaC256", 64, LayoutC<N256>{});

  printComment("Operands of wgmma, N x depth; those of 64 rows that are not "
               "transposed, A too");
  using T = bfloat16_t;
  constexpr GMMA::Layout_K_SW128_Atom<T> k128;
  constexpr GMMA::Layout_K_SW64_Atom<T> k64;
  constexpr GMMA::Layout_K_SW32_Atom<T> k32;
  constexpr GMMA::Layout_K_INTER_Atom<T> kNone;
  constexpr GMMA::Layout_MN_SW128_Atom<T> mn128;
  constexpr GMMA::Layout_MN_SW64_Atom<T> mn64;
  constexpr GMMA::Layout_MN_SW32_Atom<T> mn32;
  constexpr Step<_2, _1> depthFirst;
  auto tiled = [](auto atom, auto rows, auto depth) {
    return tile_to_shape(atom, make_shape(rows, depth));
  };
  auto tiledDepthFirst = [&](auto atom, auto rows, auto depth) {
    return tile_to_shape(atom, make_shape(rows, depth), depthFirst);
  };
  printOperand<N16>("rows16", tiled(k128, _16{}, _64{}));
  printOperand<N32>("rows32", tiled(k128, _32{}, _64{}));
  printOperand<N64, N64Shared>("panel64", tiled(k128, _64{}, _64{}));
  printOperand<N128>("panel128", tiled(k128, _128{}, _64{}));
  printOperand<N256>("panel256", tiled(k128, _256{}, _64{}));
  printOperand<N64, N64Shared>("keys128", tiled(k128, _64{}, _128{}));
  printOperand<N64, N64Shared>("swizzled64", tiled(k64, _64{}, _32{}));
  printOperand<N64, N64Shared>("swizzled32", tiled(k32, _64{}, _16{}));
  printOperand<N64, N64Shared>("notSwizzled",
                               tiledDepthFirst(kNone, _64{}, _16{}));
  printOperand<N64Transposed>("values64", tiledDepthFirst(mn128, _64{}, _64{}));
  printOperand<N128Transposed>("values128",
                               tiledDepthFirst(mn128, _128{}, _64{}));
  printOperand<N64Transposed>("valuesSwizzled64",
                              tiledDepthFirst(mn64, _64{}, _16{}));
  printOperand<N64Transposed>("valuesSwizzled32",
                              tiledDepthFirst(mn32, _64{}, _16{}));
}

static void printCopies() {
  printComment("Boxes of tensor copies");
  auto weights128 =
      tile_to_shape(GMMA::Layout_K_SW128_Atom<uint16_t>{}, Shape<_128, _64>{});
  auto weights64 =
      tile_to_shape(GMMA::Layout_K_SW64_Atom<uint16_t>{}, Shape<_128, _32>{});
  auto weights32 =
      tile_to_shape(GMMA::Layout_K_SW32_Atom<uint16_t>{}, Shape<_128, _16>{});
  auto tokens =
      tile_to_shape(GMMA::Layout_K_SW128_Atom<uint16_t>{}, Shape<_64, _64>{});
  printMatrix<uint16_t>("weightBox128", weights128);
  printMatrix<uint16_t>("weightBox64", weights64);
  printMatrix<uint16_t>("weightBox32", weights32);
  printMatrix<uint16_t>("tokenBox", tokens);

  printComment("Their maps; OfTwo: for a cluster of two blocks");
  using Load = SM90_TMA_LOAD;
  using Multicast = SM90_TMA_LOAD_MULTICAST;
  printMap<uint16_t>("inputMap", Load{}, 512, 2048, weights128, _1{});
  printMap<uint16_t>("inputMapOfTwo", Multicast{}, 512, 2048, weights128, _2{});
  printMap<uint16_t>("weightMap128", Load{}, 8192, 2048, weights128, _1{});
  printMap<uint16_t>("weightMap128OfTwo", Multicast{}, 8192, 2048, weights128,
                     _2{});
  printMap<uint16_t>("weightMap64", Load{}, 8192, 1024, weights64, _1{});
  printMap<uint16_t>("weightMap32", Load{}, 8192, 512, weights32, _1{});
  printMap<uint16_t>("tokenMap64", Load{}, 4096, 64, tokens, _1{});
  printMap<uint16_t>("tokenMap128", Load{}, 4096, 128, tokens, _1{});
}

int main() {
  std::printf(
      R"(//===- Cutlass.inc - What CUTLASS says --------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generated by tests/golden/MakeGolden.cpp from CUTLASS %d.%d.%d and CUDA %d.%d;
// do not edit.
//
//===----------------------------------------------------------------------===//
)",
      CUTLASS_MAJOR, CUTLASS_MINOR, CUTLASS_PATCH, CUDA_VERSION / 1000,
      CUDA_VERSION % 1000 / 10);
  printComment("Swizzle<3, 4, 3>, <2, 4, 3>, <1, 4, 3>");
  printSwizzle<Swizzle<3, 4, 3>>("swizzle128");
  printSwizzle<Swizzle<2, 4, 3>>("swizzle64");
  printSwizzle<Swizzle<1, 4, 3>>("swizzle32");
  printFragments();
  printProducts();
  printCopies();
  printComment("cuda.h");
  printDriverConstants();
  return 0;
}
