# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of PyTorch itself: what it writes is read, and what is written it reads.

PyTorch may belong to another Python than the one that runs the tests, so each
side is a script of its own. Without PyTorch the test is skipped.
"""

import json
import os
import subprocess
import sys
import unittest

import numpy as np

from test_values import DUMP, TIED, ValuesCase, support
from make_model import quantise, random_weights, write_gguf

SAVE = """
import collections, json, sys
import numpy as np, torch
folder, kind = sys.argv[1:]
shapes = json.load(open(folder + "/shapes.json"))
state = collections.OrderedDict()
for name, shape in shapes.items():
    values = np.fromfile(f"{folder}/{name}.f32", np.float32).reshape(shape)
    state[name + ".weight"] = torch.from_numpy(values).to(getattr(torch, kind))
state["rope.freqs"] = torch.ones(8)
if kind == "float16":
    # A module's state dict carries attributes, and parameters rebuild otherwise.
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    state["norm.weight"] = torch.nn.Parameter(state["norm.weight"])
if kind == "float32":
    # Views of one storage, one of them behind another's data.
    both = torch.cat([state[n].flatten() for n in ("norm.weight", "layers.0.ffn_norm.weight")])
    size = state["norm.weight"].numel()
    state["norm.weight"], state["layers.0.ffn_norm.weight"] = both[:size], both[size:]
torch.save(state, folder + "/consolidated.00.pth")
"""

LOAD = """
import sys
import torch
state = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
for name, tensor in state.items():
    tensor.float().numpy().tofile(f"{sys.argv[2]}/{name}.f32")
print(state["output.weight"].data_ptr() == state["tok_embeddings.weight"].data_ptr())
"""


def find_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        probe = subprocess.run([python, "-c", "import torch, numpy"], capture_output=True)
        if probe.returncode == 0:
            return python
    print("no Python with torch; Debian's package is python3-torch", file=sys.stderr)
    sys.exit(77)


PYTHON = find_torch()


class Torch(ValuesCase):
    def run_script(self, script, *args):
        result = support.run([PYTHON, "-c", script, *args])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_reads_what_torch_saves(self):
        for kind, dtype in (("bfloat16", "bf16"), ("float16", "f16"), ("float32", "f32")):
            with self.subTest(kind):
                weights = random_weights(TIED, dtype)
                folder = self.path(kind)
                os.makedirs(folder)
                for name, x in weights.items():
                    np.ascontiguousarray(x, np.float32).tofile(os.path.join(folder, name + ".f32"))
                with open(os.path.join(folder, "shapes.json"), "w") as f:
                    json.dump({n: x.shape for n, x in weights.items()}, f)
                self.run_script(SAVE, folder, kind)
                with open(os.path.join(folder, "params.json"), "w") as f:
                    json.dump({"dim": TIED.dim, "n_layers": TIED.layers, "n_heads": TIED.heads,
                               "n_kv_heads": TIED.kv_heads, "vocab_size": TIED.vocab, "norm_eps": TIED.eps,
                               "multiple_of": TIED.multiple_of, "rope_theta": TIED.theta}, f)
                self.check(folder, weights, TIED)

    def test_torch_loads_what_is_converted(self):
        stored, values = quantise(random_weights(TIED), "F16")
        model = write_gguf(self.path("model.gguf"), TIED, stored)
        out = self.path("converted")
        result = support.run([DUMP, model, f"--to-meta={out}"])
        self.assertEqual(result.returncode, 0, result.stderr)
        loaded = self.path("loaded")
        os.makedirs(loaded)
        shared = self.run_script(LOAD, os.path.join(out, "consolidated.00.pth"), loaded)
        self.assertEqual(shared.strip(), "True", "output and tok_embeddings have storages of their own")
        self.assertEqual(set(os.listdir(loaded)), {n + ".weight.f32" for n in [*values, "output"]})
        for name, x in values.items():
            got = np.fromfile(os.path.join(loaded, name + ".weight.f32"), np.float32)
            self.assertTrue(np.array_equal(got, x.ravel()), name)


if __name__ == "__main__":
    unittest.main()
