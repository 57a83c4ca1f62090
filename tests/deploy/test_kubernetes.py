# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""deploy/kubernetes and deploy/compose, as far as no cluster is needed.

    test_kubernetes.py Contract  what they ask of a server, of a real one, and
                                 what their parts ask of each other
    test_kubernetes.py Schemas   the manifests by Kubernetes' own schemas
"""

import glob
import os
import unittest

from replicas import DEPLOY

import serving
import support
from serving import Server

support.require("yaml")

import yaml

LABELS = {"app.kubernetes.io/name": "llamac"}
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
# A picker of endpoints reads these, by the protocol of model servers of Gateway
# API's Inference Extension.
PICKER_METRICS = {
    "vllm:num_requests_waiting",
    "vllm:num_requests_running",
    "vllm:kv_cache_usage_perc",
    "vllm:cache_config_info",
}
# The kinds in deploy/kubernetes that Kubernetes itself knows.
OWN_KINDS = ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler")


def load(*parts):
    with open(os.path.join(DEPLOY, *parts), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def manifests():
    """All but the values of a chart, by their kind."""
    found = {}
    for path in sorted(glob.glob(os.path.join(DEPLOY, "kubernetes", "*.yaml"))):
        for document in load(path):
            if "kind" in document:
                assert document["kind"] not in found
                found[document["kind"]] = document
    return found


def option(command, name):
    return command[command.index(name) + 1]


class Contract(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = serving.smollm2_plan(cls)
        parts = manifests()
        cls.specs = {kind: part["spec"] for kind, part in parts.items()}
        cls.names = {kind: part["metadata"]["name"] for kind, part in parts.items()}
        cls.pod = cls.specs["Deployment"]["template"]
        (cls.container,) = cls.pod["spec"]["containers"]
        (cls.adapter,) = load("kubernetes", "prometheus-adapter.yaml")
        (compose,) = load("compose", "compose.yaml")
        cls.service = compose["services"]["llamac"]

    def serve(self, command):
        """A server by `command`, but of another plan and at a free port."""
        self.assertEqual(command[:2], ["serve", "/models/model.plan"])
        self.assertEqual(option(command, "--port"), "8080")
        port = command.index("--port")
        return Server([self.plan], self.path("access.log"), *command[2:port], *command[port + 2 :])

    def get(self, server, path, host):
        """The answer of a server to one that calls it by `host`."""
        status, _, body = server.request("GET", path, fields={"Host": host})
        self.assertEqual(status, 200, body)
        return body.decode()

    def test_probes_routes_and_metrics_are_what_a_server_has(self):
        pod, service = "10.1.2.3:8080", "llamac.default.svc"
        with self.serve(self.container["args"]) as server:
            for probe in PROBES:
                self.get(server, self.container[probe]["httpGet"]["path"], pod)
            (match,) = self.specs["HTTPRoute"]["rules"][0]["matches"]
            self.get(server, f"{match['path']['value']}/models", service)
            (endpoint,) = self.specs["PodMonitor"]["podMetricsEndpoints"]
            names = {line.split("{")[0] for line in self.get(server, endpoint["path"], pod).splitlines()}
        self.assertLessEqual(PICKER_METRICS, names)
        for rule in self.adapter["rules"]["custom"]:
            self.assertIn(rule["seriesQuery"].split("{")[0], names)

    def test_the_autoscaler_knows_the_names_that_the_adapter_gives(self):
        scaler = self.specs["HorizontalPodAutoscaler"]
        self.assertEqual(
            [metric["pods"]["metric"]["name"] for metric in scaler["metrics"]],
            [rule["name"]["as"] for rule in self.adapter["rules"]["custom"]],
        )
        self.assertEqual(scaler["scaleTargetRef"]["name"], self.names["Deployment"])

    def test_all_parts_mean_the_same_pods_and_port(self):
        self.assertEqual(self.pod["metadata"]["labels"], LABELS)
        for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor", "InferencePool"):
            self.assertEqual(self.specs[kind]["selector"]["matchLabels"], LABELS, kind)
        self.assertEqual(self.specs["Service"]["selector"], LABELS)
        self.assertEqual(self.specs["NetworkPolicy"]["podSelector"]["matchLabels"], LABELS)
        (port,) = self.container["ports"]
        for probe in PROBES:
            self.assertEqual(self.container[probe]["httpGet"]["port"], port["name"])
        self.assertEqual(str(port["containerPort"]), option(self.container["args"], "--port"))
        self.assertEqual(self.specs["Service"]["ports"][0]["targetPort"], port["name"])
        self.assertEqual(self.specs["InferencePool"]["targetPorts"], [{"number": port["containerPort"]}])
        (backend,) = self.specs["HTTPRoute"]["rules"][0]["backendRefs"]
        self.assertEqual(backend["name"], self.names["InferencePool"])

    def test_answers_have_their_time_to_end(self):
        before = int(self.container["lifecycle"]["preStop"]["exec"]["command"][1])
        drain = int(option(self.container["args"], "--drain"))
        self.assertGreater(self.pod["spec"]["terminationGracePeriodSeconds"], before + drain)
        drain = int(option(self.service["command"], "--drain"))
        self.assertGreater(int(self.service["stop_grace_period"].rstrip("s")), drain)

    def test_threads_are_as_many_as_the_limit_has_cpus(self):
        self.assertEqual(option(self.container["args"], "--threads"), self.container["resources"]["limits"]["cpu"])

    def test_a_server_starts_as_compose_starts_it(self):
        build = self.service["build"]
        self.assertTrue(os.path.exists(os.path.join(DEPLOY, "compose", build["context"], build["dockerfile"])))
        with self.serve(self.service["command"]) as server:
            self.get(server, "/health", "llamac:8080")


class Schemas(unittest.TestCase):
    # The oldest and the newest that the package knows.
    versions = ("1.25", "1.37")

    def test_manifests_are_what_kubernetes_takes(self):
        support.require("kubernetes_validate")
        import kubernetes_validate

        parts = manifests()
        for kind in OWN_KINDS:
            for version in self.versions:
                with self.subTest(kind=kind, version=version):
                    kubernetes_validate.validate(parts[kind], version, strict=True)


if __name__ == "__main__":
    unittest.main()
