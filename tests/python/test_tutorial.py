# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/tutorial.md: every command has the output that stands below it.

A server of the test's own has the model that the tutorial fetches: SmolLM2, in
Hugging Face's layout.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import support

support.require("llamac")

from model_server import ModelServer

TUTORIAL = os.path.join(support.ROOT, "docs", "tutorial.md")
NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


def pattern(shown):
    """A regular expression for `shown`, where ... stands for anything in a line, and a
    line of it for any lines, or none."""
    lines = shown.splitlines()
    return "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n"
        for line in lines
    )


class Tutorial(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        smollm2 = support.require_model("smollm2.gguf")
        folder = cls.path("huggingface")
        support.run([support.LLAMAC, "convert", smollm2, "--to", "huggingface", "-o", folder, "-q"], check=True)
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
        shutil.rmtree(folder)
        cls.server = ModelServer()
        cls.addClassCleanup(cls.server.close)
        cls.server.repositories = {NAME: files}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            cls.port = free.getsockname()[1]
        cls.home = cls.path("home")
        os.mkdir(cls.home)
        cls.environment = {
            "PATH": os.pathsep.join([support.BIN_DIR, os.path.dirname(sys.executable), os.environ["PATH"]]),
            "HOME": cls.home,
            "HF_ENDPOINT": cls.server.url(),
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }

    def test_every_command_has_the_output_below_it(self):
        with open(TUTORIAL, encoding="utf-8") as file:
            text = file.read()
        served = []
        self.addCleanup(lambda: [self.end(process) for process in served])
        steps = re.split(r"^## ", text, flags=re.M)[1:]
        self.assertEqual([int(step.split(".")[0]) for step in steps], list(range(1, 11)))
        for step in steps:
            title, parts = step.splitlines()[0], re.split(r"^```(\w*)\n", step, flags=re.M)
            # Text, the language of a block, its lines, "", text, ...
            commands = []
            for before, language, block in zip(parts[0::4], parts[1::4], parts[2::4]):
                if language in ("python", "json"):
                    name = re.findall(r"`([\w.]+)`", before)[-1]
                    with open(os.path.join(self.home, name), "w", encoding="utf-8") as file:
                        file.write(block)
                elif language == "console":
                    # Lines of a command that begin with spaces belong to it.
                    commands += re.findall(r"^\$ (.*(?:\n  \S.*)*)\n((?:(?!\$ ).*\n)*)", block, re.M)
            self.assertTrue(commands, title)
            for command, shown in commands:
                with self.subTest(step=title, command=command):
                    self.check(command, shown, served)

    def check(self, command, shown, served):
        options = {"cwd": self.home, "env": self.environment, "stdin": subprocess.DEVNULL, "text": True}
        command, shown = (text.replace(":8080", f":{self.port}") for text in (command, shown))
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.environment[name], got = value, ""
        elif command.startswith("llamac serve "):
            command = [*command.replace("$MODEL", self.environment["MODEL"]).split(), "--port", str(self.port)]
            served.append(subprocess.Popen(command, stderr=subprocess.PIPE, **options))
            got = served[-1].stderr.readline()
        else:
            run = subprocess.run(["bash", "-c", command], capture_output=True, timeout=300, check=False, **options)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            got = run.stdout or run.stderr  # Where data goes to stdout, stderr is not shown.
            got += "" if got.endswith("\n") or not got else "\n"
        self.assertIsNotNone(re.fullmatch(pattern(shown), got), f"expected\n{shown}\ngot\n{got}")

    @staticmethod
    def end(process):
        process.terminate()
        process.communicate(timeout=60)


if __name__ == "__main__":
    unittest.main(verbosity=2)
