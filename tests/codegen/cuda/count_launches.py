# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks how many launches the program @decode of the plan on stdin has.

    count_launches.py COUNT
"""

import re
import sys

expected = int(sys.argv[1])
text = sys.stdin.read()
(decode,) = re.findall(r"plan\.program @decode \{(.*?)\n  \}", text, re.S)
launches = re.findall(r"plan\.launch @(\w+)", decode)
assert len(launches) == expected, f"expected {expected} launches, got {len(launches)}: {launches[:12]} ..."
