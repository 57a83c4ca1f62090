//===- WrapperCases.cpp - What each PTX wrapper should do -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/wrappers/WrapperCases.h"

#include "runtime/formats/FloatBits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace llamac::conformance {

static float asFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
static uint32_t asBits(float value) { return std::bit_cast<uint32_t>(value); }

Words makeInput(Input kind) {
  std::mt19937 random(7);
  std::uniform_int_distribution<uint32_t> bits;
  std::uniform_real_distribution<float> exponent(-20, 20), small(-2, 2);
  Words words(1024);
  for (uint32_t &word : words) {
    switch (kind) {
    case Input::Bits:
      word = bits(random);
      break;
    case Input::Floats:
      word = asBits(std::exp2(exponent(random)) *
                    (bits(random) % 2 ? 1.0f : -1.0f));
      break;
    case Input::Positive:
      word = asBits(std::exp2(exponent(random)));
      break;
    case Input::Bf16Pairs:
      word = f32ToBf16(small(random)) |
             static_cast<uint32_t>(f32ToBf16(small(random))) << 16;
      break;
    case Input::HalfPairs:
      word = f32ToF16(small(random)) |
             static_cast<uint32_t>(f32ToF16(small(random))) << 16;
      break;
    }
  }
  if (kind == Input::Floats) {
    const float special[] = {0.0f,    -0.0f,   INFINITY, -INFINITY,  NAN,
                             65504.f, 65520.f, 6e-8f,    1.00390625f};
    std::transform(std::begin(special), std::end(special), words.begin(),
                   asBits);
  }
  return words;
}

static uint16_t half(uint32_t word, int which) {
  return static_cast<uint16_t>(word >> 16 * which);
}

bool matches(uint32_t got, uint32_t expected, Match match) {
  if (got == expected)
    return true;
  if (match == Match::Exact)
    return false;
  if (match == Match::Half2) {
    auto isSame = [&](int i) {
      const uint16_t a = half(got, i), b = half(expected, i);
      return a == b || (std::isnan(f16ToF32(a)) && std::isnan(f16ToF32(b)));
    };
    return isSame(0) && isSame(1);
  }
  const float a = asFloat(got), b = asFloat(expected);
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  return std::abs(a - b) <= (match == Match::Float
                                 ? 1e-6f * std::abs(b) + 0x1p-126f
                                 : 1e-5f * std::max(1.0f, std::abs(b)));
}

//===----------------------------------------------------------------------===//
// Expectations
//===----------------------------------------------------------------------===//

/// out[i] = f(in[i], in[i + 256], in[i + 512]) for 256 words.
template <typename Function>
static Words each(const Words &in, Function function) {
  Words out;
  for (int i = 0; i < 256; ++i)
    out.push_back(function(in[i], in[i + 256], in[i + 512]));
  return out;
}

/// out[lane] = f(lane), 32 words.
template <typename Function> static Words lanes(Function function) {
  Words out;
  for (int lane = 0; lane < 32; ++lane)
    out.push_back(function(lane));
  return out;
}

static Words operator+(Words a, const Words &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A float rounded to bfloat16, to nearest, ties to even.
static uint32_t bf16Bits(uint32_t word) {
  return (word + 0x7fff + (word >> 16 & 1)) >> 16;
}

/// An element of E4M3 by the format's definition: a sign, four bits of exponent
/// less 7, three of fraction. All ones, which are NaN, are taken as a number.
static float numberOfE4m3(uint32_t element) {
  const int exponent = static_cast<int>(element >> 3 & 15);
  const auto fraction = static_cast<float>(element & 7);
  const float magnitude = exponent ? std::ldexp(8 + fraction, exponent - 10)
                                   : std::ldexp(fraction, -9);
  return element & 0x80 ? -magnitude : magnitude;
}

static uint32_t halfOfE4m3(uint32_t element) {
  return (element & 0x7f) == 0x7f ? 0x7fff : f32ToF16(numberOfE4m3(element));
}

/// In each of four places; 480 for NaN.
static Words floatsOfE4m3ByBits(const Words &) {
  Words out;
  for (uint32_t i = 0; i < 4 * 256; ++i)
    out.push_back(asBits(numberOfE4m3(i % 256)));
  return out;
}

static Words halvesOfE4m3(const Words &in) {
  Words low, high;
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t other = halfOfE4m3(in[i] & 0xff);
    low.push_back(halfOfE4m3(i) | other << 16);
    high.push_back(other | halfOfE4m3(i) << 16);
  }
  low.insert(low.end(), high.begin(), high.end());
  return low;
}

