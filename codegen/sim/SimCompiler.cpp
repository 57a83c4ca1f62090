//===- SimCompiler.cpp - CUDA source compiled for the simulator -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simulator gets the text that a GPU gets, with simulator/shim.h read
// before it. The checked flavour is compiled by -fsanitize=thread: a call
// before each access, to hooks in the shim's support unit. Debug information is
// turned into a table of places here, where LLVM is at hand, for the runtime
// has none.
//
//===----------------------------------------------------------------------===//

#include "codegen/sim/SimCompiler.h"

#include "codegen/clang/ClangCompiler.h"
#include "runtime/base/Status.h"
#include "simulator/SimCode.h"

#include "absl/strings/str_cat.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <map>
#include <mutex>

namespace llamac {

static constexpr KernelHeader headers[] = {
#include "DeviceHeaders.inc"
#include "SimHeaders.inc"
};

llvm::ArrayRef<KernelHeader> simHeaders() { return headers; }

/// The names of code in the order of SimFlavour.
static constexpr absl::string_view codeNames[] = {simFastCode, simCheckedCode,
                                                  simHostileCode};

SimFlavour simFlavourOf(absl::string_view code) {
  const auto *known = llvm::find(codeNames, code);
  return known == std::end(codeNames)
             ? SimFlavour::Fast
             : static_cast<SimFlavour>(known - codeNames);
}

absl::string_view simCodeName(SimFlavour flavour) {
  return codeNames[static_cast<size_t>(flavour)];
}

namespace {

struct LlvmOption {
  llvm::StringRef name;
  bool value;
};

} // namespace

static constexpr LlvmOption instrumentation[] = {
    {"tsan-instrument-func-entry-exit", false},
    // A read before a write to the same place may be of undefined bytes.
    {"tsan-instrument-read-before-write", true},
};

/// Only options of LLVM itself say what the instrumentation shall do. The
/// linker sets them all back to what they were at first, so this changes that.
static void setInstrumentation() {
  static std::once_flag set;
  std::call_once(set, [] {
    llvm::StringMap<llvm::cl::Option *> &options =
        llvm::cl::getRegisteredOptions();
    for (const auto &[name, value] : instrumentation) {
      auto option = options.find(name);
      assert(option != options.end() && "LLVM's options have changed");
      static_cast<llvm::cl::opt<bool> *>(option->second)
          ->setInitialValue(value);
    }
  });
}

/// Whether `file` holds wrappers: what happens there is blamed on who called.
static bool isWrapper(llvm::StringRef file) {
  const llvm::StringRef name = llvm::sys::path::filename(file);
  return name == "types.cuh" || name == "shim.h" || name == "ptx.cuh" ||
         name.starts_with("ptx_");
}

/// "file:line" for the code at `address`: of the innermost function that is no
/// wrapper, and in what was emitted if that is another file.
static std::string placeOf(llvm::DWARFContext &debugInfo, uint64_t address) {
  const llvm::DIInliningInfo frames = debugInfo.getInliningInfoForAddress(
      {address, llvm::object::SectionedAddress::UndefSection},
      {llvm::DILineInfoSpecifier::FileLineInfoKind::RawValue});
  auto text = [](const llvm::DILineInfo &frame) {
    return absl::StrCat(llvm::sys::path::filename(frame.FileName).str(), ":",
                        frame.Line);
  };
  for (uint32_t i = 0; i < frames.getNumberOfFrames(); ++i) {
    const llvm::DILineInfo &frame = frames.getFrame(i);
    if (isWrapper(frame.FileName) || frame.Line == 0)
      continue;
    const llvm::DILineInfo &outer =
        frames.getFrame(frames.getNumberOfFrames() - 1);
    if (outer.FileName == frame.FileName || outer.Line == 0)
      return text(frame);
    return absl::StrCat(text(frame), " (from ", text(outer), ")");
  }
  return "unknown place";
}

/// The table that SimModule reads: a line for each address where the place
/// changes.
static absl::StatusOr<std::string> placeTable(llvm::StringRef elf) {
  auto object = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(elf, "kernels"));
  if (!object)
    return internalError(absl::StrCat("the linked kernels cannot be read: ",
                                      llvm::toString(object.takeError())));
  std::unique_ptr<llvm::DWARFContext> debugInfo =
      llvm::DWARFContext::create(**object);
  // The addresses where lines begin or end; several lines may begin at one.
  std::map<uint64_t, bool> ends;
  for (const std::unique_ptr<llvm::DWARFUnit> &unit :
       debugInfo->compile_units())
    if (const llvm::DWARFDebugLine::LineTable *lines =
            debugInfo->getLineTableForUnit(unit.get()))
      for (const llvm::DWARFDebugLine::Row &row : lines->Rows)
        ends[row.Address.Address] = row.EndSequence;
  std::string table;
  std::string last;
  for (const auto &[address, isEnd] : ends) {
    std::string place = isEnd ? "unknown place" : placeOf(*debugInfo, address);
    if (last != place)
      absl::StrAppend(&table, absl::Hex(address), " ", place, "\n");
    last = std::move(place);
  }
  return table;
}

absl::StatusOr<std::string> compileForSim(llvm::ArrayRef<SourceFile> units,
                                          SimFlavour flavour) {
  ClangJob job;
  job.what = "source for the simulator";
  job.headers = simHeaders().vec();
  job.args = {"-O2",
              "-include",
              "llamac/sim/shim.h",
              "-fdeclspec",
              "-ffp-contract=off",
              "-target-feature",
              "+avx2",
              "-target-feature",
              "+fma",
              "-relaxed-aliasing",
              "-fno-optimize-sibling-calls",
              "-debug-info-kind=line-tables-only",
              "-dwarf-version=5",
              "-Wno-unknown-pragmas",
              "-Wno-pass-failed"};
  job.linkArgs = {"-Bsymbolic"};
  for (const auto &[name, value] : instrumentation)
    absl::StrAppend(&job.settings, name.str(), "=", value, "\n");
  for (const SourceFile &unit : units) {
    job.units.push_back({unit, {}});
    if (flavour == SimFlavour::Checked)
      job.units.back().args = {"-fsanitize=thread"};
    if (flavour == SimFlavour::Hostile)
      job.units.back().args = {"-DLLAMAC_SIM_HOSTILE"};
  }
  job.units.push_back({{"support.cpp", "// The simulator's table and hooks.\n"},
                       {"-DLLAMAC_SIM_SUPPORT"}});
  setInstrumentation();
  LLAMAC_ASSIGN_OR_RETURN(std::string object, compileSharedObject(job));
  LLAMAC_ASSIGN_OR_RETURN(const std::string table, placeTable(object));
  object += table;
  for (int i = 0; i < 8; ++i)
    object += static_cast<char>(uint64_t{table.size()} >> 8 * i);
  absl::StrAppend(&object, simTrailer);
  return object;
}

} // namespace llamac
