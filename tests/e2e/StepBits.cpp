//===- StepBits.cpp - Whether logits depend on the steps they come in -----===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llamac-step-bits PLAN ISA TOKENS SIZE...: computes the logits of sequences
// one row a step, on one thread. Then, on one to three threads, the same tokens
// in steps of SIZE sequences, in prompts cut into pieces of SIZE, and in steps
// with a piece of a prompt beside single rows. The longest sequence has TOKENS
// tokens. Prints how many rows were compared, and the rows whose bits differ.
//
//===----------------------------------------------------------------------===//

#include "engine/step/Engine.h"
#include "engine/step/Model.h"
#include "runtime/base/Status.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

namespace llamac {
namespace {

using Logits = std::vector<std::vector<float>>; // Logits by position.

/// The next `count` tokens of a sequence.
struct Piece {
  size_t sequence;
  int64_t count;
};

class StepBits {
public:
  StepBits(std::string plan, std::string isa, int64_t tokens,
           std::vector<int64_t> sizes)
      : plan(std::move(plan)), isa(std::move(isa)), longest(tokens),
        sizes(std::move(sizes)) {}

  absl::Status run();

private:
  absl::Status load(int threads);
  absl::Status computeExpected();
  absl::Status checkBatches();
  absl::Status checkCuts();
  absl::Status checkMixed();

  absl::Status open(size_t sequence);
  void close(size_t sequence) { open_[sequence].reset(); }
  /// Appends the next tokens of some sequences in one step.
  absl::Status step(const std::vector<Piece> &pieces, const std::string &what);
  void compare(size_t sequence, int64_t position,
               absl::Span<const float> logits, const std::string &what);

  int32_t tokenAt(size_t sequence, int64_t position) const {
    return static_cast<int32_t>((7919 * position + 613 * sequence + 11) %
                                model->config().vocabSize);
  }
  /// Tokens of a sequence before the batches, at positions that differ.
  int64_t startOf(size_t sequence) const {
    return sequence == 0 ? longest - static_cast<int64_t>(sizes.size())
                         : 1 + static_cast<int64_t>(sequence * 5 % 23);
  }
  int64_t lengthOf(size_t sequence) const {
    return startOf(sequence) + static_cast<int64_t>(sizes.size());
  }

