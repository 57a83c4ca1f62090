# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replicas of `llamac-run serve` as an application of Ray Serve.

    serve run serve.yaml

A client's request goes to Ray's proxy, to a Router, to a Server, which is an
actor with one `llamac-run serve` as its child:

- The Router sends requests that begin alike to the same Server, by Ray's
  consistent hashing, and to the next on the ring where that one is full.
- A Server lasts as long as its child: where one ends, the other does, and Ray
  starts a new one. A Router sends a request again that had no byte of an answer
  yet; an answer that had begun is cut.
- A Server that is removed lets its answers end.
"""

import asyncio
import contextlib
import json
import os
import re
import sys

import aiohttp
from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.exceptions import RayError
from ray.serve.config import RequestRouterConfig
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    RayServeException,
    RequestCancelledError,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

# Fields that belong to one connection, or that a new request is given anew.
NOT_PASSED_ON = {"connection", "date", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
PREFIX = "ray.serve.experimental.consistent_hash_router:ConsistentHashRouter"
ATTEMPTS = 5
HEALTH_TIMEOUT = 5


class Options(BaseModel):
    """The application's `args` in serve.yaml."""

    model_config = ConfigDict(extra="forbid")

    plan: str  # its path on every node
    replicas: int = 1
    routers: int = 1  # at most one on a node
    program: str = "llamac-run"
    options: list[str] = []  # further ones of `llamac-run serve`
    cpus: float = 1  # that Ray reserves for a replica
    gpus: float = 0
    requests: int = 16  # that a replica takes before others get them
    queue: int = 256  # requests that wait in a router; more are refused
    # Characters of a conversation or prompt that decide where it goes. The prefix
    # cache works by pages of 64 tokens, which are about as many.
    prefix: int = 256
    drain: int = 60  # seconds for answers to end


def prefix_key(body: bytes, length: int) -> str:
    """The first characters of the conversation or prompt in `body`, if it has one."""
    try:
        fields = json.loads(body)
        beginning = fields.get("messages") or fields.get("prompt")
    except (ValueError, AttributeError, RecursionError):
        return ""  # The server says what is wrong.
    return json.dumps(beginning)[:length] if beginning else ""


def label_metrics(texts: dict[str, str]) -> str:
    """The metrics of several replicas in one text, each with a label `replica`."""
    families: dict[str, list[str]] = {}
    for replica, text in texts.items():
        for line in text.splitlines():
            if line.startswith("#"):
                family = families.setdefault(line.split()[2], [])
                if line not in family:
                    family.append(line)
            elif line:
                name, labels, value = re.fullmatch(r"([^{ ]+)(?:{(.*)})? (.*)", line).groups()
                labels = ",".join(filter(None, [labels, f'replica="{replica}"']))
                family.append(f"{name}{{{labels}}} {value}")
    return "".join(f"{line}\n" for family in families.values() for line in family)


