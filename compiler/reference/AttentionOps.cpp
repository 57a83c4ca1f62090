//===- AttentionOps.cpp - Rotary embedding, KV cache, attention -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fused attention and the ops it stands for share their inner loops, so
// that fusing changes no bit of the result.
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Ops.h"
#include "compiler/reference/Product.h"
#include "ir/kernel/Kernel.h"
#include "runtime/base/Status.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

using namespace mlir;

namespace llamac::reference {

static constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

//===----------------------------------------------------------------------===//
// Inner loops
//===----------------------------------------------------------------------===//

/// Softmax in place: e = exp(x - max), divided by the sum of e in fp64.
static void softmaxRow(float *row, int64_t count) {
  const float maximum = *std::max_element(row, row + count);
  double sum = 0;
  for (int64_t t = 0; t < count; ++t) {
    if (row[t] == minusInfinity) {
      row[t] = 0; // Most of a causal prefill; spares the exp.
      continue;
    }
    const double e = std::exp(double{row[t]} - maximum);
    sum += e;
    row[t] = static_cast<float>(e);
  }
  const double factor = 1.0 / sum;
  for (int64_t t = 0; t < count; ++t)
    row[t] = static_cast<float>(row[t] * factor);
}

/// out[i] = sum over t of probabilities[t] * values[t][i], summed in fp64 over
/// the rows whose probability is not 0. `sums` is scratch.
static void weightedSum(const float *probabilities, RowsView values,
                        int64_t size, std::vector<double> &sums, float *out) {
  sums.assign(size, 0.0);
  for (int64_t t = 0; t < values.count; ++t) {
    const double p = probabilities[t];
    if (p == 0)
      continue;
    const float *row = values.data + t * values.stride;
    for (int64_t i = 0; i < size; ++i)
      sums[i] += p * row[i];
  }
  std::transform(sums.begin(), sums.end(), out,
                 [](double sum) { return static_cast<float>(sum); });
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

Tensor cosSinTable(const Indices &positions, DenseElementsAttr frequencies) {
  Tensor result({static_cast<int64_t>(positions.size()),
                 frequencies.getNumElements(), 2});
  float *to = result.data.data();
  for (int32_t position : positions)
    for (double frequency : frequencies.getValues<double>()) {
      const double angle = position * frequency;
      *to++ = static_cast<float>(std::cos(angle));
      *to++ = static_cast<float>(std::sin(angle));
    }
  return result;
}

template <typename Op> static absl::Status ropeTable(OpCall &call) {
  return call.give(
      cosSinTable(call.indices(0),
                  cast<DenseElementsAttr>(cast<Op>(call.op).getFrequencies())));
}

template <> absl::Status compute<llama::RopeTableOp>(OpCall &call) {
  return ropeTable<llama::RopeTableOp>(call);
}

template <> absl::Status compute<kernel::RopeTableOp>(OpCall &call) {
  return ropeTable<kernel::RopeTableOp>(call);
}

absl::Status rotateHeads(Tensor &x, const Tensor &table) {
  const int64_t rows = x.shape[0], heads = x.shape[1], size = x.shape[2];
  if (table.shape[0] != rows)
    return internalError("the cos/sin table and the rotated tensor differ in "
                         "rows");
  for (int64_t n = 0; n < rows; ++n) {
    const float *cosSin = table.data.data() + n * size;
    for (int64_t j = 0; j < heads; ++j) {
      float *head = x.data.data() + (n * heads + j) * size;
      for (int64_t i = 0; i < size; i += 2) {
        const double a = head[i], b = head[i + 1];
        const double c = cosSin[i], s = cosSin[i + 1];
        head[i] = static_cast<float>(a * c - b * s);
        head[i + 1] = static_cast<float>(a * s + b * c);
      }
    }
  }
  return absl::OkStatus();
}

template <> absl::Status compute<llama::RopeOp>(OpCall &call) {
  auto x = call.take<Tensor>(0);
  LLAMAC_RETURN_IF_ERROR(rotateHeads(x, call.tensor(1)));
  return call.give(std::move(x));
}

//===----------------------------------------------------------------------===//
// KV cache
//===----------------------------------------------------------------------===//

template <> absl::Status compute<llama::CacheAppendOp>(OpCall &call) {
  LLAMAC_RETURN_IF_ERROR(
      call.kv(0).checkAppend(call.indices(3), call.indices(4)));
  auto kv = call.take<KvState>(0);
  kv.append(call.tensor(1).data.data(), call.tensor(2).data.data(),
            call.indices(3), call.indices(4));
  return call.give(std::move(kv));
}

template <> absl::Status compute<llama::CacheReadOp>(OpCall &call) {
  const KvState &kv = call.kv(0);
  Tensor keys, values;
  for (const auto &[sequence, rows] : kv.rows()) {
    keys.data.insert(keys.data.end(), rows.keys.begin(), rows.keys.end());
    values.data.insert(values.data.end(), rows.values.begin(),
                       rows.values.end());
  }
  keys.shape = {static_cast<int64_t>(keys.data.size()) / kv.rowSize(),
                kv.numHeads(), kv.headSize()};
  values.shape = keys.shape;
  (void)call.give(std::move(keys));
  return call.give(std::move(values));
}

template <> absl::Status compute<llama::CacheIndexOp>(OpCall &call) {
  const KvState &kv = call.kv(0);
  const Indices &positions = call.indices(1), &sequences = call.indices(2);
  LLAMAC_RETURN_IF_ERROR(kv.checkAppend(positions, sequences));
  std::map<int32_t, int64_t> lengths;
  for (const auto &[sequence, rows] : kv.rows())
    lengths[sequence] = kv.length(sequence);
  for (auto [position, sequence] : llvm::zip(positions, sequences)) {
    int64_t &length = lengths[sequence];
    length = std::max<int64_t>(length, position + int64_t{1});
  }
  Indices keyPositions, keySequences;
  for (auto [sequence, length] : lengths)
    for (int64_t position = 0; position < length; ++position) {
      keyPositions.push_back(static_cast<int32_t>(position));
      keySequences.push_back(sequence);
    }
  (void)call.give(std::move(keyPositions));
  return call.give(std::move(keySequences));
}

//===----------------------------------------------------------------------===//
// Attention, step by step
//===----------------------------------------------------------------------===//

template <> absl::Status compute<llama::CausalMaskOp>(OpCall &call) {
  const Indices &positions = call.indices(0), &sequences = call.indices(1);
  const Indices &keyPositions = call.indices(2),
                &keySequences = call.indices(3);
  const auto rows = static_cast<int64_t>(positions.size());
  const auto keys = static_cast<int64_t>(keyPositions.size());
  const auto window = static_cast<int64_t>(
      cast<llama::CausalMaskOp>(call.op).getWindow().value_or(0));
  Tensor result({rows, keys});
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t t = 0; t < keys; ++t)
      if (keySequences[t] != sequences[n] || keyPositions[t] > positions[n] ||
          (window && keyPositions[t] <= positions[n] - window))
        result.data[n * keys + t] = minusInfinity;
  return call.give(std::move(result));
}

template <> absl::Status compute<llama::AttentionScoresOp>(OpCall &call) {
  const Tensor &query = call.tensor(0), &keys = call.tensor(1);
  const int64_t rows = query.shape[0], heads = query.shape[1];
  const int64_t size = query.shape[2];
  const int64_t numKeys = keys.shape[0], kvHeads = keys.shape[1];
  const int64_t group = heads / kvHeads;
  Tensor result({heads, rows, numKeys});
  call.parallel.forEach(
      heads, 2.0 * static_cast<double>(result.data.size() * size),
      [&](int64_t j) {
        productOfRows(
            {query.data.data() + j * size, rows, heads * size},
            {keys.data.data() + (j / group) * size, numKeys, kvHeads * size},
            size, result.data.data() + j * rows * numKeys, numKeys);
      });
  return call.give(std::move(result));
}

template <> absl::Status compute<llama::AddMaskOp>(OpCall &call) {
  auto scores = call.take<Tensor>(0);
  const Tensor &mask = call.tensor(1);
  const int64_t heads = scores.shape[0];
  const int64_t perHead = scores.shape[1] * scores.shape[2];
  if (static_cast<int64_t>(mask.data.size()) != perHead)
    return internalError("the mask of llama.add_mask does not fit the scores");
  call.parallel.forEach(
      heads, static_cast<double>(scores.data.size()), [&](int64_t j) {
        float *head = scores.data.data() + j * perHead;
        for (int64_t i = 0; i < perHead; ++i)
          head[i] = mask.data[i] == minusInfinity ? minusInfinity
                                                  : head[i] + mask.data[i];
      });
  return call.give(std::move(scores));
}

template <> absl::Status compute<llama::SoftmaxOp>(OpCall &call) {
  auto scores = call.take<Tensor>(0);
  const int64_t keys = scores.shape[2];
  call.parallel.forEach(
      scores.shape[0] * scores.shape[1],
      expCost * static_cast<double>(scores.data.size()),
      [&](int64_t row) { softmaxRow(scores.data.data() + row * keys, keys); });
  return call.give(std::move(scores));
}

template <> absl::Status compute<llama::AttentionValuesOp>(OpCall &call) {
  const Tensor &probabilities = call.tensor(0), &values = call.tensor(1);
  const int64_t heads = probabilities.shape[0], rows = probabilities.shape[1];
  const int64_t keys = probabilities.shape[2];
  const int64_t kvHeads = values.shape[1], size = values.shape[2];
  const int64_t group = heads / kvHeads;
  if (values.shape[0] != keys)
    return internalError("llama.attention_values has more keys than values");
  Tensor result({rows, heads, size});
  call.parallel.forEach(
      heads, 2.0 * static_cast<double>(probabilities.data.size() * size),
      [&](int64_t j) {
        std::vector<double> sums;
        for (int64_t n = 0; n < rows; ++n)
          weightedSum(
              probabilities.data.data() + (j * rows + n) * keys,
              {values.data.data() + (j / group) * size, keys, kvHeads * size},
              size, sums, result.data.data() + (n * heads + j) * size);
      });
  return call.give(std::move(result));
}

//===----------------------------------------------------------------------===//
// Attention, fused
//===----------------------------------------------------------------------===//

namespace {

/// The softmax of one row and head, over the keys that it sees.
struct RowSoftmax {
  std::vector<float> probabilities;
  RowsView values;
};

} // namespace

/// The softmax of `query`, one head of a row at `position` that reads kv head
/// `kvHead`.
static RowSoftmax softmaxOf(const float *query, const KvState &kv,
                            const KvRows &cached, int32_t position,
                            int64_t kvHead, double scale, uint64_t window) {
  const int64_t size = kv.headSize(), width = kv.rowSize();
  const int64_t end = position + int64_t{1};
  const int64_t visible =
      window ? std::min(end, static_cast<int64_t>(window)) : end;
  const int64_t head = (end - visible) * width + kvHead * size;
  RowSoftmax result{std::vector<float>(visible),
                    {cached.values.data() + head, visible, width}};
  float *scores = result.probabilities.data();
  productOfRows({query, 1, size}, {cached.keys.data() + head, visible, width},
                size, scores, visible);
  for (int64_t t = 0; t < visible; ++t)
    scores[t] = static_cast<float>(scores[t] * scale);
  softmaxRow(scores, visible);
  return result;
}

absl::StatusOr<Tensor> attend(OpCall &call, const Tensor &query,
                              const llvm::APFloat &scale, uint64_t window) {
  const KvState &kv = call.kv(1);
  const Indices &positions = call.indices(2), &sequences = call.indices(3);
  const double factor = scale.convertToDouble();
  const int64_t rows = query.shape[0], heads = query.shape[1];
  const int64_t size = query.shape[2];
  const int64_t group = heads / kv.numHeads();

  double pairs = 0;
  for (int64_t n = 0; n < rows; ++n) {
    if (positions[n] < 0 || positions[n] >= kv.length(sequences[n]))
      return internalError(
          "attention reads a state without the step's own rows");
    pairs += positions[n] + 1.0;
  }

  Tensor result(query.shape);
  call.parallel.forEach(
      rows * heads,
      pairs * static_cast<double>(heads) *
          (4.0 * static_cast<double>(size) + expCost),
      [&](int64_t task) {
        const int64_t n = task / heads, j = task % heads;
        const RowSoftmax row = softmaxOf(
            query.data.data() + task * size, kv, kv.rows().at(sequences[n]),
            positions[n], j / group, factor, window);
        std::vector<double> sums;
        weightedSum(row.probabilities.data(), row.values, size, sums,
                    result.data.data() + task * size);
      });
  return result;
}

ApproximationBound approximationBound(kernel::AttentionOp op,
                                      const Tensor &query, const KvState &kv,
                                      const Indices &positions,
                                      const Indices &sequences) {
  const llama::ApproximationAttr approximation = op.getApproximationAttr();
  const int64_t rows = query.shape[0], size = kv.headSize();
  const int64_t heads = query.shape[1] / size, group = heads / kv.numHeads();
  ApproximationBound result;
  result.bounds.resize(query.data.size());
  for (int64_t task = 0; task < rows * heads; ++task) {
    const int64_t n = task / heads, j = task % heads;
    RowSoftmax row =
        softmaxOf(query.data.data() + task * size, kv,
                  kv.rows().at(sequences[n]), positions[n], j / group,
                  op.getScale().convertToDouble(), op.getWindow().value_or(0));
    double dropped = 0;
    std::vector<float> &shares = row.probabilities;
    if (const int64_t topK = approximation.getTopK();
        topK != 0 && topK < row.values.count) {
      std::nth_element(shares.begin(), shares.begin() + topK, shares.end(),
                       std::greater<>());
      dropped = std::accumulate(shares.begin() + topK, shares.end(), 0.0);
    }
    result.dropped = std::max(result.dropped, dropped);
    const double bound = llama::attentionBound(approximation.getExp(), dropped);
    for (int64_t t = 0; t < row.values.count; ++t)
      for (int64_t i = 0; i < size; ++i) {
        float &element = result.bounds[task * size + i];
        element = std::max(
            element,
            static_cast<float>(
                bound * std::abs(row.values.data[t * row.values.stride + i])));
      }
  }
  return result;
}

template <> absl::Status compute<llama::AttentionOp>(OpCall &call) {
  auto op = cast<llama::AttentionOp>(call.op);
  return call.give(
      attend(call, call.tensor(0), op.getScale(), op.getWindow().value_or(0)));
}

} // namespace llamac::reference
