# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server for the page of llamac serve that answers with what a test gives it.

It sends the page under the policy that llamac serve sends it under.
"""

import base64
import hashlib
import json
import os
import re
import select
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import support

PAGE = os.path.join(support.ROOT, "serve", "page")
LIBRARIES = os.path.join(os.path.dirname(support.BIN_DIR), "serve", "page", "libraries.js")
MODEL = "smollm2"

METRICS = """\
# HELP vllm:num_requests_running Requests in a step.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="MODEL"} 3
vllm:num_requests_running{model_name="another"} 40
vllm:num_requests_waiting{model_name="MODEL"} 2
vllm:kv_cache_usage_perc{model_name="MODEL"} 0.375
vllm:prompt_tokens_total{model_name="MODEL"} 5000
vllm:generation_tokens_total{model_name="MODEL"} 1234
vllm:prefix_cache_queries_total{model_name="MODEL"} 4000
vllm:prefix_cache_hits_total{model_name="MODEL"} 1000
vllm:num_preemptions_total{model_name="MODEL"} 7
""".replace("MODEL", MODEL)


def kernel(name, kind, launches, size, flops, seconds=None, step=None, limit=None):
    keys = ("name", "kind", "launches", "bytes", "flops", "seconds", "share_of_step", "share_of_limit")
    return dict(zip(keys, (name, kind, launches, size, flops, seconds, step, limit)))


KERNELS = [
    kernel("qkv_n960_k576", "matmul", 30, 10_368_000, 33_177_600, 4.1e-4, 0.16, 0.83),
    kernel("attention_decode", "attention", 30, 2_949_120, 8_847_360, 2.2e-4, 0.09, 0.41),
    kernel("ffn_gate_up_n3072_k576", "matmul", 30, 33_177_600, 106_168_320, 1.2e-3, 0.47, 0.91),
    kernel("logits_n49152_k576", "matmul", 1, 17_694_720, 56_623_104, 6.4e-4, 0.25, 0.88),
    kernel("embedding", "gather", 1, 360, 0),
]


def read(name):
    with open(os.path.join(PAGE, name), encoding="utf-8") as file:
        return file.read()


def assemble():
    """The page, and the policy that lets nothing but its style and script in."""
    names = re.search(r"set\(page_scripts\s+([^)]*)\)", read("CMakeLists.txt")).group(1).split()
    parts = {"style": read("page.css"), "libraries": read(LIBRARIES), "script": "".join(map(read, names))}
    page = read("page.html")
    hashes = {}
    for part, text in parts.items():
        tag = "style" if part == "style" else "script"
        page = page.replace(f"<!--{part}-->", f"<{tag}>{text}</{tag}>")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes.setdefault(tag, []).append(f"'sha256-{digest}'")
    policy = ["default-src 'none'", *(f"{tag}-src {' '.join(sources)}" for tag, sources in hashes.items())]
    policy += ["connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    policy += ["frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types dompurify"]
    return page.encode(), "; ".join(policy)


class PageServer:
    """`answer` gives the pieces of an answer for a request's body; a piece that is a
    dict is sent as it is. `hold` is an event that a piece of None waits for."""

    def __init__(self, answer=lambda body: ["Hello"], port=0):
        self.answer = answer
        self.key = None  # The key that requests must bring, if any.
        self.refusal = None  # (status, message, headers) for completions.
        self.history = {"seconds_ago": [], "figures": {}}
        self.hold = threading.Event()
        self.tokens_of_piece = 1
        self.bodies, self.cancelled = [], 0
        self.page, self.policy = assemble()
        outer = self

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request, client_address):
                if not isinstance(sys.exc_info()[1], OSError):
                    super().handle_error(request, client_address)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            log_message = staticmethod(lambda *args: None)

            def do_GET(self):
                outer.get(self)

            def do_POST(self):
                outer.post(self)

        self.http = Server(("127.0.0.1", port), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_address[1]}/"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.hold.set()
        self.http.shutdown()
        self.http.server_close()

    # --- Answers --------------------------------------------------------------

    def send(self, handler, body, kind="application/json", status=200, headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        handler.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def refuse(self, handler, status, message, headers=()):
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        self.send(handler, {"error": error}, status=status, headers=headers)

    def is_known(self, handler):
        if self.key is None or handler.headers.get("Authorization") == f"Bearer {self.key}":
            return True
        self.refuse(handler, 401, "no key, or a wrong one: send it as Authorization: Bearer KEY")
        return False

    def get(self, handler):
        path = handler.path.partition("?")[0]
        if path == "/":
            policy = ("Content-Security-Policy", self.policy)
            self.send(handler, self.page, "text/html; charset=utf-8", headers=[policy])
        elif not self.is_known(handler):
            pass
        elif path == "/v1/models":
            models = [(MODEL, 8192), ("another", 2048)]
            data = [{"id": name, "object": "model", "max_model_len": n} for name, n in models]
            self.send(handler, {"object": "list", "data": data})
        elif path == "/metrics":
            self.send(handler, METRICS.encode(), "text/plain; version=0.0.4")
        elif path == "/v1/llamac/history":
            self.send(handler, {"model": MODEL} | self.history)
        elif path == "/v1/llamac/kernels":
            self.send(handler, {"model": MODEL, "device": "AMD EPYC, AVX2, 2 threads", "kernels": KERNELS})
        else:
            self.refuse(handler, 404, f"no {path}")

    def post(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        if not self.is_known(handler):
            return
        self.bodies.append(body)
        if self.refusal:
            self.refuse(handler, *self.refusal)
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            self.stream(handler, body)
        except OSError:
            self.cancelled += 1
            handler.close_connection = True

    def stream(self, handler, body):
        def send(text):
            data = text.encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.flush()

        def event(choices):
            usage = {"prompt_tokens": 120, "completion_tokens": tokens, "total_tokens": 120 + tokens,
                     "prompt_tokens_details": {"cached_tokens": 96}}  # fmt: skip
            head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": body["model"]}
            send(f"data: {json.dumps(head | {'choices': choices, 'usage': usage})}\n\n")

        def delta(value, reason=None):
            event([{"index": 0, "delta": value, "finish_reason": reason}])

        tokens, reason = 0, "stop"
        send(": a comment\n\n")
        delta({"role": "assistant", "content": ""})
        for piece in self.answer(body):
            if piece is None:
                self.wait(handler)
            elif isinstance(piece, dict):
                if "error" in piece:
                    send(f"data: {json.dumps(piece)}\n\n")
                    send("")
                    return
                reason = piece.get("finish_reason", reason)
                delta(piece.get("delta", {}))
            else:
                tokens += self.tokens_of_piece
                delta({"content": piece})
        delta({}, reason)
        event([])
        send("data: [DONE]\n\n")
        send("")

    def wait(self, handler):
        """Until the test goes on, or the browser has closed the connection."""
        while not self.hold.wait(0.02):
            readable = select.select([handler.connection], [], [], 0)[0]
            if readable and not handler.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError
