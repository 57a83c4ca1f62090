//===- Pull.cpp - Fetches models ------------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The files of a model gather in a folder of its own under .partial, beside the
// manifest that says what they are to become. A file is FILE.part until it is
// complete and its checksum is right. When all are there, the folder is renamed
// to the model's name.
//
// The next pull of the same model compares its listing with that manifest:
// files and parts that are still the same are kept, and a part is continued
// where it ends. Its bytes are hashed first, so that a checksum is always one
// of all bytes on the disk.
//
//===----------------------------------------------------------------------===//

#include "compiler/models/Pull.h"

#include "compiler/models/Http.h"
#include "compiler/models/Library.h"
#include "compiler/models/Repository.h"
#include "frontends/Checkpoint.h"
#include "frontends/Files.h"
#include "frontends/PulledNames.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <openssl/evp.h>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace llamac {

namespace fs = std::filesystem;

/// Attempts to go on with a file whose connection breaks.
static constexpr int attempts = 5;

static std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return std::string(absl::StripAsciiWhitespace(value ? value : ""));
}

namespace {

/// A file descriptor, closed with the object.
struct Descriptor {
  int number = -1;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
};

/// The checksum of a file, as its listing has it: git's of a blob, or SHA-256.
class Checksum {
public:
  explicit Checksum(const PulledFile &file)
      : context(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    restart(file);
  }

  /// Forgets all bytes.
  void restart(const PulledFile &file) {
    const bool isGit = !file.gitSha1.empty();
    EVP_DigestInit_ex(context.get(), isGit ? EVP_sha1() : EVP_sha256(),
                      nullptr);
    if (isGit)
      add(absl::StrCat("blob ", file.size, absl::string_view("\0", 1)));
  }

  void add(absl::string_view bytes) {
    EVP_DigestUpdate(context.get(), bytes.data(), bytes.size());
  }

  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context.get(), digest.data(), &size);
    return absl::BytesToHexString(
        {reinterpret_cast<const char *>(digest.data()), size});
  }

private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context;
};

/// A file to fetch.
struct Download {
  std::string url;
  PulledFile file;
  bool isWeights = true;
  bool isListed = true; ///< Whether its size and checksum are known before.
};

/// A file that is not complete.
struct Part {
  std::string path;
  Descriptor descriptor;
  Checksum checksum; ///< The checksum of the bytes there.
  uint64_t size = 0; ///< Their number.

  explicit Part(const std::string &path, const PulledFile &file)
      : path(path),
        descriptor(
            open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
        checksum(file) {}

  absl::Status failure(absl::string_view what) const {
    return systemError(errno, absl::StrCat(path, ": cannot be ", what),
                       usageError);
  }

  /// Hashes what an earlier pull left.
  absl::Status readAll() {
    std::vector<char> block(size_t{1} << 20);
    for (;;) {
      const ssize_t count = read(descriptor.number, block.data(), block.size());
      if (count <= 0)
        return count == 0 ? absl::OkStatus() : failure("read");
      checksum.add({block.data(), static_cast<size_t>(count)});
      size += count;
    }
  }

  absl::Status append(absl::string_view bytes) {
    errno = writeAll(descriptor.number, bytes.data(), bytes.size());
    if (errno != 0)
      return failure("written");
    checksum.add(bytes);
    size += bytes.size();
    return absl::OkStatus();
  }

  absl::Status clear(const PulledFile &file) {
    size = 0;
    checksum.restart(file);
    return ftruncate(descriptor.number, 0) == 0 ? absl::OkStatus()
                                                : failure("written");
  }
};

class Puller {
public:
  Puller(const Interrupts &interrupts, bool quiet)
      : interrupts(interrupts), quiet(quiet), client(interrupts),
        progress(quiet) {}

  absl::Status pull(const std::string &what);

