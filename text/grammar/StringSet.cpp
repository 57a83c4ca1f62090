//===- StringSet.cpp - Automata of strings --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A regex becomes Thompson's automaton, and that a deterministic one by its
// sets of states. An anchor is a step without a character that may be taken at
// the beginning or at the end alone: the first set is made with the steps for
// the beginning, and those for the end count for whether a set is an end.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "text/grammar/Regex.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <set>

namespace llamac {

/// Bounds of memory and time; a rule is made of each state.
static constexpr size_t maxStates = 4000;
static constexpr size_t maxSteps = 20000;
static constexpr size_t maxWork = 20'000'000;

static absl::Status tooLarge() {
  return usageError(
      absl::StrCat("patterns and lengths together need more than ", maxStates,
                   " states; make them simpler"));
}

//===----------------------------------------------------------------------===//
// From regexes
//===----------------------------------------------------------------------===//

namespace {

/// A state of Thompson's automaton: `set` leads to `to`, nothing to `free`,
/// and an anchor to `anchored`.
struct Step {
  CharSet set = {};
  int to = -1;
  std::vector<int> free = {};
  Regex::Kind anchor = Regex::Empty;
  int anchored = -1;
};

class Determiniser {
public:
  explicit Determiniser(GrammarWork &budget) : budget(budget) {}

  absl::StatusOr<std::vector<StringSet::State>> run(const Regex &regex);

private:
  using Set = std::vector<int>;

  int add() {
    steps.emplace_back();
    return static_cast<int>(steps.size()) - 1;
  }
  /// Adds `regex` from state `from`; the state after it, or -1 where there are
  /// too many.
  int build(const Regex &regex, int from);
  Set closure(Set of, bool atBegin, bool atEnd) const;
  int stateOf(Set set);

