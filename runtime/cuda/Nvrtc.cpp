//===- Nvrtc.cpp - CUDA source to cubin by NVRTC --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Nvrtc.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/CudaLibrary.h"
#include "runtime/io/DiskCache.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstring>
#include <dlfcn.h>
#include <iterator>

namespace llamac {

/// Options that every kernel is compiled with. Multiply-adds are written as
/// such (fma() of ptx.cuh).
static constexpr const char *kernelOptions[] = {
    "--minimal",    "-default-device",    "--std=c++20",
    "--fmad=false", "--ptxas-options=-v", "--ptxas-options=--warn-on-spills"};

std::string cubinKey(const CudaSource &source, const std::string &architecture,
                     const std::string &version) {
  std::vector<absl::string_view> parts = {architecture, version, source.name,
                                          source.text};
  parts.insert(parts.end(), std::begin(kernelOptions), std::end(kernelOptions));
  for (const SourceHeader &header : source.headers) {
    parts.emplace_back(header.name);
    parts.emplace_back(header.text);
  }
  return keyOf(parts);
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

namespace {
using Program = struct ProgramTag *; // nvrtcProgram
using Result = int;                  // nvrtcResult; 0 is success.
} // namespace

/// Every function that is used, with its signature in nvrtc.h.
#define LLAMAC_NVRTC_FUNCTIONS(X)                                              \
  X(nvrtcVersion, Result, (int *, int *))                                      \
  X(nvrtcGetErrorString, const char *, (Result))                               \
  X(nvrtcCreateProgram, Result,                                                \
    (Program *, const char *, const char *, int, const char *const *,          \
     const char *const *))                                                     \
  X(nvrtcCompileProgram, Result, (Program, int, const char *const *))          \
  X(nvrtcGetProgramLogSize, Result, (Program, size_t *))                       \
  X(nvrtcGetProgramLog, Result, (Program, char *))                             \
  X(nvrtcGetCUBINSize, Result, (Program, size_t *))                            \
  X(nvrtcGetCUBIN, Result, (Program, char *))                                  \
  X(nvrtcDestroyProgram, Result, (Program *))

// A name and its type stand as they are.
// NOLINTBEGIN(bugprone-macro-parentheses)
struct Nvrtc::Library {
#define LLAMAC_NVRTC_MEMBER(name, result, parameters)                          \
  result(*name) parameters = nullptr;
  LLAMAC_NVRTC_FUNCTIONS(LLAMAC_NVRTC_MEMBER)
#undef LLAMAC_NVRTC_MEMBER

  /// Null where all functions were found, else the name of the first missing.
  const char *resolve(void *handle) {
#define LLAMAC_NVRTC_RESOLVE(name, result, parameters)                         \
  name = reinterpret_cast<result(*) parameters>(dlsym(handle, #name));         \
  if (!name)                                                                   \
    return #name;
    LLAMAC_NVRTC_FUNCTIONS(LLAMAC_NVRTC_RESOLVE)
#undef LLAMAC_NVRTC_RESOLVE
    return nullptr;
  }
};

// NOLINTEND(bugprone-macro-parentheses)

#undef LLAMAC_NVRTC_FUNCTIONS

std::vector<std::string> libnvrtcSearchPaths() {
  // Newest first: the major versions that know every option used here.
  return cuda::searchPaths({.folderVariable = "LLAMAC_NVRTC_PATH",
                            .sonames = {"libnvrtc.so.13", "libnvrtc.so.12"},
                            .pipFolders = {"cu13", "cuda_nvrtc"}});
}

absl::StatusOr<Nvrtc> Nvrtc::open(const std::string &path) {
  const std::vector<std::string> paths =
      path.empty() ? libnvrtcSearchPaths() : std::vector<std::string>{path};
  const auto [handle, opened] = cuda::openFirst(paths);
  if (!handle)
    return deviceError(
        absl::StrCat("libnvrtc: expected a library that can be opened, got "
                     "none at ",
                     absl::StrJoin(paths, ", "),
                     "; install CUDA 12 or 13 or Python's nvidia-cuda-nvrtc, "
                     "or set LLAMAC_NVRTC_PATH to the library's folder"));
  Nvrtc nvrtc;
  nvrtc.libraryPath = opened;
  auto library = std::make_shared<Library>();
  int major = 0, minor = 0;
  const char *missing = library->resolve(handle);
  if (missing || library->nvrtcVersion(&major, &minor) != 0)
    return deviceError(absl::StrCat(
        nvrtc.libraryPath, ": expected NVRTC 12 or newer, got a library ",
        missing ? absl::StrCat("without ", missing) : "that does not answer",
        "; install CUDA 12 or 13"));
  nvrtc.library = std::move(library);
  nvrtc.versionText = absl::StrCat(major, ".", minor);
  return nvrtc;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// The first line of `log` with an error, or, where none has, its first line.
static std::string firstError(const std::string &log) {
  std::string first;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, "error") || absl::StrContains(line, "fatal"))
      return std::string(line);
    if (first.empty())
      first = std::string(line);
  }
  return first;
}

absl::StatusOr<Cubin>
Nvrtc::compile(const CudaSource &source, const std::string &architecture,
               const std::vector<std::string> &options) const {
  auto failed = [&](const char *call, Result result) {
    return internalError(absl::StrCat(source.name, ": ", call, " for ",
                                      architecture, ": ",
                                      library->nvrtcGetErrorString(result)));
  };
  std::vector<const char *> names, texts;
  names.reserve(source.headers.size());
  texts.reserve(source.headers.size());
  for (const SourceHeader &header : source.headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  Program program = nullptr;
  if (Result result = library->nvrtcCreateProgram(
          &program, source.text.c_str(), source.name.c_str(),
          static_cast<int>(names.size()), texts.data(), names.data()))
    return failed("nvrtcCreateProgram", result);
  const auto destroy =
      absl::MakeCleanup([&] { library->nvrtcDestroyProgram(&program); });

  std::vector<std::string> all = {
      absl::StrCat("--gpu-architecture=", architecture)};
  all.insert(all.end(), std::begin(kernelOptions), std::end(kernelOptions));
  all.insert(all.end(), options.begin(), options.end());
  std::vector<const char *> arguments;
  arguments.reserve(all.size());
  for (const std::string &option : all)
    arguments.push_back(option.c_str());
  const Result compiled = library->nvrtcCompileProgram(
      program, static_cast<int>(arguments.size()), arguments.data());

  // The size counts what ends the log: a null, or several.
  size_t size = 0;
  std::string log;
  if (library->nvrtcGetProgramLogSize(program, &size) == 0 && size > 1) {
    log.resize(size);
    library->nvrtcGetProgramLog(program, log.data());
    log.resize(std::strlen(log.c_str()));
  }
  if (compiled != 0) {
    if (log.empty())
      return failed("nvrtcCompileProgram", compiled);
    return internalError(absl::StrCat(firstError(log), " (compiling ",
                                      source.name, " for ", architecture, ")"));
  }
  Cubin cubin;
  cubin.log = std::move(log);
  if (Result result = library->nvrtcGetCUBINSize(program, &size))
    return failed("nvrtcGetCUBINSize", result);
  cubin.image.resize(size);
  if (Result result = library->nvrtcGetCUBIN(program, cubin.image.data()))
    return failed("nvrtcGetCUBIN", result);
  return cubin;
}

absl::StatusOr<std::string>
Nvrtc::image(const CudaSource &source, const std::string &architecture) const {
  const std::string key = cubinKey(source, architecture, version());
  const DiskCache cache(CacheKind::Cubins);
  if (std::optional<std::string> known = cache.find(key))
    return *std::move(known);
  LLAMAC_ASSIGN_OR_RETURN(Cubin cubin, compile(source, architecture));
  cache.keep(key, cubin.image);
  return std::move(cubin.image);
}

} // namespace llamac
