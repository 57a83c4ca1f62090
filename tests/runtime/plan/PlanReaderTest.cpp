//===- PlanReaderTest.cpp - Opens a plan file -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanReader.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "tests/runtime/plan/PlanBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fcntl.h>
#include <tuple>
#include <unistd.h>

namespace llamac {
namespace {

using testing::HasSubstr;

TEST(PlanReaderTest, GivesWhatWasWritten) {
  const toy::ToyPlanFile file;
  const toy::ToyPlan toy = toy::makeToyPlan();
  const auto reader = PlanReader::open(file.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ((*reader)->sections().size(), toy.sections.size() + 1);
  for (uint32_t i = 0; i < toy.sections.size(); ++i) {
    const auto bytes = (*reader)->bytes(i);
    EXPECT_EQ((*reader)->sections()[i].kind, toy.sections[i].kind);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), toy.sections[i].bytes);
    const uint64_t alignment = alignmentOf(toy.sections[i].kind);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % alignment, 0u);
  }
  const schema::PlanT &plan = (*reader)->plan();
  EXPECT_EQ(plan.programs.size(), 3u);
  EXPECT_EQ(plan.programs[2]->launches[3]->label, "logits");
  EXPECT_EQ(plan.weights[1]->name, "toy.embedding.1");
  EXPECT_EQ(fromPlan(*plan.config).vocabSize, toy::vocab);
}

TEST(PlanReaderTest, EveryFlippedBitIsFound) {
  const toy::ToyPlanFile file;
  const std::string bytes = readBytes(file.path());
  const int descriptor = ::open(file.path().c_str(), O_WRONLY);
  ASSERT_GE(descriptor, 0);
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char flipped = static_cast<char>(bytes[at] ^ (1 << at % 8));
    ASSERT_EQ(pwrite(descriptor, &flipped, 1, static_cast<off_t>(at)), 1);
    const absl::Status status =
        PlanReader::open(file.path(), {.verify = true, .threads = 1}).status();
    ASSERT_EQ(exitCode(status), ExitCode::BadPlan) << "byte " << at;
    ASSERT_EQ(pwrite(descriptor, &bytes[at], 1, static_cast<off_t>(at)), 1);
  }
  close(descriptor);
  EXPECT_TRUE(PlanReader::open(file.path()).ok());
}

TEST(PlanReaderTest, ADamagedSectionIsNamed) {
  const toy::ToyPlan toy = toy::makeToyPlan();
  const std::string sound = unsoundPlan(toy);
  const PlanParts parts = splitPlan(sound);
  for (size_t i = 0; i < parts.entries.size(); ++i) {
    std::string bytes = sound;
    bytes[parts.entries[i].offset + parts.entries[i].size / 2] ^= 16;
    const absl::Status status = readStatus(bytes);
    EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
    const auto kind = static_cast<SectionKind>(parts.entries[i].kind);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("section " + std::to_string(i) + " (" +
                          std::string(sectionKindName(kind)) +
                          "): checksum of"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected"));
  }
}

TEST(PlanReaderTest, AnyOtherLengthIsFound) {
  const std::string bytes = unsoundPlan(toy::makeToyPlan());
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 61)
    ASSERT_EQ(exitCode(readStatus(bytes.substr(0, size))), ExitCode::BadPlan)
        << size;
  EXPECT_EQ(exitCode(readStatus(bytes + '\0')), ExitCode::BadPlan);
  EXPECT_EQ(exitCode(readStatus(bytes + bytes)), ExitCode::BadPlan);
}

TEST(PlanReaderTest, ThereIsNoSuchFile) {
  EXPECT_EQ(exitCode(PlanReader::open("/nowhere/x.plan").status()),
            ExitCode::BadFile);
}

TEST(PlanReaderTest, AManifestThatIsNoFlatbufferIsRefused) {
  const toy::ToyPlan toy = toy::makeToyPlan();
  const std::string manifest = manifestOf(toy.plan);
  std::vector<std::string> bad = {"x",
                                  std::string(4096, '\xff'),
                                  std::string(4096, '\0'),
                                  manifest.substr(0, manifest.size() / 2),
                                  manifest.substr(4),
                                  misalignedManifest()};
  bad.push_back(manifest);
  bad.back().replace(4, 4, "ABCD"); // The file identifier.
  for (const std::string &bytes : bad) {
    const absl::Status status = readStatus(unsoundPlan(toy, bytes));
    EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("section 6 (manifest): expected a flatbuffer"));
  }
}

