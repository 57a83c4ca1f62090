//===- Wgmma.cpp - Matrix products of a warpgroup -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma as the PTX ISA defines it, as late as allowed: a product reads its
// operands, in shared memory and registers, and gives its sums at the wait that
// covers it. Until then the sums are NaN, and changed registers are an error.
// Each warp computes its own 16 rows. Registers are places on a thread's stack;
// their contents at the last fence are kept, to find a missing fence.
//
//===----------------------------------------------------------------------===//

#include "simulator/HostileRounding.h"
#include "simulator/Machine.h"

#include "runtime/formats/FloatBits.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace llamac::sim {

/// Contents of sums under way: a NaN that no product gives.
static constexpr uint32_t sumUnderWay = 0xffffdead;

//===----------------------------------------------------------------------===//
// Matrix descriptors
//===----------------------------------------------------------------------===//

namespace {

/// A matrix of 16-bit elements in shared memory: [rows][depth] for a and b.
struct MatrixOperand {
  uint32_t start;
  uint32_t leading;
  uint32_t stride;
  uint32_t swizzleBytes;
  uint32_t baseOffset;
  bool isRowMajor; ///< Whether rows, rather than the depth, are contiguous.
};

} // namespace

/// Bits 0-13 the start, 16-29 the leading and 32-45 the stride dimension's byte
/// offset, all in units of 16; 49-51 the base offset; 62-63 the swizzle.
static MatrixOperand decode(uint64_t descriptor, bool isRowMajor) {
  constexpr uint32_t swizzles[] = {0, 128, 64, 32};
  auto field = [&](int first) {
    return static_cast<uint32_t>(descriptor >> first & 0x3fff) << 4;
  };
  return {field(0),
          field(16),
          field(32),
          swizzles[descriptor >> 62],
          static_cast<uint32_t>(descriptor >> 49 & 7),
          isRowMajor};
}

/// Where the 16 bytes lie that hold elements k .. k + 7 of `row`, or, when rows
/// are contiguous, elements row .. row + 7 of depth k.
static uint32_t pieceAt(const MatrixOperand &matrix, uint32_t row, uint32_t k) {
  const uint32_t span = matrix.swizzleBytes;
  uint32_t offset = 0;
  if (!matrix.isRowMajor)
    offset =
        span ? row / 8 * matrix.stride + row % 8 * span + k * 2
             : row / 8 * matrix.stride + row % 8 * 16 + k / 8 * matrix.leading;
  else
    offset =
        span ? row / (span / 2) * matrix.leading + k / 8 * matrix.stride +
                   k % 8 * span + row % (span / 2) * 2
             : row / 8 * matrix.stride + k / 8 * matrix.leading + k % 8 * 16;
  return swizzled(matrix.start + offset, span);
}

static float element(int kind, uint16_t bits) {
  return kind == SimMma::Bf16 ? bf16ToF32(bits) : f16ToF32(bits);
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// The number of the registers at `at`; they are noted when they are new.
static size_t registersAt(Products &products, const void *at, uint32_t size) {
  auto *bytes = static_cast<std::byte *>(const_cast<void *>(at));
  std::vector<ProductRegisters> &known = products.registers;
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i].at == bytes && known[i].size == size)
      return i;
  ProductRegisters &fresh = known.emplace_back();
  fresh.at = bytes;
  fresh.size = size;
  fresh.ordered.resize(size / 4);
  std::memcpy(fresh.ordered.data(), bytes, size);
  return known.size() - 1;
}

static bool isOrdered(const ProductRegisters &registers) {
  return std::memcmp(registers.at, registers.ordered.data(), registers.size) ==
         0;
}

void Group::fenceProducts() {
  Products &products = running->products;
  products.fenced = true;
  for (ProductRegisters &registers : products.registers)
    if (registers.underWay == 0)
      std::memcpy(registers.ordered.data(), registers.at, registers.size);
}

void Group::issueProduct(const SimWgmma &what) {
  Thread &self = *running;
  Products &products = self.products;
  if (self.block->threads.size() % 128 != 0)
    fail("a product of a warpgroup in a block that is not made of such");
  if (!products.fenced)
    fail("a missing wgmmaFence: none before the first product");
  Product product{.what = what, .site = self.site};
  if (what.aRegisters) {
    std::memcpy(product.a.data(), what.aRegisters, sizeof product.a);
    product.aNumber = registersAt(products, what.aRegisters, sizeof product.a);
    ProductRegisters &a = products.registers[product.aNumber];
    if (a.underWay == 0 && !isOrdered(a))
      fail("a missing wgmmaFence: the product's registers have changed since "
           "the last one");
    ++a.underWay;
    a.site = self.site;
  }
  const uint32_t count = what.columns / 2;
  product.dNumber = registersAt(products, what.d, count * 4);
  ProductRegisters &d = products.registers[product.dNumber];
  d.areSums = true;
  d.site = self.site;
  if (d.underWay++ == 0) {
    if (!isOrdered(d))
      fail("a missing wgmmaFence: the sums have changed since the last one");
    d.sums.assign(what.d, what.d + count);
    std::fill_n(reinterpret_cast<uint32_t *>(what.d), count, sumUnderWay);
  }
  products.underWay.push_back(product);
}

