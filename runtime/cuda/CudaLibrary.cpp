//===- CudaLibrary.cpp - Where libraries of CUDA are ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaLibrary.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <glob.h>
#include <utility>

namespace llamac::cuda {

/// The folder of Python's packages that this code is in, as the library or the
/// programs of a wheel are; empty elsewhere.
static std::string ownPackages() {
  // The loader knows a program as argv[0], which may be no path.
  std::error_code error;
  std::vector<std::string> paths = {
      std::filesystem::read_symlink("/proc/self/exe", error)};
  if (Dl_info info = {};
      dladdr(reinterpret_cast<const void *>(&ownPackages), &info))
    paths.emplace_back(info.dli_fname);
  const std::string end = "-packages/";
  for (const std::string &path : paths)
    if (const size_t found = path.rfind(end); found != std::string::npos)
      return path.substr(0, found + end.size());
  return "";
}

/// Folders of libraries that pip has installed.
static std::vector<std::string>
pythonFolders(absl::Span<const char *const> packages) {
  std::vector<std::string> roots, patterns;
  if (std::string own = ownPackages(); !own.empty())
    patterns.push_back(std::move(own));
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char *root = std::getenv(variable); root && *root)
      roots.emplace_back(root);
  if (const char *home = std::getenv("HOME"); home && *home)
    roots.push_back(absl::StrCat(home, "/.local"));
  roots.insert(roots.end(), {"/usr/local", "/usr"});
  for (const std::string &root : roots)
    patterns.push_back(absl::StrCat(root, "/lib/python3*/*-packages/"));
  std::vector<std::string> folders;
  for (const std::string &pattern : patterns)
    for (const char *package : packages) {
      const std::string lib =
          absl::StrCat(pattern, "nvidia/", package, "/lib/");
      glob_t found = {};
      if (glob(lib.c_str(), 0, nullptr, &found) == 0)
        folders.insert(folders.end(), found.gl_pathv,
                       found.gl_pathv + found.gl_pathc);
      globfree(&found);
    }
  return folders;
}

std::vector<std::string> searchPaths(const Library &library) {
  std::vector<std::string> folders;
  if (const char *folder = std::getenv(library.folderVariable);
      folder && *folder)
    folders.push_back(absl::StrCat(folder, "/"));
  folders.emplace_back();
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable); root && *root)
      folders.push_back(absl::StrCat(root, "/lib64/"));
  folders.emplace_back("/usr/local/cuda/lib64/");
  for (std::string &folder : pythonFolders(library.pipFolders))
    folders.push_back(std::move(folder));
  std::vector<std::string> paths;
  for (const std::string &folder : folders)
    for (const char *soname : library.sonames)
      paths.push_back(absl::StrCat(folder, soname));
  return paths;
}

OpenedLibrary openFirst(absl::Span<const std::string> paths) {
  for (const std::string &path : paths)
    if (void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return {handle, path};
  return {};
}

} // namespace llamac::cuda