// Whatever byte of the flatbuffer is changed, with checksums that fit, reading
// ends with a plan or an error.
TEST(PlanReaderTest, NoChangedManifestBreaksTheReader) {
  const toy::ToyPlan toy = toy::makeToyPlan();
  std::string manifest = manifestOf(toy.plan);
  const TemporaryFolder folder;
  const std::string path = folder.file("changed.plan");
  constexpr char values[] = {'\x00', '\x7f', '\xff', '\x01'};
  size_t refused = 0;
  for (size_t at = 0; at < manifest.size(); at += 3) {
    std::string changed = manifest;
    changed[at] = values[at % 4];
    writeBytes(path, unsoundPlan(toy, changed));
    const absl::Status status = PlanReader::open(path).status();
    ASSERT_TRUE(status.ok() || exitCode(status) == ExitCode::BadPlan) << status;
    refused += !status.ok();
  }
  EXPECT_GT(refused, manifest.size() / 12);
}

/// A weight of several pieces, the last one short.
class ManyPieces : public testing::Test {
protected:
  static constexpr uint64_t cols = (planPieceBytes / 4) * 2 + 1024;

  toy::ToyPlanFile file{[](toy::ToyPlan &toy) {
    auto weight = std::make_unique<schema::WeightT>();
    weight->name = "large";
    weight->rows = 1;
    weight->cols = cols;
    weight->section = static_cast<int32_t>(toy.sections.size());
    toy.plan.weights.push_back(std::move(weight));
    std::string bytes(cols * 4, '\0');
    for (size_t i = 0; i < bytes.size(); i += 4096)
      std::memcpy(&bytes[i], &i, sizeof i);
    toy.sections.push_back({SectionKind::Weight, std::move(bytes)});
  }};
};

TEST_F(ManyPieces, AreHashedEach) {
  const auto reader = PlanReader::open(file.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->sections()[6].pieces.size(), 3u);
}

TEST_F(ManyPieces, TheFirstDamagedOneIsNamedByAnyNumberOfThreads) {
  const uint64_t start = (*PlanReader::open(file.path()))->sections()[6].offset;
  const int descriptor = ::open(file.path().c_str(), O_WRONLY);
  for (const uint64_t at : {planPieceBytes + 5, 2 * planPieceBytes + 7})
    ASSERT_EQ(pwrite(descriptor, "x", 1, static_cast<off_t>(start + at)), 1);
  close(descriptor);
  for (int threads : {1, 2, 4}) {
    const absl::Status status =
        PlanReader::open(file.path(), {.verify = true, .threads = threads})
            .status();
    EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::to_string(start + planPieceBytes) +
                          ": section 6 (weight)"));
  }
  EXPECT_TRUE(
      PlanReader::open(file.path(), {.verify = false, .threads = 1}).ok());
}

using testing::ElementsAre;

std::vector<uint32_t> kernelsOf(const schema::ProgramT &program) {
  std::vector<uint32_t> numbers;
  for (const auto &launch : program.launches)
    numbers.push_back(launch->kernel);
  return numbers;
}

/// A plan for sim whose kernels but the first wait for the launch before, of
/// which the last kernel has a variant.
void makeDependent(toy::ToyPlan &toy) {
  toy.plan.target = "sim";
  for (size_t i = 0; i < toy.plan.kernels.size(); ++i) {
    toy.plan.kernels[i]->geometry->threads = 32;
    toy.plan.kernels[i]->geometry->dependent = i > 0;
  }
  auto variant = std::make_unique<schema::VariantT>();
  variant->tiles = "wide=1";
  variant->symbol = "toyLogits_v1";
  variant->source = "// wide";
  variant->geometry = std::make_unique<schema::GeometryT>();
  variant->geometry->items = 1;
  variant->geometry->threads = 64;
  variant->geometry->dependent = true;
  toy.plan.kernels[2]->variants.push_back(std::move(variant));
}

TEST(PlanConfigsTest, KernelsThatLetTheNextBeginElsewhereAreCopies) {
  const toy::ToyPlanFile file(makeDependent);
  const auto made = PlanReader::open(file.path());
  ASSERT_TRUE(made.ok()) << made.status();
  const auto run =
      (*made)->withConfigs({{{}, {}, {0}},
                            {schema::Overlap::AtEnd, schema::Overlap::FromStart,
                             schema::Overlap::FromStart}});
  ASSERT_TRUE(run.ok()) << run.status();
  const schema::PlanT &plan = (*run)->plan();
  // The first kernel waits for nothing: nobody sees when what is ahead ends.
  EXPECT_THAT(kernelsOf(*plan.programs[0]), ElementsAre(0, 0, 3, 4));
  EXPECT_THAT(kernelsOf(*plan.programs[1]), ElementsAre(0, 0, 1, 2));
  for (size_t i = 0; i < plan.kernels.size(); ++i)
    EXPECT_EQ(plan.kernels[i]->overlap,
              i < 3 ? schema::Overlap::FromStart : schema::Overlap::AtEnd);
  // The copy of a variant is one.
  EXPECT_EQ(plan.kernels[4]->symbol, "toyLogits_v1");
  ASSERT_TRUE((*run)->variantOf(4));
  EXPECT_EQ((*run)->variantOf(4)->tiles, "wide=1");
  EXPECT_FALSE((*run)->variantOf(3));
}