void Group::commitProducts() {
  Products &products = running->products;
  products.groupEnds.push_back(products.done + products.underWay.size());
}

void Group::checkRegisters(const Thread &thread, const void *address,
                           uint64_t size, Access access) {
  if (thread.products.underWay.empty())
    return;
  const auto *first = static_cast<const std::byte *>(address);
  for (const ProductRegisters &registers : thread.products.registers)
    if (registers.underWay && first < registers.at + registers.size &&
        first + size > registers.at &&
        (registers.areSums || access == Access::Write))
      failIn(thread, absl::StrCat(
                         "a product under way: ",
                         access == Access::Write ? "writes" : "reads",
                         registers.areSums ? " the sums" : " the registers",
                         " of the one at ", launch.module.place(registers.site),
                         ", which has not been waited for"));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The lanes of a warp, and the warps of a warpgroup, issue the same.
void Group::checkSameProduct(Thread *const *lanes) {
  Thread &first = *lanes[0];
  const SimWgmma &what = first.products.underWay.front().what;
  auto keyOf = [](const SimWgmma &product) -> ProductKey {
    return {product.b, product.aRegisters ? ~uint64_t{0} : product.a,
            uint64_t{product.columns} << 8 |
                static_cast<uint64_t>(product.kind) << 2 |
                static_cast<uint64_t>(product.accumulate) << 1 |
                static_cast<uint64_t>(product.transposeB)};
  };
  const ProductKey key = keyOf(what);
  for (uint32_t lane = 1; lane < 32; ++lane) {
    const Product &other = lanes[lane]->products.underWay.front();
    if (keyOf(other.what) != key)
      failAt(*lanes[lane], other.site,
             "divergent warpgroup product: its operands differ from those of "
             "its warp's first lane");
  }
  std::vector<ProductKey> &known = first.block->products[first.index / 128];
  const uint64_t number = first.products.done;
  if (number == known.size())
    known.push_back(key);
  else if (known[number] != key)
    failAt(first, first.products.underWay.front().site,
           "divergent warpgroup product: its operands differ from those of "
           "another warp");
}

/// Whether 16 bytes of shared memory, at `offset`, were never written. Rows of
/// x that were not may be there, behind those that a launch has: only their own
/// sums depend on them, which are NaN.
bool Group::isUndefined(const Block &block, uint32_t offset) const {
  if (!checked() || offset + 16 > block.sharedBytes)
    return false;
  const auto *first = &block.sharedState[offset];
  return std::find(first, first + 16, ByteState::Undefined) != first + 16;
}

/// One product for the 32 lanes of a warp, whose oldest it is.
void Group::multiply(Thread *const *lanes) {
  Thread &first = *lanes[0];
  Block &block = *first.block;
  const Product &product = first.products.underWay.front();
  const SimWgmma &what = product.what;
  const void *const wait = std::exchange(first.site, product.site);
  auto read = [&](const MatrixOperand &matrix, uint32_t row, uint32_t k,
                  uint16_t(&piece)[8]) {
    const uint32_t at = pieceAt(matrix, row, k);
    if (at + 16 > block.sharedBytes)
      failAt(first, product.site,
             "out of bounds: an operand of a product is not in shared memory");
    check(first, block.shared + at, 16, Access::Read);
    checkProxy(first, block, block.shared + at, 16);
    std::memcpy(piece, block.shared + at, 16);
  };
  auto checkStart = [&](const MatrixOperand &matrix) {
    const uint32_t pieces =
        matrix.swizzleBytes ? matrix.swizzleBytes / 16 - 1 : 0;
    if (matrix.baseOffset || (matrix.start >> 7 & pieces))
      failAt(first, product.site,
             absl::StrCat("misaligned: a swizzled operand of a product starts "
                          "at byte ",
                          matrix.start, ", in the middle of its ",
                          8 * matrix.swizzleBytes, "-byte pattern"));
  };

  constexpr uint32_t warpRows = ProductTile::rows, depth = ProductTile::depth;
  auto &[a, b, sums] = *tile;
  if (what.aRegisters) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const auto &words = lanes[lane]->products.underWay.front().a;
      for (uint32_t i = 0; i < 8; ++i)
        a[lane / 4 + i / 2 % 2 * 8][lane % 4 * 2 + i % 2 + i / 4 * 8] = element(
            what.kind, static_cast<uint16_t>(words[i / 2] >> i % 2 * 16));
    }
  } else {
    const MatrixOperand matrix = decode(what.a, false);
    checkStart(matrix);
    for (uint32_t row = 0; row < warpRows; ++row)
      for (uint32_t k = 0; k < depth; k += 8) {
        uint16_t piece[8];
        const uint32_t own = first.index / 32 % 4 * warpRows + row;
        if (isUndefined(block, pieceAt(matrix, own, k))) {
          std::fill_n(&a[row][k], 8, std::nanf(""));
          continue;
        }
        read(matrix, own, k, piece);
        for (uint32_t i = 0; i < 8; ++i)
          a[row][k + i] = element(what.kind, piece[i]);
      }
  }
  const MatrixOperand matrix = decode(what.b, what.transposeB);
  checkStart(matrix);
  for (uint32_t column = 0; column < what.columns;
       column += what.transposeB ? 8 : 1)
    for (uint32_t k = 0; k < depth; k += what.transposeB ? 1 : 8) {
      if (!what.transposeB && isUndefined(block, pieceAt(matrix, column, k))) {
        for (uint32_t i = 0; i < 8; ++i)
          b[k + i][column] = std::nanf("");
        continue;
      }
      uint16_t piece[8];
      read(matrix, column, k, piece);
      for (uint32_t i = 0; i < 8; ++i)
        if (what.transposeB)
          b[k][column + i] = element(what.kind, piece[i]);
        else
          b[k + i][column] = element(what.kind, piece[i]);
    }

  auto eachSum = [&](auto visit) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      std::vector<float> &own = lanes[lane]->products.oldestSums().sums;
      for (uint32_t i = 0; i < what.columns / 2; ++i)
        visit(own[i],
              sums[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2]);
    }
  };
  eachSum([&](float inRegister, float &sum) {
    sum = what.accumulate ? inRegister : 0;
  });
  for (uint32_t row = 0; row < warpRows; ++row) {
    float before[ProductTile::mostColumns];
    std::copy_n(sums[row], what.columns, before);
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t column = 0; column < what.columns; ++column)
        sums[row][column] += a[row][k] * b[k][column];
    for (uint32_t column = 0; what.site != 0 && column < what.columns; ++column)
      sums[row][column] = hostileSum<depth>(
          sums[row][column], before[column], a[row],
          [&](int k) { return b[k][column]; }, what.site);
  }
  eachSum([](float &inRegister, float sum) { inRegister = sum; });
  first.site = wait;
}

