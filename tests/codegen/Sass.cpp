//===- Sass.cpp - Machine code of a kernel --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/codegen/Sass.h"

#include "runtime/base/Status.h"
#include "tests/TemporaryFolder.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>

namespace llamac {

using Predecessors = std::vector<std::vector<size_t>>;

/// The instructions that may come before each instruction.
static Predecessors predecessorsOf(const Sass &sass) {
  Predecessors before(sass.instructions.size());
  for (size_t i = 0; i < before.size(); ++i)
    for (size_t to : sass.successors(i))
      before[to].push_back(i);
  return before;
}

/// For each instruction the last one that every way to it passes; itself for
/// the first, and for what is never reached.
static std::vector<size_t> dominatorsOf(const Sass &sass,
                                        const Predecessors &before) {
  // Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm".
  const size_t count = sass.instructions.size();
  std::vector<size_t> postorder; // The postorder of a walk in depth.
  std::vector<size_t> number(count, SIZE_MAX);
  std::vector<std::pair<size_t, size_t>> stack; // And the next successor.
  std::vector<bool> seen(count);
  if (count > 0) {
    stack.emplace_back(0, 0);
    seen[0] = true;
  }
  while (!stack.empty()) {
    const size_t at = stack.back().first;
    const std::vector<size_t> next = sass.successors(at);
    if (stack.back().second == next.size()) {
      number[at] = postorder.size();
      postorder.push_back(at);
      stack.pop_back();
      continue;
    }
    const size_t to = next[stack.back().second++];
    if (!seen[to]) {
      seen[to] = true;
      stack.emplace_back(to, 0);
    }
  }
  std::vector<size_t> dominators(count);
  std::iota(dominators.begin(), dominators.end(), 0);
  std::vector<bool> isKnown(count);
  if (count > 0)
    isKnown[0] = true;
  auto meet = [&](size_t a, size_t b) {
    while (a != b)
      (number[a] < number[b] ? a : b) =
          dominators[number[a] < number[b] ? a : b];
    return a;
  };
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (auto at = postorder.rbegin(); at != postorder.rend(); ++at) {
      if (*at == 0)
        continue;
      std::optional<size_t> found;
      for (size_t from : before[*at])
        if (isKnown[from])
          found = found ? meet(*found, from) : from;
      if (!isKnown[*at] || dominators[*at] != *found) {
        dominators[*at] = *found;
        isKnown[*at] = isChanged = true;
      }
    }
  }
  return dominators;
}

static std::vector<SassLoop> loopsOf(const Sass &sass) {
  const Predecessors before = predecessorsOf(sass);
  const std::vector<size_t> dominators = dominatorsOf(sass, before);
  auto dominates = [&](size_t head, size_t at) {
    while (at != head && dominators[at] != at)
      at = dominators[at];
    return at == head;
  };
  std::vector<SassLoop> loops;
  for (size_t i = 0; i < sass.instructions.size(); ++i) {
    const std::optional<size_t> head = sass.instructions[i].target;
    // A branch to itself at the end is padding.
    if (!head || *head == i || !dominates(*head, i))
      continue;
    std::set<size_t> body = {*head};
    std::vector<size_t> open = {i};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (body.insert(at).second)
        open.insert(open.end(), before[at].begin(), before[at].end());
    }
    loops.emplace_back(body.begin(), body.end());
  }
  return loops;
}

