# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`llamac serve` on a GPU that fails while answers run: the fake driver
(tests/runtime/cuda/fake_driver) does so while there is a file. And with a plan
that is truncated meanwhile."""

import json
import os
import shutil
import threading
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from fake_cuda import CudaCase
from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf
from serving import Server, Stream, wait_for
from support import BAD_PLAN, DEVICE

LONG = {"prompt": "Once", "max_tokens": 3000, "ignore_eos": True, "temperature": 0}
SHORT = LONG | {"max_tokens": 20}


class GpuFaults(CudaCase):
    CONFIG = Config(64, 1, 4, 2, vocab=261)
    CONTEXT, SEQUENCES = 4096, 4

    @classmethod
    def write_model(cls, weights):
        cls.model = cls.path("tiny.gguf")
        write_gguf(cls.model, cls.CONFIG, quantise(random_weights(cls.CONFIG, "bf16", 4), "BF16")[0])

    def setUp(self):
        self.fault = self.path("fault")
        self.log = self.path(f"{self._testMethodName}.log")
        self.recover()

    def strike(self):
        """Makes fail what waits for the file, until recover()."""
        with open(self.fault, "w"):
            pass

    def recover(self):
        if os.path.exists(self.fault):
            os.remove(self.fault)

    def serve(self, *plans, tool=support.LLAMAC_RUN, **env):
        server = Server(plans, self.log, env=self.environment(**env), tool=tool)
        self.addCleanup(server.stop)
        return server

    def ask(self, server, body, streams, wholes):
        """Asks for as many answers, in events and whole, as run now: the
        connections, the threads and where these put status and JSON."""
        answers = []
        threads = [
            threading.Thread(target=lambda: answers.append(server.request("POST", "/v1/completions", body)))
            for _ in range(wholes)
        ]
        for thread in threads:
            thread.start()
        events = [Stream(server.port, body) for _ in range(streams)]
        for stream in events:
            stream.read(b"data: ")
        return events, threads, answers

    def assert_errors(self, events, threads, answers, words):
        """Each has one error, in the form of the interface, and has ended."""
        for stream in events:
            text = stream.read()
            self.assertTrue(text.endswith(b"\n\n\r\n0\r\n\r\n"), text[-500:])
            self.assertEqual((text.count(b'"error"'), text.count(b"[DONE]")), (1, 0), text[-500:])
            last = text.removesuffix(b"\r\n0\r\n\r\n").rsplit(b"data: ", 1)[1]
            self.assert_error(json.loads(last), words)
        for thread in threads:
            thread.join(60)
        self.assertEqual(len(answers), len(threads))
        for status, _, body in answers:
            self.assertEqual(status, 500)
            self.assert_error(json.loads(body), words)

    def assert_error(self, answer, words):
        error = answer["error"]
        self.assertEqual(list(answer), ["error"])
        self.assertEqual((error["type"], error["param"], error["code"]), ("server_error", None, None), error)
        self.assertIn(words, error["message"])

    def test_steps_that_fail_end_what_runs_and_nothing_else(self):
        functions = support.by_tier(
            ("cuGraphLaunch",), ("cuGraphLaunch", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2")
        )
        for function in functions:
            with self.subTest(function):
                self.recover()
                server = self.serve(self.plan, LLAMAC_FAKE_FAILS=f"{function}:{self.fault}")
                expected = server.post("/v1/completions", SHORT)["choices"]
                asked = self.ask(server, LONG, streams=2, wholes=2)
                self.assertTrue(wait_for(lambda: server.metric("num_requests_running") == 4))
                self.strike()
                self.assert_errors(*asked, "the driver says CUDA_ERROR_UNKNOWN")
                self.recover()
                # The server goes on, and has lost neither a place nor a page.
                self.assertEqual(server.request("GET", "/health")[0], 200)
                for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
                    self.assertTrue(wait_for(lambda: server.metric(name) == 0), name)
                events, threads, answers = self.ask(server, SHORT, streams=0, wholes=4)
                for thread in threads:
                    thread.join(60)
                self.assertEqual([json.loads(body)["choices"] for _, _, body in answers], [expected] * 4)
                self.assertEqual(server.stop(), support.OK)
                # A line for each request, with the reason.
                failed = [line for line in server.log() if "error" in line]
                self.assertEqual(sorted(line["status"] for line in failed), [200, 200, 500, 500])
                for line in failed:
                    self.assertIn("the driver says CUDA_ERROR_UNKNOWN", line["error"])
                self.assert_nothing_leaked()
                os.remove(self.leaks)
                os.remove(self.log)

    def test_a_gpu_that_can_do_nothing_more_ends_the_server(self):
        server = self.serve(self.plan, LLAMAC_FAKE_FAULT=self.fault)
        events, threads, answers = self.ask(server, LONG, streams=2, wholes=2)
        self.assertTrue(wait_for(lambda: server.metric("num_requests_running") == 4))
        waiting = Stream(server.port, LONG)
        self.assertTrue(wait_for(lambda: server.metric("num_requests_waiting") == 1))
        self.strike()
        self.assert_errors(events, threads, answers, "CUDA_ERROR_LAUNCH_FAILED")
        self.assertTrue(waiting.read().startswith(b"HTTP/1.1 500 "), waiting.text)
        self.assertEqual(server.process.wait(60), DEVICE)
        server.stop()
        errors = [line for line in server.stderr if line.startswith("llamac-run: error: ")]
        self.assertEqual(len(errors), 1, server.stderr)
        self.assertRegex(errors[0], "error: cuda: .*CUDA_ERROR_LAUNCH_FAILED")
        self.assertEqual([line["status"] for line in server.log() if "error" in line].count(500), 3)

    def test_answers_of_other_models_end_first_and_health_says_so(self):
        server = self.serve(self.plan, self.sim_plan, tool=support.LLAMAC, LLAMAC_FAKE_FAULT=self.fault)
        other = Stream(server.port, LONG | {"model": "sim", "max_tokens": 120})
        other.read(b"data: ")
        self.strike()
        self.assert_error(server.post("/v1/completions", SHORT | {"model": "cuda"}, expect=500), "the driver says")
        self.assertTrue(wait_for(lambda: server.request("GET", "/health")[0] == 503))
        text = other.read()
        self.assertEqual(text.count(b'"finish_reason":"length"'), 1)
        self.assertIn(b"data: [DONE]\n\n", text)
        self.assertEqual(server.process.wait(60), DEVICE)


class Crowds(support.TestCase):
    """256 clients at once, of whom half run."""

    CLIENTS = 256

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = Config(64, 1, 4, 2, vocab=261)
        model = write_gguf(cls.path("m.gguf"), config, quantise(random_weights(config, "bf16", 4), "F32")[0])
        cls.plan = cls.path("m.plan")
        support.run([support.LLAMAC, "compile", model, "-c", "4096", "-o", cls.plan, "-q"], check=True)

    def setUp(self):
        # A quarter of the pages that a whole context of each would take.
        options = ("--parallel", self.CLIENTS // 2, "--max-queue", self.CLIENTS, "--kv-pages", 2048)
        self.server = Server([self.plan], self.path(f"{self._testMethodName}.log"), *options)
        self.addCleanup(self.server.stop)

    def bodies(self, **more):
        """Requests whose prompts share no beginning."""
        return [SHORT | {"prompt": [(i + 7 * k) % 256 for k in range(4 + i % 9)]} | more for i in range(self.CLIENTS)]

    def assert_idle(self):
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
            self.assertTrue(wait_for(lambda: self.server.metric(name) == 0), name)

    def text(self, events):
        found = [json.loads(line[6:]) for line in events.split(b"\n") if line.startswith(b"data: {")]
        return "".join(choice["text"] for event in found for choice in event["choices"])

    def test_each_of_many_streams_is_the_answer_that_it_is_alone(self):
        bodies = self.bodies()
        alone = [self.server.post("/v1/completions", body)["choices"][0]["text"] for body in bodies[::16]]
        # One takes much, and reads nothing of it.
        silent = Stream(self.server.port, LONG)
        streams = [Stream(self.server.port, body) for body in bodies]
        texts = [stream.read() for stream in streams]
        for text in texts:
            self.assertTrue(text.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), text[-300:])
            self.assertEqual(text.count(b'"finish_reason":"length"'), 1)
        self.assertEqual([self.text(text) for text in texts[::16]], alone)
        self.assertEqual(silent.read().count(b'"finish_reason":"length"'), 1)
        self.assert_idle()

    def test_all_that_leave_at_once_leave_nothing(self):
        body = self.bodies()[0]
        expected = self.server.post("/v1/completions", body)["choices"]
        before = self.server.metric("generation_tokens_total")
        streams = [Stream(self.server.port, body) for body in self.bodies(max_tokens=3000)]
        self.assertTrue(wait_for(lambda: self.server.metric("num_requests_running") == self.CLIENTS // 2))
        for stream in streams:
            stream.close()
        self.assert_idle()
        self.assertLess(self.server.metric("generation_tokens_total") - before, self.CLIENTS * 3000)
        self.assertEqual(self.server.post("/v1/completions", body)["choices"], expected)


class Files(support.TestCase):
    def test_a_truncated_plan_ends_its_answers_others_are_finished(self):
        config = Config(64, 1, 4, 2, vocab=261)
        model = write_gguf(self.path("m.gguf"), config, quantise(random_weights(config, "bf16", 4), "F32")[0])
        sound, short, log = self.path("sound.plan"), self.path("short.plan"), self.path("log")
        self.llamac("compile", model, "-c", 4096, "--parallel", 2, "-o", sound, "-q")
        shutil.copyfile(sound, short)
        server = Server([sound, short], log)
        self.addCleanup(server.stop)
        streams = {name: Stream(server.port, LONG | {"model": name}) for name in ("sound", "short")}
        for stream in streams.values():
            stream.read(b"data: ")
        os.truncate(short, 4096)
        text = streams["short"].read()
        self.assertEqual((text.count(b'"error"'), text.count(b"[DONE]")), (1, 0), text[-500:])
        self.assertIn(b"short.plan: cannot be read: it was truncated", text)
        text = streams["sound"].read()
        self.assertEqual(text.count(b'"finish_reason":"length"'), 1)
        self.assertIn(b"data: [DONE]\n\n", text)
        self.assertEqual(server.process.wait(60), BAD_PLAN)
        server.stop()
        errors = [line for line in server.stderr if line.startswith("llamac-run: error: ")]
        self.assertEqual(len(errors), 1, server.stderr)
        self.assertRegex(errors[0], "error: short: .*short.plan: cannot be read: it was truncated")
        failed = [line["error"] for line in server.log() if "error" in line]
        self.assertEqual(len(failed), 1, failed)
        self.assertIn("it was truncated", failed[0])

    def test_a_checkpoint_that_shrinks_changes_no_answer(self):
        config = Config(64, 1, 4, 2, vocab=261)
        weights = quantise(random_weights(config, "bf16", 4), "F32")[0]
        model, plan = write_gguf(self.path("referred.gguf"), config, weights), self.path("refers.plan")
        self.llamac("compile", model, "-c", 4096, "--parallel", 2, "--reference-weights", "-o", plan, "-q")
        server = Server([plan], self.path("refers.log"))
        self.addCleanup(server.stop)
        expected = server.post("/v1/completions", LONG)["choices"]
        stream = Stream(server.port, LONG)
        stream.read(b"data: ")
        os.truncate(model, 4096)
        # The part of it that was read at the start stays.
        self.assertEqual(server.post("/v1/completions", LONG)["choices"], expected)
        self.assertEqual(stream.read().count(b'"finish_reason":"length"'), 1)
        self.assertEqual(server.stop(), support.OK)
        result = support.run([support.LLAMAC_RUN, plan, "-p", "Once", "-n", "4"])
        self.assertEqual(result.returncode, BAD_PLAN, result.stderr)
        self.assertRegex(result.stderr, r"referred\.gguf: size: expected [0-9]+, got 4096")


if __name__ == "__main__":
    unittest.main()