static uint32_t fmaOfHalves(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result = 0;
  for (int i = 0; i < 2; ++i)
    result |=
        static_cast<uint32_t>(f32ToF16(std::fma(
            f16ToF32(half(a, i)), f16ToF32(half(b, i)), f16ToF32(half(c, i)))))
        << 16 * i;
  return result;
}

/// `value`, normal in bf16, to the nearest number of eight digits; of two the
/// even one.
static uint32_t bf16OfDouble(double value) {
  int exponent = 0;
  const double digits = std::ldexp(std::frexp(value, &exponent), 8);
  return asBits(static_cast<float>(
             std::ldexp(std::nearbyint(digits), exponent - 8))) >>
         16;
}

static double ofBf16(uint32_t pair, int i) {
  return asFloat(pair >> 16 * i << 16);
}

static uint32_t fmaOfBf16(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result = 0;
  for (int i = 0; i < 2; ++i)
    result |= bf16OfDouble(ofBf16(a, i) * ofBf16(b, i) + ofBf16(c, i))
              << 16 * i;
  return result;
}

static Words fmaOfFarBf16(const Words &in) {
  Words out(256);
  for (uint32_t i = 0; i < 256; ++i)
    for (int half = 0; half < 2; ++half) {
      const uint32_t a = 0x3f80u + (half == 0) + i % 64 * 2;
      const double product = ofBf16(a, 0) * 1.5;
      const bool isNegative = in[i] >> 16 * half >> 15 & 1;
      // The small number counts where the product lies between two of bf16.
      const double small = i % 2 ? std::ldexp(isNegative ? -1 : 1, -40) : 0;
      out[i] |= bf16OfDouble(product + small) << 16 * half;
    }
  return out;
}

static uint32_t dotOfBytes(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; ++i)
    c += static_cast<uint32_t>(static_cast<int8_t>(a >> 8 * i) *
                               static_cast<int8_t>(b >> 8 * i));
  return c;
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> 4 * i & 15;
    const auto byte =
        static_cast<uint8_t>((pick & 4 ? b : a) >> 8 * (pick & 3));
    const uint32_t value = pick & 8 ? (byte >= 128 ? 255 : 0) : byte;
    result |= value << 8 * i;
  }
  return result;
}

static Words votes(const Words &in) {
  uint32_t odd = 0;
  for (int lane = 0; lane < 32; ++lane)
    odd |= (in[lane] & 1) << lane;
  return Words(32, odd);
}

static Words reductions(const Words &in) {
  int32_t least = INT32_MAX, most = INT32_MIN;
  uint32_t sum = 0, leastWord = UINT32_MAX, mostWord = 0, bits = 0;
  for (int lane = 0; lane < 32; ++lane) {
    sum += in[lane];
    least = std::min(least, static_cast<int32_t>(in[lane]));
    most = std::max(most, static_cast<int32_t>(in[lane]));
    leastWord = std::min(leastWord, in[lane]);
    mostWord = std::max(mostWord, in[lane]);
    bits |= in[lane] & 0x11111111;
  }
  return Words(32, sum) + Words(32, static_cast<uint32_t>(least)) +
         Words(32, static_cast<uint32_t>(most)) + Words(32, leastWord) +
         Words(32, mostWord) + Words(32, bits);
}