  /// After the error `status`: says what is kept of the model, or removes the
  /// rest; empty: nothing is kept.
  std::string keepRest(const absl::Status &status);

private:
  absl::Status planRepository(const RepositoryName &name);
  absl::Status planFile(const std::string &url);
  absl::StatusOr<std::string> getListing(const RepositoryName &name);
  absl::Status checkAnswer(const HttpAnswer &answer, const Url &url,
                           const std::string &what) const;
  absl::StatusOr<bool> compare(const PulledModel &known);
  absl::Status prepareFolder();
  absl::Status checkSpace() const;
  absl::Status checkConfig() const;
  absl::Status fetchFile(Download &download);
  absl::Status fetchPart(Download &download, Part &part);
  absl::Status begin(Download &download, const HttpAnswer &answer, Part &part);
  absl::Status clear(const Download &download, Part &part);
  absl::Status install();
  std::string pathOf(const PulledFile &file) const {
    return joinPath(folder, file.name);
  }
  /// HF_TOKEN, for the server itself and where nobody else can read it.
  std::string tokenFor(const Url &url) const {
    return url.hasOriginOf(endpoint) && url.isPrivate() ? token : "";
  }
  void show();

  const Interrupts &interrupts;
  const bool quiet;
  HttpClient client;
  Progress progress;
  std::string endpointText = environment("HF_ENDPOINT");
  Url endpoint;
  const std::string token = environment("HF_TOKEN");

  PulledModel model;
  std::vector<Download> downloads;
  std::string folder, target;       ///< Where files gather, and then are.
  std::unique_ptr<Descriptor> lock; ///< Keeps other pulls away.
  uint64_t total = 0, done = 0;     ///< Bytes of all files, and those there.
  uint64_t before = 0;              ///< And those that were there before.
  double start = 0;                 ///< The time of steadySeconds().
};

} // namespace

//===----------------------------------------------------------------------===//
// The listing and the choice
//===----------------------------------------------------------------------===//

/// Error, about `what` at `url`, for an answer without what was asked for.
absl::Status Puller::checkAnswer(const HttpAnswer &answer, const Url &url,
                                 const std::string &what) const {
  if (answer.code / 100 == 2)
    return absl::OkStatus();
  absl::string_view hint;
  if (answer.code == 404)
    hint = ": there is no such model, revision or file";
  else if (answer.code == 429 || answer.code >= 500)
    hint = "; try again later";
  else if (!url.hasOriginOf(endpoint))
    hint = "";
  else if (answer.code == 401)
    hint = token.empty() ? ": not there, or not for everybody; set HF_TOKEN to "
                           "a token of yours to ask with it"
                         : ": not there, or not for the owner of HF_TOKEN";
  else if (answer.code == 403)
    hint = ": access has to be granted first, on the model's own page; then "
           "set HF_TOKEN to a token of yours";
  return badFileError(
      absl::StrCat(what, ": the server answered ", answer.code, hint));
}

absl::StatusOr<std::string> Puller::getListing(const RepositoryName &name) {
  const std::string url = absl::StrCat(
      endpointText, "/api/models/", name.repository, "/revision/",
      name.revision.empty() ? "main" : name.revision, "?blobs=true");
  std::string text;
  HttpAnswer answer;
  progress.stage(absl::StrCat("asking ", endpoint.host));
  LLAMAC_RETURN_IF_ERROR(client.get(
      {.url = url, .token = tokenFor(endpoint)}, answer,
      [&](absl::string_view bytes) {
        absl::StrAppend(&text, bytes);
        return text.size() <= size_t{64} << 20
                   ? absl::OkStatus()
                   : badFileError(absl::StrCat("listing of ", name.repository,
                                               ": expected at most 64 MiB, got "
                                               "more"));
      }));
  LLAMAC_RETURN_IF_ERROR(checkAnswer(answer, endpoint, name.text()));
  return text;
}

