//===- CandidateCompiler.cpp - Compiles what may be tried -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/CandidateCompiler.h"

#include "runtime/base/Status.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace llamac {

CandidateCompiler::~CandidateCompiler() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    jobs.clear();
    isClosed = true;
  }
  changed.notify_all();
  for (std::thread &member : team)
    member.join();
}

void CandidateCompiler::add(absl::Span<const CompileJob> more) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    jobs.insert(jobs.end(), more.begin(), more.end());
  }
  while (std::cmp_less(team.size(), threads) && team.size() < more.size()) {
    try {
      team.emplace_back([this] { work(); });
    } catch (const std::system_error &) {
      break; // The system's limit: those that there are do it all.
    }
  }
  changed.notify_all();
}

absl::Status CandidateCompiler::compile(const CompileJob &job,
                                        KernelConfig &config) const {
  const schema::PlanT &plan = model.plan();
  if (!needsCompiler(plan))
    return model.device().compileAhead(*model.planReader(), job.kernel,
                                       *config.variant);
  LLAMAC_ASSIGN_OR_RETURN(
      std::string code,
      compiler->compile(
          {plan.kernels[job.kernel]->variants[*config.variant].get()},
          plan.target, model.code().isa()));
  config.code = std::make_shared<const std::string>(std::move(code));
  return absl::OkStatus();
}

void CandidateCompiler::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isClosed || !jobs.empty(); });
    if (jobs.empty())
      return;
    const CompileJob job = jobs.front();
    jobs.pop_front();
    ++running[job.program];
    lock.unlock();
    KernelConfig config = job.candidate->kernel;
    const absl::Status status = compile(job, config);
    lock.lock();
    job.candidate->kernel = std::move(config);
    if (!status.ok())
      job.candidate->rejected = std::string(status.message());
    --running[job.program];
    changed.notify_all();
  }
}

void CandidateCompiler::finish(size_t program,
                               absl::FunctionRef<bool()> isOver) {
  // Without a thread the caller compiles.
  if (team.empty()) {
    isClosed = true;
    work();
    isClosed = false;
  }
  const auto isOfProgram = [&](const CompileJob &job) {
    return job.program == program;
  };
  std::unique_lock<std::mutex> lock(mutex);
  while (!isOver() &&
         (running[program] != 0 || std::ranges::any_of(jobs, isOfProgram)))
    changed.wait_for(lock, std::chrono::milliseconds(50));
  for (const CompileJob &job : jobs)
    if (isOfProgram(job))
      job.candidate->rejected = outOfTime;
  std::erase_if(jobs, isOfProgram);
  changed.wait(lock, [&] { return running[program] == 0; });
}

} // namespace llamac
