# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of the wheel. They are apart from llamac, whose import takes longer
than the programs need to start."""

import os
import sys
from typing import NoReturn


def _become(name: str) -> NoReturn:
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "llamac", "bin")
    os.execv(os.path.join(folder, name), [name, *sys.argv[1:]])


def llamac() -> NoReturn:
    _become("llamac")


def llamac_run() -> NoReturn:
    _become("llamac-run")
