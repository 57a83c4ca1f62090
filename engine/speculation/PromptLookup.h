//===- PromptLookup.h - Drafts from what a text repeats ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Answers repeat their prompts and themselves: code that is edited, texts that
// are quoted, the keys of JSON. What followed the end of a sequence the last
// time is a draft of what follows now (Saxena 2023, prompt lookup decoding).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_PROMPTLOOKUP_H
#define LLAMAC_ENGINE_SPECULATION_PROMPTLOOKUP_H

#include "engine/speculation/Draft.h"

#include "absl/container/flat_hash_map.h"

#include <array>
#include <cstdint>
#include <vector>

namespace llamac {

/// The tokens of one sequence, whose longest end that was there before is known
/// after each: a suffix automaton (Blumer et al. 1985), which grows by a token
/// in constant time on average.
class PromptLookup {
public:
  PromptLookup();

  /// Appends the next token. One of an answer shows how good drafts are, also
  /// where none was asked for.
  void append(int32_t token, bool isOfAnswer);

  /// The tokens so far.
  int64_t size() const { return static_cast<int64_t>(tokens.size()); }

  /// At most `most` tokens that followed the longest end the last time; none
  /// where no end was there before.
  Draft draft(int64_t most) const;

private:
  /// Ends of prefixes that are alike: all texts of more than the link's length
  /// and at most `length` tokens that end at the same places.
  struct State {
    int32_t link;      ///< The longest of the shorter texts that end there too.
    int32_t length;    ///< Tokens of its longest text.
    int32_t end;       ///< The last token of one of its places but the newest.
    int32_t firstEdge; ///< The number of the edge that was added last.
  };
  struct Edge {
    int32_t token, target, next;
  };

  /// Acceptance is counted by the length of the match: one for each power of
  /// two.
  static constexpr size_t lengthClasses = 8;

  static size_t lengthClass(int64_t length);
  int32_t target(int32_t state, int32_t token) const;
  void addEdge(int32_t state, int32_t token, int32_t target);
  void setTarget(int32_t state, int32_t token, int32_t target);
  void grow(int32_t token);
  double acceptance(int64_t length) const;

  std::vector<int32_t> tokens;
  std::vector<State> states;
  std::vector<Edge> edges;
  absl::flat_hash_map<uint64_t, int32_t> edgeOf; ///< Edges by state, token.
  int32_t last = 0; ///< The state of the whole sequence.
  /// The longest end that was there before, and where it ended.
  int32_t matched = 0, matchedEnd = 0;
  std::array<Acceptance, lengthClasses> accepted = {};
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_PROMPTLOOKUP_H
