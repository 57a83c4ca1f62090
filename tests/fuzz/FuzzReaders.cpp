//===- FuzzReaders.cpp - libFuzzer target of the readers ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One binary for each reader, chosen by LLAMAC_FUZZ_READER. A reader may refuse
// its input in any way but by an internal error, and extents it gives out must
// lie in the file.
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufReader.h"
#include "frontends/huggingface/SafetensorsReader.h"
#include "frontends/meta/PickleReader.h"
#include "frontends/meta/TorchReader.h"
#include "runtime/base/Status.h"
#include "runtime/io/JsonReader.h"

#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace llamac;

// The input as a file that lives in memory.
static std::shared_ptr<MappedFile> asFile(const uint8_t *data, size_t size) {
  static const int descriptor = memfd_create("fuzz", 0);
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  auto file = MappedFile::open("/proc/self/fd/" + std::to_string(descriptor));
  if (!file.ok())
    std::abort();
  return *file;
}

static void check(const absl::Status &status) {
  if (exitCode(status) == ExitCode::Internal)
    std::abort();
}

template <typename Tensors>
static void checkExtents(const MappedFile &file, const Tensors &tensors) {
  for (const auto &tensor : tensors)
    if (!file.slice(tensor.offset, tensor.size).ok())
      std::abort();
}

namespace {

struct Gguf {
  static void run(const uint8_t *data, size_t size) {
    const auto file = asFile(data, size);
    const auto gguf = GgufReader::open(file);
    check(gguf.status());
    if (!gguf.ok())
      return;
    checkExtents(*file, (*gguf)->tensors());
    for (const GgufValue &value : (*gguf)->values()) {
      check((*gguf)->getInt(value.key).status());
      check((*gguf)->getString(value.key).status());
      check((*gguf)->getStrings(value.key).status());
      check((*gguf)->getInts(value.key).status());
      check((*gguf)->getFloats(value.key).status());
    }
  }
};

struct Safetensors {
  static void run(const uint8_t *data, size_t size) {
    const auto file = asFile(data, size);
    const auto tensors = readSafetensors(*file);
    check(tensors.status());
    if (tensors.ok())
      checkExtents(*file, *tensors);
  }
};

struct Torch {
  static void run(const uint8_t *data, size_t size) {
    const auto file = asFile(data, size);
    const auto tensors = readTorchFile(file);
    check(tensors.status());
    if (tensors.ok())
      checkExtents(*file, *tensors);
  }
};

struct Pickle {
  static void run(const uint8_t *data, size_t size) {
    check(readPickledStateDict("fuzz", {data, size}, 0).status());
  }
};

struct Json {
  static void run(const uint8_t *data, size_t size) {
    const auto document = parseJson(
        "fuzz", absl::string_view(reinterpret_cast<const char *>(data), size));
    check(document.status());
    if (!document.ok())
      return;
    const auto root = JsonObject::root(*document);
    check(root.status());
    if (!root.ok())
      return;
    for (const auto &[key, unused] : root->raw().items()) {
      check(root->optionalInt(key).status());
      check(root->optionalNumber(key).status());
      check(root->optionalString(key).status());
      check(root->intOrInts(key).status());
      check(root->strings(key).status());
      check(root->optionalObject(key).status());
    }
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  LLAMAC_FUZZ_READER::run(data, size);
  return 0;
}