@serve.deployment
class Server:
    """A server, and what passes requests on to it."""

    async def __init__(self, options: Options):
        # A worker that is killed takes its child with it.
        self.child = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL"),
            *(options.program, "serve", options.plan, "--port", "0", "--drain", str(options.drain)),
            *options.options,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 20,  # bytes of a line of its log
        )
        url = asyncio.get_running_loop().create_future()
        self.stopping = False
        self.watch = asyncio.create_task(self._watch(url))
        self.client = aiohttp.ClientSession(
            await url,
            auto_decompress=False,
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def _watch(self, url: asyncio.Future):
        """Copies the server's log, and ends this replica where the server ends."""
        async for line in self.child.stderr:
            sys.stderr.write(line.decode(errors="replace"))
            if line.startswith(b"listening on "):
                url.set_result(line.split()[2].decode())
        code = await self.child.wait()
        if not url.done():
            url.set_exception(RuntimeError(f"llamac-run serve ended with {code}"))
        elif not self.stopping:
            sys.stderr.write(f"llamac-run serve ended with {code}, and this replica with it\n")
            sys.stderr.flush()
            os._exit(1)

    async def __del__(self):
        # No request is left by now.
        self.stopping = True
        with contextlib.suppress(ProcessLookupError):
            self.child.terminate()
        await self.watch
        await self.client.close()

    async def check_health(self):
        async with self.client.get("/health", timeout=aiohttp.ClientTimeout(HEALTH_TIMEOUT)) as answer:
            answer.raise_for_status()

    async def answer(self, method: str, path: str, fields: list, body: bytes):
        """The status and the fields of the answer, and then its pieces as they
        come. To cancel it closes the connection, and so ends the answer."""
        async with self.client.request(method, path, headers=fields, data=body, allow_redirects=False) as answer:
            yield answer.status, list(answer.headers.items())
            async for piece in answer.content.iter_any():
                yield piece

    async def metrics(self, fields: list) -> tuple[str, int, str]:
        async with self.client.get("/metrics", headers=fields) as answer:
            return serve.get_replica_context().replica_id.unique_id, answer.status, await answer.text()


@serve.deployment
class Router:
    """Ray's proxies give requests to it."""

    def __init__(self, servers, options: Options):
        self.servers = servers.options(method_name="answer", stream=True)
        self.prefix = options.prefix

    async def __call__(self, request: Request) -> Response:
        fields = [(name, value) for name, value in request.headers.items() if name not in NOT_PASSED_ON]
        path = request.url.path
        if request.url.query:
            path += f"?{request.url.query}"
        if path == "/metrics":
            return await self.metrics(fields)
        body = await request.body()
        key = prefix_key(body, self.prefix)
        for attempt in range(ATTEMPTS):
            if attempt:
                # Ray needs a moment to see that an actor is dead.
                await asyncio.sleep(0.2 * attempt)
                key = ""  # any other
            servers = self.servers.options(session_id=key)
            pieces = servers.remote(request.method, path, fields, body)
            try:
                status, sent = await anext(pieces)
                if status == 503:
                    continue  # Its queue is full, or it ends.
                headers = {name: value for name, value in sent if name.lower() not in NOT_PASSED_ON}
                if headers.get("Content-Type", "").startswith("text/event-stream"):
                    return StreamingResponse(pieces, status, headers)
                return Response(b"".join([piece async for piece in pieces]), status, headers)
            except (BackPressureError, DeploymentUnavailableError):
                break
            except RequestCancelledError:
                raise  # The client left.
            except (RayError, RayServeException):
                continue  # No byte of an answer was passed on.
        message = "no replica can take this request now: try again later"
        error = {"message": message, "type": "server_error", "param": None, "code": "unavailable"}
        return JSONResponse({"error": error}, 503, {"Retry-After": "1"})

    async def metrics(self, fields: list) -> Response:
        answers = await self.servers.broadcast("metrics", fields).results_async(timeout_s=HEALTH_TIMEOUT)
        for _, status, text in answers:
            if status != 200:
                return Response(text, status)
        return PlainTextResponse(label_metrics({replica: text for replica, _, text in answers}))


def build(options: Options, request_router: str = PREFIX) -> serve.Application:
    kwargs = {"num_fallback_replicas": options.replicas} if request_router == PREFIX else {}
    servers = Server.options(
        num_replicas=options.replicas,
        max_ongoing_requests=options.requests,
        max_queued_requests=options.queue,
        ray_actor_options={"num_cpus": options.cpus, "num_gpus": options.gpus},
        request_router_config=RequestRouterConfig(
            request_router_class=request_router, request_router_kwargs=kwargs
        ),
        health_check_period_s=2,
        health_check_timeout_s=2 * HEALTH_TIMEOUT,
        graceful_shutdown_timeout_s=options.drain + 15,
    )
    # A proxy asks the router of its own node first, so that they end together.
    routers = Router.options(
        num_replicas=options.routers,
        max_replicas_per_node=1,
        max_ongoing_requests=10000,
        ray_actor_options={"num_cpus": 0},
        graceful_shutdown_timeout_s=options.drain + 15,
    )
    return routers.bind(servers.bind(options), options)