  std::vector<Step> steps;
  int end = -1;
  std::map<Set, int> known;
  std::vector<Set> sets;
  size_t work = 0;
  GrammarWork &budget;
};

} // namespace

int Determiniser::build(const Regex &regex, int from) {
  if (from < 0 || steps.size() > maxSteps)
    return -1;
  switch (regex.kind) {
  case Regex::Empty:
    return from;
  case Regex::Set: {
    const int to = add();
    const int at = add();
    steps[from].free.push_back(at);
    steps[at].set = regex.set;
    steps[at].to = to;
    return to;
  }
  case Regex::Begin:
  case Regex::End: {
    const int to = add();
    const int at = add();
    steps[from].free.push_back(at);
    steps[at].anchor = regex.kind;
    steps[at].anchored = to;
    return to;
  }
  case Regex::Concat:
    for (const Regex &part : regex.parts)
      from = build(part, from);
    return from;
  case Regex::Alternate: {
    const int to = add();
    for (const Regex &part : regex.parts) {
      const int start = add();
      steps[from].free.push_back(start);
      const int after = build(part, start);
      if (after < 0)
        return -1;
      steps[after].free.push_back(to);
    }
    return to;
  }
  case Regex::Repeat: {
    for (int i = 0; i < regex.least && from >= 0; ++i)
      from = build(regex.parts[0], from);
    if (from < 0)
      return -1;
    const int to = add();
    if (regex.most == -1) {
      const int loop = add();
      steps[from].free.push_back(loop);
      const int after = build(regex.parts[0], loop);
      if (after < 0)
        return -1;
      steps[after].free.push_back(loop);
      steps[loop].free.push_back(to);
      return to;
    }
    for (int i = regex.least; i < regex.most; ++i) {
      steps[from].free.push_back(to);
      from = build(regex.parts[0], from);
      if (from < 0)
        return -1;
    }
    steps[from].free.push_back(to);
    return to;
  }
  }
  return -1;
}

Determiniser::Set Determiniser::closure(Set of, bool atBegin,
                                        bool atEnd) const {
  std::set<int> seen(of.begin(), of.end());
  while (!of.empty()) {
    const Step &step = steps[of.back()];
    of.pop_back();
    const auto reach = [&](int to) {
      if (seen.insert(to).second)
        of.push_back(to);
    };
    for (const int to : step.free)
      reach(to);
    if ((step.anchor == Regex::Begin && atBegin) ||
        (step.anchor == Regex::End && atEnd))
      reach(step.anchored);
  }
  return {seen.begin(), seen.end()};
}

int Determiniser::stateOf(Set set) {
  // From the end all goes on to it: what else may be does not matter.
  if (std::binary_search(set.begin(), set.end(), end))
    set = {end};
  const auto [found, isNew] =
      known.try_emplace(set, static_cast<int>(sets.size()));
  if (isNew)
    sets.push_back(std::move(set));
  return found->second;
}

absl::StatusOr<std::vector<StringSet::State>>
Determiniser::run(const Regex &regex) {
  const int start = add();
  const int before = add();
  steps[start].set = anyChar();
  steps[start].to = start;
  steps[start].free = {before};
  end = build(regex, before);
  if (end < 0)
    return tooLarge();
  const int after = end;
  end = add();
  const int last = end;
  steps[after].free.push_back(last);
  steps[last].set = anyChar();
  steps[last].to = last;

  std::vector<StringSet::State> states;
  // The first set alone has the steps of the beginning, and none is the same.
  sets.push_back(closure({start}, true, false));
  for (size_t i = 0; i < sets.size(); ++i) {
    if (sets.size() > maxStates || work > maxWork)
      return tooLarge();
    const Set set = sets[i];
    StringSet::State state;
    const Set atEnd = closure(set, i == 0, true);
    state.isEnd = std::binary_search(atEnd.begin(), atEnd.end(), end);
    std::vector<uint32_t> cuts;
    for (const int step : set)
      for (const auto &[first, past] : steps[step].set) {
        cuts.push_back(first);
        cuts.push_back(past + 1);
      }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
      Set next;
      for (const int step : set)
        for (const auto &[first, past] : steps[step].set)
          if (first <= cuts[cut] && cuts[cut] <= past)
            next.push_back(steps[step].to);
      work += set.size();
      if (next.empty())
        continue;
      next = closure(std::move(next), false, false);
      LLAMAC_RETURN_IF_ERROR(
          budget.spend(static_cast<int64_t>(set.size() + next.size())));
      work += next.size();
      const StringSet::Arrow arrow{cuts[cut], cuts[cut + 1] - 1,
                                   stateOf(std::move(next))};
      if (!state.arrows.empty() && state.arrows.back().to == arrow.to &&
          state.arrows.back().last + 1 == arrow.first)
        state.arrows.back().last = arrow.last;
      else
        state.arrows.push_back(arrow);
    }
    states.push_back(std::move(state));
  }
  return states;
}

absl::StatusOr<StringSet> StringSet::matching(const Regex &regex,
                                              GrammarWork &work) {
  StringSet set;
  LLAMAC_ASSIGN_OR_RETURN(set.automaton, Determiniser(work).run(regex));
  set.trim();
  LLAMAC_RETURN_IF_ERROR(set.minimise(work));
  return set;
}

//===----------------------------------------------------------------------===//
// Sets by themselves
//===----------------------------------------------------------------------===//

StringSet StringSet::over(const CharSet &chars) {
  StringSet set;
  for (const auto &[first, last] : chars)
    set.automaton[0].arrows.push_back({first, last, 0});
  set.automaton[0].isEnd = true;
  return set;
}

StringSet StringSet::all() { return over(anyChar()); }

StringSet StringSet::ofLength(int64_t least, int64_t most) {
  StringSet set;
  const int64_t past = most < 0 ? least : most;
  set.automaton.resize(past + 1);
  for (int64_t i = 0; i <= past; ++i) {
    State &state = set.automaton[i];
    state.isEnd = i >= least;
    if (i == past && most >= 0)
      break;
    for (const auto &[first, last] : anyChar())
      state.arrows.push_back(
          {first, last, static_cast<int>(std::min(i + 1, past))});
  }
  set.trim();
  return set;
}

