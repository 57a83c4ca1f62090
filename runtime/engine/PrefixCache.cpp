//===- PrefixCache.cpp - Keys and values of known beginnings --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PrefixCache.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <utility>

namespace llamac {

PageMemory::~PageMemory() = default;

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
  for (Node *node : path | std::views::reverse) {
    nodes.splice(nodes.begin(), node->isAsleep ? asleep : nodes, node->place);
    if (std::exchange(node->isAsleep, false) && node->parent)
      ++node->parent->children;
  }
}

int64_t PrefixCache::firstNeeded(size_t group, int64_t count) const {
  return std::min(cache.firstSeen(group, count), count - 1);
}

std::vector<PrefixCache::Node *>
PrefixCache::usable(absl::Span<const int32_t> tokens, bool inFile) const {
  if (tokens.empty())
    return {};
  const auto width = static_cast<size_t>(cache.tokensOfPage());
  std::vector<Node *> known = path(tokens, (tokens.size() - 1) / width);
  const auto isWhole = [&] {
    const auto count = static_cast<int64_t>(known.size());
    for (size_t group = 0; group < cache.groupCount(); ++group)
      for (int64_t i = firstNeeded(group, count); i < count; ++i)
        if (known[i]->pages[group] < 0 &&
            !(inFile && isInFile(*known[i], group)))
          return false;
    return true;
  };
  while (!known.empty() && !isWhole())
    known.pop_back();
  return known;
}