Sass parseSass(const std::string &text) {
  static const std::regex label(R"(^\s*(\.L_\w+):)");
  // The address, a predicate, the opcode, the operands.
  static const std::regex instruction(
      R"(^\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);)");
  static const std::regex name(R"(\.L_\w+)");
  Sass sass;
  std::map<std::string, size_t> labels;
  std::vector<std::pair<size_t, std::string>> branches;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, label)) {
      labels[match[1]] = sass.instructions.size();
    } else if (std::regex_search(line, match, instruction)) {
      const std::string operands = match[3];
      sass.instructions.push_back({match[2], match[1].matched, {}});
      std::smatch to;
      // BSSY and WARPSYNC name where lanes meet again, which is no branch. A
      // call of a label, not a function, is one: nothing returns from it.
      if ((sass.instructions.back().is("BRA") ||
           sass.instructions.back().is("CALL")) &&
          std::regex_search(operands, to, name)) {
        branches.emplace_back(sass.instructions.size() - 1, to.str());
        // A predicate may stand among the operands.
        static const std::regex predicate(R"(\b!?U?P\d)");
        if (std::regex_search(operands, predicate))
          sass.instructions.back().isPredicated = true;
      }
    }
  }
  for (const auto &[from, to] : branches)
    if (auto place = labels.find(to);
        place != labels.end() && place->second < sass.instructions.size())
      sass.instructions[from].target = place->second;
  sass.loops = loopsOf(sass);
  return sass;
}

std::vector<size_t> Sass::successors(size_t i) const {
  const SassInstruction &at = instructions[i];
  std::vector<size_t> next;
  if (at.target)
    next.push_back(*at.target);
  // BRA.DIV and BRA.U go on for some lanes, or for all, without a predicate.
  const bool ends = (at.is("BRA") && !at.is("BRA.DIV") && !at.is("BRA.U")) ||
                    (at.is("CALL") && at.target) || at.is("EXIT") ||
                    at.is("RET");
  if ((!ends || at.isPredicated) && i + 1 < instructions.size())
    next.push_back(i + 1);
  return next;
}

size_t Sass::count(const std::string &name) const {
  return std::count_if(instructions.begin(), instructions.end(),
                       [&](const SassInstruction &i) { return i.is(name); });
}

size_t Sass::count(const std::string &name, const SassLoop &loop) const {
  return std::count_if(loop.begin(), loop.end(),
                       [&](size_t i) { return instructions[i].is(name); });
}

const SassLoop *Sass::loopOf(const std::string &name) const {
  size_t most = 0;
  for (const SassLoop &loop : loops)
    most = std::max(most, count(name, loop));
  const SassLoop *least = nullptr;
  for (const SassLoop &loop : loops)
    if (most && 10 * count(name, loop) >= 9 * most &&
        (!least || loop.size() < least->size()))
      least = &loop;
  return least;
}

std::vector<const SassInstruction *>
Sass::before(const std::string &name) const {
  std::vector<bool> seen(instructions.size());
  std::vector<size_t> open = {0};
  std::vector<const SassInstruction *> result;
  while (!open.empty()) {
    const size_t i = open.back();
    open.pop_back();
    if (i >= instructions.size() || seen[i] || instructions[i].is(name))
      continue;
    seen[i] = true;
    result.push_back(&instructions[i]);
    const std::vector<size_t> next = successors(i);
    open.insert(open.end(), next.begin(), next.end());
  }
  return result;
}

absl::StatusOr<std::string> disassemble(const std::string &cubin) {
  const char *program = std::getenv("LLAMAC_NVDISASM");
  const TemporaryFolder folder;
  std::ofstream(folder.file("kernel.cubin"), std::ios::binary) << cubin;
  const std::string command =
      absl::StrCat(program && *program ? program : "nvdisasm", " -c '",
                   folder.file("kernel.cubin"), "' 2>&1");
  std::FILE *pipe = popen(command.c_str(), "r");
  if (!pipe)
    return internalError("nvdisasm: cannot start a shell");
  std::string text;
  char part[4096];
  while (size_t got = std::fread(part, 1, sizeof(part), pipe))
    text.append(part, got);
  if (pclose(pipe) != 0)
    return internalError(
        absl::StrCat(command, ": ", text.substr(0, 200),
                     "; scripts/setup.sh test installs nvdisasm, whose path "
                     "LLAMAC_NVDISASM is"));
  return text;
}

} // namespace llamac
