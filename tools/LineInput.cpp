//===- LineInput.cpp - Lines that are typed or sent -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ctrl-C and Ctrl-Z are ordinary keys while a line is edited: libedit would
// hand the signal on in the midst of its work. At all other times they are
// signals.
//
//===----------------------------------------------------------------------===//

#include "tools/LineInput.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/CacheFolder.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace llamac {

LineInput::~LineInput() = default;

void LineInput::remember(const std::string &) {}

//===----------------------------------------------------------------------===//
// Files and pipes
//===----------------------------------------------------------------------===//

namespace {

class PlainLines final : public LineInput {
public:
  explicit PlainLines(std::FILE *in) : in(in) {}

  Outcome next(const std::string &, std::string &line) override {
    line.clear();
    int byte = 0;
    while ((byte = std::fgetc(in)) != EOF && byte != '\n')
      line += static_cast<char>(byte);
    if (byte == EOF && line.empty())
      return Outcome::End;
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    return Outcome::Line;
  }

private:
  std::FILE *in;
};

} // namespace

std::unique_ptr<LineInput> plainLines(std::FILE *in) {
  return std::make_unique<PlainLines>(in);
}

//===----------------------------------------------------------------------===//
// Terminals
//===----------------------------------------------------------------------===//

/// Entries that are kept.
static constexpr int mostEntries = 1000;

namespace {

class EditedLines final : public LineInput {
public:
  EditedLines(std::FILE *in, std::FILE *out, std::string historyFile);
  EditedLines(const EditedLines &) = delete;
  EditedLines &operator=(const EditedLines &) = delete;
  ~EditedLines() override;

  /// Whether the terminal and the history could be had.
  bool isReady() const { return editor && entries; }

  Outcome next(const std::string &prompt, std::string &line) override;
  void remember(const std::string &entry) override;

private:
  static EditedLines &of(EditLine *editor) {
    void *self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<EditedLines *>(self);
  }
  static char *promptOf(EditLine *editor) { return of(editor).prompt.data(); }
  static unsigned char onInterrupt(EditLine *editor, int) {
    of(editor).wasInterrupted = true;
    return CC_NEWLINE;
  }
  static unsigned char onSuspend(EditLine *, int) {
    kill(0, SIGTSTP); // All of the job; libedit restores the terminal.
    return CC_REFRESH;
  }
  void readHistory();

  std::FILE *out;
  EditLine *editor;
  History *entries = history_init();
  std::string historyFile;
  std::string prompt;
  bool wasInterrupted = false;
};

} // namespace

EditedLines::EditedLines(std::FILE *in, std::FILE *out, std::string historyFile)
    : out(out), editor(el_init("llamac", in, out, stderr)),
      historyFile(std::move(historyFile)) {
  if (!isReady())
    return;
  el_set(editor, EL_CLIENTDATA, this);
  el_set(editor, EL_PROMPT, &promptOf);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1); // A window of another size, a stopped job.
  el_set(editor, EL_ADDFN, "llamac-interrupt", "Drop the line", &onInterrupt);
  el_set(editor, EL_ADDFN, "llamac-suspend", "Stop the job", &onSuspend);
  HistEvent event;
  history(entries, &event, H_SETSIZE, mostEntries);
  history(entries, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_HIST, history, entries);
  el_source(editor, nullptr);
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  el_set(editor, EL_BIND, "^C", "llamac-interrupt", nullptr);
  el_set(editor, EL_BIND, "^Z", "llamac-suspend", nullptr);
  if (!this->historyFile.empty())
    readHistory();
}

EditedLines::~EditedLines() {
  if (editor)
    el_end(editor);
  if (entries)
    history_end(entries);
}

/// Reads the file of entries, which is made where it is not there.
void EditedLines::readHistory() {
  const int file =
      open(historyFile.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct stat info;
  absl::Status status = file < 0 || fstat(file, &info) != 0
                            ? systemError(errno, historyFile, usageError)
                            : checkTrusted(historyFile, info);
  if (file >= 0)
    close(file);
  if (!status.ok()) {
    printWarning(absl::StrCat(status.message(), "; the history is not kept"));
    historyFile.clear();
    return;
  }
  HistEvent event;
  if (info.st_size > 0)
    history(entries, &event, H_LOAD, historyFile.c_str());
}

void EditedLines::remember(const std::string &entry) {
  HistEvent event;
  history(entries, &event, H_ENTER, entry.c_str());
  // At once: the process may be killed.
  if (!historyFile.empty())
    history(entries, &event, H_SAVE, historyFile.c_str());
}

LineInput::Outcome EditedLines::next(const std::string &text,
                                     std::string &line) {
  prompt = text;
  wasInterrupted = false;
  int count = 0;
  const char *typed = el_gets(editor, &count);
  count = std::max(count, 0);
  // Bytes behind the first `count` are left from a line before.
  line = std::string(absl::StripSuffix(
      absl::string_view(typed, typed ? static_cast<size_t>(count) : 0), "\n"));
  if (wasInterrupted)
    std::fputs("^C", out);
  if (wasInterrupted || !typed || count == 0) {
    std::fputc('\n', out);
    std::fflush(out);
    return wasInterrupted ? Outcome::Interrupted : Outcome::End;
  }
  return Outcome::Line;
}

absl::StatusOr<std::unique_ptr<LineInput>>
editedLines(std::FILE *in, std::FILE *out, const std::string &history) {
  // Characters are of UTF-8 whatever the environment says.
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
  auto lines = std::make_unique<EditedLines>(in, out, history);
  if (!lines->isReady())
    return deviceError("the terminal cannot be used to edit lines; send them "
                       "through a pipe");
  return lines;
}

absl::StatusOr<std::string> stateFile(absl::string_view name) {
  std::string folder;
  if (const char *state = std::getenv("XDG_STATE_HOME"); state && *state)
    folder = absl::StrCat(state, "/llamac");
  else if (const char *home = std::getenv("HOME"); home && *home)
    folder = absl::StrCat(home, "/.local/state/llamac");
  else
    return usageError("no directory for the history: set XDG_STATE_HOME or "
                      "HOME");
  LLAMAC_RETURN_IF_ERROR(makePrivateFolder(folder));
  return absl::StrCat(folder, "/", name);
}

} // namespace llamac