absl::Status Puller::planRepository(const RepositoryName &name) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, getListing(name));
  LLAMAC_ASSIGN_OR_RETURN(const RepositoryListing listing,
                          parseListing(name, text));
  LLAMAC_ASSIGN_OR_RETURN(const ChosenFiles chosen, chooseFiles(name, listing));
  model.name = chosen.name.text();
  model.source = absl::StrCat(endpointText, "/", name.repository);
  model.revision = listing.commit;
  for (const ChosenFile &file : chosen.files)
    downloads.push_back({absl::StrCat(model.source, "/resolve/", listing.commit,
                                      "/", escapePath(file.path)),
                         file.stored, file.isWeights});
  return absl::OkStatus();
}

absl::Status Puller::planFile(const std::string &url) {
  LLAMAC_ASSIGN_OR_RETURN(const Url parsed, Url::parse(url));
  // A page or file of the server's own is that of a repository.
  std::vector<std::string> parts = absl::StrSplit(
      absl::StripPrefix(parsed.path, "/"), '/', absl::SkipEmpty());
  if (parsed.hasOriginOf(endpoint) && parsed.fragment.empty()) {
    const bool isFile =
        parts.size() >= 5 && (parts[2] == "resolve" || parts[2] == "blob");
    const bool isTree = parts.size() == 4 && parts[2] == "tree";
    const bool isPage = parts.size() == 2 && !absl::EndsWith(parts[1], ".gguf");
    if (isPage || isFile || isTree) {
      std::string text = absl::StrCat(parts[0], "/", parts[1]);
      if (parts.size() > 3 && parts[3] != "main")
        absl::StrAppend(&text, "@", parts[3]);
      if (isFile)
        absl::StrAppend(&text, ":",
                        absl::StrJoin(parts.begin() + 4, parts.end(), "/"));
      if (const auto name = RepositoryName::parse(text))
        return planRepository(*name);
    }
  }
  const std::string name = parts.empty() ? "" : parts.back();
  if (!isNamePart(name) || !absl::EndsWith(name, ".gguf"))
    return usageError(absl::StrCat(
        url, ": expected a name OWNER/REPO or the URL of a .gguf file"));
  if (ggufStem(name) + ".gguf" != name)
    return usageError(absl::StrCat(
        url, ": expected a model in one file, got a part of one; a name "
             "OWNER/REPO stands for all parts"));
  Download download = {url.substr(0, url.find('#')), {.name = name}};
  download.isListed = false;
  absl::string_view hash = parsed.fragment;
  if (!hash.empty() &&
      (!absl::ConsumePrefix(&hash, "sha256=") || hash.size() != 64 ||
       !std::ranges::all_of(hash, absl::ascii_isxdigit)))
    return usageError(absl::StrCat(
        url, ": expected #sha256= and 64 hexadecimal digits behind the URL"));
  download.file.sha256 = absl::AsciiStrToLower(hash);
  model.name = name;
  model.source = download.url;
  downloads.push_back(std::move(download));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

/// The file of `from` that is the same as `file` of `model`, by its checksum
/// or, where it has none, its source; null: none.
static const PulledFile *findSame(const PulledModel &from,
                                  const PulledModel &model,
                                  const PulledFile &file) {
  const bool isKnown = !file.sha256.empty() || !file.gitSha1.empty();
  for (const PulledFile &other : from.files)
    if (other.name == file.name && other.sha256 == file.sha256 &&
        other.gitSha1 == file.gitSha1 &&
        (isKnown || from.source == model.source))
      return &other;
  return nullptr;
}

/// Whether the model that is there already, `known`, is what is asked for,
/// which is then said. Usage error for a file of the same name from elsewhere.
absl::StatusOr<bool> Puller::compare(const PulledModel &known) {
  const PulledFile &file = downloads[0].file;
  const bool isListed = downloads[0].isListed;
  const bool isSame = isListed ? known.revision == model.revision
                               : known.source == model.source &&
                                     (file.sha256.empty() ||
                                      known.files[0].sha256 == file.sha256);
  if (!isSame && !isListed)
    return usageError(absl::StrCat(
        model.name,
        ": expected a name that is free, got that of the model from ",
        known.source, "; llamac rm ", model.name, " removes it"));
  progress.finish();
  if (isSame && !quiet)
    std::fprintf(stderr, "%s is pulled already%s\n",
                 printable(model.name).c_str(),
                 isListed ? ", in its newest version" : "");
  return isSame;
}

absl::Status Puller::prepareFolder() {
  LLAMAC_ASSIGN_OR_RETURN(const std::string partial, partialFolder(model.name));
  std::error_code error;
  fs::create_directories(partial, error);
  if (error)
    return systemError(error.value(), absl::StrCat(partial, ": cannot be made"),
                       usageError);
  lock = std::make_unique<Descriptor>(
      open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (flock(lock->number, LOCK_EX | LOCK_NB) != 0)
    return usageError(absl::StrCat(
        model.name, ": expected one pull at a time, got another at work"));
  folder = partial;
  // Files that an earlier pull left are of use where they are the same ones.
  std::set<std::string> wanted = {std::string(pulledManifest)};
  if (const auto known = readManifest(folder); known.ok())
    for (Download &download : downloads)
      if (const auto *same = findSame(*known, model, download.file)) {
        wanted.insert({same->name, same->name + ".part"});
        if (!download.isListed)
          download.file = *same; // A part is of this version.
      }
  for (fs::recursive_directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error))
    if (std::error_code none;
        !entry->is_directory(none) &&
        !wanted.contains(entry->path().native().substr(folder.size() + 1)))
      fs::remove(entry->path(), none);
  // An older version may have the same files, too.
  if (const auto known = readManifest(target); known.ok())
    for (const Download &download : downloads)
      if (const auto *same = findSame(*known, model, download.file)) {
        const std::string path = pathOf(*same);
        fs::create_directories(fs::path(path).parent_path(), error);
        fs::create_hard_link(joinPath(target, same->name), path, error);
      }
  for (const Download &download : downloads) {
    model.files.push_back(download.file);
    total += download.file.size;
    for (const char *suffix : {"", ".part"})
      if (const uint64_t size =
              fs::file_size(pathOf(download.file) + suffix, error);
          !error)
        done += std::min(size, download.file.size);
  }
  before = done;
  return writeManifest(model, folder);
}

absl::Status Puller::checkSpace() const {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && total > done && space.available < total - done)
    return memoryError(absl::StrCat(model.name, ": expected ",
                                    formatBytes(total - done),
                                    " of free disk space at ", folder, ", got ",
                                    formatBytes(space.available)));
  return absl::OkStatus();
}

