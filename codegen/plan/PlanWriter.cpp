//===- PlanWriter.cpp - Writes a plan file --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/PlanWriter.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/plan/PlanVerifier.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace llamac {

static constexpr size_t bufferBytes = size_t{1} << 20;

/// The running hash of the piece being filled.
struct PlanWriter::HashState {
  XXH3_state_t *state = XXH3_createState();
  uint64_t bytes = 0;

  HashState() { XXH3_128bits_reset(state); }
  ~HashState() { XXH3_freeState(state); }
  HashState(const HashState &) = delete;
  HashState &operator=(const HashState &) = delete;

  void update(absl::Span<const uint8_t> data) {
    XXH3_128bits_update(state, data.data(), data.size());
    bytes += data.size();
  }
  PlanHash finishPiece() {
    const XXH128_hash_t digest = XXH3_128bits_digest(state);
    XXH3_128bits_reset(state);
    bytes = 0;
    return {digest.low64, digest.high64};
  }
};

PlanFileCalls PlanFileCalls::system() {
  return {
      [](int file, const void *data, size_t size, off_t offset) {
        return ::pwrite(file, data, size, offset);
      },
      [](int file) { return ::fsync(file); },
      [](const char *from, const char *to) { return std::rename(from, to); }};
}

static std::string folderOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

static std::string temporaryPrefix(const std::string &path) {
  return absl::StrCat(path.substr(path.rfind('/') + 1), ".tmp-");
}

// A writer holds a lock on its temporary file for as long as it lives; one
// that nobody holds was left by a writer that was killed.
static void removeAbandoned(const std::string &path) {
  const std::string folder = folderOf(path);
  const std::string prefix = temporaryPrefix(path);
  DIR *dir = opendir(folder.c_str());
  if (!dir)
    return;
  while (const dirent *entry = readdir(dir)) {
    if (!absl::StartsWith(entry->d_name, prefix))
      continue;
    const std::string name = absl::StrCat(folder, "/", entry->d_name);
    const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
      continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
      unlink(name.c_str());
    close(file);
  }
  closedir(dir);
}

// Opens a new file beside the plan's and locks it.
absl::Status PlanWriter::openTemporary() {
  for (int attempt = 0;; ++attempt) {
    temporary = absl::StrCat(folderOf(path), "/", temporaryPrefix(path),
                             getpid(), "-", attempt);
    {
      const EndDelay delay;
      descriptor = ::open(temporary.c_str(),
                          O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor >= 0)
        guard.emplace(temporary.c_str());
    }
    if (descriptor < 0 && errno == EEXIST && attempt < 1000)
      continue;
    if (descriptor < 0)
      return systemError(errno,
                         absl::StrCat(path, ": cannot write to its folder"),
                         usageError);
    // Another writer may have taken it for abandoned before it was locked.
    struct stat info;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
        fstat(descriptor, &info) == 0 && info.st_nlink == 1)
      return absl::OkStatus();
    guard.reset();
    close(descriptor);
  }
}

absl::StatusOr<std::unique_ptr<PlanWriter>>
PlanWriter::create(absl::string_view path, PlanFileCalls calls) {
  LLAMAC_RETURN_IF_ERROR(checkReplaceable(path));
  std::unique_ptr<PlanWriter> writer(
      new PlanWriter(std::string(path), std::move(calls)));
  removeAbandoned(writer->path);
  LLAMAC_RETURN_IF_ERROR(writer->openTemporary());
  // The header's place; its bytes are written last.
  LLAMAC_RETURN_IF_ERROR(
      writer->put(std::vector<uint8_t>(sizeof(PlanHeader), 0)));
  return writer;
}

PlanWriter::PlanWriter(std::string path, PlanFileCalls calls)
    : path(std::move(path)), calls(std::move(calls)),
      hash(std::make_unique<HashState>()) {
  buffer.reserve(bufferBytes);
}

PlanWriter::~PlanWriter() {
  if (descriptor < 0)
    return;
  if (!finished)
    unlink(temporary.c_str());
  close(descriptor);
}

