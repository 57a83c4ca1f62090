# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server of models with the paths and answers of Hugging Face's, over http or
https, which can be told to do everything wrong."""

import functools
import hashlib
import http.server
import json
import os
import ssl
import subprocess
import threading
import time

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def checksums(data, large):
    """A file's entry in a listing: SHA-256 of a large one, git's checksum of others."""
    entry = {"size": len(data), "blobId": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
    if large:
        entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return entry


def make_certificate(folder):
    """Makes an authority's certificate and, by it, one of localhost: the paths of the
    first one, and of the second one with its key."""
    authority, key, request, certificate = (os.path.join(folder, name) for name in ("ca", "key", "request", "cert"))
    names = os.path.join(folder, "names")
    with open(names, "w") as f:
        f.write("subjectAltName=DNS:localhost\n")

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *new, "-days", "2", "-subj", "/CN=authority", "-out", authority, "-keyout", authority + "-key")
    openssl("req", *new, "-subj", "/CN=localhost", "-out", request, "-keyout", key)
    openssl(
        *("x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority + "-key", "-CAcreateserial"),
        *("-days", "2", "-extfile", names, "-out", certificate),
    )
    return authority, certificate, key


class ModelServer:
    """Has `repositories`, files by their paths by names. What it does wrong, and what was
    asked of it, are members."""

    def __init__(self, tls=None):
        self.repositories = {}
        self.files = {}  # Files of direct links, by paths.
        self.listing = None  # Changes a listing.
        self.statuses = {}  # Answers, by ends of paths.
        self.redirects = None  # The base of where large files are.
        self.cut_after = []  # The bytes that the next answers with files have.
        self.has_ranges = True
        self.has_sizes = True
        self.etag = '"1"'
        self.corrupt = None  # The end of the path of a file whose bits are wrong.
        self.delay = 0  # The time between blocks.
        self.requests = []
        self.listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, self))
        self.scheme = "https" if tls else "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.listener.socket = context.wrap_socket(self.listener.socket, server_side=True)
        self.port = self.listener.server_port
        self.thread = threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def url(self, host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port}"

    def close(self):
        self.listener.shutdown()
        self.listener.server_close()
        self.thread.join()

    def asked(self, end):
        """The fields of requests for paths with this end."""
        return [fields for path, fields in self.requests if path.endswith(end)]

    def list(self, name):
        siblings = [
            {"rfilename": path, **checksums(data, len(data) > 10000)} for path, data in self.repositories[name].items()
        ]
        listing = {"id": name, "sha": COMMIT, "siblings": siblings}
        if self.listing:
            self.listing(listing)
        return json.dumps(listing).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server, *args):
        self.models = server
        super().__init__(*args)

    def log_message(self, *args):
        pass

    def answer(self, code, body=b"", **fields):
        self.send_response(code)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.models.requests.append((path, dict(self.headers)))
        for end, code in self.models.statuses.items():
            if path.endswith(end):
                return self.answer(code, b'{"error": "no"}')
        if path in self.models.files:
            return self.send_file(path, self.models.files[path])
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            name = "/".join(parts[2:4])
            known = name in self.models.repositories and parts[4:] in (["revision", "main"], ["revision", "v2"])
            return self.answer(200, self.models.list(name)) if known else self.answer(404)
        name, file = "/".join(parts[:2]), "/".join(parts[4:])
        files = self.models.repositories.get(name, {})
        if parts[2:4] != ["resolve", COMMIT] or file not in files:
            return self.answer(404)
        if self.models.redirects and len(files[file]) > 10000:
            return self.answer(302, Location=self.models.redirects + path)
        return self.send_file(path, files[file])

    def send_file(self, path, data):
        models = self.models
        if models.corrupt and path.endswith(models.corrupt):
            data = data[:-1] + bytes([data[-1] ^ 1])
        first, asked = 0, self.headers.get("Range", "")
        if models.has_ranges and asked and self.headers.get("If-Range", models.etag) == models.etag:
            first = int(asked.removeprefix("bytes=").partition("-")[0])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("ETag", models.etag)
        if models.has_sizes:
            self.send_header("Content-Length", str(len(data) - first))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        left = data[first:]
        cut = models.cut_after.pop(0) if models.cut_after and len(left) > 10000 else len(left)
        for start in range(0, min(cut, len(left)), 1 << 16):
            try:
                self.wfile.write(left[start : min(cut, start + (1 << 16))])
            except OSError:
                return
            time.sleep(models.delay)
        if cut < len(left) or not models.has_sizes:
            self.close_connection = True