void Group::completeProducts(Thread *const *lanes, uint32_t pending) {
  for (uint32_t lane = 1; lane < 32; ++lane)
    if (lanes[lane]->products.groupEnds != lanes[0]->products.groupEnds)
      failIn(*lanes[lane],
             "divergent warpgroup product: lanes of a warp have issued "
             "different numbers");
  Products &first = lanes[0]->products;
  while (first.groupEnds.size() > pending) {
    while (first.done < first.groupEnds.front()) {
      checkSameProduct(lanes);
      multiply(lanes);
      for (uint32_t lane = 0; lane < 32; ++lane) {
        Products &products = lanes[lane]->products;
        const Product &product = products.underWay.front();
        ProductRegisters &d = products.oldestSums();
        const auto *words = reinterpret_cast<const uint32_t *>(d.at);
        if (!std::all_of(words, words + d.size / 4,
                         [](uint32_t word) { return word == sumUnderWay; }))
          failAt(*lanes[lane], product.site,
                 "a product under way: its sums were written before the wait");
        if (product.what.aRegisters) {
          ProductRegisters &a = products.registers[product.aNumber];
          if (std::memcmp(a.at, product.a.data(), sizeof product.a) != 0)
            failAt(*lanes[lane], product.site,
                   "a product under way: its registers were written before "
                   "the wait");
          --a.underWay;
        }
        if (--d.underWay == 0) {
          std::memcpy(d.at, d.sums.data(), d.size);
          std::memcpy(d.ordered.data(), d.at, d.size);
        }
        products.underWay.pop_front();
        ++products.done;
      }
    }
    for (uint32_t lane = 0; lane < 32; ++lane)
      lanes[lane]->products.groupEnds.pop_front();
  }
}

} // namespace llamac::sim