  const std::string plan, isa;
  const int64_t longest;
  const std::vector<int64_t> sizes;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Engine> engine;
  std::vector<std::optional<Sequence>> open_;
  std::vector<Logits> expected; // Expected logits by sequence.
  int64_t compared = 0, different = 0;
};

} // namespace

absl::Status StepBits::load(int threads) {
  open_.clear();
  engine.reset();
  ModelOptions options;
  options.threads = threads;
  options.isa = isa;
  options.quiet = true;
  options.sequences = *std::max_element(sizes.begin(), sizes.end());
  LLAMAC_ASSIGN_OR_RETURN(model, Model::load(plan, options));
  LLAMAC_ASSIGN_OR_RETURN(engine, Engine::create(model));
  open_.resize(static_cast<size_t>(options.sequences));
  return absl::OkStatus();
}

absl::Status StepBits::open(size_t sequence) {
  LLAMAC_ASSIGN_OR_RETURN(Sequence opened, engine->newSequence());
  open_[sequence].emplace(std::move(opened));
  return absl::OkStatus();
}

void StepBits::compare(size_t sequence, int64_t position,
                       absl::Span<const float> logits,
                       const std::string &what) {
  ++compared;
  const std::vector<float> &row =
      expected[sequence][static_cast<size_t>(position)];
  if (std::memcmp(row.data(), logits.data(), row.size() * sizeof(float)) == 0)
    return;
  if (++different <= 10)
    std::printf("%d threads, %s: sequence %zu, position %ld differs\n",
                model->loaded().threads(), what.c_str(), sequence,
                static_cast<long>(position));
}

absl::Status StepBits::step(const std::vector<Piece> &pieces,
                            const std::string &what) {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<SequenceTokens> items;
  std::vector<int64_t> firsts;
  tokens.reserve(pieces.size());
  for (const Piece &piece : pieces) {
    Sequence &sequence = *open_[piece.sequence];
    firsts.push_back(sequence.length());
    std::vector<int32_t> &own = tokens.emplace_back();
    for (int64_t i = 0; i < piece.count; ++i)
      own.push_back(tokenAt(piece.sequence, sequence.length() + i));
    // The logits of every row would cut a larger piece.
    items.push_back({&sequence, own,
                     piece.count <= 32 ? OutputRows::All : OutputRows::Last});
  }
  return engine->step(items, [&](const LogitsRow &row) {
    const int64_t position = firsts[row.item] + row.token;
    compare(pieces[row.item].sequence, position, row.values, what);
    return absl::OkStatus();
  });
}

absl::Status StepBits::computeExpected() {
  LLAMAC_RETURN_IF_ERROR(load(1));
  expected.resize(open_.size());
  for (size_t sequence = 0; sequence < open_.size(); ++sequence) {
    LLAMAC_RETURN_IF_ERROR(open(sequence));
    for (int64_t position = 0; position < lengthOf(sequence); ++position) {
      const int32_t token = tokenAt(sequence, position);
      const SequenceTokens item{&*open_[sequence], {&token, 1}};
      LLAMAC_RETURN_IF_ERROR(
          engine->step({&item, 1}, [&](const LogitsRow &row) {
            expected[sequence].emplace_back(row.values.begin(),
                                            row.values.end());
            return absl::OkStatus();
          }));
    }
    close(sequence);
  }
  return absl::OkStatus();
}

absl::Status StepBits::checkBatches() {
  for (size_t sequence = 0; sequence < open_.size(); ++sequence) {
    LLAMAC_RETURN_IF_ERROR(open(sequence));
    LLAMAC_RETURN_IF_ERROR(step({{sequence, startOf(sequence)}}, "a prompt"));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<Piece> rows;
    for (int64_t row = 0; row < sizes[i]; ++row)
      rows.push_back({(i + static_cast<size_t>(row)) % open_.size(), 1});
    LLAMAC_RETURN_IF_ERROR(step(rows, absl::StrCat("a batch of ", sizes[i])));
  }
  for (size_t sequence = 0; sequence < open_.size(); ++sequence)
    close(sequence);
  return absl::OkStatus();
}

absl::Status StepBits::checkCuts() {
  std::vector<int64_t> cuts = sizes;
  cuts.insert(cuts.end(), {longest / 2, longest});
  for (int64_t size : cuts) {
    LLAMAC_RETURN_IF_ERROR(open(0));
    for (int64_t left = longest; left > 0; left -= size)
      LLAMAC_RETURN_IF_ERROR(
          step({{0, std::min(size, left)}}, absl::StrCat("pieces of ", size)));
    close(0);
  }
  return absl::OkStatus();
}

absl::Status StepBits::checkMixed() {
  for (int64_t size : sizes) {
    // The single rows fill up a step of 32, or are some beyond that.
    const int64_t singles =
        size < 32 ? std::min<int64_t>(32 - size, 4) : size % 7 + 1;
    std::vector<Piece> pieces;
    for (int64_t i = 0; i < singles; ++i) {
      const auto sequence = static_cast<size_t>(i) + 1;
      LLAMAC_RETURN_IF_ERROR(open(sequence));
      pieces.push_back({sequence, 1});
    }
    LLAMAC_RETURN_IF_ERROR(open(0));
    pieces.insert(pieces.begin() + singles / 2, {0, size});
    const int64_t steps = std::min(longest / size, startOf(1));
    for (int64_t i = 0; i < steps; ++i)
      LLAMAC_RETURN_IF_ERROR(
          step(pieces, absl::StrCat(size, " rows beside ", singles)));
    for (const Piece &piece : pieces)
      close(piece.sequence);
  }
  return absl::OkStatus();
}

absl::Status StepBits::run() {
  LLAMAC_RETURN_IF_ERROR(computeExpected());
  for (int threads : {1, 2, 3}) {
    LLAMAC_RETURN_IF_ERROR(load(threads));
    LLAMAC_RETURN_IF_ERROR(checkBatches());
    LLAMAC_RETURN_IF_ERROR(checkCuts());
    LLAMAC_RETURN_IF_ERROR(checkMixed());
  }
  std::printf("%ld rows compared, %ld differ\n", static_cast<long>(compared),
              static_cast<long>(different));
  return absl::OkStatus();
}

static int runMain(int argc, char **argv) {
  std::vector<int64_t> numbers;
  for (int i = 3; i < argc; ++i)
    if (!absl::SimpleAtoi(argv[i], &numbers.emplace_back()))
      return 2;
  if (numbers.size() < 2)
    return 2;
  StepBits bits(argv[1], argv[2], numbers[0],
                {numbers.begin() + 1, numbers.end()});
  if (absl::Status status = bits.run(); !status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}

} // namespace llamac

int main(int argc, char **argv) { return llamac::runMain(argc, argv); }