/// Four sums of every fourth word, each with 7 added.
static Words sumsByFours(const Words &in) {
  Words out(32, 7);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = lane % 4; i < 32; i += 4)
      out[lane] += in[i];
  return out + Words(32, 1);
}

static Words firstWords(const Words &in, size_t count) {
  return Words(in.begin(), in.begin() + static_cast<ptrdiff_t>(count));
}

/// Three times 32 words as they are, then as lanes read them back.
static Words relaxedWords(const Words &in) {
  Words fours(32), twos(32), ones(32);
  for (int t = 0; t < 32; ++t) {
    fours[t] = in[t % 8 * 4 + t % 4];
    twos[t] = in[64 + t % 16 * 2 + t % 2];
    ones[t] = in[32 + (t ^ 1)];
  }
  return firstWords(in, 96) + fours + twos + ones;
}

/// Zeroes the last t % (size + 1) bytes of lane t's piece of `size` bytes.
static Words shrunkPieces(const Words &in, size_t size) {
  Words out = firstWords(in, 8 * size);
  auto *bytes = reinterpret_cast<uint8_t *>(out.data());
  for (size_t t = 0; t < 32; ++t)
    std::fill_n(bytes + (t + 1) * size - t % (size + 1), t % (size + 1), 0);
  return out;
}

/// Matrix i has rows of four words, in[32 i + 4 row ...].
static Words matrices(const Words &in, int count, bool transpose) {
  Words out;
  for (int i = 0; i < count; ++i)
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      auto element = [&](int row, int column) -> uint32_t {
        return half(in[32 * i + 4 * row + column / 2], column % 2);
      };
      out.push_back(transpose
                        ? element(2 * t, g) | element(2 * t + 1, g) << 16
                        : element(g, 2 * t) | element(g, 2 * t + 1) << 16);
    }
  return out;
}

template <typename ToFloat>
static Words product16(const Words &in, ToFloat toFloat) {
  Words out;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      double sum = asFloat(in[192 + i * 8 + j]);
      for (int k = 0; k < 16; ++k)
        sum += double{toFloat(half(in[i * 8 + k / 2], k % 2))} *
               toFloat(half(in[128 + j * 8 + k / 2], k % 2));
      out.push_back(asBits(static_cast<float>(sum)));
    }
  return out;
}

static Words product8(const Words &in) {
  Words out;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      uint32_t sum = in[192 + i * 8 + j];
      for (int k = 0; k < 32; k += 4)
        sum = dotOfBytes(in[i * 8 + k / 4], in[128 + j * 8 + k / 4], sum);
      out.push_back(sum);
    }
  return out;
}

/// Element (row, column) of the 30 x 32 words that maps are of; zero outside.
static uint32_t elementOfMap(const Words &in, int row, int column) {
  const bool inside = row >= 0 && row < 30 && column >= 0 && column < 32;
  return inside ? in[row * 32 + column] : 0;
}

/// Four boxes as they lie in shared memory, with its 16-byte pieces exchanged
/// by the swizzle of `span` bytes: in each row of 128 bytes of shared memory,
/// piece p lies where p is XORed with the row's number, modulo the pieces of
/// the span.
static Words boxes(const Words &in, int columns, int rows, int span) {
  static constexpr int at[4][2] = {{4, 8}, {0, 24}, {20, 2}, {-4, -3}};
  Words out(static_cast<size_t>(4 * columns * rows));
  for (int i = 0; i < 4 * columns * rows; ++i) {
    const int box = i / (columns * rows), row = i / columns % rows;
    const int line = i / 32, piece = i % 32 / 4;
    const int moved = span ? piece ^ (line % (span / 16)) : piece;
    out[static_cast<size_t>(line * 32 + moved * 4 + i % 4)] =
        elementOfMap(in, at[box][1] + row, at[box][0] + i % columns);
  }
  return out;
}

