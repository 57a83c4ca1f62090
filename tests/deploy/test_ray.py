# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""deploy/ray on three simulated nodes, one replica on each."""

import os
import re
import signal
import sys
import unittest
import urllib.request

import replicas
import support
from replicas import DEPLOY, WORKERS, ReplicasTestCase, ask_all, hit_ratio
from serving import wait_for

support.require("ray", "yaml")

import ray
import yaml
from ray import serve
from ray.cluster_utils import Cluster
from ray.serve.schema import ServeDeploySchema

FOLDER = os.path.join(DEPLOY, "ray")
sys.path.insert(0, FOLDER)

import llamac_replicas

ROUND_ROBIN = "ray.serve.experimental.round_robin_router:RoundRobinRouter"
NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


def children_of_replicas(plan):
    """Process ids of servers of `plan`, each with its parent's."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if command[1:3] == [b"serve", plan.encode()]:
            found[int(pid)] = parent
    return found


class Ray(ReplicasTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        cls.addClassCleanup(cls.cluster.shutdown)
        for _ in range(2):
            cls.cluster.add_node(**NODE)
        ray.init(cls.cluster.address, runtime_env={"working_dir": FOLDER}, log_to_driver=False)
        cls.addClassCleanup(ray.shutdown)
        cls.port = replicas.free_port(["127.0.0.1"])
        serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": cls.port})
        cls.addClassCleanup(serve.shutdown)

    def deploy(self, *options, **arguments):
        """Replaces what is served, and waits until that is done."""
        application = llamac_replicas.build(
            llamac_replicas.Options(
                plan=self.plan,
                program=support.LLAMAC_RUN,
                replicas=3,
                routers=3,
                requests=WORKERS,
                options=[*map(str, self.options), *options],
            ),
            **arguments,
        )
        serve.run(application)

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            return answer.read().decode()

    def count_replicas(self):
        try:
            return len(set(re.findall(r'replica="(\w+)"', self.metrics())))
        except OSError:
            return 0

    def running(self):
        values = re.findall(r"^vllm:num_requests_running{.*} (\d+)$", self.metrics(), re.MULTILINE)
        return sum(map(int, values))

    def test_requests_that_begin_alike_find_their_beginning_in_a_cache(self):
        hits = []
        for router in (llamac_replicas.PREFIX, ROUND_ROBIN):
            self.deploy(request_router=router)
            counts = self.judge(ask_all(self.port, self.bodies))
            self.assertEqual(counts["answered"], len(self.bodies))
            hits.append(hit_ratio([self.metrics()]))
            serve.delete("default")
        self.assert_hits(*hits)

    def test_a_killed_server_replica_and_node_make_no_answer_wrong(self):
        self.deploy()
        part = len(self.bodies) // 5
        # For the replica of the node that goes. The head has the proxy and what
        # controls all, and stays.
        self.cluster.add_node(**NODE)

        def kill_server():
            os.kill(min(children_of_replicas(self.plan)), signal.SIGKILL)

        def kill_replica():
            os.kill(max(children_of_replicas(self.plan).values()), signal.SIGKILL)

        def remove_node():
            self.cluster.remove_node(self.cluster.list_all_nodes()[1], allow_graceful=False)

        after = {part: kill_server, 2 * part: kill_replica, 3 * part: remove_node}
        counts = self.judge(ask_all(self.port, self.bodies, after=after))
        self.assertGreater(counts["answered"], len(self.bodies) * 0.9)
        self.assertLessEqual(counts["cut"], 3 * WORKERS)
        # All three are there again, and nothing is left of those that were.
        self.assertTrue(wait_for(lambda: self.count_replicas() == 3, 120))
        self.assertTrue(wait_for(lambda: len(children_of_replicas(self.plan)) == 3))

    def test_replicas_are_replaced_without_a_request_lost(self):
        self.deploy()
        servers = set(children_of_replicas(self.plan))

        def replace():
            self.deploy("--max-queue", "100")

        counts = self.judge(ask_all(self.port, self.bodies, after={len(self.bodies) // 4: replace}))
        self.assertEqual(counts["answered"], len(self.bodies))
        self.assertTrue(wait_for(lambda: not servers & set(children_of_replicas(self.plan))))

    def test_events_come_one_by_one_and_a_client_that_leaves_ends_its_answer(self):
        self.deploy()
        self.assert_streams(self.port, self.running)

    def test_the_file_for_serve_run_is_one(self):
        with open(os.path.join(FOLDER, "serve.yaml"), encoding="utf-8") as file:
            deployed = ServeDeploySchema(**yaml.safe_load(file))
        (application,) = deployed.applications
        self.assertEqual(application.import_path, "llamac_replicas:build")
        llamac_replicas.build(llamac_replicas.Options(**application.args))


if __name__ == "__main__":
    unittest.main()
