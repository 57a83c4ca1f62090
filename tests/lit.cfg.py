# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit tests: IR and emitted source, checked by FileCheck.

Run lines call the built binaries, FileCheck and not by their names; %python is
the interpreter that runs lit, %root the repository, %build the build folder.
"""

import os
import platform
import sys

import lit.formats

config.name = "llamac"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.join(config.llamac_source_dir, "tests")
config.test_exec_root = os.path.join(config.llamac_binary_dir, "tests")
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%root", config.llamac_source_dir))
config.substitutions.append(("%build", config.llamac_binary_dir))
config.available_features.add(platform.machine())
# Another processor's, where a run of the suite is for one.
for name in ("LLAMAC_ISA", "LLAMAC_TUNE_CPU"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["PATH"] = os.pathsep.join(
    [
        os.path.join(config.llamac_binary_dir, "bin"),
        os.path.join(config.llamac_binary_dir, "tests"),
        config.llvm_tools_dir,
        config.environment["PATH"],
    ]
)
