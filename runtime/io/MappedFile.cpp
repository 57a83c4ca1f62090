//===- MappedFile.cpp - A file mapped for reading -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/MappedFile.h"

#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llamac {

static absl::Status failure(const std::string &path, const char *what) {
  return systemError(errno, absl::StrCat(path, ": ", what), badFileError);
}

/// In nanoseconds.
static int64_t modificationTime(const struct stat &info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

absl::StatusOr<std::shared_ptr<MappedFile>>
MappedFile::open(absl::string_view path, ExitCode ifTruncated) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->filePath = std::string(path);
  // Not blocking: opening a pipe must not wait for a writer.
  file->descriptor =
      ::open(file->filePath.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->descriptor < 0)
    return failure(file->filePath, "cannot be opened");
  struct stat info;
  if (fstat(file->descriptor, &info) != 0)
    return failure(file->filePath, "cannot be examined");
  if (!S_ISREG(info.st_mode))
    return badFileError(
        absl::StrCat(file->filePath, ": file: expected a regular file, got a ",
                     S_ISDIR(info.st_mode) ? "directory" : "device or pipe"));
  file->byteCount = static_cast<uint64_t>(info.st_size);
  file->modified = modificationTime(info);
  if (file->byteCount == 0)
    return file;
  void *map = mmap(nullptr, file->byteCount, PROT_READ, MAP_SHARED,
                   file->descriptor, 0);
  if (map == MAP_FAILED)
    return failure(file->filePath, "cannot be mapped");
  file->bytes = static_cast<const uint8_t *>(map);
  file->guard.emplace(file->filePath.c_str(), file->span(), ifTruncated);
  return file;
}

MappedFile::~MappedFile() {
  guard.reset();
  if (bytes)
    munmap(const_cast<uint8_t *>(bytes), byteCount);
  if (descriptor >= 0)
    close(descriptor);
}

absl::StatusOr<absl::Span<const uint8_t>>
MappedFile::slice(uint64_t offset, uint64_t size) const {
  if (!isInside(offset, size, byteCount))
    return badFileAt(filePath, offset,
                     absl::StrCat("extent: expected to end within ", byteCount,
                                  " bytes, got ", size, " bytes from ",
                                  offset));
  return absl::Span<const uint8_t>(bytes + offset, size);
}

absl::Status MappedFile::checkUnchanged() const {
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return failure(filePath, "cannot be examined");
  if (static_cast<uint64_t>(info.st_size) != byteCount)
    return badFileAt(filePath, static_cast<uint64_t>(info.st_size),
                     absl::StrCat("size: expected ", byteCount,
                                  " bytes as when it was opened, got ",
                                  info.st_size));
  if (modificationTime(info) != modified)
    return badFileError(absl::StrCat(
        filePath, ": file: expected it as when it was opened, got one that was "
                  "written to since"));
  return absl::OkStatus();
}

absl::StatusOr<std::string>
fingerprintFiles(absl::Span<const std::shared_ptr<MappedFile>> files) {
  constexpr uint64_t edge = uint64_t{1} << 20;
  constexpr uint64_t blocks = 64;
  constexpr uint64_t blockBytes = 4096;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const std::shared_ptr<MappedFile> &file : files) {
    LLAMAC_RETURN_IF_ERROR(file->checkUnchanged());
    const std::string &path = file->path();
    const std::string name = path.substr(path.rfind('/') + 1);
    const uint64_t size = file->size();
    const int64_t modified = file->modifiedNs();
    // The terminating zero keeps ("ab", "c") and ("a", "bc") apart.
    XXH3_128bits_update(&state, name.c_str(), name.size() + 1);
    XXH3_128bits_update(&state, &size, sizeof(size));
    XXH3_128bits_update(&state, &modified, sizeof(modified));
    if (size <= 2 * edge) {
      XXH3_128bits_update(&state, file->data(), size);
      continue;
    }
    XXH3_128bits_update(&state, file->data(), edge);
    const uint64_t stride = (size - 2 * edge) / blocks;
    for (uint64_t i = 0; i < blocks; ++i)
      XXH3_128bits_update(&state, file->data() + edge + i * stride,
                          std::min(blockBytes, size - edge - i * stride));
    XXH3_128bits_update(&state, file->data() + size - edge, edge);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

} // namespace llamac
