# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that are processes, which mpirun starts, compute what ranks of one
process do; and one that is lost ends all."""

import ctypes
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest

import support
from support import BAD_PLAN, DEVICE, LLAMAC_RUN, OK, USAGE

support.require("numpy", "gguf")

import processes
from make_model import quantise, random_weights, write_gguf
from serving import Server, smollm2_plan
from test_ranks import MODELS

TOKENS = ("--tokens", "1,2,3,4,5", "--print-ids", "--temp", 0)
# The launcher's limit: it sends SIGTERM, then SIGKILL, when a rank has ended.
MOST_SECONDS = 20


def offset_of_a_last_part(plan):
    """Where the second part of the last weight that is in two begins; docs/plan-format.md."""
    weight = 3
    count, _, table = struct.unpack_from("<IQQ", plan, 12)
    sections = [struct.unpack_from("<IIQQ", plan, table + 32 * i) for i in range(count)]
    kinds, _, offsets, sizes = zip(*sections)
    # Parts are alike, and follow each other.
    return next(
        offsets[i] for i in reversed(range(1, count)) if kinds[i] == kinds[i - 1] == weight and sizes[i] == sizes[i - 1]
    )


class ProcessesCase(support.TestCase):
    @classmethod
    def plan(cls, ranks, name="two KV heads"):
        plan = cls.path(f"{name.replace(' ', '-')}-{ranks}.plan")
        if not os.path.exists(plan):
            config, family, type_name = MODELS[name]
            stored, _ = quantise(random_weights(config, "bf16", 1), type_name)
            model = write_gguf(cls.path("model.gguf"), config, stored, family=family)
            args = (support.LLAMAC, "compile", model, "--ranks", ranks, "-o", plan, "-c", 2048)
            support.run(list(map(str, args)), cache=cls.cache, check=True)
        return plan

    def answer(self, ranks, *args):
        result = processes.run(ranks, *args)
        self.assertEqual(result.returncode, OK, result.stderr)
        return result.stdout

    def refused(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stderr)
        lines = [line for line in result.stderr.splitlines() if "error:" in line]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertEqual(result.stdout, "")
        for word in words:
            self.assertIn(word, lines[0])


class Answers(ProcessesCase):
    def test_are_those_of_threads_of_one_process(self):
        for name in support.by_tier(("two KV heads",), MODELS):
            for ranks in support.by_tier((2,), (2, 4)):
                plan = self.plan(ranks, name)
                options = (plan, *TOKENS, "-n", 64, "-t", 1)
                threads = support.run([LLAMAC_RUN, *map(str, options)])
                self.assertEqual(threads.returncode, OK, threads.stderr)
                for copies in ((), ("--rank-copies",)):
                    with self.subTest(name, ranks=ranks, copies=copies):
                        self.assertEqual(self.answer(ranks, *options, *copies), threads.stdout)

    def test_of_random_weights_are_those_of_one_process(self):
        options = (self.plan(2), *TOKENS, "-n", 8, "--random-weights", 3)
        threads = support.run([LLAMAC_RUN, *map(str, options)])
        self.assertEqual(self.answer(2, *options), threads.stdout)

    def test_of_several_sequences(self):
        requests = self.path("requests.jsonl")
        with open(requests, "w") as file:
            for i in range(6):
                tokens = list(range(i + 1, 2 * i + 4))
                file.write(json.dumps({"id": str(i), "tokens": tokens, "max_tokens": 9}) + "\n")
        options = ("generate", self.plan(2), "--prompts", requests, "-o", "-", "--parallel", 3, "-q")
        threads = support.run([LLAMAC_RUN, *map(str, options)])
        self.assertEqual(threads.returncode, OK, threads.stderr)
        ids = [
            {answer["id"]: answer["tokens"] for answer in map(json.loads, lines.splitlines())}
            for lines in (threads.stdout, self.answer(2, *options))
        ]
        self.assertEqual(len(ids[0]), 6)
        self.assertEqual(ids[0], ids[1])

    def test_of_a_server(self):
        # Nine heads and three KV heads.
        plan = smollm2_plan(type(self), "--ranks", 3, "-c", 256)
        body = {"prompt": "Why is the sky blue?", "max_tokens": 20, "temperature": 0}
        answers = []
        for env in (None, processes.ENVIRONMENT):
            tool = LLAMAC_RUN
            if env:
                tool = self.path("llamac-ranks")
                with open(tool, "w") as file:
                    file.write(f"#!/bin/sh\nexec {' '.join(processes.command(3))} \"$@\"\n")
                os.chmod(tool, 0o755)
            server = Server([plan], self.path("access.log"), env=env, tool=tool)
            try:
                answers.append(server.post("/v1/completions", body)["choices"])
                if env:
                    # Rank 0 has the user: it ends when its answers are given.
                    os.kill(processes.ranks_of(server.process)[0], signal.SIGTERM)
                    self.assertEqual(server.process.wait(60), OK)
            finally:
                server.stop()
        self.assertEqual(answers[0], answers[1])


class Refusals(ProcessesCase):
    def test_of_another_number_of_ranks(self):
        plan = self.plan(2)
        self.refused(
            processes.run(3, plan, *TOKENS),
            BAD_PLAN,
            f"{plan}: expected a plan for 3 ranks, as mpirun has started, got one for 2; start it with mpirun -n 2",
        )
        self.refused(processes.run(2, self.plan(1), *TOKENS), BAD_PLAN, "got one for 1; compile it with --ranks")

    def test_of_options_without_mpirun(self):
        result = support.run([LLAMAC_RUN, self.plan(2), *map(str, TOKENS), "--rank-copies"])
        self.refused(result, USAGE, "--rank-copies", "mpirun")

    def test_of_an_mpi_that_is_not_found(self):
        # mpirun sets these, but adds its library's folder.
        started = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "LD_LIBRARY_PATH": ""}
        try:
            ctypes.CDLL("libmpi.so.40")
        except OSError:
            result = support.run([LLAMAC_RUN, self.plan(2), *map(str, TOKENS)], env=os.environ | started)
            self.refused(result, DEVICE, "libmpi.so.40: expected Open MPI's library", "LD_LIBRARY_PATH")
        else:
            self.skipTest("the system has Open MPI's library")

    def test_of_the_compiler_under_mpirun(self):
        result = processes.run(2, "run", self.plan(2), *TOKENS, program=support.LLAMAC)
        self.assertEqual(result.returncode, USAGE, result.stderr)
        self.assertIn("expected llamac-run as what mpirun starts", result.stderr)

    def each_in_its_folder(self, plans, programs=(LLAMAC_RUN, LLAMAC_RUN)):
        """Two ranks, each with its own file of the same name."""
        command = [processes.MPIRUN, "--oversubscribe"]
        for rank, (plan, program) in enumerate(zip(plans, programs)):
            folder = self.path(f"rank{rank}")
            os.makedirs(folder, exist_ok=True)
            shutil.copy(plan, os.path.join(folder, "model.plan"))
            command += [":"] * rank + ["-n", "1", "--wdir", folder, program, "model.plan", *map(str, TOKENS)]
        return support.run(command, env=processes.ENVIRONMENT)

    def test_of_ranks_with_other_plans(self):
        result = self.each_in_its_folder((self.plan(2), self.plan(2, "biases")))
        self.refused(result, BAD_PLAN, "model.plan: hash: expected", "on all ranks", "on rank 1; give all the same")

    def test_of_ranks_that_are_other_builds(self):
        other = self.path("llamac-run")
        with open(LLAMAC_RUN, "rb") as file:
            program = file.read()
        words = b"Runs a plan that llamac compiled."
        self.assertIn(words, program)
        with open(other, "wb") as file:
            file.write(program.replace(words, words.swapcase()))
        os.chmod(other, 0o755)
        result = self.each_in_its_folder([self.plan(2)] * 2, (LLAMAC_RUN, other))
        self.refused(result, BAD_PLAN, "build of llamac-run: expected", "on rank 1")

    def test_of_a_damaged_part_by_the_rank_that_has_it(self):
        sound, damaged = self.plan(2), self.path("damaged.plan")
        with open(sound, "rb") as file:
            plan = bytearray(file.read())
        plan[offset_of_a_last_part(plan)] ^= 1
        with open(damaged, "wb") as file:
            file.write(plan)
        result = self.each_in_its_folder((damaged, sound))
        self.assertEqual(result.returncode, OK, result.stderr)
        self.refused(self.each_in_its_folder((sound, damaged)), BAD_PLAN, "rank 1: model.plan:", "(weight): checksum")


class Faults(ProcessesCase):
    def command(self, count):
        plan = smollm2_plan(type(self), "--ranks", 3, "-c", 2048)
        return (plan, "-p", "A long story:", "--raw", "--ignore-eos", "--temp", 0, "-n", count, "-t", 1, "-q")

    def begin(self, *options):
        """Three ranks that will say much."""
        return processes.start(3, *self.command(2000), *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, launcher, pids):
        """The launcher's output, once all processes have ended; the exit code."""
        start = time.monotonic()
        try:
            out, error = launcher.communicate(timeout=MOST_SECONDS)
        finally:
            launcher.kill()
        while any(map(processes.is_running, pids)) and time.monotonic() < start + MOST_SECONDS:
            time.sleep(0.01)
        self.assertEqual([pid for pid in pids if processes.is_running(pid)], [])
        return out.decode(), error.decode(), launcher.returncode

    def kill(self, rank, moment, isStarting):
        """The output of a run whose rank is killed `moment` seconds after it was started, or has begun to answer."""
        launcher = self.begin()
        begun = b""
        while len(pids := processes.ranks_of(launcher)) < 3:
            self.assertIsNone(launcher.poll())
        if not isStarting:
            begun = launcher.stdout.read1(4096)
            self.assertTrue(begun)
        time.sleep(moment)
        os.kill(pids[rank], signal.SIGKILL)
        out, error, code = self.end(launcher, pids.values())
        self.assertNotEqual(code, OK)
        return begun.decode() + out, error

    def test_a_rank_that_is_killed_while_it_starts_ends_all(self):
        draw = random.Random(1)
        for i in range(support.by_tier(4, 50)):
            rank, moment = draw.randrange(3), draw.uniform(0, 0.3)
            with self.subTest(i, rank=rank, moment=moment):
                # Before MPI has begun it is mpirun that ends the others, and may not say which rank was lost.
                _, error = self.kill(rank, moment, isStarting=True)
                self.assertTrue(error)

    def test_a_rank_that_is_killed_while_it_answers_ends_all(self):
        whole = self.answer(3, *self.command(100))
        draw = random.Random(2)
        for i in range(support.by_tier(4, 50)):
            rank, moment = draw.randrange(3), draw.uniform(0, 0.3)
            with self.subTest(i, rank=rank, moment=moment):
                out, error = self.kill(rank, moment, isStarting=False)
                self.assertTrue(whole.startswith(out) or out.startswith(whole[:-1]), out)
                self.assertRegex(error, rf"rank {rank}\b")

    def test_a_rank_that_hangs_ends_all(self):
        for rank in support.by_tier((2,), range(3)):
            with self.subTest(rank=rank):
                launcher = self.begin("--rank-timeout", 3)
                # Once tokens come all of them run.
                first = launcher.stdout.read1(1)
                self.assertTrue(first)
                pids = processes.ranks_of(launcher)
                os.kill(pids[rank], signal.SIGSTOP)
                _, error, code = self.end(launcher, pids.values())
                self.assertEqual(code, DEVICE, error)
                lines = [line for line in error.splitlines() if "error:" in line and line.startswith("llamac-run")]
                self.assertEqual(len(lines), 1, error)
                self.assertIn(f"rank {rank}: expected it within 3 s, got nothing", lines[0])


if __name__ == "__main__":
    unittest.main()