/// The code points of UTF-8 that has been checked.
static std::vector<uint32_t> codePoints(absl::string_view text) {
  std::vector<uint32_t> points;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      points.push_back(byte);
    else if (byte >= 0xC0)
      points.push_back(byte & (byte >= 0xF0 ? 7 : byte >= 0xE0 ? 15 : 31));
    else if (!points.empty())
      points.back() = points.back() << 6 | (byte & 63);
  }
  return points;
}

StringSet StringSet::of(absl::Span<const std::string> texts) {
  StringSet set;
  for (const std::string &text : texts) {
    int at = 0;
    for (const uint32_t c : codePoints(text)) {
      auto &arrows = set.automaton[at].arrows;
      const auto found = std::find_if(arrows.begin(), arrows.end(),
                                      [&](auto &a) { return a.first == c; });
      if (found != arrows.end()) {
        at = found->to;
        continue;
      }
      const int next = static_cast<int>(set.automaton.size());
      arrows.push_back({c, c, next});
      set.automaton.emplace_back();
      at = next;
    }
    set.automaton[at].isEnd = true;
  }
  for (State &state : set.automaton)
    std::sort(state.arrows.begin(), state.arrows.end(),
              [](auto &a, auto &b) { return a.first < b.first; });
  return set;
}

absl::StatusOr<StringSet> StringSet::with(const StringSet &other,
                                          GrammarWork &work) const {
  StringSet both;
  both.automaton.clear();
  std::map<std::pair<int, int>, int> known;
  std::vector<std::pair<int, int>> pairs;
  const auto stateOf = [&](int a, int b) {
    const auto [found, isNew] =
        known.try_emplace({a, b}, static_cast<int>(pairs.size()));
    if (isNew)
      pairs.emplace_back(a, b);
    return found->second;
  };
  stateOf(0, 0);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs.size() > 4 * maxStates)
      return tooLarge();
    const auto [a, b] = pairs[i];
    const State &left = automaton[a], &right = other.automaton[b];
    State state;
    state.isEnd = left.isEnd && right.isEnd;
    auto one = left.arrows.begin(), two = right.arrows.begin();
    while (one != left.arrows.end() && two != right.arrows.end()) {
      const uint32_t first = std::max(one->first, two->first);
      const uint32_t last = std::min(one->last, two->last);
      if (first <= last)
        state.arrows.push_back({first, last, stateOf(one->to, two->to)});
      ++(one->last < two->last ? one : two);
    }
    LLAMAC_RETURN_IF_ERROR(
        work.spend(static_cast<int64_t>(1 + state.arrows.size())));
    both.automaton.push_back(std::move(state));
  }
  both.trim();
  if (both.automaton.size() > maxStates)
    return tooLarge();
  LLAMAC_RETURN_IF_ERROR(both.minimise(work));
  return both;
}

StringSet StringSet::complement() const {
  StringSet set = *this;
  const int nowhere = static_cast<int>(set.automaton.size());
  set.automaton.emplace_back();
  for (State &state : set.automaton) {
    state.isEnd = !state.isEnd;
    CharSet used;
    for (const Arrow &arrow : state.arrows)
      used.emplace_back(arrow.first, arrow.last);
    for (const auto &[first, last] :
         without(anyChar(), unite(std::move(used), {})))
      state.arrows.push_back({first, last, nowhere});
    std::sort(state.arrows.begin(), state.arrows.end(),
              [](auto &a, auto &b) { return a.first < b.first; });
  }
  set.trim();
  return set;
}

bool StringSet::isEmpty() const {
  return automaton.size() == 1 && !automaton[0].isEnd &&
         automaton[0].arrows.empty();
}

bool StringSet::contains(absl::string_view utf8) const {
  int at = 0;
  for (const uint32_t c : codePoints(utf8)) {
    const auto &arrows = automaton[at].arrows;
    const auto arrow =
        std::find_if(arrows.begin(), arrows.end(), [&](const Arrow &a) {
          return a.first <= c && c <= a.last;
        });
    if (arrow == arrows.end())
      return false;
    at = arrow->to;
  }
  return automaton[at].isEnd;
}