int64_t PrefixCache::attach(int32_t slot, absl::Span<const int32_t> tokens) {
  const auto width = static_cast<size_t>(cache.tokensOfPage());
  total.asked += static_cast<int64_t>(tokens.size());
  const std::vector<Node *> known = usable(tokens, /*inFile=*/false);
  if (known.empty())
    return 0;
  for (size_t group = 0; group < cache.groupCount(); ++group) {
    std::vector<int32_t> pages;
    pages.reserve(known.size());
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
      if (int32_t &page = known[i]->pages[group]; page < 0) {
        page = pageOf(group, i);
        isChanged |= page >= 0 && !isInFile(*known[i], group);
      }
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
    isChanged = true;
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

void PrefixCache::giveUp(Node &node) {
  if (node.parent)
    --node.parent->children;
  for (size_t group = 0; group < node.pages.size(); ++group)
    if (const int32_t page = std::exchange(node.pages[group], -1); page >= 0)
      cache.drop(group, page);
  ++total.evicted;
  if (node.stored >= 0) {
    node.isAsleep = true;
    asleep.splice(asleep.begin(), nodes, node.place);
    return;
  }
  index.erase(Key(node.parent, node.tokens));
  nodes.erase(node.place);
}

bool PrefixCache::evict() {
  for (Node &node : nodes | std::views::reverse)
    if (isEvictable(node)) {
      giveUp(node);
      return true;
    }
  return false;
}

void PrefixCache::clear() {
  while (evict())
    ;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

PrefixFileLayout PrefixCache::layout() const {
  PrefixFileLayout layout{
      modelIdentity, static_cast<uint32_t>(cache.tokensOfPage()), {}};
  for (size_t group = 0; group < cache.groupCount(); ++group)
    layout.pageBytes.push_back(memory->pageBytes(group));
  return layout;
}

absl::Status PrefixCache::open(const std::string &path,
                               const std::string &identity,
                               PageMemory &memory) {
  filePath = path;
  modelIdentity = identity;
  this->memory = &memory;
  // What cannot be written is found out before anything is computed.
  LLAMAC_RETURN_IF_ERROR(AtomicFile::create(path).status());
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error)
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(file, PrefixFile::open(path, layout()));
  std::vector<Node *> byNumber;
  for (size_t i = 0; i < file->size(); ++i) {
    const PrefixFileNode stored = file->node(i);
    Node &node = asleep.emplace_back(
        Node{.parent = stored.parent < 0 ? nullptr : byNumber[stored.parent],
             .tokens = {stored.tokens.begin(), stored.tokens.end()},
             .pages = std::vector<int32_t>(cache.groupCount(), -1),
             .stored = static_cast<int64_t>(i),
             .isAsleep = true});
    node.place = std::prev(asleep.end());
    index.try_emplace(Key(node.parent, node.tokens), &node);
    byNumber.push_back(&node);
  }
  return absl::OkStatus();
}

bool PrefixCache::isInFile(const Node &node, size_t group) const {
  return node.stored >= 0 && file->has(static_cast<size_t>(node.stored), group);
}

/// Forgets the pages of `node` where they are damaged.
absl::StatusOr<absl::Span<const uint8_t>>
PrefixCache::storedPage(const Node &node, size_t group) {
  const auto number = static_cast<size_t>(node.stored);
  auto bytes = file->page(number, group);
  if (!bytes.ok()) {
    if (total.damaged++ == 0)
      printWarning(absl::StrCat(bytes.status().message(),
                                "; what is damaged is computed again"));
    file->forget(number);
    isChanged = true;
  }
  return bytes;
}

absl::StatusOr<bool> PrefixCache::loadPage(Node &node, size_t group) {
  const auto bytes = storedPage(node, group);
  if (!bytes.ok())
    return false;
  const int32_t page = cache.takeKept(group);
  if (page < 0)
    return false;
  absl::Status status = memory->write(group, page, *bytes);
  if (!status.ok()) {
    cache.drop(group, page);
    return status;
  }
  node.pages[group] = page;
  return true;
}

/// Brings what is missing of node number `number` of `count`.
absl::StatusOr<bool> PrefixCache::loadNode(Node &node, int64_t number,
                                           int64_t count) {
  bool isLoaded = false;
  for (size_t group = 0; group < cache.groupCount(); ++group) {
    if (node.pages[group] >= 0 || number < firstNeeded(group, count))
      continue;
    LLAMAC_ASSIGN_OR_RETURN(isLoaded, loadPage(node, group));
    if (!isLoaded)
      return false;
  }
  if (isLoaded)
    total.loaded += cache.tokensOfPage();
  return true;
}

absl::Status PrefixCache::load(absl::Span<const int32_t> tokens) {
  if (!file)
    return absl::OkStatus();
  const std::vector<Node *> known = usable(tokens, /*inFile=*/true);
  const auto count = static_cast<int64_t>(known.size());
  touch(known);
  for (int64_t i = 0; i < count; ++i) {
    Node &node = *known[i];
    // The memory went to what comes before it.
    if (node.isAsleep)
      return absl::OkStatus();
    // As a child would, this keeps it and its parents from being given up.
    ++node.children;
    const absl::StatusOr<bool> isThere = loadNode(node, i, count);
    --node.children;
    LLAMAC_RETURN_IF_ERROR(isThere.status());
    if (!*isThere)
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

/// What has pages and what that stands on, parents before their children.
std::vector<const PrefixCache::Node *>
PrefixCache::chooseSaved(uint64_t mostBytes) const {
  std::vector<const Node *> fitting;
  absl::flat_hash_set<const Node *> needed;
  uint64_t bytes = 0;
  for (const Nodes *list : {&nodes, &asleep})
    for (const Node &node : *list) {
      const uint64_t before = bytes;
      for (size_t group = 0; group < cache.groupCount(); ++group)
        if (node.pages[group] >= 0 || isInFile(node, group))
          bytes += memory->pageBytes(group);
      if (bytes > mostBytes)
        break;
      fitting.push_back(&node);
      if (bytes != before)
        needed.insert(&node);
    }
  for (const Node *node : fitting | std::views::reverse)
    if (needed.contains(node))
      needed.insert(node->parent);
  std::erase_if(fitting,
                [&](const Node *node) { return !needed.contains(node); });
  return fitting;
}

absl::Status PrefixCache::save(uint64_t mostBytes) {
  if (!memory || !isChanged)
    return absl::OkStatus();
  const std::vector<const Node *> saved = chooseSaved(mostBytes);
  std::vector<PrefixFileNode> written;
  absl::flat_hash_map<const Node *, int64_t> numbers = {{nullptr, -1}};
  for (const Node *node : saved) {
    numbers[node] = std::ssize(written);
    written.push_back({numbers[node->parent], node->tokens});
  }
  LLAMAC_RETURN_IF_ERROR(writePrefixFile(
      filePath, layout(), written,
      [&](size_t number, size_t group,
          std::vector<uint8_t> &to) -> absl::StatusOr<bool> {
        const Node &node = *saved[number];
        if (node.pages[group] >= 0) {
          LLAMAC_RETURN_IF_ERROR(memory->read(group, node.pages[group], to));
          return true;
        }
        if (!isInFile(node, group))
          return false;
        const auto from = storedPage(node, group);
        if (from.ok())
          to.insert(to.end(), from->begin(), from->end());
        return from.ok();
      }));
  isChanged = false;
  return absl::OkStatus();
}

} // namespace llamac
