# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The verbs about the tool itself: completion, in the shells themselves; the
manual page, by mandoc; doctor and --version."""

import json
import os
import pty
import re
import select
import shutil
import time
import unittest

import support
from support import DEVICE, FAKE_DRIVER, LLAMAC, LLAMAC_RUN

TOOLS = [("llamac", LLAMAC), ("llamac-run", LLAMAC_RUN)]


def require_program(name):
    if not shutil.which(name):
        support.skip(f"no {name}")


def of_home(folder):
    """The environment of a user whose home is `folder`, with the tools on the path."""
    env = dict(os.environ, HOME=folder, PATH=support.BIN_DIR + ":" + os.environ["PATH"])
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "LLAMAC_MODELS"):
        env.pop(name, None)
    return env


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, command, folder, setup):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            env = of_home(folder) | {"TERM": "dumb"}
            os.execvpe(command[0], command, env)
        self.output = b""
        # The last one shows that the shell has read the others.
        self.send("".join(line + "\n" for line in [*setup, "echo rea''dy"]))
        self.read_until(rb"\nready\r?\n")

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)

    def send(self, keys):
        os.write(self.terminal, keys.encode())

    def read_until(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output)):
            if time.monotonic() > end or not select.select([self.terminal], [], [], seconds)[0]:
                raise AssertionError(f"no {pattern} in {self.output!r}")
            self.output += os.read(self.terminal, 1 << 16)
        self.output = self.output[found.end() :]
        return found

    def complete(self, line):
        """The words that replace the last one of `line` when Control-T, which inserts
        all completions, is typed behind it. A command put in front prints them."""
        self.send(line + "\x14\x01printf '<%s>' \x05; echo ' en''d'\n")
        found = self.read_until(rb"\n((?:<[^>]*>)*) end\r?\n").group(1).decode()
        words = re.findall("<([^>]*)>", found)
        return words[len(line.split(" ")) - 1 :]


class Cases:
    """The completions of every shell; a class of a shell has complete(line), the words
    that may stand in place of the last one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        require_program(cls.SHELL)
        os.mkdir(cls.path("models"))
        open(cls.path("model.gguf"), "w").close()
        pulled = cls.path(".local/share/llamac/models/owner/tiny")
        os.makedirs(pulled)
        with open(os.path.join(pulled, ".pulled.json"), "w") as file:
            json.dump({"name": "owner/tiny", "pulled": 0, "files": []}, file)

    def check(self, line, *expected):
        with self.subTest(line):
            self.assertEqual(sorted(word.rstrip("/") for word in self.complete(line)), sorted(expected))

    def test_verbs(self):
        self.check("llamac comp", "compile", "completion")
        self.check("llamac cache ", "list", "clear", "limit")
        self.check("llamac completion ", "bash", "zsh", "fish")
        self.check("llamac-run cache cl", "clear")

    def test_options_of_a_verb(self):
        self.check("llamac run --top", "--top-k", "--top-p")
        self.check("llamac convert m.gguf --t", "--to", "--type")
        self.check("llamac-run bench --prompt-", "--prompt-tokens", "--prompt-rows")
        self.check("llamac-run model.plan --top", "--top-k", "--top-p")

    def test_values(self):
        self.check("llamac compile m.gguf --target ", "cpu", "cuda", "sim", "reference")
        self.check("llamac convert --to m", "meta")
        self.check("llamac run m.gguf -t 4 --kv-type b", "bf16")

    def test_pulled_models(self):
        self.check("llamac run own", "owner/tiny")
        self.check("llamac run m.gguf --draft own", "owner/tiny")
        self.check("llamac rm ", "owner/tiny")

    def test_files(self):
        self.check("llamac run mod", "model.gguf", "models")
        self.check("llamac-run --trace mod", "model.gguf", "models")
        self.check("llamac-run bench mod", "model.gguf", "models")
        self.check("llamac-run serve first.plan mod", "model.gguf", "models")
        self.check("llamac compile --dump-dir mod", "models")


class OnTerminal(Cases):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scripts = [f"source <({tool} completion {cls.SHELL})" for tool, _ in TOOLS]
        cls.shell = Terminal(cls.COMMAND, cls.folder, [*cls.SETUP, *scripts])
        cls.addClassCleanup(cls.shell.close)

    def complete(self, line):
        return self.shell.complete(line)

    def test_a_value_behind_an_equals_sign(self):
        self.assertEqual(self.complete("llamac convert --to=m"), ["--to=meta"])