/// Whether the model is one that llamac has, before its weights are fetched.
absl::Status Puller::checkConfig() const {
  const std::string config = joinPath(folder, "config.json");
  if (!fileExists(config))
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(const bool isHead, isDraftHead(config));
  if (isHead)
    return absl::OkStatus();
  if (std::ranges::any_of(downloads, [](const Download &download) {
        return download.file.name == "pytorch_model.bin";
      }))
    return unsupportedError(absl::StrCat(
        model.name, ": expected *.safetensors or *.gguf, got "
                    "pytorch_model.bin, which only heads may have"));
  return withContext(openConfig(config).status(), model.name);
}

absl::Status Puller::install() {
  model.pulled = std::time(nullptr);
  LLAMAC_RETURN_IF_ERROR(writeManifest(model, folder));
  std::error_code error;
  fs::create_directories(fs::path(target).parent_path(), error);
  if (fs::exists(target, error))
    LLAMAC_RETURN_IF_ERROR(removeModelFolder(target));
  fs::create_directories(fs::path(target).parent_path(), error);
  if (std::rename(folder.c_str(), target.c_str()) != 0)
    return systemError(errno, absl::StrCat(target, ": cannot be put in place"),
                       usageError);
  removeEmptyAbove(folder);
  return absl::OkStatus();
}

