//===- resident.cuh - A step of one row in one launch -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between the launches of a step memory idles: one drains, the next one fills.
// Here a step is one launch, all of whose blocks run at the same time. The
// weights of all its products are one stream through shared memory, which does
// not stop where a product ends: a stage that has been used is filled with what
// will be needed next, of whichever product, while the block waits for the
// results of others. Each warp has a ring of floats, as in stream.cuh, or the
// block has one of tiles, as in stream_mma.cuh. No warp does nothing but fill
// that, which would leave the others a third fewer registers: they take turns.
//
// The results of other blocks come as words (words.cuh). A unit of outputs u
// belongs to block u modulo the grid, and to a warp of it, or to all, so that
// every block has a share of every product; which they are does not decide any
// result's bits. Sums are made in the order of the streams of launches, and
// attention by the code of attention.cuh: the results are those of a step of
// launches, bit by bit.
//
// Memory order. A step ends in a barrier of all blocks, with release and
// acquire, the only one that all of them wait at. What it orders:
//
// - Keys and values. A step appends its own by plain stores and does not read
//   them again: attention takes them from words. Later steps read what earlier
//   ones have appended.
// - Words. Steps take two sets in turns. Behind the barrier that ends a step no
//   block reads its set any more, and all of them clear it together; behind the
//   next barrier it is used again. So every read comes after the clear that is
//   before it, and every clear after all reads.
// - Logits. They are plain stores ahead of the barrier, and read behind it.
//
// A token that is drawn, not the first, comes from block 0, for which the
// others wait then.
//
// Words, flags and candidates are 0 before a launch and after it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_RESIDENT_CUH
#define LLAMAC_CODEGEN_DEVICE_RESIDENT_CUH

#include "llamac/gemv.cuh"
#include "llamac/resident_attention.cuh"
#include "llamac/rowwise.cuh"
#include "llamac/sampling.cuh"
#include "llamac/stream.cuh"
#include "llamac/stream_mma.cuh"
#include "llamac/words.cuh"

#if LLAMAC_HAS_SM90

namespace llamac::cuda {

/// The input of a product: a row of words, as it is or under RMSNorm.
template <long depth> struct WordInput {
  static constexpr bool normalises = false;
  WordRow words;

  LLAMAC_DEVICE WordRow row(int) const { return words; }
};
template <long depth> struct WordNorm {
  static constexpr bool normalises = true;
  WordRow words;
  const float *gain; ///< [depth].
  float eps;

  LLAMAC_DEVICE WordRow row(int) const { return words; }
  LLAMAC_DEVICE float scale(float sumOfSquares) const {
    return normScale<depth>(sumOfSquares, eps);
  }
};

/// Stores what a step begins with.
struct StoreWords {
  WordRow out;

  LLAMAC_DEVICE void operator()(long, long column, F32x2 acc) const {
    storePair(out.words + column, acc);
  }
};

/// The results of a product of query, key and value are words, one behind the
/// other: the query, of `width`, the key and the value. Query and key are
/// rotated, unless whoever reads them does that (RotatesHeads).
template <KvConfig kv, long width, bool rotates = true, bool biased = false>
struct QkvWords {
  QkvPart part;
  WordRow out;
  const float *cosSin = nullptr; ///< [headSize / 2][cos, sin].
  const float *biases[3] = {};

