//===- TemporaryFolder.h - A folder that goes with the object ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_TEMPORARYFOLDER_H
#define LLAMAC_TESTS_TEMPORARYFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <string>

namespace llamac {

class TemporaryFolder {
public:
  TemporaryFolder() {
    path = std::filesystem::temp_directory_path() / "llamac-test-XXXXXX";
    path = mkdtemp(path.data());
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::string file(const std::string &name) const { return path + "/" + name; }
  const std::string &name() const { return path; }

private:
  std::string path;
};

} // namespace llamac

#endif // LLAMAC_TESTS_TEMPORARYFOLDER_H
