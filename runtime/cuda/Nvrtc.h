//===- Nvrtc.h - CUDA source to cubin by NVRTC ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libnvrtc is opened at run time, so nothing here needs CUDA to build; it needs
// no GPU to run either. Programs are freestanding: every header they include is
// handed over as text, and the result is machine code for one architecture.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_NVRTC_H
#define LLAMAC_RUNTIME_CUDA_NVRTC_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// A header by the name it is included under: {"llamac/gemv.cuh", text}.
struct SourceHeader {
  std::string name;
  std::string text;
};

struct CudaSource {
  std::string name; ///< The file's name in messages.
  std::string text;
  std::vector<SourceHeader> headers;
};

/// Names all that decides the cubin of `source` for `architecture`, compiled by
/// NVRTC `version`; see DiskCache.h.
std::string cubinKey(const CudaSource &source, const std::string &architecture,
                     const std::string &version);

struct Cubin {
  std::string image; ///< An ELF file for the architecture.
  std::string log;   ///< The output of NVRTC and ptxas.
};

class Nvrtc {
public:
  /// Opens libnvrtc: the file `path`, or, when it is empty, the first that
  /// opens of libnvrtcSearchPaths(). The error, of kind Device, says where it
  /// was looked for and how to get one.
  static absl::StatusOr<Nvrtc> open(const std::string &path = "");

  /// "13.0".
  const std::string &version() const { return versionText; }

  /// The file it came from, or the name by which the loader found it.
  const std::string &path() const { return libraryPath; }

  /// Compiles `source` for `architecture` ("sm_90a"), with `options` after the
  /// ones that every program has: C++20, device code without CUDA's headers,
  /// and ptxas's report. An error of kind Internal is one line with NVRTC's
  /// first: "kernel.cu(7): error: ...". May be called by several threads.
  absl::StatusOr<Cubin>
  compile(const CudaSource &source, const std::string &architecture,
          const std::vector<std::string> &options = {}) const;

  /// The machine code that compile() makes without further options: from the
  /// cache of cubins, or kept there. Errors: those of compile().
  absl::StatusOr<std::string> image(const CudaSource &source,
                                    const std::string &architecture) const;

private:
  struct Library;

  std::shared_ptr<const Library> library;
  std::string libraryPath;
  std::string versionText;
};

/// Where libnvrtc is looked for, in order; see cuda::searchPaths().
std::vector<std::string> libnvrtcSearchPaths();

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_NVRTC_H