  LLAMAC_DEVICE void operator()(long, long column, F32x2 acc) const {
    const long ahead = part == QkvPart::Query ? 0
                       : part == QkvPart::Key
                           ? width
                           : width + kv.kvHeads * kv.headSize;
    if constexpr (rotates)
      acc = withBiasRotated<kv, biased>(part, column, acc, biases, cosSin);
    storePair(out.words + ahead + column, acc);
  }
};
template <KvConfig kv, long width, bool rotates, bool biased>
LLAMAC_DEVICE QkvWords<kv, width, rotates, biased>
epilogueOfPart(QkvWords<kv, width, rotates, biased> epilogue, int part) {
  epilogue.part = static_cast<QkvPart>(part);
  return epilogue;
}

/// An epilogue that also remembers the first token, by the order of
/// sampling.cuh, of the pairs of logits that its lane gets.
template <class Epilogue> struct FindsFirst {
  Epilogue epilogue;
  Ranked *first;

  template <class... Acc>
  LLAMAC_DEVICE void operator()(long row, long column, Acc... acc) const {
    const F32x2 pair = epilogue(row, column, acc...);
    consider(column, pair.x);
    consider(column + 1, pair.y);
  }

private:
  LLAMAC_DEVICE void consider(long id, float logit) const {
    const Ranked own{rankOfLogit(logit), static_cast<uint32_t>(id)};
    // Ids ascend, so that the first of equals stays.
    if (own.rank < first->rank)
      *first = own;
  }
};

/// A launch of launchShape(config), all of whose blocks run at the same time,
/// of any number of blocks up to config.blocks.
template <ResidentConfig config> class ResidentStep {
  using Shared = ResidentShared<config>;
  using Four = Vec<float, 4>;
  static constexpr int stages = config.stages;
  static constexpr long setWords = residentSetWords(config);
  static constexpr bool byMma = residentByMma(config);
  static constexpr int threads = residentThreads;
  static constexpr uint32_t unitRows = residentUnitRows(config);
  static_assert(sizeof(Shared) == residentSharedBytes(config));
  static_assert(stages >= 2 && config.stageBytes % 128 == 0);

  template <int number> struct Product {
    static constexpr StreamConfig stream = config.products[number].stream;
    static constexpr GemvConfig gemv = stream.product;
    static constexpr int weights = gemv.weights;
    static constexpr uint32_t rowBytes = unitBytes(gemv.format, gemv.depth);
    static constexpr uint32_t segment = residentSegment(config, stream);
    static constexpr bool isOfLayer = number < config.layerEnd;
    using Units = StreamUnits<stream, divideUp(rowBytes, segment)>;
    static constexpr uint32_t segments = Units::segments;
    /// A product begins with three quarters of a deep input, as those who make
    /// it are not done with all of it at once.
    template <class Input>
    static constexpr uint32_t earlySegments =
        Input::normalises || segments < 4 ? segments : segments * 3 / 4;
    static_assert(gemv.maxRows == 1 && streamsByMma(stream) == byMma);
    static_assert(weights == 1 || stream.parts[1] == 0);
    static_assert(segment % 16 == 0 &&
                  residentStageBytes(config, stream) <= config.stageBytes);
    static_assert(residentInputBytes(stream) <= config.areaBytes);
  };
  template <int number> struct LaneProduct : Product<number> {
    using P = Product<number>;
    static constexpr uint32_t turnBytes = 32 * 16;
    static_assert(P::gemv.outputsPerWarp == 2 && P::Units::isWhole);
    static_assert(P::segments == 1 || P::segment % turnBytes == 0);
  };

public:
  /// `table` has the addresses of the launch's operands, `words` its counters.
  /// `steps` 0: one step whose token is not asked for.
  LLAMAC_DEVICE ResidentStep(void *const *table, uint32_t *words, int steps)
      : table(table), words(words), steps(steps), asked(maxOf(steps, 1)),
        next{0, 0, firstUnit(), 0, 0} {
    LLAMAC_SHARED_DYNAMIC(bytes);
    shared = reinterpret_cast<Shared *>(bytes);
    // One warp fills the block's ring, and each its own.
    const bool fillsRing = !byMma || warpIndex() == 0;
    if (fillsRing && electLane()) {
      for (int stage = 0; stage < stages; ++stage) {
        mbarrierInit(full(stage), 1);
        if constexpr (byMma)
          mbarrierInit(empty(stage), streamWarps);
      }
      mbarrierInitFence();
    }
    if (threadIdx.x == 0)
      describeSources();
    syncThreads();
    settle();
#pragma unroll 1
    for (int stage = 0; stage < stages; ++stage)
      fill(stage, fillsRing);
  }

  /// Begins a step: its cosines and sines come to shared memory, of
  /// `frequencies`, [tables][headSize / 2], and epilogue(row, column, pair)
  /// gets the row of its token. Below 0 stands for row 0.
  template <EmbedConfig embed, class Epilogue>
  LLAMAC_DEVICE void begin(const int *tokens, const int *positions,
                           const int *sequences, const void *embedding,
                           const double *frequencies,
                           const Epilogue &epilogue) {
    if (step == 0)
      token = tokens[0];
    position = positions[step];
    sequence = sequences[0];
    first = notRanked();
    syncThreads(); // The cosines of the step before are read.
#pragma unroll
    for (int table = 0; table < config.tables; ++table)
      cosSinOf<config.headSize>(position,
                                frequencies + table * (config.headSize / 2),
                                threadIdx.x, threads, shared->cosSin[table]);
    forFoursOfRow<embed>(
        embedding, maxOf(token, 0), blockIdx.x + gridDim.x * threadIdx.x,
        gridDim.x * threads, [&](long column, const Four &four) {
          epilogue(0, column, F32x2{four[0], four[1]});
          epilogue(0, column + 2, F32x2{four[2], four[3]});
        });
  }

  /// The row from word `offset` on of those ahead of the layers, or of a layer.
  LLAMAC_DEVICE WordRow before(long offset) const {
    return {setOf(step) + offset};
  }
  LLAMAC_DEVICE WordRow ofLayer(int layer, long offset) const {
    return {setOf(step) + config.wordsBefore + layer * config.layerWords +
            offset};
  }
  LLAMAC_DEVICE const float *cosSin(int table) const {
    return shared->cosSin[table];
  }

  /// An epilogue that gives logits, of which the first are remembered.
  template <class Epilogue>
  LLAMAC_DEVICE FindsFirst<Epilogue> findsFirst(const Epilogue &epilogue) {
    return {epilogue, &first};
  }

  /// Product `number`, with its input and its epilogue.
  template <int number, class Input, class Epilogue>
  LLAMAC_DEVICE void product(const Input &input, const Epilogue &epilogue) {
    if constexpr (byMma)
      productByMma<number>(input, epilogue);
    else
      productByLanes<number>(input, epilogue);
  }

  /// Attention of the row: queries, key and value at `qkv`, as QkvWords has
  /// them, of layer `layer`, results to `out`.
  template <AttentionConfig attention, class Heads>
  LLAMAC_DEVICE void attend(int layer, WordRow qkv, const Heads &heads,
                            const void *pool, const int *pageTable,
                            WordRow out) {
    constexpr int headTiles = attentionHeadTiles(attention);
    constexpr int tiles = attentionTiles(attention);
    static_assert(residentAttentionBytes(attention) <= config.areaBytes);
    static_assert(residentPartialWords(attention) <= config.partialWords);
    const int splits = splitsOf(attention, tilesOfKeys(attention, position));
    uint32_t *const partials = partialsOf(layer);
    usedPartials = splits > 1 ? splits * residentSplitWords(attention) : 0;
    float *const queries =
        reinterpret_cast<float *>(shared->area + residentTileBytes(attention));
    syncThreads(); // The area's former contents have been read.
    if (warpIndex() < attentionWarps) {
      const KvCache<attention.kv> cache{
          static_cast<unsigned char *>(const_cast<void *>(pool)), pageTable};
#pragma unroll 1
      for (int item = blockIdx.x; item < splits * tiles; item += gridDim.x) {
        const int tile = item % tiles;
        const RowSplit of{
            0,      position,         sequence,        item / tiles,
            splits, tile / headTiles, tile % headTiles};
        using Split = SplitInWords<attention, Heads>;
        attendSplit<attention>(
            cache, Split(cache, of, qkv.words, heads, out, partials, queries),
            of, shared->area);
      }
    } else if (warpIndex() == attentionWarps && splits > 1) {
      // The blocks at the other end have no split, if there are some.
#pragma unroll 1
      for (int vector = gridDim.x - 1 - blockIdx.x; vector < attention.heads;
           vector += gridDim.x)
        merge<attention>(partials, splits, vector, out,
                         queries + residentQueryFloats(attention));
    }
  }

  /// Ends a step with the token that params[step] chooses by `logits`, of
  /// `width`, the first of which findsFirst() has found: it goes to out[step].
  /// Whether another step follows.
  template <long width>
  LLAMAC_DEVICE bool end(const float *logits, const SamplingParams *params,
                         int *out) {
    static_assert(sizeof(SampleMemory) <= config.areaBytes);
    const Ranked found = firstOfAll();
    if (steps != 0) {
      const SamplingParams param = params[step];
      token = found.rank == 0 ? -1 : static_cast<int>(found.id);
      const bool isDrawn = found.rank != 0 && param.temperature > 0;
      if (isDrawn && blockIdx.x == 0) {
        const SampledRow<width, threads> row{
            logits, *reinterpret_cast<SampleMemory *>(shared->area), 0, 0};
        token = row.choose(found, param).sample(param);
      }
      if (blockIdx.x == 0 && threadIdx.x == 0)
        out[step] = token;
      if (isDrawn && step + 1 < asked)
        passToken();
    }
    clear();
    return ++step < asked;
  }

  /// Behind the last step: the last block clears what the barriers have left.
  LLAMAC_DEVICE void finish() {
    if (!arrivesLast(counter(), gridDim.x))
      return;
    for (int i = threadIdx.x; i < 5 * config.blocks + 3; i += threads)
      flags()[i] = 0;
  }

private:
  template <int number, class Input, class Epilogue>
  LLAMAC_DEVICE void productByLanes(const Input &input,
                                    const Epilogue &epilogue) {
    using P = LaneProduct<number>;
    using Staged = StagedInput<P::stream, Input>;
    using Warp = GemvWarp<P::gemv, Staged>;
    constexpr uint32_t early = P::template earlySegments<Input>;
    constexpr uint32_t floatsOfSegment =
        P::segment / (P::rowBytes / P::gemv.depth);
    uint32_t unit = firstUnit();
    auto extrasAt = [&] {
      const auto of = P::Units::unitOf(minOf(unit, P::Units::count - 1));
      ExtrasOf<Epilogue> extras = {};
      if (laneIndex() == 0 && unit < P::Units::count)
        extras = extrasOf(epilogue, 0, of.first);
      return extras;
    };
    ExtrasOf<Epilogue> extras = extrasAt();
    syncThreads(); // The area's former contents have been read.
    float squares = 0;
    stage<number>(input, 0, minOf<long>(early * floatsOfSegment, P::gemv.depth),
                  squares);
    if constexpr (Input::normalises) {
      squares = totalAcrossLanes<1>({squares});
      if (laneIndex() == 0)
        shared->squares[warpIndex()] = squares;
    }
    syncThreads();
    Warp warp{Staged(area(), shared->squares, input)};
    uint32_t segment = 0;
    bool isStaged = early == P::segments;
#pragma unroll 1
    for (;;) {
      const uint32_t end = isStaged ? P::segments : early;
      if (unit < P::Units::count)
#pragma unroll 1
        for (; segment < end; ++segment)
          take<number>(warp, segment);
      if (!isStaged) {
        stage<number>(input, early * floatsOfSegment, P::gemv.depth, squares);
        syncThreads();
        isStaged = true;
        continue;
      }
      if (unit >= P::Units::count)
        break;
      const auto of = P::Units::unitOf(unit);
      warp.finish(of.first, of.outputs, 1, epilogueOfPart(epilogue, of.part),
                  [&](long, long) { return extras; });
      segment = 0;
      unit += stride();
      extras = extrasAt();
      warp.clear();
    }
  }

  template <int number, class Input, class Epilogue>
  LLAMAC_DEVICE void productByMma(const Input &input,
                                  const Epilogue &epilogue) {
    using P = Product<number>;
    using Staged = HalvedInput<P::gemv>;
    using Row = HalvesRow<P::gemv, P::segment / groupBytes(P::gemv.format)>;
    constexpr uint32_t early = P::template earlySegments<Input>;
    constexpr int earlyEights =
        early == P::segments ? Staged::eights
                             : early * Row::segmentTiles * (tileColumns / 8);
    auto &staged = *reinterpret_cast<HalvesShared<P::gemv> *>(shared->area);
    syncThreads(); // The area's former contents have been read.
    if (firstUnit() >= P::Units::count)
      return;
    Staged::template fill<0, earlyEights>(staged, input, 1);
    syncThreads();
    bool isStaged = early == P::segments;
    float scale = 1;
    if constexpr (Input::normalises)
      scale = input.scale(Staged::squaresOf(staged, 0));
    int finisher = 0;
#pragma unroll 1
    for (uint32_t unit = firstUnit(); unit < P::Units::count;
         unit += stride()) {
      const auto of = P::Units::unitOf(unit);
      const auto own = epilogueOfPart(epilogue, of.part);
      // They come while the unit is multiplied.
      ExtrasOf<Epilogue> extras = {};
      if (const uint32_t column = Row::columnOfLane(of.first);
          warpIndex() == finisher && Row::rowOfLane() == 0 &&
          column < of.outputs)
        extras = extrasOf(own, 0, column);
      typename Row::Warp warp(staged);
#pragma unroll 1
      for (uint32_t segment = 0; segment < P::segments; ++segment) {
        if constexpr (early != P::segments)
          if (!isStaged && segment == early) {
            Staged::template fill<earlyEights, Staged::eights>(staged, input,
                                                               1);
            syncThreads();
            isStaged = true;
          }
        mbarrierWait(full(at.stage), at.phase);
        Row::multiply(warp, stageOf(at.stage), segment);
        syncWarp();
        if (laneIndex() == 0)
          mbarrierArrive(empty(at.stage));
        // One of them fills it again once all have used it.
        const bool fillsNow = warpIndex() == filler;
        if (fillsNow)
          mbarrierWait(empty(at.stage), at.phase);
        fill(at.stage, fillsNow);
        filler = (filler + 1) % streamWarps;
        at.advance();
      }
      Row::finish(warp, staged, finisher, of.first, of.outputs, 1, scale, own,
                  [&](long, long) { return extras; });
    }
  }

  /// A stage of weights: segment `segment` of unit `unit` of product
  /// `product` of layer `layer` in step `step`.
  struct Place {
    int layer;
    int product;
    uint32_t unit;
    uint32_t segment;
    int step;
  };

  /// The units of a warp, or of the block.
  static LLAMAC_DEVICE uint32_t firstUnit() {
    return byMma ? blockIdx.x : blockIdx.x + gridDim.x * warpIndex();
  }
  static LLAMAC_DEVICE uint32_t stride() {
    return gridDim.x * residentRings(config);
  }

  static LLAMAC_DEVICE int ring() { return byMma ? 0 : warpIndex(); }
  LLAMAC_DEVICE uint64_t *full(int stage) const {
    return &shared->full[ring()][stage];
  }
  LLAMAC_DEVICE uint64_t *empty(int stage) const {
    return &shared->empty[stage];
  }
  LLAMAC_DEVICE unsigned char *stageOf(int stage) const {
    return shared->stages[ring()][stage];
  }
  LLAMAC_DEVICE float *area() const {
    return reinterpret_cast<float *>(shared->area);
  }

  // Behind two sets of words; see residentCounters().
  LLAMAC_DEVICE uint32_t *setOf(int step) const {
    return words + step % 2 * setWords;
  }
  LLAMAC_DEVICE uint32_t *partialsOf(int layer) const {
    return setOf(step) + residentValueWords(config) +
           layer * config.partialWords;
  }
  LLAMAC_DEVICE uint32_t *flags() const { return words + 2 * setWords; }
  LLAMAC_DEVICE Ranked *candidates() const {
    return reinterpret_cast<Ranked *>(flags() + config.blocks) +
           step % 2 * config.blocks;
  }
  LLAMAC_DEVICE uint32_t *tokens() const { return flags() + 5 * config.blocks; }
  LLAMAC_DEVICE uint32_t *tokenFlag() const { return tokens() + 2; }
  LLAMAC_DEVICE uint32_t *counter() const { return tokens() + 3; }

  template <int number = 0> LLAMAC_DEVICE void describeSources() const {
    using P = Product<number>;
    constexpr const int(&matrices)[3] = config.products[number].matrices;
    constexpr bool hasThird = P::stream.parts[2] != 0;
    shared->sources[number] = {
        .units = P::Units::count,
        .second = static_cast<uint32_t>(streamUnits(P::stream, 0)),
        .third = hasThird ? static_cast<uint32_t>(streamUnits(P::stream, 0) +
                                                  streamUnits(P::stream, 1))
                          : P::Units::count,
        .rowBytes = P::rowBytes,
        .segment = P::segment,
        .segments = P::segments,
        .weights = P::weights,
        .matrices = {matrices[0], matrices[1], matrices[2]},
        .layerPointers = P::isOfLayer ? config.layerPointers : 0};
    if constexpr (number + 1 < config.count)
      describeSources<number + 1>();
  }

  /// Goes on from a unit that a product does not have to one that there is.
  LLAMAC_DEVICE void settle() {
    while (next.unit >= shared->sources[next.product].units) {
      next.unit = firstUnit();
      ++next.product;
      if (next.product == config.layerEnd && ++next.layer < config.layers)
        next.product = 0;
      if (next.product == config.count) {
        next.product = 0;
        next.layer = 0;
        if (++next.step == asked)
          return;
      }
    }
  }

  /// Goes on behind what a ring needs next, if there is something, and starts
  /// its copies if the warp `copies`.
  LLAMAC_DEVICE void fill(int stage, bool copies) {
    if (next.step >= asked)
      return;
    const ResidentSource &source = shared->sources[next.product];
    if (copies && electLane())
      copy(source, stageOf(stage), full(stage));
    if (++next.segment == source.segments) {
      next.segment = 0;
      next.unit += stride();
      settle();
    }
  }

  /// The rows of a unit of each weight, or a segment of them.
  LLAMAC_DEVICE void copy(const ResidentSource &source, unsigned char *to,
                          uint64_t *full) const {
    const int part = next.unit >= source.third    ? 2
                     : next.unit >= source.second ? 1
                                                  : 0;
    const uint32_t unit = next.unit - (part == 2   ? source.third
                                       : part == 1 ? source.second
                                                   : 0);
    const uint32_t at = next.segment * source.segment;
    const uint32_t bytes = minOf(source.segment, source.rowBytes - at);
    const uint64_t offset = uint64_t{unitRows * unit} * source.rowBytes + at;
    mbarrierArriveExpect(full, source.weights * unitRows * bytes);
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      if (w == 1 && source.weights == 1)
        break;
      const auto *from = static_cast<const uint8_t *>(
                             table[source.matrices[part + w] +
                                   next.layer * source.layerPointers]) +
                         offset;
      // Whole rows lie one behind the other.
      const bool areTwo = unitRows == 2 && source.segments != 1;
      bulkCopy(to, from, areTwo ? bytes : unitRows * bytes, full);
      if (areTwo)
        bulkCopy(to + source.segment, from + source.rowBytes, bytes, full);
      to += unitRows * source.segment;
    }
  }

