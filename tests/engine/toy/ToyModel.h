//===- ToyModel.h - Plans of the toy model ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan for the kernels of ToyKernels.cpp, and what they must compute. Its
// tokenizer has pieces that cut UTF-8 characters and stop strings in two.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_ENGINE_TOY_TOYMODEL_H
#define LLAMAC_TESTS_ENGINE_TOY_TOYMODEL_H

#include "codegen/plan/PlanWriter.h"
#include "frontends/TokenizerBlobWriter.h"
#include "tests/engine/toy/ToyShapes.h"

#include <functional>
#include <string>
#include <vector>

namespace llamac::toy {

/// Sections of a toy plan, in the order they are written.
struct ToySection {
  SectionKind kind;
  std::string bytes;
};

struct ToyPlan {
  schema::PlanT plan;
  std::vector<ToySection> sections;
};

/// A sound plan with programs of 1, 4 and 8 rows, of which 1, 2 and 3 are
/// asked for, and a tokenizer.
ToyPlan makeToyPlan();

/// Makes a key depend on the program that wrote it, so that an answer does on
/// the kind of each of its rows: decode of up to seven sequences has a program
/// of its own.
void addKinds(ToyPlan &toy);

/// Gives the second layer a window, and the cache a ring for it.
void addWindow(ToyPlan &toy);

/// Makes the plan choose tokens: greedily, or by drawnToken().
void addSampling(ToyPlan &toy);

/// Writes `toy` to `path`; an error is given back.
absl::Status writeToyPlan(const ToyPlan &toy, const std::string &path,
                          FileCalls calls = FileCalls::system());

/// makeToyPlan(), changed by `change`, as a file that is removed with the
/// object. The change must leave a sound plan.
class ToyPlanFile {
public:
  explicit ToyPlanFile(const std::function<void(ToyPlan &)> &change = {});
  ToyPlanFile(const ToyPlanFile &) = delete;
  ~ToyPlanFile();
  const std::string &path() const { return name; }

private:
  std::string folder;
  std::string name;
};

/// The hash of a sequence, and its argmax in the toy model.
unsigned hashOf(const std::vector<int> &tokens);
int argmaxAfter(const std::vector<int> &tokens);

/// The hash where the second layer has a window.
unsigned windowHashOf(const std::vector<int> &tokens);

/// The result of greedy generation after `prompt`: `count` ids.
std::vector<int> greedyAfter(std::vector<int> prompt, int count);

/// Whether any beginning of `tokens` has logits of NaN.
bool isPoisoned(const std::vector<int> &tokens);

/// A sequence of `size` tokens that starts with `first` and whose greedy
/// continuation of `more` tokens, too, is not poisoned.
std::vector<int> cleanTokens(int size, int first, int more = 0);

/// The bytes of token `id`.
std::string tokenText(int id);

} // namespace llamac::toy

#endif // LLAMAC_TESTS_ENGINE_TOY_TOYMODEL_H
