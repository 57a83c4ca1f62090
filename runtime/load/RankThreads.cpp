//===- RankThreads.cpp - Ranks that one process runs ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/RankThreads.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace llamac {

absl::StatusOr<std::shared_ptr<RankThreads>> RankThreads::create(size_t ranks) {
  std::shared_ptr<RankThreads> made(new RankThreads(ranks));
  if (const int got = made->threads.size(); got != static_cast<int>(ranks))
    return memoryError(absl::StrCat("ranks: expected ", ranks,
                                    " threads that wait for them, got ", got,
                                    "; raise the limit of processes"));
  return made;
}

absl::Status RankThreads::run(absl::FunctionRef<absl::Status(size_t)> work) {
  std::vector<absl::Status> statuses(ranks);
  const std::lock_guard<std::mutex> lock(running);
  threads.run([&](int rank) { statuses[rank] = work(rank); });
  for (absl::Status &status : statuses)
    LLAMAC_RETURN_IF_ERROR(std::move(status));
  return absl::OkStatus();
}

namespace {

class GroupProgram final : public PreparedProgram {
public:
  GroupProgram(const schema::ProgramT &program,
               std::vector<std::unique_ptr<PreparedProgram>> ofRanks,
               std::shared_ptr<RankThreads> threads)
      : PreparedProgram(program), ofRanks(std::move(ofRanks)),
        threads(std::move(threads)) {}

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> meanwhile) override;
  absl::Status runLaunch(size_t launch, const StepShape &shape) override;

private:
  std::vector<std::unique_ptr<PreparedProgram>> ofRanks;
  std::shared_ptr<RankThreads> threads;
};

} // namespace

absl::Status GroupProgram::run(const StepShape &shape,
                               absl::FunctionRef<void()> meanwhile) {
  if (threads)
    return threads->run([&](size_t rank) {
      return rank == 0 ? ofRanks[rank]->run(shape, meanwhile)
                       : ofRanks[rank]->run(shape);
    });
  LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
  for (size_t launch = 0; launch < program.launches.size(); ++launch)
    if (rowsOf(*program.launches[launch], shape) != 0)
      LLAMAC_RETURN_IF_ERROR(runLaunch(launch, shape));
  return absl::OkStatus();
}

absl::Status GroupProgram::runLaunch(size_t launch, const StepShape &shape) {
  if (threads)
    return threads->run(
        [&](size_t rank) { return ofRanks[rank]->runLaunch(launch, shape); });
  for (const auto &own : ofRanks)
    LLAMAC_RETURN_IF_ERROR(own->runLaunch(launch, shape));
  return absl::OkStatus();
}

std::unique_ptr<PreparedProgram>
groupPrograms(const schema::ProgramT &program,
              std::vector<std::unique_ptr<PreparedProgram>> ofRanks,
              std::shared_ptr<RankThreads> threads) {
  return std::make_unique<GroupProgram>(program, std::move(ofRanks),
                                        std::move(threads));
}

} // namespace llamac
