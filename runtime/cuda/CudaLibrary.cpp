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
#include <glob.h>
#include <utility>

namespace llamac::cuda {

/// Folders of libraries that pip has installed.
static std::vector<std::string>
pythonFolders(absl::Span<const char *const> packages) {
  std::vector<std::string> roots;
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char *root = std::getenv(variable); root && *root)
      roots.emplace_back(root);
  if (const char *home = std::getenv("HOME"); home && *home)
    roots.push_back(absl::StrCat(home, "/.local"));
  roots.insert(roots.end(), {"/usr/local", "/usr"});
  std::vector<std::string> folders;
  for (const std::string &root : roots)
    for (const char *package : packages) {
      const std::string pattern = absl::StrCat(
          root, "/lib/python3*/*-packages/nvidia/", package, "/lib/");
      glob_t found = {};
      if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
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
