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
#include "tools/AnswerPrinter.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cwctype>
#include <fcntl.h>
#include <histedit.h>
#include <set>
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

/// Marks of a terminal around text that is pasted, once it is asked for them;
/// beginsPaste as libedit reads it.
static constexpr const char *asksForMarks = "\x1b[?2004h";
static constexpr const char *endsMarks = "\x1b[?2004l";
static constexpr const char *beginsPaste = "\\e[200~";
static constexpr std::wstring_view endsPaste = L"\x1b[201~";

/// Entries that are kept.
static constexpr int mostEntries = 1000;

namespace {

class EditedLines final : public LineInput {
public:
  EditedLines(std::FILE *in, std::FILE *out, std::string historyFile,
              std::vector<std::string> completions);
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
  static unsigned char onSuspend(EditLine *editor, int) {
    of(editor).print(endsMarks);
    kill(0, SIGTSTP); // All of the job; libedit restores the terminal.
    of(editor).print(asksForMarks);
    return CC_REFRESH;
  }
  static unsigned char onPaste(EditLine *editor, int);
  static unsigned char onTab(EditLine *editor, int);
  void readHistory();
  void print(const char *text) const {
    std::fputs(text, out);
    std::fflush(out);
  }

  std::FILE *out;
  EditLine *editor;
  History *entries = history_init();
  std::string historyFile;
  std::vector<std::string> completions;
  std::string prompt;
  bool wasInterrupted = false;
};

} // namespace

/// Inserts what is pasted, whose line feeds come as carriage returns.
unsigned char EditedLines::onPaste(EditLine *editor, int) {
  std::wstring text;
  wchar_t character = 0;
  while (!text.ends_with(endsPaste) && el_wgetc(editor, &character) == 1)
    text += character == L'\r' ? L'\n' : character;
  if (text.ends_with(endsPaste))
    text.resize(text.size() - endsPaste.size());
  while (text.ends_with(L'\n'))
    text.pop_back();
  std::erase_if(text, [](wchar_t character) {
    return std::iswcntrl(character) && character != L'\n' && character != L'\t';
  });
  return el_winsertstr(editor, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

/// Completes the word before the cursor as far as all that fit agree; shows
/// those where they agree no further.
unsigned char EditedLines::onTab(EditLine *editor, int) {
  EditedLines &self = of(editor);
  const LineInfo *line = el_line(editor);
  const absl::string_view typed(line->buffer, line->cursor - line->buffer);
  std::set<std::string> found; // Up to the end of a word.
  for (const std::string &completion : self.completions)
    if (!typed.empty() && absl::StartsWith(completion, typed))
      found.insert(
          completion.substr(0, std::min(completion.find(' ', typed.size()),
                                        completion.size() - 1) +
                                   1));
  if (found.empty())
    return CC_ERROR;
  const std::string &first = *found.begin(), &last = *found.rbegin();
  const size_t agreed = std::ranges::mismatch(first, last).in1 - first.begin();
  if (agreed > typed.size()) {
    el_insertstr(editor,
                 first.substr(typed.size(), agreed - typed.size()).c_str());
    return CC_REFRESH;
  }
  std::string shown = "\n";
  for (const std::string &word : found)
    absl::StrAppend(&shown, absl::StripSuffix(word, " "), " ");
  self.print((shown + "\n").c_str());
  return CC_REDISPLAY;
}

EditedLines::EditedLines(std::FILE *in, std::FILE *out, std::string historyFile,
                         std::vector<std::string> completions)
    : out(out), editor(el_init("llamac", in, out, stderr)),
      historyFile(std::move(historyFile)), completions(std::move(completions)) {
  if (!isReady())
    return;
  el_set(editor, EL_CLIENTDATA, this);
  el_set(editor, EL_PROMPT, &promptOf);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1); // A window of another size, a stopped job.
  el_set(editor, EL_ADDFN, "llamac-interrupt", "Drop the line", &onInterrupt);
  el_set(editor, EL_ADDFN, "llamac-suspend", "Stop the job", &onSuspend);
  el_set(editor, EL_ADDFN, "llamac-paste", "Insert a paste", &onPaste);
  el_set(editor, EL_ADDFN, "llamac-complete", "Complete a command", &onTab);
  HistEvent event;
  history(entries, &event, H_SETSIZE, mostEntries);
  history(entries, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_HIST, history, entries);
  el_source(editor, nullptr);
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  // Ctrl-D would be lost, and other keys shown in the midst of an answer.
  el_set(editor, EL_SETTY, "-x", "-icanon", "-echo", nullptr);
  el_set(editor, EL_BIND, "^C", "llamac-interrupt", nullptr);
  el_set(editor, EL_BIND, "^Z", "llamac-suspend", nullptr);
  el_set(editor, EL_BIND, "^I", "llamac-complete", nullptr);
  el_set(editor, EL_BIND, beginsPaste, "llamac-paste", nullptr);
  print(asksForMarks);
  if (!this->historyFile.empty())
    readHistory();
}

EditedLines::~EditedLines() {
  if (editor) {
    print(endsMarks);
    el_end(editor);
  }
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
editedLines(std::FILE *in, std::FILE *out, const std::string &history,
            std::vector<std::string> completions) {
  useUtf8Locale();
  auto lines =
      std::make_unique<EditedLines>(in, out, history, std::move(completions));
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