TEST(PlanConfigsTest, WhatMustNotOverlapDoesNotWithOtherTilesEither) {
  const toy::ToyPlanFile file(makeDependent);
  const auto made = PlanReader::open(file.path());
  ASSERT_TRUE(made.ok()) << made.status();
  const auto run =
      (*made)->withConfigs({{{}, {}, {0}},
                            {schema::Overlap::None, schema::Overlap::FromStart,
                             schema::Overlap::FromStart}});
  ASSERT_TRUE(run.ok()) << run.status();
  const schema::PlanT &plan = (*run)->plan();
  const auto geometryOf = [&](size_t program, size_t launch) -> const auto & {
    return *plan.kernels[plan.programs[program]->launches[launch]->kernel]
                ->geometry;
  };
  for (size_t i = 0; i < plan.programs[0]->launches.size(); ++i)
    EXPECT_FALSE(geometryOf(0, i).dependent) << i;
  EXPECT_EQ(geometryOf(0, 3).threads, 64);
  EXPECT_TRUE(geometryOf(1, 3).dependent);
}

TEST(PlanConfigsTest, ConfigsThatThePlanDoesNotHaveAreRefused) {
  const toy::ToyPlanFile file(makeDependent);
  const auto made = PlanReader::open(file.path());
  ASSERT_TRUE(made.ok()) << made.status();
  const std::vector<schema::Overlap> overlaps(3);
  EXPECT_FALSE((*made)->withConfigs({{{}, {}, {1}}, overlaps}).ok());
  EXPECT_FALSE((*made)->withConfigs({{{}, {}}, overlaps}).ok());
  EXPECT_FALSE((*made)->withConfigs({{{}, {}, {}}, {}}).ok());
  const auto run = (*made)->withConfigs({{{}, {}, {0}}, overlaps});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE((*run)->withConfigs({{{}, {}, {0}}, overlaps}).ok());
}

//===----------------------------------------------------------------------===//
// Without programs
//===----------------------------------------------------------------------===//

TEST(PlanProgramsTest, ThoseThatAreLeftOutAreNotThere) {
  const toy::ToyPlanFile file;
  const auto made = PlanReader::open(file.path());
  ASSERT_TRUE(made.ok()) << made.status();
  const size_t none[] = {0, 2}, all[] = {0, 1, 2}, unknown[] = {3};
  const auto rest = (*made)->withoutPrograms(none);
  ASSERT_TRUE(rest.ok()) << rest.status();
  ASSERT_EQ((*rest)->plan().programs.size(), 1u);
  EXPECT_EQ((*rest)->plan().programs[0]->name, "rows4");
  EXPECT_EQ((*rest)->plan().kernels.size(), (*made)->plan().kernels.size());
  EXPECT_EQ((*rest)->hash(), (*made)->hash());
  EXPECT_EQ((*made)->plan().programs.size(), 3u);
  EXPECT_EQ(exitCode((*made)->withoutPrograms(all).status()),
            ExitCode::BadPlan);
  EXPECT_EQ(exitCode((*made)->withoutPrograms(unknown).status()),
            ExitCode::Internal);
}

TEST(PlanProgramsTest, ConfigsStayAndAreOfTheRest) {
  const toy::ToyPlanFile file(makeDependent);
  const auto made = PlanReader::open(file.path());
  ASSERT_TRUE(made.ok()) << made.status();
  const size_t first[] = {0};
  const std::vector<schema::Overlap> overlaps(3), ofRest(2);
  const auto tuned = (*made)->withConfigs({{{}, {}, {0}}, overlaps});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  const auto rest = (*tuned)->withoutPrograms(first);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ((*rest)->variantOf(2)->tiles, "wide=1");
  const auto untuned = (*made)->withoutPrograms(first);
  ASSERT_TRUE(untuned.ok()) << untuned.status();
  EXPECT_TRUE((*untuned)->withConfigs({{{}, {}, {0}}, ofRest}).ok());
}

} // namespace
} // namespace llamac