std::string Puller::keepRest(const absl::Status &status) {
  if (folder.empty())
    return "";
  if (done > 0 && exitCode(status) != ExitCode::Unsupported)
    return absl::StrCat(formatBytes(done), " of ",
                        total ? formatBytes(total) : "it",
                        " are kept, and the same command goes on there");
  // Why is known, and this would not change it.
  removeModelFolder(folder).IgnoreError();
  return "";
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

void Puller::show() {
  const double seconds = steadySeconds() - start;
  const uint64_t came = done - before;
  progress.update(
      absl::StrCat("pulling ", model.name),
      total > before
          ? static_cast<double>(came) / static_cast<double>(total - before)
          : 0,
      [&] {
        return absl::StrCat(
            formatBytes(done), " of ", total ? formatBytes(total) : "unknown",
            seconds > 0.5
                ? absl::StrCat(", ",
                               formatBytes(static_cast<uint64_t>(
                                   static_cast<double>(came) / seconds)),
                               "/s")
                : "");
      });
}

/// Begins `part` anew.
absl::Status Puller::clear(const Download &download, Part &part) {
  done -= part.size;
  before = std::min(before, done);
  return part.clear(download.file);
}

/// Before the first bytes of `answer`.
absl::Status Puller::begin(Download &download, const HttpAnswer &answer,
                           Part &part) {
  PulledFile &file = download.file;
  if (answer.start != 0 && answer.start != part.size)
    return badFileError(absl::StrCat(download.url, ": expected bytes from ",
                                     part.size, " on, got others"));
  if (answer.start == 0 && part.size > 0) // Without ranges, or another version.
    LLAMAC_RETURN_IF_ERROR(clear(download, part));
  if (download.isListed)
    return absl::OkStatus();
  total = file.size = answer.size.value_or(0);
  file.etag = absl::StartsWith(answer.etag, "W/") ? "" : answer.etag;
  model.files = {file};
  LLAMAC_RETURN_IF_ERROR(writeManifest(model, folder));
  return checkSpace();
}

/// Asks once for what is missing of `download`.
absl::Status Puller::fetchPart(Download &download, Part &part) {
  PulledFile &file = download.file;
  LLAMAC_ASSIGN_OR_RETURN(const Url url, Url::parse(download.url));
  HttpAnswer answer;
  bool begun = false;
  LLAMAC_RETURN_IF_ERROR(client.get(
      {.url = download.url,
       .token = tokenFor(url),
       .from = part.size,
       .ifRange = download.isListed ? "" : file.etag},
      answer, [&](absl::string_view bytes) -> absl::Status {
        if (!std::exchange(begun, true))
          LLAMAC_RETURN_IF_ERROR(begin(download, answer, part));
        if ((download.isListed || file.size > 0) &&
            part.size + bytes.size() > file.size)
          return badFileError(absl::StrCat(download.url, ": expected ",
                                           file.size, " bytes, got more"));
        LLAMAC_RETURN_IF_ERROR(part.append(bytes));
        done += bytes.size();
        show();
        return absl::OkStatus();
      }));
  LLAMAC_RETURN_IF_ERROR(checkAnswer(answer, url, download.url));
  if (file.size > 0 && part.size != file.size)
    return badFileError(absl::StrCat(download.url, ": expected ", file.size,
                                     " bytes, got ", part.size));
  return absl::OkStatus();
}

absl::Status Puller::fetchFile(Download &download) {
  PulledFile &file = download.file;
  const std::string path = pathOf(file);
  if (fileExists(path))
    return absl::OkStatus(); // An earlier pull verified it.
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  Part part(path + ".part", file);
  if (part.descriptor.number < 0)
    return part.failure("written");
  LLAMAC_RETURN_IF_ERROR(part.readAll());
  // A part is of no use without knowing of what.
  if (download.isListed ? part.size > file.size
                        : file.etag.empty() && file.sha256.empty())
    LLAMAC_RETURN_IF_ERROR(clear(download, part));
  for (int attempt = 1; !download.isListed || part.size != file.size;
       ++attempt) {
    const uint64_t had = part.size;
    const absl::Status status = fetchPart(download, part);
    if (status.ok())
      break;
    // A server that sent something may send the rest.
    if (exitCode(status) != ExitCode::BadFile || part.size <= had ||
        part.size >= file.size || attempt == attempts || interrupts.signal())
      return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(200) * attempt);
  }
  file.size = part.size;
  const std::string hash = part.checksum.hex();
  const std::string &expected =
      file.gitSha1.empty() ? file.sha256 : file.gitSha1;
  if (!expected.empty() && hash != expected) {
    fs::remove(part.path, error);
    done -= part.size;
    return badFileError(absl::StrCat(model.name, ": ", file.name,
                                     ": expected a checksum of ", expected,
                                     ", got ", hash, "; the file is removed"));
  }
  if (file.gitSha1.empty())
    file.sha256 = hash;
  if (fsync(part.descriptor.number) != 0 ||
      std::rename(part.path.c_str(), path.c_str()) != 0)
    return part.failure("put in place");
  return absl::OkStatus();
}

