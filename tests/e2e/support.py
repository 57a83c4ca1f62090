# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The end-to-end tests share this: finding and running the built binaries.

ctest sets LLAMAC_BIN_DIR (the binaries) and LLAMAC_MODELS (smollm2.gguf and
llama3/). A test that lacks a Python package or a model ends with 77, which
ctest shows as skipped; where CI=true it fails instead.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN_DIR = os.environ.get("LLAMAC_BIN_DIR", os.path.join(ROOT, "build", "bin"))
MODELS = os.environ.get("LLAMAC_MODELS", os.path.join(ROOT, "build", "models"))
LLAMAC = os.path.join(BIN_DIR, "llamac")
LLAMAC_RUN = os.path.join(BIN_DIR, "llamac-run")
FAKE_DRIVER = os.path.join(os.path.dirname(BIN_DIR), "tests", "fake-cuda")

# Whether every combination is tried, not only every mechanism once.
EXHAUSTIVE = os.environ.get("LLAMAC_EXHAUSTIVE") == "1"

OK, USAGE, BAD_FILE, UNSUPPORTED, BAD_PLAN, MEMORY, DEVICE, ACCURACY = 0, 2, 3, 4, 5, 6, 7, 8


def skip(reason):
    """Ends this test: skipped, or failed where everything must be there."""
    print(f"cannot run: {reason}; scripts/setup.sh test installs what is missing", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") == "true" else 77)


def by_tier(some, every):
    """`every` in the exhaustive tier, else `some`."""
    return every if EXHAUSTIVE else some


def require(*modules):
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            skip(str(error))


def require_model(name):
    path = os.path.join(MODELS, name)
    if not os.path.exists(path):
        skip(f"no {path}")
    return path


def gguf_fields(path):
    """The metadata of a GGUF file by name, as the gguf package reads it."""
    import gguf
    import numpy as np

    # It slices the file millions of times for a vocabulary, which takes a memmap twice as long as an array.
    with unittest.mock.patch.object(np, "memmap", lambda file, mode: np.fromfile(file, np.uint8)):
        return gguf.GGUFReader(path).fields


def run(args, cache=None, timeout=300, **options):
    """Runs a command; `cache` is the folder where it may keep plans. The result
    has returncode, stdout and stderr, both text unless text=False."""
    env = dict(os.environ, NO_COLOR="1")
    if cache:
        env["XDG_CACHE_HOME"] = cache
    options = {"text": True, "env": env, "stdin": subprocess.DEVNULL} | options
    return subprocess.run(args, capture_output=True, timeout=timeout, **options)


class TestCase(unittest.TestCase):
    """A test with a temporary folder, and a cache of plans within it, that all
    its methods share."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="llamac-e2e-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.cache = os.path.join(cls.folder, "cache")

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.folder, *parts)

    def llamac(self, *args, expect=OK, **options):
        """Runs llamac, and checks its exit code."""
        options.setdefault("cache", self.cache)
        result = run([LLAMAC, *map(str, args)], **options)
        if result.returncode != expect:
            self.fail(
                f"llamac {' '.join(map(str, args))[:120]}\n"
                f"expected exit code {expect}, got {result.returncode}\n{result.stderr}"
            )
        return result

    def logits(self, model, tokens, target, *options):
        """`llamac logits` as an array [tokens, vocabulary]."""
        import numpy as np

        out = self.path("logits.npy")
        ids = ",".join(map(str, tokens))
        self.llamac("logits", model, "--tokens", ids, "-o", out, "--target", target, *options)
        logits = np.load(out, allow_pickle=False)
        os.remove(out)
        self.assertEqual(logits.dtype, np.float32)
        self.assertEqual(logits.shape[0], len(tokens))
        return logits