/// 2 a b of 64 x 16 and `columns` x 16 elements, the latter round and round.
template <typename ToFloat>
static Words productOfGroup(const Words &in, int columns, ToFloat toFloat) {
  auto element = [&](int i) {
    return double{toFloat(half(in[i / 2 % 1024], i % 2))};
  };
  Words out;
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < columns; ++column) {
      double sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += 2 * element(row * 16 + k) * element(1024 + column * 16 + k);
      out.push_back(asBits(static_cast<float>(sum)));
    }
  return out;
}

static Words registersMoved(const Words &in) {
  Words out = firstWords(in, 256);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] += i < 128 ? 1 : 2;
  return out;
}

/// A case for sm_90a: `map` has the columns and rows of its boxes and the
/// swizzle; there are as many blocks as a cluster has.
static WrapperCase tier(WrapperCase wrapper, const MapBox &map = {32, 8},
                        uint32_t cluster = 1) {
  wrapper.map = map;
  wrapper.cluster = cluster;
  return wrapper;
}

#define EACH(expression)                                                       \
  each(in,                                                                     \
       []([[maybe_unused]] uint32_t a, [[maybe_unused]] uint32_t b,            \
          [[maybe_unused]] uint32_t c) -> uint32_t { return expression; })
#define EXPECT_EACH(expression) EXPECT_ALL(EACH(expression))
#define LANES(expression)                                                      \
  lanes([&](uint32_t lane) -> uint32_t { return expression; })
#define EXPECT_LANES(expression) EXPECT_ALL(LANES(expression))
#define EXPECT_ALL(expression)                                                 \
  []([[maybe_unused]] const Words &in) -> Words { return expression; }