class Bash(OnTerminal, support.TestCase):
    SHELL = "bash"
    COMMAND = ("bash", "--norc", "--noprofile", "-i")
    SETUP = ("PS1=", "bind 'set enable-bracketed-paste off'", "bind '\"\\C-t\": insert-completions'")


class Zsh(OnTerminal, support.TestCase):
    SHELL = "zsh"
    COMMAND = ("zsh", "-f", "-i")
    SETUP = (
        "PS1=; unsetopt prompt_cr prompt_sp; unset zle_bracketed_paste",
        "autoload -Uz compinit; compinit -u -D; bindkey -e",
        "zle -C all-matches complete-word _generic; bindkey '^T' all-matches",
        "zstyle ':completion:all-matches:*' completer _all_matches _complete",
        "zstyle ':completion:all-matches:*' insert true",
    )


class Fish(Cases, support.TestCase):
    SHELL = "fish"

    def complete(self, line):
        """Fish lists completions by a command; each has its description behind a tab."""
        command = f"llamac completion fish | source; llamac-run completion fish | source; complete -C {line!r}"
        env = of_home(self.folder)
        result = support.run(["fish", "--no-config", "-c", command], env=env, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [word.split("\t")[0] for word in result.stdout.splitlines()]


class Manuals(support.TestCase):
    def test_mandoc_finds_nothing(self):
        require_program("mandoc")
        for tool, program in TOOLS:
            page = self.path(tool + ".1")
            with open(page, "w") as f:
                f.write(support.run([program, "manual"]).stdout)
            found = support.run(["mandoc", "-T", "lint", page]).stdout.splitlines()
            # Two builds of the same source would have two dates.
            self.assertEqual([line for line in found if "missing date" not in line], [])

    def test_a_page_has_all_that_help_has(self):
        require_program("mandoc")
        for tool, program in TOOLS:
            page = support.run([program, "manual"]).stdout
            text = support.run(["mandoc", "-T", "ascii"], stdin=None, input=page).stdout
            text = " ".join(re.sub(".\b", "", text).replace("-\n", "-").split())
            verbs = [[], *([verb] for verb in re.findall(r"(?m)^  ([a-z]+) ", support.run([program, "--help"]).stdout))]
            self.assertGreater(len(verbs), 5)
            for verb in verbs:
                shown = support.run([program, *verb, "--help"]).stdout
                self.assertIn(" ".join([tool, *verb]), text)
                for option in re.findall(r"(?m)^  (-.*?)(?:  |$)", shown):
                    self.assertIn(option, text)


class Versions(support.TestCase):
    def test_the_version_names_the_build_and_the_libraries(self):
        builds = set()
        for tool, program in TOOLS:
            lines = support.run([program, "--version"], check=True).stdout.splitlines()
            self.assertRegex(lines[0], rf"^{tool} \d+\.\d+\.\d+$")
            self.assertRegex(lines[1], r"^build [0-9a-f]{16}$")
            builds.add(lines[1])
            self.assertEqual(any(re.match(r"LLVM 19\.", line) for line in lines), tool == "llamac")
            for library in (r"XGrammar (none|\d)", r"Boost 1\.\d", r"OpenSSL 3\.", "NVRTC ", "NCCL "):
                self.assertTrue(any(re.match(library, line) for line in lines), lines)
        self.assertEqual(len(builds), 2)

    def test_nvrtc_has_its_version_or_is_not_found(self):
        found = support.run([LLAMAC, "--version"], env=dict(os.environ, LLAMAC_NVRTC_PATH=FAKE_DRIVER)).stdout
        self.assertRegex(found, rf"(?m)^NVRTC \d+\.\d+, {re.escape(FAKE_DRIVER)}/libnvrtc")

    def test_nccl_has_its_version_or_is_not_found(self):
        found = support.run([LLAMAC, "--version"], env=dict(os.environ, LLAMAC_NCCL_PATH=FAKE_DRIVER)).stdout
        self.assertRegex(found, rf"(?m)^NCCL 2\.32\.3, {re.escape(FAKE_DRIVER)}/libnccl")


class Doctor(support.TestCase):
    """The report of doctor, against what the system says."""

    def doctor(self, tool=LLAMAC, expect=support.OK, **env):
        env = os.environ | {"XDG_CACHE_HOME": self.cache} | env
        result = support.run([tool, "doctor", "--json"], env=env)
        self.assertEqual(result.returncode, expect, result.stderr)
        return json.loads(result.stdout)

    @staticmethod
    def target(report, name):
        return next(row for row in report["targets"] if row["target"] == name)

    def test_a_machine_without_a_gpu_is_usable(self):
        report = self.doctor(LD_LIBRARY_PATH="")
        self.assertTrue(report["usable"])
        self.assertEqual(report["processor"]["processors"], len(os.sched_getaffinity(0)))
        with open("/proc/meminfo") as f:
            self.assertEqual(report["memory"]["total"], int(f.readline().split()[1]) * 1024)
        self.assertTrue(self.target(report, "cpu")["runs"])
        self.assertTrue(self.target(report, "sim")["runs"])
        if not os.path.exists("/dev/nvidiactl"):
            self.assertIn("libcuda.so.1", report["cuda"]["error"])
            self.assertFalse(self.target(report, "cuda")["runs"])

    def test_a_gpu_of_the_fake_driver_runs_plans(self):
        report = self.doctor(LD_LIBRARY_PATH=FAKE_DRIVER, LLAMAC_NVRTC_PATH=FAKE_DRIVER)
        self.assertRegex(report["cuda"]["driver"], r"^\d+\.\d$")
        (gpu, *_) = report["cuda"]["gpus"]
        self.assertGreater(gpu["memory"], gpu["free"] - 1)
        self.assertTrue(self.target(report, "cuda")["runs"])

    def test_what_ranks_need(self):
        gpus = {"LD_LIBRARY_PATH": FAKE_DRIVER, "LLAMAC_NVRTC_PATH": FAKE_DRIVER, "LLAMAC_FAKE_CAPABILITY": "9.0,9.0"}
        report = self.doctor(**gpus, LLAMAC_NCCL_PATH=FAKE_DRIVER, PATH="/nowhere")
        self.assertEqual((report["warnings"], report["mpirun"]), ([], ""))
        folder = self.path("ranks")
        os.makedirs(folder)
        # A library without NCCL's functions.
        os.symlink(os.path.join(FAKE_DRIVER, "libnvrtc.so.13"), os.path.join(folder, "libnccl.so.2"))
        os.symlink(LLAMAC_RUN, os.path.join(folder, "mpirun"))
        report = self.doctor(**gpus, LLAMAC_NCCL_PATH=folder, PATH=f"/nowhere:{folder}")
        self.assertEqual(report["mpirun"], os.path.join(folder, "mpirun"))
        (warning,) = report["warnings"]
        self.assertIn("plans for several ranks do not run on the GPUs: ", warning)
        self.assertIn("libnccl.so.2: expected NCCL", warning)
        # One GPU needs none.
        self.assertEqual(self.doctor(**gpus | {"LLAMAC_FAKE_CAPABILITY": "9.0"}, LLAMAC_NCCL_PATH=folder)["warnings"], [])

    def test_the_runtime_alone_names_the_tool_that_runs_the_simulator(self):
        report = self.doctor(LLAMAC_RUN)
        self.assertEqual(report["tool"], "llamac-run")
        self.assertIn("llamac", self.target(report, "sim")["error"])
        self.assertNotIn("LLVM", report["libraries"])

    def test_a_level_that_does_not_run_here_ends_with_7(self):
        report = self.doctor(expect=DEVICE, LLAMAC_ISA="z80")
        self.assertFalse(report["usable"])
        self.assertIn("z80", self.target(report, "cpu")["error"])

    def test_a_cache_that_is_not_used_is_a_warning(self):
        plans = os.path.join(self.cache, "llamac", "plans")
        os.makedirs(plans)
        self.addCleanup(shutil.rmtree, self.cache)
        os.chmod(plans, 0o777)
        report = self.doctor()
        self.assertEqual(report["caches"]["folders"][0]["folder"], plans)
        self.assertIn("0777", report["caches"]["folders"][0]["error"])
        self.assertEqual(len([text for text in report["warnings"] if "plans are not cached" in text]), 1)
        self.assertTrue(report["usable"])

    def test_it_makes_no_folder(self):
        self.doctor()
        self.assertFalse(os.path.exists(self.cache))

    def test_people_read_the_same(self):
        text = support.run([LLAMAC, "doctor"], cache=self.cache).stdout
        report = self.doctor()
        for value in (report["build"], report["processor"]["model"], report["processor"]["isa"]):
            self.assertIn(value, text)
        self.assertRegex(text, r"(?m)^runs cpu +yes: ")
        self.assertLessEqual({"processor", "memory", "plans", "objects", "cubins"}, set(text.split()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
