//===- PrefixCache.cpp - Keys and values of known beginnings --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PrefixCache.h"

#include <algorithm>
#include <ranges>

namespace llamac {

PrefixCache::PrefixCache(KvCache &cache) : cache(cache) {
  cache.setReclaim([this] { return evict(); });
}

PrefixCache::~PrefixCache() {
  cache.setReclaim([] { return false; });
  for (const Node &node : nodes)
    for (size_t group = 0; group < node.pages.size(); ++group)
      if (node.pages[group] >= 0)
        cache.drop(group, node.pages[group]);
}

PrefixCache::Node *PrefixCache::find(const Node *parent,
                                     absl::Span<const int32_t> tokens) const {
  const auto found = index.find(Key(parent, tokens));
  return found == index.end() ? nullptr : found->second;
}

std::vector<PrefixCache::Node *>
PrefixCache::path(absl::Span<const int32_t> tokens, size_t most) const {
  const auto width = static_cast<size_t>(cache.tokensOfPage());
  std::vector<Node *> nodesOf;
  const Node *parent = nullptr;
  while (nodesOf.size() < most) {
    Node *next = find(parent, tokens.subspan(nodesOf.size() * width, width));
    if (!next)
      break;
    nodesOf.push_back(next);
    parent = next;
  }
  return nodesOf;
}

void PrefixCache::touch(absl::Span<Node *const> path) {
  for (Node *node : path | std::views::reverse)
    nodes.splice(nodes.begin(), nodes, node->place);
}

int64_t PrefixCache::attach(int32_t slot, absl::Span<const int32_t> tokens) {
  const auto width = static_cast<size_t>(cache.tokensOfPage());
  total.asked += static_cast<int64_t>(tokens.size());
  if (tokens.empty())
    return 0;
  std::vector<Node *> known = path(tokens, (tokens.size() - 1) / width);
  // As far as each group has all pages that the next token sees.
  const auto isWhole = [&] {
    const auto count = static_cast<int64_t>(known.size());
    for (size_t group = 0; group < cache.groupCount(); ++group)
      for (int64_t i = std::min(cache.firstSeen(group, count), count - 1);
           i < count; ++i)
        if (known[i]->pages[group] < 0)
          return false;
    return true;
  };
  while (!known.empty() && !isWhole())
    known.pop_back();
  if (known.empty())
    return 0;
  for (size_t group = 0; group < cache.groupCount(); ++group) {
    std::vector<int32_t> pages;
    for (const Node *node : known)
      pages.push_back(node->pages[group]);
    cache.attach(group, slot, pages);
  }
  touch(known);
  const auto found = static_cast<int64_t>(known.size() * width);
  total.found += found;
  return found;
}

void PrefixCache::keep(int32_t slot, absl::Span<const int32_t> tokens,
                       int64_t written) {
  const auto width = static_cast<size_t>(cache.tokensOfPage());
  const size_t count = tokens.size() / width;
  std::vector<Node *> known = path(tokens, count);
  const auto pageOf = [&](size_t group, size_t number) {
    const int32_t page =
        cache.pageAt(group, slot, static_cast<int64_t>(number), written);
    if (page >= 0)
      cache.keep(group, page);
    return page;
  };
  // What was replaced in a ring when it was kept may be there now.
  for (size_t i = 0; i < known.size(); ++i)
    for (size_t group = 0; group < cache.groupCount(); ++group)
      if (int32_t &page = known[i]->pages[group]; page < 0)
        page = pageOf(group, i);
  while (known.size() < count) {
    const size_t number = known.size();
    const absl::Span<const int32_t> own = tokens.subspan(number * width, width);
    Node *parent = known.empty() ? nullptr : known.back();
    Node &node =
        nodes.emplace_front(Node{parent, {own.begin(), own.end()}, {}});
    node.place = nodes.begin();
    for (size_t group = 0; group < cache.groupCount(); ++group)
      node.pages.push_back(pageOf(group, number));
    if (parent)
      ++parent->children;
    index[Key(parent, node.tokens)] = &node;
    known.push_back(&node);
  }
  touch(known);
}

bool PrefixCache::isEvictable(const Node &node) const {
  if (node.children != 0)
    return false;
  for (size_t group = 0; group < node.pages.size(); ++group)
    if (node.pages[group] >= 0 &&
        !cache.isReclaimable(group, node.pages[group]))
      return false;
  return true;
}

void PrefixCache::erase(Node &node) {
  index.erase(Key(node.parent, node.tokens));
  if (node.parent)
    --node.parent->children;
  for (size_t group = 0; group < node.pages.size(); ++group)
    if (node.pages[group] >= 0)
      cache.drop(group, node.pages[group]);
  nodes.erase(node.place);
  ++total.evicted;
}

bool PrefixCache::evict() {
  for (Node &node : nodes | std::views::reverse)
    if (isEvictable(node)) {
      erase(node);
      return true;
    }
  return false;
}

void PrefixCache::clear() {
  while (evict())
    ;
}

} // namespace llamac