absl::Status PlanWriter::failure(absl::string_view what, int error) {
  const std::string message =
      absl::StrCat(path, ": cannot ", what, " after ", bytesWritten(),
                   " bytes: ", std::strerror(error));
  if (isOutOfResources(error))
    return memoryError(absl::StrCat(
        message, "; free some space or give another output folder"));
  return deviceError(message);
}

absl::Status PlanWriter::writeAt(absl::Span<const uint8_t> bytes,
                                 uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = calls.write(descriptor, bytes.data(), bytes.size(),
                                      static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return failure("write", count < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

absl::Status PlanWriter::flush() {
  LLAMAC_RETURN_IF_ERROR(writeAt(buffer, flushed));
  flushed += buffer.size();
  buffer.clear();
  return absl::OkStatus();
}

absl::Status PlanWriter::put(absl::Span<const uint8_t> bytes) {
  if (buffer.size() + bytes.size() > bufferBytes)
    LLAMAC_RETURN_IF_ERROR(flush());
  if (bytes.size() >= bufferBytes) {
    LLAMAC_RETURN_IF_ERROR(writeAt(bytes, flushed));
    flushed += bytes.size();
    return absl::OkStatus();
  }
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

absl::Status PlanWriter::alignTo(uint64_t alignment) {
  const uint64_t over = bytesWritten() % alignment;
  if (over == 0)
    return absl::OkStatus();
  return put(std::vector<uint8_t>(alignment - over, 0));
}

absl::Status PlanWriter::append(absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(put(bytes));
  PlanSection &section = sections.back();
  section.size += bytes.size();
  while (!bytes.empty()) {
    const auto part = bytes.subspan(
        0, std::min<uint64_t>(bytes.size(), planPieceBytes - hash->bytes));
    hash->update(part);
    bytes.remove_prefix(part.size());
    if (hash->bytes == planPieceBytes)
      section.pieces.push_back(hash->finishPiece());
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t>
PlanWriter::addSection(SectionKind kind,
                       absl::FunctionRef<absl::Status(PlanWriter &)> fill) {
  LLAMAC_RETURN_IF_ERROR(alignTo(alignmentOf(kind)));
  sections.push_back({kind, bytesWritten(), 0, {}});
  LLAMAC_RETURN_IF_ERROR(fill(*this));
  if (hash->bytes != 0)
    sections.back().pieces.push_back(hash->finishPiece());
  return static_cast<uint32_t>(sections.size() - 1);
}

absl::StatusOr<uint32_t>
PlanWriter::addSection(SectionKind kind, absl::Span<const uint8_t> bytes) {
  return addSection(kind, [&](PlanWriter &out) { return out.append(bytes); });
}

absl::Status PlanWriter::finish(const schema::PlanT &plan) {
  if (absl::Status status = verifyPlan(plan, sections); !status.ok())
    return internalError(absl::StrCat(
        path, ": the compiler made an invalid plan: ", status.message()));
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishPlanBuffer(builder, schema::Plan::Pack(builder, &plan));
  LLAMAC_RETURN_IF_ERROR(
      addSection(SectionKind::Manifest,
                 absl::Span<const uint8_t>(builder.GetBufferPointer(),
                                           builder.GetSize()))
          .status());

  const uint64_t tableOffset = bytesWritten();
  const std::vector<uint8_t> table = makePlanTable(sections);
  const PlanHeader header = makePlanHeader(
      table, static_cast<uint32_t>(sections.size()), tableOffset);
  LLAMAC_RETURN_IF_ERROR(put(table));
  LLAMAC_RETURN_IF_ERROR(flush());
  LLAMAC_RETURN_IF_ERROR(
      writeAt({reinterpret_cast<const uint8_t *>(&header), sizeof header}, 0));
  if (calls.sync(descriptor) != 0)
    return failure("save", errno);
  if (calls.rename(temporary.c_str(), path.c_str()) != 0)
    return failure("rename", errno);
  finished = true;
  guard.reset();

  // The new name reaches the disk with its folder.
  const int folder =
      ::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    calls.sync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

} // namespace llamac
