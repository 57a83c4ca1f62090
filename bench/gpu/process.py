# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that may hang or crash: each is a process group of its own, which ends with it.

A fault takes a GPU's context with it, and a kernel that hangs never gives its process back.
"""

import glob
import os
import re
import signal
import site
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass


class ProgramError(Exception):
    """A program that failed, in one line."""


class TimeOver(Exception):
    """The budget has no time left for more."""


@dataclass
class Outcome:
    """The outcome of a program."""

    out: str
    err: str
    code: int  # Exit code as of subprocess: negative for a signal.
    hung: bool = False  # Killed after no output for as long as it may be quiet.
    late: bool = False  # Killed at its limit.

    @property
    def succeeded(self):
        return self.code == 0 and not self.hung and not self.late

    def describe(self, seconds):
        """How it failed, where `seconds` were allowed."""
        if self.hung or self.late:
            return f"hung after {seconds:g} s"
        message = " ".join(self.err.split())[-600:]
        if self.code < 0:
            how = f"ended by {signal.Signals(-self.code).name}"
        else:
            how = f"exit code {self.code}"
        return f"{how}: {message}" if message else how


def run(command, env, limit, quiet=None):
    """Runs `command` for `limit` seconds at most, and ends it earlier when it has written nothing to stdout for
    `quiet` seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, start_new_session=True
        )
        try:
            hung, late = wait(process, out, limit, quiet)
        finally:
            end_group(process)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return Outcome(*texts, process.returncode if process.returncode is not None else -signal.SIGKILL, hung, late)


def wait(process, out, limit, quiet):
    """Waits for the end, or for what makes a process (hung, late)."""
    end = time.monotonic() + limit
    last, size = time.monotonic(), 0
    while True:
        try:
            process.wait(timeout=0.1)
            return False, False
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        written = os.fstat(out.fileno()).st_size
        if written != size:
            last, size = now, written
        if quiet is not None and now - last > quiet:
            return True, False
        if now > end:
            return False, True


def end_group(process):
    """Also what the process has started. One that waits for a driver may not end at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        pass


def nvrtc_folder(roots=None):
    """The folder of this interpreter's packages that has NVRTC, the newest CUDA's first; None without one."""
    roots = roots if roots is not None else [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    for package in ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"):
        for root in roots:
            folder = os.path.join(root, package)
            if glob.glob(os.path.join(glob.escape(folder), "libnvrtc.so.1[23]")):
                return folder
    return None


def visible_device(index, env):
    """The value of CUDA_VISIBLE_DEVICES that leaves GPU `index` of those visible now."""
    listed = [device.strip() for device in env.get("CUDA_VISIBLE_DEVICES", "").split(",") if device.strip()]
    return listed[index] if index < len(listed) else str(index)


def is_chosen(name, pattern):
    """Whether `pattern` matches all of `name`; no pattern matches everything."""
    return not pattern or re.fullmatch(pattern, name) is not None


def write_atomically(path, text):
    """The old contents stay until all of `text` is written."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)
