//===- FatalEventsTest.cpp - What ends a tool at once ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/FatalEvents.h"

#include "TestFiles.h"
#include "runtime/io/AtomicFile.h"

#include <csignal>
#include <filesystem>
#include <new>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace llamac {

using testing::ExitedWithCode;
using testing::KilledBySignal;

/// The work of a child, with the handlers of a tool and a file half written.
class FatalEvents : public testing::Test {
protected:
  void start() {
    installFatalHandlers("tool");
    writing = *AtomicFile::create(directory.path("f"));
    EXPECT_TRUE(writing->write(std::string(4 << 20, 'x')).ok());
  }

  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(directory.path("")));
  }

  TestDirectory directory;
  std::unique_ptr<AtomicFile> writing;
};

TEST_F(FatalEvents, ATruncatedFileIsNamedAndEndsTheTool) {
  for (const ExitCode code : {ExitCode::BadFile, ExitCode::BadPlan}) {
    const std::string path = directory.write("m", std::string(1 << 20, 'x'));
    auto touch = [&] {
      start();
      const auto file = *MappedFile::open(path, code);
      truncate(path.c_str(), 4096);
      std::thread([&] { _exit(file->data()[1 << 19]); }).join();
    };
    EXPECT_EXIT(touch(), ExitedWithCode(static_cast<int>(code)),
                "^tool: error: [^ ]*/m: cannot be read: it was truncated [^\n]*"
                "\n$");
    std::filesystem::remove(path);
  }
}

TEST_F(FatalEvents, AnotherBusErrorIsNoneOfOurs) {
  EXPECT_EXIT((start(), raise(SIGBUS)), KilledBySignal(SIGBUS), "^$");
}

TEST_F(FatalEvents, AnInterruptLeavesNoTemporaryFile) {
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM})
    EXPECT_EXIT((start(), raise(signal)), KilledBySignal(signal), "^$");
}

TEST_F(FatalEvents, ASignalThatIsIgnoredStaysSo) {
  auto ignore = [&] {
    std::signal(SIGHUP, SIG_IGN);
    start();
    raise(SIGHUP);
    writing.reset();
    _exit(0);
  };
  EXPECT_EXIT(ignore(), ExitedWithCode(0), "^$");
}

TEST_F(FatalEvents, WantOfMemoryEndsTheToolOnAnyThread) {
  auto allocate = [&] {
    start();
    std::thread([] {
      ::operator delete(::operator new(size_t{1} << 62));
    }).join();
  };
  EXPECT_EXIT(allocate(), ExitedWithCode(6),
              "^tool: error: not enough memory[^\n]*\n$");
}

TEST_F(FatalEvents, AFilePastTheLimitOfItsSizeIsAnErrorOfTheMemoryKind) {
  auto write = [&] {
    start();
    const rlimit limit = {4 << 20, 4 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = writing->write(std::string(4 << 20, 'x'));
    writing.reset();
    _exit(static_cast<int>(exitCode(status)));
  };
  EXPECT_EXIT(write(), ExitedWithCode(6), "^$");
}

} // namespace llamac