  /// Brings columns `begin` to `end` - 1 of the input to shared memory, as
  /// StagedInput::fill() does, and adds their squares.
  template <int number, class Input>
  LLAMAC_DEVICE void stage(const Input &input, long begin, long end,
                           float &squares) {
    using P = Product<number>;
    using Staged = StagedInput<P::stream, Input>;
    constexpr int batch = batchOfTurns(divideUp(P::gemv.depth / 4, threads), 4);
    const int last = static_cast<int>(end / 4);
#pragma unroll 1
    for (int base = static_cast<int>(begin / 4); base < last;
         base += batch * threads) {
      Four gains[batch];
      auto fourOf = [&](int i) {
        // Behind the last there is that again.
        return minOf(base + i * threads + static_cast<int>(threadIdx.x),
                     last - 1);
      };
      if constexpr (Input::normalises)
#pragma unroll
        for (int i = 0; i < batch; ++i)
          gains[i] = vectorAt<const Four>(input.gain + 4 * fourOf(i));
      Four values[batch];
      awaitFours(values,
                 [&](int i) { return input.words.words + 4 * fourOf(i); });
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int four = base + i * threads + static_cast<int>(threadIdx.x);
        if (four < last)
          Staged::put(area(), four, values[i], gains[i], squares);
      }
    }
  }

  /// Multiplies the next stage, segment `segment` of a unit's rows, and fills
  /// it again.
  template <int number, class Warp>
  LLAMAC_DEVICE void take(Warp &warp, uint32_t segment) {
    using P = Product<number>;
    mbarrierWait(full(at.stage), at.phase);
    multiplySegment<P::gemv, P::rowBytes, P::segment, 4>(
        warp, stageOf(at.stage), segment);
    syncWarp();
    fill(at.stage, true);
    at.advance();
  }

  /// Merges the partial results of a query vector, by a warp; `staged` is
  /// shared memory for them.
  template <AttentionConfig attention>
  LLAMAC_DEVICE void merge(const uint32_t *partials, int splits, int vector,
                           WordRow out, float *staged) {
    constexpr int head = attention.kv.headSize;
    constexpr int partial = attentionPartialFloats(attention);
    static_assert(head % 4 == 0);
    constexpr long partialWords = residentSplitWords(attention);
    const uint32_t *from = partials + vector * partial;
    constexpr int fours = head / 4, batch = 4;
    for (int base = 0; base < splits * fours; base += 32 * batch) {
      // Lanes behind the last four have that again.
      auto fourOf = [&](int i) {
        return minOf(base + 32 * i + static_cast<int>(laneIndex()),
                     splits * fours - 1);
      };
      Four values[batch];
      awaitFours(values, [&](int i) {
        const int four = fourOf(i);
        return from + four / fours * partialWords + four % fours * 4;
      });
#pragma unroll
      for (int i = 0; i < batch; ++i)
        if (const int four = fourOf(i);
            four == base + 32 * i + static_cast<int>(laneIndex()))
          vectorAt<Four>(staged + four / fours * partial + four % fours * 4) =
              values[i];
    }
    for (int split = laneIndex(); split < splits; split += 32)
      store2(staged + split * partial + head,
             awaitPair(from + split * partialWords + head));
    syncWarp();
    mergeVector<attention>(staged, splits, [&](int d, F32x2 value) {
      storePair(out.words + vector * head + d, value);
    });
    syncWarp();
  }

  /// The barrier that ends a step: gives the first token of all blocks.
  LLAMAC_DEVICE Ranked firstOfAll() {
    auto *firsts = reinterpret_cast<Ranked *>(shared->firsts);
    const Ranked ofBlock = firstOfBlock<streamWarps>(first, firsts);
    if (threadIdx.x == 0) {
      candidates()[blockIdx.x] = ofBlock;
      storeRelease(flags() + blockIdx.x, step + 1);
    }
    Ranked own = notRanked();
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += threads) {
      await(flags() + block);
      const Ranked other = candidates()[block];
      if (other.rank < own.rank ||
          (other.rank == own.rank && other.id < own.id))
        own = other;
    }
    syncThreads(); // The block's candidates have been read.
    return firstOfBlock<streamWarps>(own, firsts);
  }

  /// Waits until `flag` says that the step is done.
  LLAMAC_DEVICE void await(const uint32_t *flag) const {
    Patience patience;
    while (loadAcquire(flag) < static_cast<uint32_t>(step + 1))
      patience.lookAgain();
  }

  /// Gives the token that block 0 has drawn to all others.
  LLAMAC_DEVICE void passToken() {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      tokens()[step % 2] = token;
      storeRelease(tokenFlag(), step + 1);
    }
    if (threadIdx.x == 0)
      await(tokenFlag());
    syncThreads();
    token = static_cast<int>(tokens()[step % 2]);
  }

  /// Clears the words of the step, which no block reads any more.
  LLAMAC_DEVICE void clear() const {
    clear(setOf(step), residentValueWords(config));
    if (usedPartials != 0)
#pragma unroll 1
      for (int layer = 0; layer < config.layers; ++layer)
        clear(partialsOf(layer), usedPartials);
  }
  static LLAMAC_DEVICE void clear(uint32_t *from, long count) {
    for (long i = blockIdx.x * long(threads) + threadIdx.x; i < count / 4;
         i += gridDim.x * long(threads))
      storeRelaxed4(from + 4 * i, Words4{});
  }

  void *const *table;
  uint32_t *words;
  const int steps; ///< The launch's number of steps.
  const int asked; ///< At least 1.
  Shared *shared;
  Place next;             ///< The next place to copy to.
  RingPlace<stages> at{}; ///< The next place to multiply from.
  int filler = 0;         ///< The warp that next fills the block's ring.
  int step = 0;
  int token = 0;
  int position = 0;
  int sequence = 0;
  long usedPartials = 0; ///< Words of a layer's partial results.
  Ranked first;          ///< The lane's best logit so far.
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_RESIDENT_CUH
