# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the wheel with the library and the tools of the build folder, and
installs it in a virtual environment of its own. Fetches nothing.

    make_wheel.py BUILD VENV
"""

import os
import subprocess
import sys
import tempfile
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]


def main(build, folder):
    for module in ("scikit_build_core", "nanobind", "numpy"):
        try:
            __import__(module)
        except ImportError as error:
            print(f"cannot run: {error}; scripts/setup.sh test installs what is missing", file=sys.stderr)
            return 1 if os.environ.get("CI") == "true" else 77
    with tempfile.TemporaryDirectory(prefix="llamac-wheel-") as wheels:
        subprocess.run(
            [*PIP, "wheel", ROOT, "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", wheels]
            + [f"-Ccmake.define.LLAMAC_PREBUILT={build}", f"-Cbuild-dir={os.path.join(build, 'python-wheel')}"],
            check=True,
        )
        (wheel,) = os.listdir(wheels)
        venv.create(folder, clear=True, symlinks=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run(
            [*PIP, "--python", python, "install", "--quiet", "--no-deps", "--no-index", os.path.join(wheels, wheel)],
            check=True,
        )
    # numpy is where this Python has it.
    here, there = (
        subprocess.run(
            [each, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for each in (sys.executable, python)
    )
    with open(os.path.join(there, "packages.pth"), "w") as file:
        file.write(here + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
