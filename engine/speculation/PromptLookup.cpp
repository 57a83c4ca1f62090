//===- PromptLookup.cpp - Drafts from what a text repeats -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/PromptLookup.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace llamac {

static constexpr int32_t none = -1, root = 0;

static uint64_t edgeKey(int32_t state, int32_t token) {
  return uint64_t{static_cast<uint32_t>(state)} << 32 |
         static_cast<uint32_t>(token);
}

PromptLookup::PromptLookup() { states.push_back({none, 0, none, none}); }

int32_t PromptLookup::target(int32_t state, int32_t token) const {
  const auto edge = edgeOf.find(edgeKey(state, token));
  return edge == edgeOf.end() ? none : edges[edge->second].target;
}

void PromptLookup::addEdge(int32_t state, int32_t token, int32_t target) {
  const auto edge = static_cast<int32_t>(edges.size());
  edges.push_back({token, target, states[state].firstEdge});
  states[state].firstEdge = edge;
  edgeOf.emplace(edgeKey(state, token), edge);
}

void PromptLookup::setTarget(int32_t state, int32_t token, int32_t target) {
  edges[edgeOf.at(edgeKey(state, token))].target = target;
}

/// Appends `token`, which is the last of `tokens`, to the automaton.
void PromptLookup::grow(int32_t token) {
  const auto end = static_cast<int32_t>(tokens.size()) - 1;
  const auto whole = static_cast<int32_t>(states.size());
  states.push_back({root, end + 1, end, none});
  int32_t state = last;
  last = whole;
  for (; state != none && target(state, token) == none;
       state = states[state].link)
    addEdge(state, token, whole);
  if (state == none)
    return;
  const int32_t next = target(state, token);
  if (states[next].length == states[state].length + 1) {
    states[whole].link = next;
    return;
  }
  // The shorter texts of `next` end here, too, and the longer ones do not.
  const auto shorter = static_cast<int32_t>(states.size());
  states.push_back(
      {states[next].link, states[state].length + 1, states[next].end, none});
  for (int32_t edge = states[next].firstEdge; edge != none;
       edge = edges[edge].next)
    addEdge(shorter, edges[edge].token, edges[edge].target);
  states[next].link = states[whole].link = shorter;
  for (; state != none && target(state, token) == next;
       state = states[state].link)
    setTarget(state, token, shorter);
}

void PromptLookup::append(int32_t token, bool isOfAnswer) {
  if (isOfAnswer && matched > 0)
    accepted[lengthClass(matched)].record(tokens[matchedEnd + 1] == token);
  tokens.push_back(token);
  grow(token);
  State &match = states[states[last].link];
  matched = match.length;
  matchedEnd = match.end;
  match.end = static_cast<int32_t>(tokens.size()) - 1;
}

/// The class of a match of `length` tokens, at least one.
size_t PromptLookup::lengthClass(int64_t length) {
  return std::min<size_t>(std::bit_width(static_cast<uint64_t>(length)) - 1,
                          lengthClasses - 1);
}

/// The probability that what followed a match of `length` tokens follows again.
double PromptLookup::acceptance(int64_t length) const {
  static constexpr double expected[lengthClasses] = {0.1, 0.2, 0.4, 0.6,
                                                     0.8, 0.9, 0.9, 0.9};
  const size_t of = lengthClass(length);
  return accepted[of].rate(expected[of], /*weight=*/2);
}

Draft PromptLookup::draft(int64_t most) const {
  Draft draft;
  if (matched == 0)
    return draft;
  for (int64_t i = 0; i < most; ++i) {
    const int64_t from = matchedEnd + 1 + i;
    // A text that repeats what it ends with goes on with the draft itself.
    draft.add(from < size() ? tokens[from] : draft.tokens[from - size()],
              acceptance(matched + i));
  }
  return draft;
}

} // namespace llamac