const std::vector<WrapperCase> &wrapperCases() {
  static const std::vector<WrapperCase> cases = {
      {"bf16ToFloat", Input::Bits, Match::Exact, EXPECT_EACH(a << 16)},
      {"halfToFloat", Input::HalfPairs, Match::Exact,
       EXPECT_EACH(asBits(f16ToF32(half(a, 0))))},
      {"lowAndHighBf16", Input::Bits, Match::Exact,
       EXPECT_EACH(a << 16 ^ (a & 0xffff0000) >> 1)},
      {"pairOfBf16", Input::Positive, Match::Exact,
       EXPECT_EACH(bf16Bits(a) | bf16Bits(b) << 16)},
      {"pairOfHalf", Input::Positive, Match::Exact,
       EXPECT_EACH(f32ToF16(asFloat(a)) |
                   static_cast<uint32_t>(f32ToF16(asFloat(b))) << 16)},
      {"halvesOfPair", Input::HalfPairs, Match::Exact,
       EXPECT_EACH(asBits(f16ToF32(half(a, 0))) ^
                   asBits(f16ToF32(half(a, 1))) >> 1)},
      {"halvesOfE4m3", Input::Bits, Match::Half2, halvesOfE4m3},
      {"floatsOfE4m3ByBits", Input::Bits, Match::Exact, floatsOfE4m3ByBits},
      {"fmaOfHalves", Input::HalfPairs, Match::Exact,
       EXPECT_EACH(fmaOfHalves(a, b, c))},
      {"fmaOfBf16", Input::Bf16Pairs, Match::Exact,
       EXPECT_EACH(fmaOfBf16(a, b, c))},
      {"fmaOfFarBf16", Input::Bits, Match::Exact, fmaOfFarBf16},
      {"fmaOfFloats", Input::Positive, Match::Exact,
       EXPECT_EACH(asBits(std::fma(asFloat(a), asFloat(b), asFloat(c))))},
      {"largerNumber", Input::Floats, Match::Exact,
       EXPECT_EACH(asBits(std::fmax(asFloat(a), asFloat(b))))},
      {"powerOfTwo", Input::Floats, Match::Float,
       EXPECT_EACH(asBits(static_cast<float>(std::exp2(double{asFloat(a)}))))},
      {"logarithm", Input::Positive, Match::Sum,
       EXPECT_EACH(asBits(static_cast<float>(std::log2(double{asFloat(a)}))))},
      {"reciprocal", Input::Floats, Match::Float,
       EXPECT_EACH(asBits(static_cast<float>(1 / double{asFloat(a)})))},
      {"reciprocalRoot", Input::Positive, Match::Float,
       EXPECT_EACH(
           asBits(static_cast<float>(1 / std::sqrt(double{asFloat(a)}))))},
      {"permute", Input::Bits, Match::Exact, EXPECT_EACH(permute(a, b, c))},
      {"logicSelect", Input::Bits, Match::Exact,
       EXPECT_EACH((a & b) | (~a & c))},
      {"logicParity", Input::Bits, Match::Exact, EXPECT_EACH(a ^ b ^ c)},
      {"indices", Input::Bits, Match::Exact,
       EXPECT_ALL(LANES(lane) + LANES(100 + lane)), 64},
      {"shuffleLane", Input::Bits, Match::Exact,
       EXPECT_LANES(in[in[lane + 32] % 32])},
      {"shuffleXorBy5", Input::Bits, Match::Exact, EXPECT_LANES(in[lane ^ 5])},
      {"shuffleDownBy3", Input::Bits, Match::Exact,
       EXPECT_LANES(in[lane + 3 < 32 ? lane + 3 : lane])},
      {"shuffleUpBy3", Input::Bits, Match::Exact,
       EXPECT_LANES(in[lane >= 3 ? lane - 3 : lane])},
      {"shuffleHalves", Input::Bits, Match::Exact,
       EXPECT_LANES(in[lane < 16 ? 3 : 20])},
      {"votes", Input::Bits, Match::Exact, votes},
      {"reductions", Input::Bits, Match::Exact, reductions},
      {"warpExchange", Input::Bits, Match::Exact, EXPECT_LANES(in[31 - lane])},
      {"blockExchange", Input::Bits, Match::Exact,
       EXPECT_ALL(LANES(in[63 - lane]) + LANES(in[31 - lane])), 64},
      {"namedBarriers", Input::Bits, Match::Exact,
       EXPECT_ALL(LANES(in[31 - lane]) + LANES(in[63 - lane])), 64},
      {"readOnlyLoads", Input::Bits, Match::Exact,
       EXPECT_ALL(firstWords(in, 32) + firstWords(in, 64) +
                  firstWords(in, 128))},
      {"loadsOfWhatIsReadOnce", Input::Bits, Match::Exact,
       EXPECT_ALL(firstWords(in, 32) + firstWords(in, 64) +
                  firstWords(in, 128))},
      {"atomics", Input::Bits, Match::Exact,
       EXPECT_ALL((Words{32, 64, in[0]} + Words(29, 0) + Words(64, 1) +
                   Words(32, in[0])))},
      {"relaxedWords", Input::Bits, Match::Exact, relaxedWords},
      {"sharedAtomics", Input::Bits, Match::Exact, sumsByFours},
      {"copy4", Input::Bits, Match::Exact, EXPECT_ALL(shrunkPieces(in, 4))},
      {"copy8", Input::Bits, Match::Exact, EXPECT_ALL(shrunkPieces(in, 8))},
      {"copy16", Input::Bits, Match::Exact, EXPECT_ALL(shrunkPieces(in, 16))},
      {"bulk", Input::Bits, Match::Exact, EXPECT_ALL(firstWords(in, 256))},
      {"elect", Input::Bits, Match::Exact, EXPECT_ALL(Words(32, 1))},
      {"phases", Input::Bits, Match::Exact,
       EXPECT_ALL(Words(32, 1) + Words(32, 0) + Words(32, 1) + Words(32, 0))},
      {"matrices1", Input::Bits, Match::Exact,
       EXPECT_ALL(matrices(in, 1, false))},
      {"matrices2", Input::Bits, Match::Exact,
       EXPECT_ALL(matrices(in, 2, false))},
      {"matrices4", Input::Bits, Match::Exact,
       EXPECT_ALL(matrices(in, 4, false))},
      {"transposed1", Input::Bits, Match::Exact,
       EXPECT_ALL(matrices(in, 1, true))},
      {"transposed2", Input::Bits, Match::Exact,
       EXPECT_ALL(matrices(in, 2, true))},
      {"transposed4", Input::Bits, Match::Exact,
       EXPECT_ALL(matrices(in, 4, true))},
      {"multiplyBf16", Input::Bf16Pairs, Match::Sum,
       EXPECT_ALL(product16(in, bf16ToF32))},
      {"multiplyHalf", Input::HalfPairs, Match::Sum,
       EXPECT_ALL(product16(in, f16ToF32))},
      {"multiplyInt8", Input::Bits, Match::Exact, product8},
      tier(
          {"boxes", Input::Bits, Match::Exact, EXPECT_ALL(boxes(in, 8, 16, 0))},
          {8, 16}),
      tier({"boxesSwizzled32", Input::Bits, Match::Exact,
            EXPECT_ALL(boxes(in, 8, 32, 32))},
           {8, 32, 32}),
      tier({"boxesSwizzled64", Input::Bits, Match::Exact,
            EXPECT_ALL(boxes(in, 16, 16, 64))},
           {16, 16, 64}),
      tier({"boxesSwizzled128", Input::Bits, Match::Exact,
            EXPECT_ALL(boxes(in, 32, 8, 128))},
           {32, 8, 128}),
      tier({"boxesToBothBlocks", Input::Bits, Match::Exact,
            EXPECT_ALL(firstWords(in, 512) + firstWords(in, 512))},
           {32, 8}, 2),
      tier({"arriveInOtherBlock", Input::Bits, Match::Exact,
            EXPECT_ALL(LANES(in[31 - lane]) + Words(32, 0) + Words(32, 1))},
           {32, 8}, 2),
      tier({"groupBf1664", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"groupBf1664Shared", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"groupBf1664Transposed", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"groupBf16128", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 128, bf16ToF32)), 128}),
      tier({"groupBf16128Shared", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 128, bf16ToF32)), 128}),
      tier({"groupBf16128Transposed", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 128, bf16ToF32)), 128}),
      tier({"groupBf16256", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 256, bf16ToF32)), 128}),
      tier({"groupBf16256Shared", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 256, bf16ToF32)), 128}),
      tier({"groupBf16256Transposed", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 256, bf16ToF32)), 128}),
      tier({"groupHalf64", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, f16ToF32)), 128}),
      tier({"groupHalf64Shared", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, f16ToF32)), 128}),
      tier({"groupHalf64Transposed", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, f16ToF32)), 128}),
      tier({"groupHalf128", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 128, f16ToF32)), 128}),
      tier({"groupHalf128Shared", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 128, f16ToF32)), 128}),
      tier({"groupHalf128Transposed", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 128, f16ToF32)), 128}),
      tier({"groupHalf256", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 256, f16ToF32)), 128}),
      tier({"groupHalf256Shared", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 256, f16ToF32)), 128}),
      tier({"groupHalf256Transposed", Input::HalfPairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 256, f16ToF32)), 128}),
      tier({"groupNoSwizzle", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"groupSwizzle64", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"groupSwizzle32", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"groupTransposedSwizzle64", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"groupTransposedSwizzle32", Input::Bf16Pairs, Match::Sum,
            EXPECT_ALL(productOfGroup(in, 64, bf16ToF32)), 128}),
      tier({"registersMoved", Input::Bits, Match::Exact, registersMoved, 256}),
  };
  return cases;
}

} // namespace llamac::conformance
