# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests of `llamac serve` share this: a server that runs, and the real
model as a plan."""

import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time

import support
from support import LLAMAC, LLAMAC_RUN, OK

MODEL = "smollm2"


class Server:
    """`llamac-run serve` of plans at a free port or a given one, or `serve` of
    another tool. As a context it is stopped by SIGTERM, and must then end with
    exit code 0."""

    def __init__(self, plans, access_log, *options, env=None, tool=LLAMAC_RUN, address=None):
        self.access_log = access_log
        self.host = address[0] if address else "127.0.0.1"
        listen = ("--host", address[0], "--port", address[1]) if address else ("--port", 0)
        command = [tool, "serve", *plans, *listen, "--access-log", access_log, *options]
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, NO_COLOR="1") | (env or {}),
        )
        self.stderr = []
        found = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(found,), daemon=True)
        self._reader.start()
        self.url = found.get(timeout=120)
        if self.url is None:
            raise AssertionError(f"serve ended with {self.process.wait()}: {''.join(self.stderr)}")
        self.port = int(self.url.rsplit(":", 1)[1])

    def _read(self, found):
        """Keeps what the server says, as a full pipe would stop it."""
        for line in self.process.stderr:
            self.stderr.append(line)
            if line.startswith("listening on "):
                found.put(line.split()[2])
        found.put(None)

    def stop(self, sent=signal.SIGTERM, timeout=60):
        """Ends the server, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sent)
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self._reader.join()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        code = self.stop()
        if kind is None and code != OK:
            raise AssertionError(f"serve ended with {code}: {''.join(self.stderr)}")

    def request(self, method, path, body=None, fields=None, timeout=300):
        """The status, the fields of the answer and its body. `body` is sent as
        it is, or as JSON."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            connection.request(method, path, body, {"Content-Type": "application/json"} | (fields or {}))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def post(self, path, body, expect=200):
        """The JSON that answers a POST of JSON."""
        status, _, text = self.request("POST", path, body)
        if status != expect:
            raise AssertionError(f"POST {path}: expected {expect}, got {status} {text.decode()}\n{body}")
        return json.loads(text)

    def metric(self, name):
        """The value of a metric that has no other label than the model's name."""
        _, _, text = self.request("GET", "/metrics")
        pattern = rf"^(?:vllm|llamac):{re.escape(name)}(?:{{[^,}}]*}})? (.*)$"
        return float(re.search(pattern, text.decode(), re.MULTILINE).group(1))

    def log(self):
        """The lines of the access log."""
        with open(self.access_log, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class Stream:
    """A completion that comes in events, over a connection of its own."""

    def __init__(self, port, body, path="/v1/completions"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        text = json.dumps(body | {"stream": True}).encode()
        self.socket.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text
        )
        self.text = b""

    def read(self, mark=None):
        """The text that came, up to `mark`, to the end of the answer, or to a refusal."""
        while not (mark in self.text if mark else self.text.endswith(b"\r\n0\r\n\r\n")):
            if self.text.startswith(b"HTTP/1.1 503"):
                break
            piece = self.socket.recv(65536)
            if not piece:
                break
            self.text += piece
        return self.text

    def close(self):
        self.socket.close()

    __del__ = close


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def smollm2_plan(case, *options):
    """The real model's plan by `options`, in the folder of `case`, a class of
    tests."""
    plan = case.path(f"{MODEL}.plan")
    if not os.path.exists(plan):
        model = support.require_model("smollm2.gguf")
        support.run([LLAMAC, "compile", model, "-o", plan, *map(str, options)], cache=case.cache, check=True)
    return plan


class ServedTestCase(support.TestCase):
    """Tests of one server of the real model, started by `options`."""

    options = ()
    plan_options = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = smollm2_plan(cls, *cls.plan_options)
        cls.server = cls.start(*cls.options)

    @classmethod
    def start(cls, *options, name="access.log"):
        """Another server, that lasts until the tests of the class are over."""
        server = Server([cls.plan], cls.path(name), *options)
        server.__enter__()
        cls.addClassCleanup(server.__exit__, None, None, None)
        return server
