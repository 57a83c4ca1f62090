# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`llamac serve` as operators know it, and what hostile or broken clients may do.

    test_serve.py Start      addresses, keys, certificates, names of models, terminals
    test_serve.py Operation  figures, logs, origins, several models
    test_serve.py Leaving    clients that leave, and a server that does
    test_serve.py Hostile    bytes and bodies that no client should send
"""

import json
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

import serving
import support
from serving import Server, Stream, wait_for
from support import BAD_FILE, USAGE

CHAT = "/v1/chat/completions"
LONG = {"prompt": "Once upon a time", "max_tokens": 100, "ignore_eos": True, "temperature": 0}


class Start(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = serving.smollm2_plan(cls)

    def refuse(self, *options, expect=USAGE):
        port = () if "--port" in options else ("--port", "0")
        result = support.run([support.LLAMAC_RUN, "serve", self.plan, *port, *options])
        self.assertEqual(result.returncode, expect, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        return result.stderr

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o600)
        return path

    def test_what_cannot_be_served_is_refused_before_a_model_is_loaded(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.assertIn("Address already in use", self.refuse("--port", str(taken.getsockname()[1])))
        self.assertIn("expected --api-key-file", self.refuse("--host", "0.0.0.0"))
        elsewhere = self.refuse("--host", "203.0.113.7", "--no-auth")
        self.assertIn("--host: expected an address of this machine, got 203.0.113.7: Cannot assign", elsewhere)
        self.assertIn("expected both", self.refuse("--tls-cert", self.plan))
        self.assertIn("expected a key on each line", self.refuse("--api-key-file", self.write("none", "# no key\n"), expect=BAD_FILE))
        self.assertIn("--cors", self.refuse("--cors", "example.org"))
        self.assertIn("two of smollm2", self.refuse(self.plan))
        prefixes = ("--prefix-cache", self.path("prefixes"))
        self.assertIn("--prefix-cache: expected one model", self.refuse(f"other={self.plan}", *prefixes))
        self.refuse("--api-key-file", self.path("missing"), expect=BAD_FILE)
        self.refuse("--tls-cert", self.plan, "--tls-key", self.plan, expect=BAD_FILE)

    def test_keys_guard_all_but_the_page_and_health(self):
        keys = self.write("keys", "# of two users\nfirst-key\n\nsecond-key\n")
        with Server([self.plan], self.path("log"), "--host", "0.0.0.0", "--api-key-file", keys) as server:
            for path in ("/", "/health"):
                self.assertEqual(server.request("GET", path)[0], 200)
            for path in ("/metrics", "/v1/models", "/v1/llamac/history", "/v1/llamac/kernels", "/unknown"):
                status, fields, body = server.request("GET", path)
                self.assertEqual((status, fields["WWW-Authenticate"]), (401, "Bearer"), path)
                self.assertEqual(json.loads(body)["error"]["code"], "invalid_api_key")
            for fields in (
                {"Authorization": "Bearer second-key"},
                {"authorization": "bearer first-key"},
                {"X-Api-Key": "first-key"},
            ):
                self.assertEqual(server.request("GET", "/v1/models", fields=fields)[0], 200, fields)
            for key in ("first-kez", "first-key2", "first", "", "# of two users", "Bearer"):
                self.assertEqual(
                    server.request("GET", "/v1/models", fields={"Authorization": f"Bearer {key}"})[0], 401, key
                )

    def test_https_is_served_by_a_certificate(self):
        certificate, key = self.path("cert.pem"), self.path("key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
            + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-out", certificate, "-keyout", key],
            check=True,
            capture_output=True,
        )
        with Server([self.plan], self.path("log"), "--tls-cert", certificate, "--tls-key", key) as server:
            self.assertTrue(server.url.startswith("https://"))
            trusted = ssl.create_default_context(cafile=certificate)
            base = f"https://localhost:{server.port}"
            with urllib.request.urlopen(f"{base}/health", context=trusted) as answer:
                self.assertEqual(answer.status, 200)
            body = json.dumps(LONG | {"max_tokens": 40, "stream": True}).encode()
            with urllib.request.urlopen(f"{base}/v1/completions", body, context=trusted) as answer:
                self.assertTrue(answer.read().endswith(b"data: [DONE]\n\n"))
            # One that speaks no TLS is no trouble to others.
            with socket.create_connection(("127.0.0.1", server.port)) as plain:
                plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
                self.assertNotIn(b"HTTP", plain.recv(100))
            with urllib.request.urlopen(f"{base}/health", context=trusted) as answer:
                self.assertEqual(answer.status, 200)

    def test_models_have_the_names_that_they_are_given(self):
        with Server([self.plan, f"other={self.plan}"], self.path("log")) as server:
            models = json.loads(server.request("GET", "/v1/models")[2])["data"]
            self.assertEqual([model["id"] for model in models], ["smollm2", "other"])
            self.assertEqual(json.loads(server.request("GET", "/v1/models/other")[2])["id"], "other")
            self.assertEqual(server.request("GET", "/v1/models/third")[0], 404)
            answers = {
                name: server.post("/v1/completions", LONG | {"model": name, "max_tokens": 8})["choices"][0]["text"]
                for name in ("smollm2", "other")
            }
            self.assertEqual(answers["smollm2"], answers["other"])
            error = server.post("/v1/completions", LONG, expect=400)["error"]
            self.assertEqual(error["param"], "model")
            error = server.post("/v1/completions", LONG | {"model": "othr"}, expect=404)["error"]
            self.assertIn("did you mean other?", error["message"])
            self.assertEqual(error["code"], "model_not_found")

    def test_a_terminal_shows_a_short_line_for_a_request(self):
        master, slave = os.openpty()
        command = [support.LLAMAC_RUN, "serve", self.plan, "--port", "0"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        shown = ""

        def show(pattern):
            nonlocal shown
            while not re.search(pattern, shown):
                shown += os.read(master, 4096).decode()
            return re.search(pattern, shown)

        try:
            base = show(r"listening on (http://\S+)")[1]
            body = json.dumps({"prompt": "Once", "max_tokens": 3, "ignore_eos": True}).encode()
            fields = {"Content-Type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(base + "/v1/completions", body, fields)).close()
            show(
                r"\n\d\d:\d\d:\d\d POST /v1/completions 200 in \d+\.\d{3} s: "
                r"smollm2, 1 tokens \(0 cached\), 3 answered, the first after \d+\.\d{3} s, length\r\n"
            )
            with self.assertRaises(urllib.error.HTTPError) as missing:
                urllib.request.urlopen(base + "/%1b%5bA%1b")
            self.assertEqual(missing.exception.code, 404)
            self.assertNotIn("\x1b", show(r"GET \S+ 404 in .*\n")[0])
            process.send_signal(signal.SIGTERM)
            show(r"\nstopped\r\n")
        finally:
            process.kill()
            process.wait()
            os.close(master)


class Operation(serving.ServedTestCase):
    options = ("--cors", "https://friend.example")

    def test_figures_have_the_names_that_routers_know(self):
        self.server.post("/v1/completions", LONG | {"max_tokens": 5})
        status, fields, text = self.server.request("GET", "/metrics")
        self.assertEqual((status, fields["Content-Type"].split(";")[0]), (200, "text/plain"))
        text = text.decode()
        for name in (
            ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prefix_cache_queries_total")
            + ("prefix_cache_hits_total", "num_preemptions_total", "prompt_tokens_total", "generation_tokens_total")
            + ("time_to_first_token_seconds_bucket", "inter_token_latency_seconds_sum")
            + ("e2e_request_latency_seconds_count", "request_queue_time_seconds_count", "iteration_tokens_total_count")
            + ("spec_decode_num_drafts_total", "spec_decode_num_draft_tokens_total")
            + ("spec_decode_num_accepted_tokens_total", "spec_decode_num_accepted_tokens_per_pos_total")
        ):
            self.assertRegex(text, rf'(?m)^vllm:{name}{{[^}}]*model_name="smollm2"')
        self.assertRegex(text, r'(?m)^vllm:request_success_total{finished_reason="length",model_name="smollm2"} [1-9]')
        self.assertRegex(text, r'(?m)^vllm:cache_config_info{.*block_size="64",num_gpu_blocks="\d+"} 1$')

    def test_each_request_has_a_line_with_its_ids(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        fields = {"X-Request-Id": "mine-1", "traceparent": trace}
        status, answered, _ = self.server.request("POST", "/v1/completions", LONG | {"max_tokens": 6}, fields)
        self.assertEqual((status, answered["X-Request-Id"], answered["traceparent"]), (200, "mine-1", trace))
        self.server.request("POST", "/v1/completions", {"temprature": 1}, {"X-Request-Id": "mine-2"})
        # An id that could not stand in a log or a field is replaced.
        _, answered, _ = self.server.request("GET", "/health", fields={"X-Request-Id": 'a" b'})
        self.assertRegex(answered["X-Request-Id"], "^req_[a-z0-9]{24}$")
        lines = {}
        self.assertTrue(
            wait_for(lambda: lines.update({line["id"]: line for line in self.server.log()}) or "mine-2" in lines)
        )
        line = lines["mine-1"]
        self.assertEqual((line["method"], line["path"], line["status"]), ("POST", "/v1/completions", 200))
        self.assertEqual((line["model"], line["completion_tokens"], line["finish_reason"]), ("smollm2", 6, "length"))
        self.assertEqual(line["traceparent"], trace)
        # The first of six tokens came before the last, though the client had all at once.
        self.assertLess(0, line["first_token_seconds"])
        self.assertLess(line["first_token_seconds"], 0.9 * line["seconds"])
        self.assertEqual(lines["mine-2"]["status"], 400)
        self.assertIn("did you mean temperature?", lines["mine-2"]["error"])

    def test_pages_of_other_sites_can_do_nothing(self):
        for fields, expected in (
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": "evil.example"}, 403),
            ({"Host": "localhost.evil.example"}, 403),
            ({"Host": "127.0.0.1.evil.example:80"}, 403),
            ({"Host": "localhost:1"}, 200),
            ({"Host": "[::1]:1"}, 200),
            ({"Origin": f"http://127.0.0.1:{self.server.port}"}, 200),
            ({"Origin": "https://friend.example"}, 200),
        ):
            status, answered, _ = self.server.request("GET", "/v1/models", fields=fields)
            self.assertEqual(status, expected, fields)
            # The browser keeps another site's page from the answer.
            is_friend = "friend" in fields.get("Origin", "")
            self.assertEqual(answered["Access-Control-Allow-Origin"], "https://friend.example" if is_friend else None)
        fields = {"Origin": "https://friend.example", "Access-Control-Request-Method": "POST"}
        status, answered, _ = self.server.request("OPTIONS", CHAT, fields=fields)
        self.assertEqual(status, 204)
        self.assertIn("Authorization", answered["Access-Control-Allow-Headers"])
        self.assertEqual(self.server.request("OPTIONS", CHAT, fields={"Origin": "https://evil.example"})[0], 403)

    def test_the_page_lets_nothing_else_in(self):
        status, fields, body = self.server.request("GET", "/")
        self.assertEqual((status, fields["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", fields["Content-Security-Policy"])
        self.assertIn("frame-ancestors 'none'", fields["Content-Security-Policy"])
        # Libraries write such addresses; what scripts load is looked at in a browser (test_page.py).
        document, scripts = re.subn(rb"(?s)<script>.+?</script>", b"", body)
        self.assertEqual(scripts, 2)
        self.assertNotIn(b"<!--", document)
        self.assertNotRegex(document, rb'(src|href)="https?:')

    def test_kernels_have_their_share_of_a_step(self):
        untimed = json.loads(self.server.request("GET", "/v1/llamac/kernels?model=smollm2")[2])
        self.assertTrue(untimed["kernels"])
        self.server.post("/v1/completions", LONG | {"max_tokens": 20})
        kernels = json.loads(self.server.request("GET", "/v1/llamac/kernels")[2])["kernels"]
        self.assertAlmostEqual(sum(kernel["share_of_step"] for kernel in kernels), 1, 3)
        for kernel in kernels:
            self.assertGreater(kernel["share_of_limit"], 0, kernel)
        self.assertEqual(self.server.request("GET", "/v1/llamac/kernels?model=none")[0], 404)

    def test_figures_are_kept_for_charts(self):
        self.server.post("/v1/completions", LONG | {"max_tokens": 20})
        metrics = self.server.request("GET", "/metrics")[2].decode()
        figures = dict(re.findall(r'^(vllm:\w+)\{model_name="smollm2"\} (\S+)$', metrics, re.M))
        for _ in range(30):
            kept = json.loads(self.server.request("GET", "/v1/llamac/history?model=smollm2")[2])
            total = kept["figures"].get("vllm:generation_tokens_total", [0])
            if total[-1] == float(figures["vllm:generation_tokens_total"]):
                break
            time.sleep(0.1)
        self.assertEqual(len(total), len(kept["seconds_ago"]))
        self.assertEqual(kept["seconds_ago"], sorted(kept["seconds_ago"], reverse=True))
        self.assertLess(kept["seconds_ago"][-1], 2)
        for name, values in kept["figures"].items():
            self.assertEqual(values[-1], float(figures[name]), name)
        self.assertEqual(self.server.request("GET", "/v1/llamac/history?model=none")[0], 404)

    def test_paths_and_methods_that_are_not_there_are_said_to_be_so(self):
        status, _, body = self.server.request("GET", "/v1/nothing")
        self.assertEqual(status, 404)
        for text in (b"/v1/chat/completions, ", b"/tokenize, ", b"got /v1/nothing"):
            self.assertIn(text, body)
        status, fields, _ = self.server.request("GET", CHAT)
        self.assertEqual((status, fields["Allow"]), (405, "POST"))
        status, fields, _ = self.server.request("DELETE", "/v1/models")
        self.assertEqual((status, fields["Allow"]), (405, "GET, HEAD"))

    def test_a_target_is_read_as_a_whole(self):
        kernels = "/v1/llamac/kernels"
        for target, expected in (
            (f"{kernels}?a=1&model=smollm2&b", 200),
            (f"{kernels}?a=1&model=none&b", 404),
            (f"{kernels}?%6Dodel=none", 404),
            (f"{kernels}?xmodel=none", 200),
            (f"{kernels}?a?model=none", 200),
            (f"{kernels}?model=smollm2&model=none", 400),
            ("/v1/%6Dodels/smollm%32?a=b", 200),
            ("/v1/models/none", 404),
            (f"http://127.0.0.1:{self.server.port}/v1/models", 200),
            ("http://localhost/v1/models/none?a", 404),
            # The host that the target names is the one that counts.
            ("http://evil.example/v1/models", 403),
        ):
            status, _, body = self.server.request("GET", target)
            self.assertEqual(status, expected, (target, body))
            if status in (400, 404) and "model" in target:
                self.assertEqual(json.loads(body)["error"]["param"], "model")
        status, fields, body = self.server.request("OPTIONS", "*")
        self.assertEqual((status, body), (204, b""))
        self.assertIn("POST", fields["Allow"])

    def test_tokens_go_to_text_and_back(self):
        said = self.server.post("/tokenize", {"prompt": "Hello, Köln"})
        self.assertEqual(said["count"], len(said["tokens"]))
        self.assertEqual(self.server.post("/detokenize", {"tokens": said["tokens"]})["prompt"], "Hello, Köln")
        chat = self.server.post("/tokenize", {"messages": [{"role": "user", "content": "Hi"}]})
        text = self.server.post("/detokenize", {"tokens": chat["tokens"]})["prompt"]
        self.assertTrue(text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"), text)
        for body in ({}, {"prompt": 1}, {"prompt": "a", "messages": []}, {"prompt": "a", "unknown": 1}):
            self.server.post("/tokenize", body, expect=400)
        for body in ({}, {"tokens": [-1]}, {"tokens": [10**9]}, {"tokens": "a"}, {"tokens": [1], "unknown": 1}):
            self.server.post("/detokenize", body, expect=400)

    def test_strings_of_bounded_length_do_not_take_too_long(self):
        for lengths in ({"maxLength": 12}, {"maxLength": 300}, {"minLength": 20, "maxLength": 200}):
            schema = {"type": "array", "items": {"type": "string", **lengths}, "minItems": 3, "maxItems": 3}
            body = {"prompt": "Three quotes: ", "json_schema": schema, "max_tokens": 300, "temperature": 0}
            choice = self.server.post("/v1/completions", body)["choices"][0]
            if choice["finish_reason"] == "stop":
                for text in json.loads(choice["text"]):
                    self.assertLessEqual(len(text), lengths["maxLength"])
                    self.assertGreaterEqual(len(text), lengths.get("minLength", 0))

    def test_a_log_that_cannot_be_written_loses_no_request(self):
        server = self.start(name="/dev/full")
        for _ in range(3):
            self.assertEqual(server.request("GET", "/health")[0], 200)
        self.assertTrue(wait_for(lambda: len(server.stderr) > 1))
        self.assertIn("lines of the log are lost", server.stderr[1])


class Leaving(serving.ServedTestCase):
    options = ("--parallel", "4", "--max-queue", "2")

    def assert_idle(self):
        # A request that its client has left may still wait for its turn to be dropped.
        for name in ("num_requests_waiting", "num_requests_running"):
            self.assertTrue(wait_for(lambda: self.server.metric(name) == 0), name)
        self.assertEqual(self.server.metric("kv_cache_usage_perc"), 0)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def test_an_answer_ends_when_its_client_leaves(self):
        before = self.server.metric("generation_tokens_total")
        for prompt in ("Once upon a time", "word " * 4000):  # While it decodes, and before it does.
            stream = Stream(self.server.port, LONG | {"prompt": prompt, "max_tokens": 4000})
            self.assertTrue(wait_for(lambda: self.server.metric("num_requests_running") == 1))
            stream.close()
            self.assert_idle()
        self.assertLess(self.server.metric("generation_tokens_total") - before, 4000)

    def ask(self, body, then=b""):
        """A connection that asks for a completion, and sends `then`."""
        client = socket.create_connection(("127.0.0.1", self.server.port), timeout=120)
        self.addCleanup(client.close)
        text = json.dumps(body).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n"
        client.sendall(head.encode() + text + then)
        return client

    def test_the_log_counts_the_tokens_of_an_answer_that_was_left(self):
        for streams in (False, True):
            before, logged = self.server.metric("generation_tokens_total"), len(self.server.log())
            client = self.ask(LONG | {"max_tokens": 4000, "stream": streams})
            self.assertTrue(wait_for(lambda: self.server.metric("generation_tokens_total") >= before + 20))
            client.close()
            self.assert_idle()
            left = []
            self.assertTrue(
                wait_for(lambda: left.extend(line for line in self.server.log()[logged:] if line["status"] == 499) or left)
            )
            self.assertEqual((left[0]["prompt_tokens"], left[0]["error"]), (4, "the client left"))
            self.assertGreaterEqual(left[0]["completion_tokens"], 20)
            made = self.server.metric("generation_tokens_total") - before
            self.assertLessEqual(left[0]["completion_tokens"], made)

    def test_a_client_that_leaves_with_more_requests_behind_is_noticed(self):
        before = self.server.metric("generation_tokens_total")
        client = self.ask(LONG | {"max_tokens": 4000}, b"x" * 100_000)
        self.assertTrue(wait_for(lambda: self.server.metric("num_requests_running") == 1))
        client.close()
        self.assert_idle()
        self.assertLess(self.server.metric("generation_tokens_total") - before, 4000)

    def test_a_client_that_closes_its_half_has_its_answer(self):
        expected = self.server.post("/v1/completions", LONG)["choices"]
        for body in (LONG, LONG | {"stream": True}):
            client = self.ask(body)
            client.shutdown(socket.SHUT_WR)
            text = b"".join(iter(lambda: client.recv(65536), b""))
            if "stream" in body:
                self.assertIn(b"data: [DONE]\n\n", text)
            else:
                *interim, head, answer = text.split(b"\r\n\r\n")
                self.assertEqual({line.split(b"\r\n")[0] for line in interim} - {b"HTTP/1.1 100 Continue"}, set())
                self.assertTrue(head.startswith(b"HTTP/1.1 200 "))
                self.assertEqual(json.loads(answer)["choices"], expected)

    def test_clients_that_leave_at_any_moment_leave_nothing(self):
        self.server.request("GET", "/health")
        before = self.descriptors()
        rng = random.Random(1)
        workers = 4
        left = support.by_tier(120, 10000) // workers

        def leave(rng):
            for _ in range(left):
                stream = Stream(
                    self.server.port,
                    LONG | {"prompt": [rng.randrange(1000) for _ in range(rng.randrange(1, 300))], "max_tokens": 50},
                )
                if rng.random() < 0.8:
                    time.sleep(rng.random() ** 3 * 0.2)
                else:
                    stream.read(b"data: ")
                if rng.random() < 0.5:  # A reset in place of an end.
                    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                stream.close()

        threads = [threading.Thread(target=leave, args=(random.Random(rng.random()),)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assert_idle()
        self.assertTrue(wait_for(lambda: self.descriptors() <= before), self.descriptors())

    def test_a_full_queue_answers_at_once_that_it_is(self):
        streams = [Stream(self.server.port, LONG | {"max_tokens": 600}) for _ in range(4)]
        for stream in streams:
            stream.read(b"data: ")
        waiting = [Stream(self.server.port, LONG) for _ in range(2)]
        self.assertTrue(wait_for(lambda: self.server.metric("num_requests_waiting") == 2))
        status, fields, body = self.server.request("POST", "/v1/completions", LONG)
        self.assertEqual((status, fields["Retry-After"]), (503, "1"))
        self.assertEqual(json.loads(body)["error"]["code"], "overloaded")
        self.assertEqual(self.server.request("GET", "/health")[0], 200)
        for stream in streams:
            stream.close()
        for stream in waiting:
            self.assertIn(b"data: [DONE]\n\n", stream.read())
        self.assert_idle()

    def test_grammars_that_are_compiled_hold_up_nobody(self):
        kept = LONG | {"json_object": True, "max_tokens": 2, "ignore_eos": False}
        self.server.post("/v1/completions", kept)
        # Each takes longer to compile than it may.
        slow = [LONG | {"ignore_eos": False, "regex": ".*" * 300 + str(number)} for number in range(10)]
        clients = [self.ask(body) for body in slow[:9]]
        compiling = lambda: self.server.metric("num_grammars_compiling")
        self.assertTrue(wait_for(lambda: compiling() == 9))
        # Who asks for what waits already takes no place.
        clients += [self.ask(slow[8]), self.ask(slow[8])]
        for body in (LONG | {"max_tokens": 2}, kept):
            self.server.post("/v1/completions", body)
        self.assertEqual(self.server.request("GET", "/health")[0], 200)
        status, fields, body = self.server.request("POST", "/v1/completions", slow[9])
        self.assertEqual((status, fields["Retry-After"]), (503, "1"))
        error = json.loads(body)["error"]
        self.assertEqual((error["code"], error["param"]), ("overloaded", "regex"))
        self.assertIn("expected at most 8 grammars that wait to be compiled", error["message"])
        # None of the others has been answered in the meantime.
        self.assertEqual(compiling(), 9)
        clients[8].close()
        self.assertEqual(compiling(), 9)
        # Places of clients that leave are free, also of the grammar that is compiled.
        for client in clients:
            client.close()
        self.assertTrue(wait_for(lambda: compiling() == 0))
        self.server.post("/v1/completions", LONG | {"regex": "[a-z ]{1,9}", "ignore_eos": False})
        self.assert_idle()

    def test_a_server_that_ends_cuts_no_answer(self):
        server = Server([self.plan], self.path("ending.log"), "--parallel", "2")
        running = [Stream(server.port, LONG) for _ in range(3)]  # One of them waits.
        for stream in running[:2]:
            stream.read(b"data: ")
        server.process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_for(lambda: server.request("GET", "/health")[0] == 503))
        status, fields, _ = server.request("POST", "/v1/completions", LONG)
        self.assertEqual((status, fields["Retry-After"]), (503, "1"))
        for stream in running:
            text = stream.read()
            self.assertEqual(text.count(b'"finish_reason":"length"'), 1)
            self.assertIn(b"data: [DONE]\n\n", text)
        self.assertEqual(server.stop(), support.OK)

    def test_a_second_signal_ends_what_runs(self):
        server = Server([self.plan], self.path("second.log"))
        stream = Stream(server.port, LONG | {"max_tokens": 8000})
        stream.read(b"data: ")
        grammars = [Stream(server.port, LONG | {"ignore_eos": False, "regex": ".*" * 300 + tail}) for tail in "ab"]
        self.assertTrue(wait_for(lambda: server.metric("num_grammars_compiling") == len(grammars)))
        server.process.send_signal(signal.SIGINT)
        self.assertTrue(wait_for(lambda: server.request("GET", "/health")[0] == 503))
        waits = r"ending: waits up to 300 s for requests that run: \d+; Ctrl-C again ends at once\n"
        self.assertTrue(wait_for(lambda: re.fullmatch(waits, server.stderr[-1])), server.stderr)
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.process.wait(60), support.OK)
        self.assertNotIn(b"[DONE]", stream.read())
        for client in grammars:
            self.assertEqual(client.read(), b"")
        server.stop()
        (ended,) = {line["error"] for line in server.log() if line["status"] == 499}
        self.assertEqual(ended, "the connection ended while the server did")

    def test_clients_that_never_end_do_not_hold_up_the_end(self):
        chunked = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        server = Server([self.plan], self.path("never.log"), "--drain", "1")
        clients = []
        for text in (
            b"",
            b"POST / HTT",
            chunked + b"5;a=" + b"x" * 200_000,
            chunked + b"0\r\nA: " + b"x" * 500_000,
            chunked + b"0\r\n" + b"\n" * 500_000,
            chunked + b"5;a",
        ):
            client = socket.create_connection(("127.0.0.1", server.port))
            self.addCleanup(client.close)
            client.setblocking(False)
            try:
                client.send(text)
            except BlockingIOError:
                pass
            clients.append(client)
        stream = Stream(server.port, LONG | {"max_tokens": 8000})
        stream.read(b"data: ")
        self.assertEqual(server.stop(), support.OK)
        self.assertNotIn(b"[DONE]", stream.read())


class Hostile(serving.ServedTestCase):
    def test_bodies_that_are_no_requests_are_refused(self):
        for body in (
            b"",
            b"{",
            b"[]",
            b"null",
            b'"text"',
            b'{"prompt": "\xff\xfe"}',
            b'{"prompt": "a", "prompt": "b"}',
            b'{"prompt": "\\ud800"}',
            b'{"prompt": ' + b"[" * 100_000,
            b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'{"prompt": "a", "temperature": 1e999}',
            b'{"prompt": "a", "temperature": NaN}',
            b'{"prompt": "a", "max_tokens": 99999999999999999999}',
            b'{"prompt": "a", "n": 1000000}',
            b'{"prompt": "a", "logit_bias": {"99999999": 1}}',
            b'{"prompt": "a", "stop": ""}',
            b'{"prompt": []}',
            b'{"prompt": [[]]}',
            b'{"prompt": ["a", 1]}',
        ):
            status, _, text = self.server.request("POST", "/v1/completions", body)
            self.assertEqual(status, 400, (body[:80], text[:200]))
            self.assertLess(len(json.loads(text)["error"]["message"]), 1000)

    def test_errors_say_which_field_they_are_about(self):
        def nested(**fields):
            return {"messages": [{"role": "user", "content": "a"}], **fields}

        for path, body, param, code in (
            ("/v1/completions", b"{", None, None),
            ("/v1/completions", b"[]", None, None),
            ("/v1/completions", b'{"top_p": 1, "top_p": 1}', "top_p", None),
            ("/v1/completions", {}, "prompt", None),
            ("/v1/completions", {"prompt": [49152]}, "prompt", None),
            ("/v1/completions", {"prompt": "a", "top_p": 2}, "top_p", None),
            ("/v1/completions", {"prompt": "a", "min_tokens": -1}, "min_tokens", None),
            ("/v1/completions", {"prompt": "a", "max_tokens": -2}, "max_tokens", None),
            ("/v1/completions", {"prompt": "a", "stop_token_ids": [10**6]}, "stop_token_ids", None),
            ("/v1/completions", {"prompt": "a", "time_limit": -1}, "time_limit", None),
            ("/v1/completions", {"prompt": "a", "logit_bias": {"5": 101}}, "logit_bias", None),
            ("/v1/completions", {"prompt": "a", "json_object": True, "ignore_eos": True}, "ignore_eos", None),
            ("/v1/completions", {"prompt": "a", "grammar": "root ::= x"}, "grammar", None),
            ("/v1/completions", {"prompt": "a", "json_schema": {"not": {}}}, "json_schema", None),
            ("/v1/completions", {"prompt": "a", "max_tokens": 10**6}, None, "context_length_exceeded"),
            ("/v1/completions", {"prompt": "a", "request: expected at most ": 1}, "request: expected at most ", None),
            (CHAT, {}, "messages", None),
            (CHAT, nested(prompt="a"), "prompt", None),
            ("/v1/completions", nested(prompt="a"), "messages", None),
            (CHAT, nested(chat_template_kwargs={"nothing": 1}), "chat_template_kwargs", None),
            (CHAT, nested(stream=True, stream_options={"a": 1}), "stream_options", None),
            (CHAT, nested(response_format={"type": "xml"}), "response_format", None),
            (CHAT, {"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages[0]", None),
        ):
            error = self.server.post(path, body, expect=400)["error"]
            got = (error["param"], error["code"], error["type"])
            self.assertEqual(got, (param, code, "invalid_request_error"), (body, error))

    def test_what_is_too_large_is_refused_before_it_is_read(self):
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
            self.assertIn(b"413", client.recv(1000).split(b"\r\n")[0])
        logged = {"status": 413, "method": "POST", "path": "/v1/completions"}
        self.assertTrue(wait_for(lambda: any(logged.items() <= line.items() for line in self.server.log())))

    def test_a_prompt_past_the_context_is_refused_with_both_numbers(self):
        for path, body in (
            ("/v1/completions", {"prompt": "word " * 9000}),
            (CHAT, {"messages": [{"role": "user", "content": "word " * 9000}]}),
        ):
            error = self.server.post(path, body, expect=400)["error"]
            self.assertRegex(error["message"], r"at most 8192 tokens.* a prompt of 9\d\d\d")

    def test_idle_and_slow_clients_hold_up_nobody(self):
        count = support.by_tier(60, 1000)
        idle = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(count)]
        slow = [Stream(self.server.port, LONG) for _ in range(support.by_tier(6, 100))]  # They read nothing.
        for client in idle[: count // 2]:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        self.assertEqual(self.server.request("GET", "/health")[0], 200)
        self.server.post("/v1/completions", LONG | {"max_tokens": 4})
        for client in (*idle, *slow):
            client.close()


if __name__ == "__main__":
    unittest.main()
