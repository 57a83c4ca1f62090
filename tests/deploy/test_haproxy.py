# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""deploy/compose/haproxy.cfg before three servers, which it finds by DNS as it
does in Docker."""

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import threading
import unittest
import urllib.request

from replicas import DEPLOY, WORKERS, ReplicasTestCase, ask, ask_all, free_port, hit_ratio

import support
from serving import Server, wait_for

HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin") or support.skip("no haproxy")
CONFIGURATION = os.path.join(DEPLOY, "compose", "haproxy.cfg")


class Names(threading.Thread):
    """A name server that gives these IPv4 addresses for any name."""

    def __init__(self, addresses):
        super().__init__(daemon=True)
        self.addresses = addresses
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.start()

    def run(self):
        while True:
            query, sender = self.socket.recvfrom(4096)
            end = query.index(b"\0", 12) + 5
            found = self.addresses if query[end - 4 : end - 2] == b"\0\1" else []
            # The question again, and a record of a second for each address.
            head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, len(found), 0, 0)
            records = (struct.pack(">HHHIH", 0xC00C, 1, 1, 1, 4) + socket.inet_aton(a) for a in found)
            self.socket.sendto(head + query[12:end] + b"".join(records), sender)


class Replicas:
    """Servers at addresses of their own and one port, behind HAProxy. `change`
    is what is replaced in its configuration."""

    def __init__(self, case, *options, change=None):
        self.case = case
        self.options = options or case.options
        self.change = change or {}
        self.stack = contextlib.ExitStack()
        self.addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
        self.backend = free_port(self.addresses)
        self.port = free_port(["127.0.0.1"])

    def __enter__(self):
        with self.stack:
            self.servers = [self.start(address) for address in self.addresses]
            with open(CONFIGURATION, encoding="utf-8") as file:
                text = file.read()
            for old, new in self.change.items():
                self.case.assertIn(old, text)
                text = text.replace(old, new)
            path = self.case.path("haproxy.cfg")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            environment = {
                "LISTEN": f"127.0.0.1:{self.port}",
                "SERVERS": f"llamac:{self.backend}",
                "RESOLVER": f"127.0.0.1:{Names(self.addresses).port}",
            }
            haproxy = subprocess.Popen([HAPROXY, "-db", "-q", "-f", path], env=os.environ | environment)
            self.stack.callback(haproxy.wait)
            self.stack.callback(haproxy.kill)
            # Health checks have found all of them once each was given a request.
            if not wait_for(lambda: self.ask_models() and all(len(server.log()) for server in self.servers)):
                self.case.fail("HAProxy did not find all servers")
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *trace):
        self.stack.close()

    def start(self, address):
        server = Server(
            [self.case.plan], self.case.path(f"{address}.log"), *self.options, address=(address, self.backend)
        )
        self.stack.callback(server.stop)
        return server

    def ask_models(self):
        """A request that has no key."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=60) as answer:
                return answer.status == 200
        except OSError:
            return False

    def metrics(self):
        return [server.request("GET", "/metrics")[2].decode() for server in self.servers]

    def running(self):
        return sum(server.metric("num_requests_running") for server in self.servers)


ROUND_ROBIN = {
    "balance hash var(txn.key)": "balance roundrobin",
    "hash-type consistent sdbm avalanche": "",
    "hash-balance-factor 250": "",
}


class Haproxy(ReplicasTestCase):
    def test_requests_that_begin_alike_find_their_beginning_in_a_cache(self):
        hits = []
        for change in ({}, ROUND_ROBIN):
            with Replicas(self, change=change) as replicas:
                counts = self.judge(ask_all(replicas.port, self.bodies))
                self.assertEqual(counts["answered"], len(self.bodies))
                hits.append(hit_ratio(replicas.metrics()))
        self.assert_hits(*hits)

    def test_servers_that_are_killed_and_replaced_lose_no_request(self):
        part = len(self.bodies) // 4
        with Replicas(self) as replicas:
            first, second, _ = replicas.servers
            counts = self.judge(
                ask_all(
                    replicas.port,
                    self.bodies,
                    after={
                        part: first.process.kill,
                        2 * part: lambda: replicas.start(first.host),
                        3 * part: second.process.terminate,
                    },
                )
            )
            self.assertEqual(second.stop(), support.OK)
        # Streams that the killed server had begun end there.
        self.assertLessEqual(counts["cut"], WORKERS)
        self.assertEqual(counts["answered"] + counts["cut"], len(self.bodies))

    def test_a_beginning_that_all_share_is_answered_by_several(self):
        shared = max(self.bodies, key=lambda body: "prompt" in body)
        with Replicas(self, *self.options, "--max-queue", 1) as replicas:
            answers = ask_all(replicas.port, [shared] * 24)
            right = self.expected[self.bodies.index(shared)].text
            self.assertEqual({(answer.whole, answer.text) for answer in answers}, {(True, right)})
            busy = [server for server in replicas.servers if server.metric("generation_tokens_total")]
            self.assertGreater(len(busy), 1)

    def test_events_come_one_by_one_and_a_client_that_leaves_ends_its_answer(self):
        with Replicas(self) as replicas:
            self.assert_streams(replicas.port, replicas.running)

    def test_503_where_no_server_is_left(self):
        with Replicas(self) as replicas:
            for server in replicas.servers:
                self.assertEqual(server.stop(), support.OK)
            self.assertEqual(ask(replicas.port, self.bodies[0]).status, 503)


if __name__ == "__main__":
    unittest.main()
