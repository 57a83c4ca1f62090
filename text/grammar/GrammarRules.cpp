//===- GrammarRules.cpp - Rules of a grammar ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/grammar/GrammarRules.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace llamac {

void GrammarRules::count(int64_t bytes) {
  exceeded.Update(work.take(bytes));
  exceeded.Update(work.spend(bytes / static_cast<int64_t>(sizeof(Item))));
}

void GrammarRules::define(int rule, std::vector<Sequence> alternatives,
                          absl::string_view ahead) {
  int64_t bytes = sizeof(Rule);
  for (const Sequence &sequence : alternatives) {
    bytes += sizeof(Sequence) + sequence.size() * sizeof(Item);
    for (const Item &item : sequence)
      bytes += static_cast<int64_t>(item.text.size());
  }
  count(bytes);
  rules[rule].alternatives = std::move(alternatives);
  rules[rule].ahead = std::string(ahead);
}

/// Whether each rule matches some text: a sequence does where all its rules
/// that must be there do. Goes back from the rules that are known to.
std::vector<bool> GrammarRules::findProductive() const {
  struct Waiting {
    int rule, missing;
  };
  std::vector<Waiting> sequences;
  std::vector<std::vector<size_t>> waitingFor(rules.size());
  std::vector<bool> isProductive(rules.size());
  std::vector<int> open;
  const auto found = [&](int rule) {
    if (!isProductive[rule])
      open.push_back(rule);
    isProductive[rule] = true;
  };
  for (int rule = 0; rule < size(); ++rule)
    for (const Sequence &sequence : rules[rule].alternatives) {
      int missing = 0;
      for (const Item &item : sequence)
        if (item.rule >= 0 && item.least > 0) {
          ++missing;
          waitingFor[item.rule].push_back(sequences.size());
        }
      sequences.push_back({rule, missing});
      if (missing == 0)
        found(rule);
    }
  while (!open.empty()) {
    const int rule = open.back();
    open.pop_back();
    for (const size_t at : waitingFor[rule])
      if (--sequences[at].missing == 0)
        found(sequences[at].rule);
  }
  return isProductive;
}

absl::StatusOr<std::string> GrammarRules::print(int root) {
  LLAMAC_RETURN_IF_ERROR(exceeded);
  const std::vector<bool> isProductive = findProductive();
  if (!isProductive[root])
    return "";
  std::vector<int> order = {root};
  std::vector<bool> isKnown(rules.size());
  isKnown[root] = true;
  std::string text;
  const auto nameOf = [&](int rule) {
    return rule == root ? std::string("root") : absl::StrCat("r", rule);
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t before = text.size();
    const Rule &rule = rules[order[i]];
    std::vector<std::string> alternatives;
    for (const Sequence &sequence : rule.alternatives) {
      std::vector<std::string> items;
      bool isDead = false;
      for (const Item &item : sequence) {
        if (item.rule < 0) {
          items.push_back(item.text);
          continue;
        }
        if (!isProductive[item.rule]) {
          isDead |= item.least > 0;
          continue;
        }
        if (item.most == 0)
          continue;
        std::string name = nameOf(item.rule);
        if (item.least != 1 || item.most != 1)
          absl::StrAppend(&name, "{", item.least, ",",
                          item.most < 0 ? "" : absl::StrCat(item.most), "}");
        items.push_back(std::move(name));
      }
      if (isDead)
        continue;
      for (const Item &item : sequence)
        if (item.rule >= 0 && isProductive[item.rule] && !isKnown[item.rule]) {
          isKnown[item.rule] = true;
          order.push_back(item.rule);
        }
      alternatives.push_back(items.empty() ? "\"\""
                                           : absl::StrJoin(items, " "));
    }
    absl::StrAppend(&text, nameOf(order[i]));
    if (rule.mostChars >= 0)
      absl::StrAppend(&text, "[max_chars=", rule.mostChars, "]");
    absl::StrAppend(&text, " ::= ");
    if (rule.ahead.empty())
      absl::StrAppend(&text, absl::StrJoin(alternatives, " | "), "\n");
    else
      absl::StrAppend(&text, "(", absl::StrJoin(alternatives, " | "),
                      ") (=", rule.ahead, ")\n");
    count(static_cast<int64_t>(text.size() - before));
    LLAMAC_RETURN_IF_ERROR(exceeded);
  }
  return text;
}

} // namespace llamac
