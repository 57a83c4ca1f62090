//===- PrefixCache.cpp - Keys and values of known beginnings --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/cache/PrefixCache.h"

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
  for (size_t group = 0; group < cache.groupCount(); ++group)
    owners.emplace_back(static_cast<size_t>(cache.pages(group)));
  cache.setKeeper(this);
}

PrefixCache::~PrefixCache() {
  cache.setKeeper(nullptr);
  for (size_t group = 0; group < owners.size(); ++group)
    for (size_t page = 0; page < owners[group].size(); ++page)
      if (owners[group][page])
        cache.drop(group, static_cast<int32_t>(page));
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
PrefixCache::usable(absl::Span<const int32_t> tokens, Use use) const {
  if (tokens.empty())
    return {};
  const auto width = static_cast<size_t>(cache.tokensOfPage());
  std::vector<Node *> known = path(tokens, (tokens.size() - 1) / width);
  // Sums over the first nodes count the pages that are not to be had, and those
  // that nobody holds, so that one pass serves all beginnings.
  struct Pages {
    int64_t missing = 0, spare = 0;
  };
  std::vector<std::vector<Pages>> sums;
  for (size_t group = 0; group < cache.groupCount(); ++group) {
    std::vector<Pages> &of = sums.emplace_back(1);
    for (const Node *node : known) {
      const int32_t page = node->pages[group];
      const bool isHere = page >= 0;
      Pages next = of.back();
      next.missing +=
          !isHere && (use == Use::InMemory || !isInFile(*node, group));
      next.spare += !isHere || cache.isReclaimable(group, page);
      of.push_back(next);
    }
  }
  const auto isUsable = [&](int64_t count) {
    for (size_t group = 0; group < sums.size(); ++group) {
      const Pages &begin = sums[group][firstNeeded(group, count)];
      const Pages &end = sums[group][count];
      const int64_t room =
          cache.freePages(group) + cache.reclaimablePages(group);
      if (end.missing != begin.missing ||
          (use == Use::ThatFits && end.spare - begin.spare > room))
        return false;
    }
    return true;
  };
  while (!known.empty() && !isUsable(std::ssize(known)))
    known.pop_back();
  return known;
}

int64_t PrefixCache::attach(int32_t slot, absl::Span<const int32_t> tokens) {
  const auto width = static_cast<size_t>(cache.tokensOfPage());
  total.asked += static_cast<int64_t>(tokens.size());
  const std::vector<Node *> known = usable(tokens, Use::InMemory);
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
  const auto keepPage = [&](Node &node, size_t group, size_t number) {
    const int32_t page =
        cache.pageAt(group, slot, static_cast<int64_t>(number), written);
    const int32_t old = node.pages[group];
    if (page < 0 || page == old)
      return;
    if (old >= 0) {
      // A page that a sequence holds takes no memory of its own: it is kept.
      if (!cache.isReclaimable(group, old))
        return;
      dropPage(node, group);
    }
    cache.keep(group, page);
    setPage(node, group, page);
    isChanged |= !isInFile(node, group);
  };
  while (known.size() < count) {
    const size_t number = known.size();
    const absl::Span<const int32_t> own = tokens.subspan(number * width, width);
    Node *parent = known.empty() ? nullptr : known.back();
    Node &node = asleep.emplace_front(
        Node{.parent = parent,
             .tokens = {own.begin(), own.end()},
             .pages = std::vector<int32_t>(cache.groupCount(), -1),
             .isAsleep = true});
    node.place = asleep.begin();
    index[Key(parent, node.tokens)] = &node;
    known.push_back(&node);
    isChanged = true;
  }
  touch(known);
  // Pages that a ring had replaced when a node was made may be there now.
  for (size_t i = 0; i < known.size(); ++i)
    for (size_t group = 0; group < cache.groupCount(); ++group)
      keepPage(*known[i], group, i);
  if (!known.empty())
    giveUpIfEmpty(*known.back());
}

std::vector<int64_t>
PrefixCache::heldPages(absl::Span<const int32_t> tokens) const {
  const std::vector<Node *> known = usable(tokens, Use::OrInFile);
  const auto count = std::ssize(known);
  std::vector<int64_t> held(cache.groupCount(), 0);
  if (known.empty())
    return held;
  for (size_t group = 0; group < cache.groupCount(); ++group)
    for (int64_t i = firstNeeded(group, count); i < count; ++i)
      held[group] += known[i]->pages[group] >= 0 &&
                     !cache.isReclaimable(group, known[i]->pages[group]);
  return held;
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

void PrefixCache::setPage(Node &node, size_t group, int32_t page) {
  node.pages[group] = page;
  owners[group][page] = &node;
}

void PrefixCache::dropPage(Node &node, size_t group) {
  const int32_t page = std::exchange(node.pages[group], -1);
  owners[group][page] = nullptr;
  cache.drop(group, page);
}

void PrefixCache::giveUp(Node &node) {
  for (size_t group = 0; group < node.pages.size(); ++group)
    if (node.pages[group] >= 0)
      dropPage(node, group);
  ++total.evicted;
  Node *parent = node.parent;
  if (node.stored >= 0) {
    node.isAsleep = true;
    asleep.splice(asleep.begin(), nodes, node.place);
  } else {
    index.erase(Key(node.parent, node.tokens));
    nodes.erase(node.place);
  }
  if (!parent)
    return;
  --parent->children;
  giveUpIfEmpty(*parent);
}

void PrefixCache::giveUpIfEmpty(Node &node) {
  if (node.children == 0 &&
      std::ranges::all_of(node.pages, [](int32_t page) { return page < 0; }))
    giveUp(node);
}

bool PrefixCache::reclaim(size_t group) {
  for (Node &node : nodes | std::views::reverse) {
    if (node.pages[group] < 0 || !cache.isReclaimable(group, node.pages[group]))
      continue;
    if (isEvictable(node))
      giveUp(node);
    else
      giveBack(group, node.pages[group]);
    return true;
  }
  return false;
}

void PrefixCache::giveBack(size_t group, int32_t page) {
  Node &node = *owners[group][page];
  dropPage(node, group);
  giveUpIfEmpty(node);
}

void PrefixCache::clear() {
  for (size_t group = 0; group < cache.groupCount(); ++group)
    while (reclaim(group))
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
  // A path that cannot be written is found out before anything is computed.
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
    return internalError("prefix cache: room that was counted is not there");
  absl::Status status = memory->write(group, page, *bytes);
  if (!status.ok()) {
    cache.drop(group, page);
    return status;
  }
  setPage(node, group, page);
  return true;
}

/// Brings the pages that `path` has not; `held` gets all that it needs, which
/// stay while the others are brought.
absl::Status
PrefixCache::loadPath(absl::Span<Node *const> path,
                      std::vector<std::pair<size_t, int32_t>> &held) {
  const auto count = std::ssize(path);
  const auto forEachNeeded = [&](auto use) -> absl::Status {
    for (int64_t i = 0; i < count; ++i)
      for (size_t group = 0; group < cache.groupCount(); ++group)
        if (i >= firstNeeded(group, count))
          LLAMAC_RETURN_IF_ERROR(use(*path[i], group));
    return absl::OkStatus();
  };
  const auto hold = [&](Node &node, size_t group) {
    cache.hold(group, node.pages[group]);
    held.emplace_back(group, node.pages[group]);
  };
  LLAMAC_RETURN_IF_ERROR(forEachNeeded([&](Node &node, size_t group) {
    if (node.pages[group] >= 0)
      hold(node, group);
    return absl::OkStatus();
  }));
  bool isDamaged = false; // Pages behind a damaged one are of no use.
  const Node *last = nullptr;
  return forEachNeeded([&](Node &node, size_t group) -> absl::Status {
    if (isDamaged || node.pages[group] >= 0)
      return absl::OkStatus();
    LLAMAC_ASSIGN_OR_RETURN(const bool isLoaded, loadPage(node, group));
    isDamaged = !isLoaded;
    if (isDamaged)
      return absl::OkStatus();
    hold(node, group);
    if (std::exchange(last, &node) != &node)
      total.loaded += cache.tokensOfPage();
    return absl::OkStatus();
  });
}

absl::Status PrefixCache::load(absl::Span<const int32_t> tokens) {
  if (!file)
    return absl::OkStatus();
  const std::vector<Node *> known = usable(tokens, Use::ThatFits);
  if (known.empty())
    return absl::OkStatus();
  // Pages belong to nodes that are awake; as a child would, this keeps the last
  // one, which has none yet, and its parents from being given up.
  touch(known);
  ++known.back()->children;
  std::vector<std::pair<size_t, int32_t>> held;
  absl::Status status = loadPath(known, held);
  for (const auto &[group, page] : held)
    cache.release(group, page);
  --known.back()->children;
  // A damaged node brought nothing.
  giveUpIfEmpty(*known.back());
  return status;
}

/// Nodes that have pages and those that these stand on, parents before their
/// children.
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