absl::Status Puller::pull(const std::string &what) {
  if (endpointText.empty())
    endpointText = "https://huggingface.co";
  while (absl::EndsWith(endpointText, "/"))
    endpointText.pop_back();
  const auto parsed = Url::parse(endpointText);
  LLAMAC_RETURN_IF_ERROR(withContext(parsed.status(), "HF_ENDPOINT"));
  endpoint = *parsed;
  if (!token.empty() && !endpoint.isPrivate())
    printWarning(absl::StrCat("HF_TOKEN is not sent to ", endpoint.host,
                              " over http, where others could read it"));
  if (absl::StrContains(what, "://")) {
    LLAMAC_RETURN_IF_ERROR(planFile(what));
  } else if (const auto name = RepositoryName::parse(what)) {
    LLAMAC_RETURN_IF_ERROR(planRepository(*name));
  } else {
    return usageError(
        absl::StrCat(what, ": expected OWNER/REPO, OWNER/REPO:FILE, "
                           "OWNER/REPO@REVISION or the URL of a .gguf file"));
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::string models, modelsFolder());
  target = joinPath(models, model.name);
  if (const auto known = readManifest(target); known.ok()) {
    LLAMAC_ASSIGN_OR_RETURN(const bool isNewest, compare(*known));
    if (isNewest)
      return absl::OkStatus();
  }
  LLAMAC_RETURN_IF_ERROR(prepareFolder());
  LLAMAC_RETURN_IF_ERROR(checkSpace());
  progress.finish();
  if (!quiet && total > 0)
    std::fprintf(
        stderr, "pulling %s: %s%s\n", printable(model.name).c_str(),
        model.describeSize().c_str(),
        done ? absl::StrCat(", of which ", formatBytes(done), " are there")
                   .c_str()
             : "");
  start = steadySeconds();
  bool isChecked = false;
  for (Download &download : downloads) {
    if (download.isWeights && !std::exchange(isChecked, true))
      LLAMAC_RETURN_IF_ERROR(checkConfig());
    LLAMAC_RETURN_IF_ERROR(fetchFile(download));
  }
  model.files.clear();
  for (const Download &download : downloads)
    model.files.push_back(download.file);
  LLAMAC_RETURN_IF_ERROR(install());
  progress.finish();
  if (!quiet)
    std::fprintf(stderr, "pulled %s: %s; to talk with it: llamac chat %s\n",
                 printable(model.name).c_str(), model.describeSize().c_str(),
                 printable(model.name).c_str());
  return absl::OkStatus();
}

absl::Status pullModel(const std::string &what, bool quiet) {
  Interrupts interrupts;
  absl::Status status;
  std::string rest;
  {
    Puller puller(interrupts, quiet);
    status = puller.pull(what);
    if (status.ok())
      return status;
    rest = puller.keepRest(status);
  }
  if (interrupts.signal()) {
    if (!quiet)
      std::fprintf(stderr, "%s: stopped; %s\n", printable(what).c_str(),
                   rest.empty() ? "nothing is kept" : rest.c_str());
    interrupts.endProcess();
  }
  return rest.empty()
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(status.message(), "; ", rest));
}

} // namespace llamac
