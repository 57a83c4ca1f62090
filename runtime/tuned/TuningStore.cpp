//===- TuningStore.cpp - What tuning found, kept --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A writer reads the file, adds its entries and replaces the file by a rename,
// all under a lock, so that writers lose nothing of each other. Readers need no
// lock: they see the file before the rename or after it. The lock is on a file
// of its own, which is never replaced.
//
//===----------------------------------------------------------------------===//

#include "runtime/tuned/TuningStore.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/JsonText.h"
#include "runtime/io/MappedFile.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <thread>
#include <tuple>
#include <unistd.h>

namespace llamac {

// Goes up with any change of an entry that an older llamac would mistake.
static constexpr int64_t tuningVersion = 2;

//===----------------------------------------------------------------------===//
// Entries as JSON
//===----------------------------------------------------------------------===//

static constexpr std::pair<const char *, std::string TuningEntry::*> texts[] = {
    {"device", &TuningEntry::device},
    {"generator", &TuningEntry::generator},
    {"kernel", &TuningEntry::kernel},
    {"config", &TuningEntry::config},
    {"runner_up", &TuningEntry::runnerUp}};
static constexpr std::pair<const char *, double TuningEntry::*> numbers[] = {
    {"seconds", &TuningEntry::seconds},
    {"default_seconds", &TuningEntry::defaultSeconds},
    {"runner_up_seconds", &TuningEntry::runnerUpSeconds}};

static absl::StatusOr<TuningEntry> readEntry(const JsonObject &row) {
  constexpr size_t maxText = 4096;
  constexpr double maxSeconds = 1e9;
  TuningEntry entry;
  for (const auto &[name, text] : texts) {
    LLAMAC_ASSIGN_OR_RETURN(const auto value, row.optionalString(name));
    if (!value || value->size() > maxText)
      return row.fail(name,
                      absl::StrCat("a text of at most ", maxText, " bytes"),
                      value ? absl::StrCat(value->size()) : "none");
    entry.*text = *value;
  }
  for (const auto &[name, number] : numbers) {
    LLAMAC_ASSIGN_OR_RETURN(const auto value, row.optionalNumber(name));
    if (!value || !(*value >= 0 && *value <= maxSeconds))
      return row.fail(name, absl::StrCat("0 to ", maxSeconds, " seconds"),
                      value ? absl::StrCat(*value) : "none");
    entry.*number = *value;
  }
  LLAMAC_ASSIGN_OR_RETURN(const auto imported, row.optionalBool("imported"));
  entry.imported = imported.value_or(false);
  return entry;
}

static absl::StatusOr<std::vector<TuningEntry>>
parseTuning(const std::string &file, absl::string_view text) {
  constexpr JsonLimits limits = {.maxBytes = uint64_t{64} << 20, .maxDepth = 3};
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJson(file, text, limits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  LLAMAC_ASSIGN_OR_RETURN(const auto format, root.optionalString("format"));
  if (format != "llamac-tuning")
    return root.fail("format", "llamac-tuning",
                     format ? quoteForMessage(*format) : "none");
  LLAMAC_ASSIGN_OR_RETURN(const int64_t version, root.requiredInt("version"));
  if (version != tuningVersion)
    return root.unsupported("version", absl::StrCat(tuningVersion),
                            absl::StrCat(version));
  if (!root.has("entries"))
    return root.fail("entries", "an array", "none");
  LLAMAC_ASSIGN_OR_RETURN(const auto rows, root.objects("entries"));
  std::vector<TuningEntry> entries;
  for (const JsonObject &row : rows) {
    LLAMAC_ASSIGN_OR_RETURN(entries.emplace_back(), readEntry(row));
  }
  return entries;
}

static std::string tuningText(absl::Span<const TuningEntry> entries) {
  nlohmann::ordered_json root = {{"format", "llamac-tuning"},
                                 {"version", tuningVersion},
                                 {"entries", nlohmann::ordered_json::array()}};
  for (const TuningEntry &entry : entries) {
    auto &row = root["entries"].emplace_back();
    for (const auto &[name, text] : texts)
      row[name] = entry.*text;
    for (const auto &[name, number] : numbers)
      row[name] = entry.*number;
    row["imported"] = entry.imported;
  }
  return jsonText(root, 1) + "\n";
}

absl::Status exportTuning(absl::Span<const TuningEntry> entries,
                          const std::string &file) {
  return writeFileAtomically(file, tuningText(entries));
}

absl::StatusOr<std::vector<TuningEntry>> importTuning(const std::string &file) {
  LLAMAC_ASSIGN_OR_RETURN(const auto mapped, MappedFile::open(file));
  return parseTuning(file, mapped->text());
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

absl::StatusOr<std::string> tuningStorePath() {
  LLAMAC_ASSIGN_OR_RETURN(const std::string folder, cacheFolder("tuning"));
  return folder + "/tuning.json";
}

absl::StatusOr<std::vector<TuningEntry>> TuningStore::entries() const {
  if (std::error_code error; !std::filesystem::exists(path, error) && !error)
    return std::vector<TuningEntry>();
  return importTuning(path);
}

/// Under the lock. A file that was put aside before is somebody's, too.
absl::Status TuningStore::putAside(const absl::Status &why) const {
  std::string aside = path + ".damaged";
  std::error_code error;
  for (int i = 1; std::filesystem::exists(aside, error); ++i)
    aside = absl::StrCat(path, ".damaged-", i);
  std::filesystem::rename(path, aside, error);
  if (error)
    return memoryError(
        absl::StrCat(why.message(), "; cannot be renamed: ", error.message()));
  printWarning(
      absl::StrCat(why.message(), "; renamed to ", aside, " and begun anew"));
  return absl::OkStatus();
}

absl::StatusOr<int>
TuningStore::keep(absl::Span<const TuningEntry> entries) const {
  constexpr double patience = 30; // Seconds; a writer takes milliseconds.
  const int lock =
      ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0)
    return systemError(errno, path + ": cannot be written", memoryError);
  const absl::Cleanup unlock = [&] { close(lock); };
  const double end = steadySeconds() + patience;
  while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || steadySeconds() > end)
      return systemError(errno, path + ": cannot be locked", memoryError);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  std::vector<TuningEntry> all;
  if (auto known = this->entries(); known.ok())
    all = *std::move(known);
  else if (exitCode(known.status()) == ExitCode::Memory)
    return known.status();
  else
    LLAMAC_RETURN_IF_ERROR(putAside(known.status()));
  const auto keyOf = [](const TuningEntry &entry) {
    return std::tie(entry.device, entry.generator, entry.kernel);
  };
  int taken = 0;
  for (const TuningEntry &entry : entries) {
    const auto same = std::ranges::find(all, keyOf(entry), keyOf);
    if (same == all.end())
      all.push_back(entry);
    else if (entry.imported && !same->imported)
      continue;
    else
      *same = entry;
    ++taken;
  }
  std::ranges::sort(all, {}, keyOf);

  const std::string text = tuningText(all);
  const auto replace = [&]() -> absl::Status {
    // A text that could not be read again would be lost.
    LLAMAC_RETURN_IF_ERROR(parseTuning(path, text).status());
    LLAMAC_ASSIGN_OR_RETURN(const auto file, AtomicFile::create(path, calls));
    LLAMAC_RETURN_IF_ERROR(file->write(text));
    return file->commit();
  };
  if (const absl::Status status = replace(); !status.ok())
    return memoryError(status.message());
  return taken;
}

} // namespace llamac
