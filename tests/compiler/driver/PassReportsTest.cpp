//===- PassReportsTest.cpp - Diffs of IR and reproducers ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PassReports.h"
#include "compiler/driver/IrDiff.h"
#include "tests/TemporaryFolder.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

using testing::AllOf;
using testing::HasSubstr;
using testing::Pair;

namespace llamac {
namespace {

TEST(IrDiff, EqualTextHasNone) {
  EXPECT_EQ(diffIr("%0 = a\n", "%0 = a\n"), "");
}

TEST(IrDiff, ValuesWithOtherNumbersAreNoChange) {
  EXPECT_EQ(diffIr("%0 = a\n%1 = dead\n%2 = b %0\n%3 = c %2, %0\n",
                   "%0 = a\n%1 = b %0\n%2 = c %1, %0\n"),
            "@@ -1,4 +1,3 @@\n"
            " %0 = a\n"
            "-%1 = dead\n"
            " %1 = b %0\n"
            " %2 = c %1, %0\n");
}

TEST(IrDiff, HiddenLinesSayWhichValuesAreTheSame) {
  const std::string hidden(1, hiddenLine);
  EXPECT_EQ(diffIr(hidden + "%0 = dead\n" + hidden + "%1 = a\n%2 = b %1\n" +
                       "%3 = c %2\n",
                   hidden + "%0 = a\n%1 = b %0\n"),
            "@@ -1,2 +1,1 @@\n"
            " %1 = b %0\n"
            "-%3 = c %2\n");
}

TEST(IrDiff, AnotherOperandIsAChange) {
  EXPECT_EQ(diffIr("%0 = a\n%1 = a\n%2 = b %0, %1\n",
                   "%0 = a\n%1 = a\n%2 = b %1, %0\n"),
            "@@ -1,3 +1,3 @@\n"
            " %0 = a\n"
            " %1 = a\n"
            "-%2 = b %0, %1\n"
            "+%2 = b %1, %0\n");
}

TEST(IrDiff, ReadersOfAReplacedValueAreNoChange) {
  EXPECT_EQ(diffIr("%0 = a\n%1 = b %0\n", "%0 = c\n%1 = b %0\n"),
            "@@ -1,2 +1,2 @@\n"
            "-%0 = a\n"
            "+%0 = c\n"
            " %1 = b %0\n");
}

TEST(IrDiff, OneValueIsReplacedByOne) {
  EXPECT_EQ(diffIr("%0 = a\n%1 = b %0\n%2 = d %0\n",
                   "%0 = c\n%1 = e\n%2 = b %1\n%3 = d %0\n"),
            "@@ -1,3 +1,4 @@\n"
            "-%0 = a\n"
            "+%0 = c\n"
            "+%1 = e\n"
            " %2 = b %1\n"
            "-%2 = d %0\n"
            "+%3 = d %0\n");
}

TEST(IrDiff, ChangesFarApartAreHunksOfTheirOwn) {
  std::string before, after;
  for (int i = 0; i < 20; ++i) {
    const std::string line = "line" + std::to_string(i) + "\n";
    before += line;
    if (i != 2 && i != 15)
      after += line;
  }
  EXPECT_EQ(diffIr(before, after), "@@ -1,6 +1,5 @@\n line0\n line1\n-line2\n"
                                   " line3\n line4\n line5\n"
                                   "@@ -13,7 +12,6 @@\n line12\n line13\n"
                                   " line14\n-line15\n line16\n line17\n"
                                   " line18\n");
}

struct FailingPass
    : mlir::PassWrapper<FailingPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FailingPass)
  llvm::StringRef getArgument() const override { return "always-fails"; }
  void runOnOperation() override { signalPassFailure(); }
};

/// Makes a remark with a note, a warning twice, and an error that is for the
/// caller.
struct RemarkingPass
    : mlir::PassWrapper<RemarkingPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RemarkingPass)
  llvm::StringRef getArgument() const override { return "remarks"; }
  void runOnOperation() override {
    mlir::Builder builder(&getContext());
    auto named = [&](const char *name) -> mlir::Location {
      return mlir::NameLoc::get(builder.getStringAttr(name));
    };
    mlir::emitRemark(
        builder.getFusedLoc(
            {named("w1"), named("w2"), builder.getUnknownLoc(), named("w1")}))
            .append("two weights")
            .attachNote(named("w3"))
        << "a third";
    mlir::emitRemark(builder.getUnknownLoc(), "without a name");
    for (int i = 0; i < 2; ++i)
      mlir::emitWarning(named("w4"), "a warning");
    getOperation().emitError("an error");
  }
};

/// The texts that a run of RemarkingPass with these options writes to stdout
/// and stderr.
std::pair<std::string, std::string>
remarksOf(const PassReportOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler rest(&context,
                                     [](mlir::Diagnostic &diagnostic) {
                                       EXPECT_EQ(diagnostic.str(), "an error");
                                     });
  mlir::OwningOpRef<mlir::ModuleOp> module(
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
  PassReports reports(options);
  mlir::PassManager pm(&context, mlir::ModuleOp::getOperationName());
  pm.addPass(std::make_unique<RemarkingPass>());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  reports.startPhase("fuse");
  EXPECT_TRUE(llvm::succeeded(reports.run("remarks", pm, *module)));
  reports.endFusion({});
  const std::string out = testing::internal::GetCapturedStdout();
  return {out, testing::internal::GetCapturedStderr()};
}

TEST(PassReports, RemarksAreLinesOnRequestAndWarningsOnceAlways) {
  PassReportOptions options;
  const std::string warning = "warning: w4: a warning\n";
  EXPECT_THAT(remarksOf(options), Pair("", warning));
  options.explainFusion = true;
  const std::string remarks = "w1 + w2: remarks: two weights; w3: a third\n"
                              "loc(unknown): remarks: without a name\n"
                              "  pass  op  before  after\n";
  EXPECT_THAT(remarksOf(options), Pair(remarks, warning));
  options.explainsOnStderr = true;
  EXPECT_THAT(remarksOf(options), Pair("", HasSubstr("w3: a third\n")));
}

TEST(PassReports, APassThatDidNotRunIsNamedUnlessTheCompilationFailed) {
  PassReportOptions options;
  options.printAfter = {"cse"};
  options.printChanged = true;
  const auto said = [&](const absl::Status &status) {
    testing::internal::CaptureStderr();
    {
      PassReports reports(options);
      reports.startPhase("graph");
      reports.endPhase(status);
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(absl::OkStatus()),
              AllOf(HasSubstr("--print-after cse: the pass did not run"),
                    HasSubstr("no pass changed the IR")));
  EXPECT_EQ(said(absl::InternalError("no memory")), "");
}

TEST(PassReports, AFailingPassLeavesAReproducer) {
  const TemporaryFolder folder;
  const std::string file = folder.file("reproducer.mlir");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module(
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context), "subject"));
  PassReportOptions options;
  options.crashReproducer = file;
  PassReports reports(options);
  mlir::PassManager pm(&context, mlir::ModuleOp::getOperationName());
  pm.addPass(std::make_unique<FailingPass>());
  EXPECT_TRUE(llvm::failed(reports.run("always-fails", pm, *module)));
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("module @subject"));
  EXPECT_THAT(text.str(), HasSubstr("always-fails"));
}

} // namespace
} // namespace llamac