void StringSet::trim() {
  const size_t count = automaton.size();
  std::vector<std::vector<int>> from(count);
  std::vector<int> open;
  std::vector<bool> isUseful(count);
  for (size_t i = 0; i < count; ++i) {
    for (const Arrow &arrow : automaton[i].arrows)
      from[arrow.to].push_back(static_cast<int>(i));
    if (automaton[i].isEnd) {
      isUseful[i] = true;
      open.push_back(static_cast<int>(i));
    }
  }
  while (!open.empty()) {
    const int state = open.back();
    open.pop_back();
    for (const int before : from[state])
      if (!isUseful[before]) {
        isUseful[before] = true;
        open.push_back(before);
      }
  }
  // Numbers of the states that can be reached, in the order of their discovery.
  std::vector<int> number(count, -1), order = {0};
  number[0] = 0;
  for (size_t i = 0; i < order.size(); ++i)
    for (const Arrow &arrow : automaton[order[i]].arrows)
      if (isUseful[arrow.to] && number[arrow.to] < 0) {
        number[arrow.to] = static_cast<int>(order.size());
        order.push_back(arrow.to);
      }
  std::vector<State> kept(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    kept[i].isEnd = automaton[order[i]].isEnd;
    for (const Arrow &arrow : automaton[order[i]].arrows)
      if (isUseful[arrow.to])
        kept[i].arrows.push_back({arrow.first, arrow.last, number[arrow.to]});
  }
  automaton = std::move(kept);
}

int64_t StringSet::bytes() const {
  size_t bytes = automaton.size() * sizeof(State);
  for (const State &state : automaton)
    bytes += state.arrows.size() * sizeof(Arrow);
  return static_cast<int64_t>(bytes);
}

absl::Status StringSet::minimise(GrammarWork &work) {
  // Moore's way takes a round for each step of a chain, so that a large
  // automaton stays as it is.
  constexpr size_t most = 600;
  if (automaton.size() > most)
    return absl::OkStatus();
  std::vector<int> classes(automaton.size());
  for (size_t i = 0; i < automaton.size(); ++i)
    classes[i] = automaton[i].isEnd;
  size_t count = 0;
  for (;;) {
    using Signature = std::pair<int, std::vector<int64_t>>;
    std::map<Signature, int> known;
    std::vector<int> next(automaton.size());
    for (size_t i = 0; i < automaton.size(); ++i) {
      Signature signature{classes[i], {}};
      auto &arrows = signature.second;
      for (const Arrow &arrow : automaton[i].arrows) {
        const int to = classes[arrow.to];
        LLAMAC_RETURN_IF_ERROR(work.spend());
        const size_t size = arrows.size();
        if (size && arrows[size - 1] == to &&
            arrows[size - 2] + 1 == arrow.first)
          arrows[size - 2] = arrow.last;
        else
          arrows.insert(arrows.end(), {arrow.first, arrow.last, to});
      }
      next[i] =
          known
              .try_emplace(std::move(signature), static_cast<int>(known.size()))
              .first->second;
    }
    classes = std::move(next);
    if (known.size() == count)
      break;
    count = known.size();
  }
  // Classes are numbered as their first states come, so that 0 begins.
  std::vector<State> merged(count);
  std::vector<bool> isDone(count);
  for (size_t i = 0; i < automaton.size(); ++i) {
    if (isDone[classes[i]])
      continue;
    isDone[classes[i]] = true;
    State &state = merged[classes[i]];
    state.isEnd = automaton[i].isEnd;
    for (const Arrow &arrow : automaton[i].arrows) {
      const int to = classes[arrow.to];
      if (!state.arrows.empty() && state.arrows.back().to == to &&
          state.arrows.back().last + 1 == arrow.first)
        state.arrows.back().last = arrow.last;
      else
        state.arrows.push_back({arrow.first, arrow.last, to});
    }
  }
  automaton = std::move(merged);
  return absl::OkStatus();
}

} // namespace llamac
