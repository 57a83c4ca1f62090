# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The samples of clients in examples/python, against a server of the real model:
OpenAI's client, LangChain and LlamaIndex. What they print is the server's answer
to the same conversation."""

import json
import os
import sys
import unittest

import support

support.require("openai", "langchain_openai", "llama_index.llms.openai_like")

import serving
from support import ROOT

QUESTION = "What is the capital of Italy?"
USER = {"role": "user", "content": QUESTION}
SYSTEM = {"role": "system", "content": "You answer in one sentence."}


class Samples(serving.ServedTestCase):
    def answer(self, *messages):
        body = {"messages": messages, "temperature": 0, "max_tokens": 200}
        return self.server.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]

    def run_sample(self, name):
        script = os.path.join(ROOT, "examples", "python", name)
        # LlamaIndex keeps files of its own in the home folder.
        env = dict(os.environ, HOME=self.path("home"), NLTK_DATA=self.path("home"))
        usage = support.run([sys.executable, script], env=env)
        self.assertEqual((usage.returncode, usage.stdout), (2, ""))
        self.assertTrue(usage.stderr.startswith(f"usage: {name}"), usage.stderr)
        command = [sys.executable, script, f"{self.server.url}/v1", serving.MODEL, QUESTION]
        result = support.run(command, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_openai(self):
        printed, answer = self.run_sample("client_openai.py"), self.answer(USER) + "\n"
        self.assertEqual(printed[: len(answer)], answer)
        self.assertEqual(list(json.loads(printed[len(answer) :])), ["answer"])

    def test_langchain(self):
        self.assertEqual(self.run_sample("client_langchain.py"), self.answer(SYSTEM, USER) + "\n")

    def test_llamaindex(self):
        self.assertEqual(self.run_sample("client_llamaindex.py"), self.answer(SYSTEM, USER) + "\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
