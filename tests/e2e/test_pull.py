# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac pull, list, show and rm, and names of pulled models as models, against a
server of the test's own: whole models, and all that can go wrong."""

import hashlib
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import time
import unittest

import support
from model_server import ModelServer, make_certificate
from serving import Server
from support import BAD_FILE, LLAMAC, MEMORY, OK, UNSUPPORTED, USAGE, run

support.require("numpy", "safetensors", "gguf")

import make_model
from llama_numpy import Config


class PullCase(support.TestCase):
    """A server with some models, and a folder of models for each test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.write_gguf()
        config = Config(64, 2, 4, 2, vocab=501, multiple_of=48)
        folder = make_model.write_huggingface(
            cls.path("tiny"), config, make_model.random_weights(config), shards=2
        )
        cls.tiny = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as f:
                cls.tiny[name] = f.read()
        cls.tiny["generation_config.json"] = b'{"temperature": 0.6, "top_p": 0.9}\n'

    @classmethod
    def write_gguf(cls):
        """Some MiB that are a model."""
        config = Config(256, 2, 4, 2, vocab=5000, multiple_of=64)
        stored = make_model.quantise(make_model.random_weights(config), "F16")[0]
        make_model.write_gguf(cls.path("random.gguf"), config, stored)
        with open(cls.path("random.gguf"), "rb") as f:
            cls.gguf = f.read()

    def setUp(self):
        self.models = self.path("models-" + self.id().rpartition(".")[2])
        self.server = self.start()
        self.server.repositories = {
            "anna/tiny": self.tiny | {"README.md": b"# Tiny\n", "flax_model.msgpack": b"x" * 20000, ".gitattributes": b"-"},
            "anna/small-GGUF": {"README.md": b"", "config.json": b"{}", "small.Q4_1.gguf": self.gguf},
        }
        self.environment = {"HF_ENDPOINT": self.server.url(), "LLAMAC_MODELS": self.models}

    def start(self, **options):
        server = ModelServer(**options)
        self.addCleanup(server.close)
        return server

    def llamac(self, *args, env=None, **options):
        environment = dict(os.environ, NO_COLOR="1", XDG_CACHE_HOME=self.cache)
        for name in ("HF_TOKEN", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "https_proxy", "http_proxy"):
            environment.pop(name, None)
        return super().llamac(*args, env=environment | self.environment | (env or {}), cache=None, **options)

    def refuse(self, *args, expect=BAD_FILE, **options):
        """The one line of an error."""
        result = self.llamac("pull", *args, expect=expect, **options)
        self.assertEqual(result.stdout, "")
        lines = [line for line in result.stderr.splitlines() if line.startswith("llamac: error: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertEqual(result.stderr.splitlines()[-1], lines[0])
        return lines[0]

    def files(self):
        """All that is in the folder of models, by its path there."""
        found = {}
        for folder, _, names in os.walk(self.models):
            for name in names:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, self.models)] = os.path.getsize(path)
        return found

    def nothing_is_there(self):
        self.assertEqual(self.files(), {})
        self.assertEqual(self.listed(), [])

    def listed(self):
        return [model["name"] for model in json.loads(self.llamac("list", "--json").stdout)]


class Models(PullCase):
    @classmethod
    def write_gguf(cls):
        cls.smollm2 = support.require_model("smollm2.gguf")
        with open(cls.smollm2, "rb") as f:
            cls.gguf = f.read()

    def test_a_repository_of_several_files_is_a_model_everywhere(self):
        done = self.llamac("pull", "anna/tiny")
        self.assertIn("pulled anna/tiny: ", done.stderr)
        self.assertEqual(done.stdout, "")
        here = {f"anna/tiny/{name}": len(data) for name, data in self.tiny.items()}
        found = self.files()
        self.assertGreater(found.pop("anna/tiny/.pulled.json"), 0)
        self.assertEqual(found, here)
        npy = self.path("logits.npy")
        args = ("--tokens", "1,2,3", "-o", npy)
        for line in (
            ("logits", "anna/tiny", *args),
            ("logits", "anna/tiny", *args, "--target", "reference"),
            ("plan", "anna/tiny"),
            ("plan", "anna/tiny", "--draft", "anna/tiny"),
            ("inspect", "anna/tiny", "--json"),
            ("bench", "anna/tiny", "--prompt-tokens", "8", "--gen-tokens", "2"),
            ("bench", "anna/tiny", "--requests", "2", "--prompt-tokens", "8", "--gen-tokens", "2", "--draft", "anna/tiny"),
            ("compile", "anna/tiny", "-o", self.path("tiny.plan")),
            ("compile", "anna/tiny", "--no-weights", "-o", self.path("tiny.plan")),
            ("compile", "anna/tiny", "--cached"),
            ("compile", "anna/tiny", "--stop-after", "import", "-o", "-"),
            ("convert", "anna/tiny", "--to", "gguf", "-o", self.path("tiny.gguf")),
            ("check", "anna/tiny"),
        ):
            with self.subTest(line):
                self.llamac(*line)

    def test_a_gguf_file_answers(self):
        self.llamac("pull", "anna/small-GGUF", "-q")
        options = ("--raw", "-p", "Once upon a time", "-n", "8", "--temp", "0", "-q")
        named = self.llamac("run", "anna/small-GGUF", *options)
        self.assertEqual(named.stdout, self.llamac("run", self.smollm2, *options).stdout)
        self.assertEqual(self.files()["anna/small-GGUF/small.Q4_1.gguf"], len(self.gguf))
        self.llamac("tokenize", "anna/small-GGUF", "Hello")
        # A path that exists is no name.
        here = self.path("here")
        os.makedirs(os.path.join(here, "anna", "small-GGUF"))
        refused = self.llamac("run", "anna/small-GGUF", *options, cwd=here, expect=BAD_FILE)
        self.assertIn("anna/small-GGUF: model: expected", refused.stderr)

    def test_one_of_several_gguf_files(self):
        tiny = self.path("tiny-of-gguf.gguf")
        config = Config(64, 2, 4, 2, vocab=501, multiple_of=48)
        weights = make_model.random_weights(config)
        make_model.write_gguf(tiny, config, make_model.quantise(weights, "F16")[0])
        with open(tiny, "rb") as f:
            data = f.read()
        files = {f"tiny-{tag}.gguf": data for tag in ("Q4_K_M", "Q8_0", "UD-Q8_0")}
        self.server.repositories["bo/tiny"] = files | {"mmproj-F16.gguf": b"x"}
        line = self.refuse("bo/tiny", expect=USAGE)
        self.assertIn("got several; it has Q4_K_M, tiny-Q8_0.gguf, tiny-UD-Q8_0.gguf", line)
        self.assertIn("as bo/tiny:Q4_K_M", line)
        self.assertIn("got none; it has", self.refuse("bo/tiny:Q2_K", expect=USAGE))
        self.nothing_is_there()
        self.llamac("pull", "bo/tiny:q4_k_m")
        self.assertEqual(self.listed(), ["bo/tiny:Q4_K_M"])
        # Under any of its names.
        for name in ("bo/tiny:Q4_K_M", "bo/tiny:q4_k_m", "bo/tiny:tiny-Q4_K_M.gguf"):
            self.llamac("plan", name)
        self.llamac("pull", "bo/tiny@v2:UD-Q8_0")
        self.assertEqual(self.listed(), ["bo/tiny:Q4_K_M", "bo/tiny@v2:tiny-UD-Q8_0.gguf"])
        self.assertIn("llamac pull bo/tiny:Q6_K", self.llamac("plan", "bo/tiny:Q6_K", expect=BAD_FILE).stderr)
        self.assertIn("did you mean bo/tiny:Q4_K_M?", self.llamac("plan", "bo/tiny:Q4_K_S", expect=BAD_FILE).stderr)

    def test_meta_and_parts_of_gguf(self):
        config = Config(64, 2, 4, 2, vocab=501, multiple_of=48)
        weights = make_model.random_weights(config)
        folder = make_model.write_meta(self.path("meta"), config, weights)
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as f:
                files["original/" + name] = f.read()
        self.server.repositories["bo/meta"] = files
        make_model.write_gguf(self.path("parts.gguf"), config, make_model.quantise(weights, "F16")[0], split=11)
        parts = {}
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("parts") and name.endswith(".gguf"):
                with open(self.path(name), "rb") as f:
                    parts["Q8_0/" + name] = f.read()
        self.assertEqual(len(parts), 2)
        self.server.repositories["bo/parts"] = parts
        for name in ("bo/meta", "bo/parts"):
            self.llamac("pull", name)
            self.llamac("plan", name)
        formats = {model["name"]: model["format"] for model in json.loads(self.llamac("list", "--json").stdout)}
        self.assertEqual(formats, {"bo/meta": "meta", "bo/parts": "gguf"})

    def test_a_link_to_a_file(self):
        self.server.files["/files/small.gguf"] = self.gguf
        url = self.server.url() + "/files/small.gguf"
        digest = hashlib.sha256(self.gguf).hexdigest()
        wrong = self.refuse(f"{url}#sha256={'0' * 64}")
        self.assertIn(f"expected a checksum of {'0' * 64}, got {digest}", wrong)
        self.nothing_is_there()
        self.llamac("pull", f"{url}#sha256={digest}")
        self.assertEqual(self.listed(), ["small.gguf"])
        self.llamac("plan", "small.gguf")
        self.assertIn("pulled already", self.llamac("pull", url).stderr)
        self.server.files["/others/small.gguf"] = b"another"
        line = self.refuse(self.server.url() + "/others/small.gguf", expect=USAGE)
        self.assertIn("llamac rm small.gguf", line)
        self.assertIn("a part of one", self.refuse(url.replace("small", "a-00001-of-00002"), expect=USAGE))
        # A page or file of the repository's own is that model, with its checksums.
        for link in ("anna/small-GGUF/resolve/main/small.Q4_1.gguf", "anna/small-GGUF/blob/main/small.Q4_1.gguf"):
            self.llamac("pull", f"{self.server.url()}/{link}?download=true")
        self.assertEqual(self.listed(), ["anna/small-GGUF:Q4_1", "small.gguf"])

    def test_a_server_that_knows_no_size(self):
        self.server.files["/small.gguf"] = self.gguf
        self.server.has_sizes = False
        self.llamac("pull", self.server.url() + "/small.gguf")
        self.llamac("plan", "small.gguf")

    def test_list_show_and_rm(self):
        empty = self.llamac("list")
        self.assertEqual(empty.stdout.split(), ["name", "size", "format", "pulled"])
        self.assertIn("no models in", empty.stderr)
        self.llamac("pull", "anna/tiny")
        self.llamac("pull", "anna/small-GGUF")
        table = self.llamac("list").stdout.splitlines()
        self.assertRegex(table[1], r"^anna/small-GGUF +\d+\.\d MiB +gguf +20\d\d-\d\d-\d\d \d\d:\d\d$")
        self.assertRegex(table[2], r"^anna/tiny +\d+\.\d KiB +huggingface +20")
        shown = self.llamac("show", "anna/tiny").stdout
        for line in (
            r"name +tiny",
            rf"path +{self.models}/anna/tiny",
            rf"source +{self.server.url()}/anna/tiny at 0123456789ab",
            r"pulled +20.*, \d+\.\d KiB in 5 files",
            r"format +huggingface",
            r"family +llama",
            r"parameters +0 million",
            r"context +4096 tokens",
            r"layers +2, 64 wide; feed-forward 192",
            r"heads +4 of 16; 2 of keys and values",
            r"vocabulary +501 tokens",
            r"weights +bf16 \d+\.\d KiB",
            r"tokenizer +none",
            r"sampling +temperature 0.6, top_p 0.9",
            r"plan +none is cached",
        ):
            self.assertRegex(shown, "(?m)^" + line)
        self.llamac("compile", "anna/tiny", "--cached")
        plan = self.llamac("show", "anna/tiny").stdout.splitlines()[-1]
        self.assertRegex(plan, r"^plan +cached at .*\.plan$")
        self.assertTrue(os.path.exists(plan.split()[-1]))
        self.assertRegex(self.llamac("show", self.smollm2).stdout, r"(?m)^chat template  yes$")
        self.assertIn("got a plan", self.llamac("show", plan.split()[-1], expect=USAGE).stderr)
        removed = self.llamac("rm", "anna/tiny").stdout
        self.assertRegex(removed, r"^removed anna/tiny, \d+\.\d KiB\n$")
        self.assertEqual(self.listed(), ["anna/small-GGUF"])
        self.assertIn("did you mean anna/small-GGUF?", self.llamac("rm", "anna/small-GGUFs", expect=BAD_FILE).stderr)
        self.llamac("rm", "anna/small-GGUF")
        self.nothing_is_there()
        self.assertEqual(os.listdir(self.models), [])

    def test_rm_stays_in_the_folder(self):
        self.llamac("pull", "anna/tiny")
        outside = self.path("outside")
        shutil.copytree(os.path.join(self.models, "anna", "tiny"), os.path.join(outside, "tiny"))
        os.symlink(outside, os.path.join(self.models, "bo"))
        for name in ("bo/tiny", "../outside/tiny", f"{outside}/tiny", "anna", "anna/..", ".", "..", "", "bo/../anna/tiny", ".partial"):
            with self.subTest(name):
                result = self.llamac("rm", name, expect=USAGE if name == "bo/tiny" else BAD_FILE)
                self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn(".pulled.json", os.listdir(os.path.join(outside, "tiny")))
        self.assertIn("config.json", os.listdir(os.path.join(self.models, "anna", "tiny")))

    def test_a_new_version_takes_the_place_of_the_old(self):
        self.llamac("pull", "anna/tiny")
        before = len(self.server.requests)
        self.assertIn("in its newest version", self.llamac("pull", "anna/tiny").stderr)
        self.assertEqual(len(self.server.requests), before + 1)
        self.server.listing = lambda listing: listing.update(sha="f" * 40)
        self.server.repositories["anna/tiny"]["generation_config.json"] = b'{"temperature": 0.25}\n'
        # The commit's own path is not known to the server: files that are the same are not asked for.
        self.refuse("anna/tiny")
        self.assertRegex(self.llamac("show", "anna/tiny").stdout, "temperature 0.6")
        self.server.repositories["anna/tiny"]["generation_config.json"] = b'{"temperature": 0.6, "top_p": 0.9}\n'
        self.llamac("pull", "anna/tiny")
        self.assertRegex(self.llamac("show", "anna/tiny").stdout, "at ffffffffffff")

    def test_where_models_are(self):
        home, data = self.path("home"), self.path("data")
        self.llamac("pull", "anna/tiny", env={"LLAMAC_MODELS": "", "XDG_DATA_HOME": data})
        self.assertIn("tiny", os.listdir(os.path.join(data, "llamac", "models", "anna")))
        self.llamac("pull", "anna/tiny", env={"LLAMAC_MODELS": "", "XDG_DATA_HOME": "", "HOME": home})
        self.assertIn("tiny", os.listdir(os.path.join(home, ".local", "share", "llamac", "models", "anna")))

    def test_a_served_name(self):
        self.llamac("pull", "anna/small-GGUF:Q4_1", "-q")
        env = self.environment | {"XDG_CACHE_HOME": self.cache}
        with Server(["anna/small-GGUF:Q4_1"], self.path("log"), tool=LLAMAC, env=env) as server:
            models = json.loads(server.request("GET", "/v1/models")[2])["data"]
        self.assertEqual([model["id"] for model in models], ["anna/small-GGUF:Q4_1"])


class Broken(PullCase):
    def test_a_cut_is_gone_on_from(self):
        # In the same pull.
        self.server.cut_after = [1 << 20, 2 << 20]
        self.llamac("pull", "anna/small-GGUF")
        ranges = [fields.get("Range") for fields in self.server.asked("small.Q4_1.gguf")]
        self.assertEqual(ranges, [None, f"bytes={1 << 20}-", f"bytes={3 << 20}-"])
        self.llamac("plan", "anna/small-GGUF")

    def test_a_cut_is_gone_on_from_by_the_next_pull(self):
        self.server.cut_after = [1 << 20, 0]
        line = self.refuse("anna/small-GGUF")
        self.assertRegex(line, r"127\.0\.0\.1: .*1\.0 MiB of .* MiB are kept, and the same command goes on there")
        part = ".partial/anna/small-GGUF/small.Q4_1.gguf.part"
        self.assertEqual(self.files()[part], 1 << 20)
        self.assertEqual(self.listed(), [])
        self.assertIn("llamac pull anna/small-GGUF", self.llamac("plan", "anna/small-GGUF", expect=BAD_FILE).stderr)
        self.server.requests.clear()
        done = self.llamac("pull", "anna/small-GGUF")
        self.assertIn("of which 1.0 MiB are there", done.stderr)
        self.assertEqual([fields.get("Range") for fields in self.server.asked(".gguf")], [f"bytes={1 << 20}-"])
        self.assertEqual(set(self.files()), {"anna/small-GGUF/.pulled.json", "anna/small-GGUF/small.Q4_1.gguf"})
        # The rest of a pull can be removed.
        self.server.cut_after = [1 << 20, 0]
        self.refuse("anna/small-GGUF:Q4_1")
        self.assertIn("1.0 MiB", self.llamac("rm", "anna/small-GGUF:Q4_1").stdout)
        self.assertEqual(self.listed(), ["anna/small-GGUF"])

    def test_a_server_without_ranges(self):
        self.server.has_ranges = False
        self.server.cut_after = [1 << 20]
        self.llamac("pull", "anna/small-GGUF")
        self.llamac("plan", "anna/small-GGUF")

    def test_a_part_of_another_version(self):
        # A listed file is known by its checksum, that of a link by its ETag.
        self.server.cut_after = [1 << 20, 0]
        self.refuse("anna/small-GGUF")
        self.server.repositories["anna/small-GGUF"]["small.Q4_1.gguf"] = b"GGUF" + b"\1" * (2 << 20)
        self.llamac("pull", "anna/small-GGUF")
        self.assertIsNone(self.server.asked(".gguf")[-1].get("Range"))
        self.server.files["/small.gguf"] = self.gguf
        url = self.server.url() + "/small.gguf"
        self.server.cut_after = [1 << 20, 0]
        self.refuse(url)
        self.server.etag = '"2"'
        self.server.files["/small.gguf"] = new = b"GGUF" + b"\2" * (2 << 20)
        self.llamac("pull", url)
        self.assertEqual(self.server.asked("/small.gguf")[-1]["If-Range"], '"1"')
        with open(os.path.join(self.models, "small.gguf", "small.gguf"), "rb") as f:
            self.assertEqual(f.read(), new)

    def test_a_wrong_checksum(self):
        for file in ("config.json", "model-00001-of-00002.safetensors"):
            self.server.corrupt = file
            line = self.refuse("anna/tiny")
            self.assertIn(f"anna/tiny: {file}: expected a checksum of ", line)
            self.assertNotIn(file, " ".join(self.files()))
            self.assertEqual(self.listed(), [])
        self.server.corrupt = None
        self.llamac("pull", "anna/tiny")

    def test_a_full_disk(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        line = self.refuse("anna/small-GGUF", expect=MEMORY, preexec_fn=limit)
        self.assertIn("small.Q4_1.gguf.part: cannot be written: File too large", line)
        self.assertIn("3.0 MiB of", line)
        self.assertEqual(self.listed(), [])
        self.llamac("pull", "anna/small-GGUF")
        self.assertEqual([fields.get("Range") for fields in self.server.asked(".gguf")][-1], f"bytes={3 << 20}-")

    def test_a_disk_that_is_too_small(self):
        os.makedirs(self.models)
        if os.geteuid() != 0 or run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.models]).returncode != 0:
            self.skipTest("may not mount")
        self.addCleanup(lambda: run(["umount", self.models]))
        line = self.refuse("anna/small-GGUF", expect=MEMORY)
        self.assertRegex(line, r"anna/small-GGUF: expected \d+\.\d MiB of free disk space at .*, got \d+\.\d [KM]iB")
        self.nothing_is_there()
        # No size is known before.
        self.server.files["/small.gguf"] = self.gguf
        self.server.has_sizes = False
        self.assertIn("No space left on device", self.refuse(self.server.url() + "/small.gguf", expect=MEMORY))

    def test_no_network(self):
        for endpoint in ("http://127.0.0.1:1", "https://nowhere.invalid"):
            line = self.refuse("anna/tiny", env={"HF_ENDPOINT": endpoint})
            self.assertRegex(line, r"(127\.0\.0\.1|nowhere\.invalid): cannot be reached: ")
        self.nothing_is_there()

    def test_refusals_of_the_server(self):
        self.server.statuses = {"revision/main": 401}
        self.assertIn("set HF_TOKEN", self.refuse("anna/tiny"))
        self.assertIn("not for the owner of HF_TOKEN", self.refuse("anna/tiny", env={"HF_TOKEN": "secret"}))
        self.server.statuses = {".safetensors": 403}
        self.assertIn("granted first", self.refuse("anna/tiny"))
        self.server.statuses = {"revision/main": 503}
        self.assertIn("the server answered 503; try again later", self.refuse("anna/tiny"))
        self.server.statuses = {}
        self.assertIn("no such model, revision or file", self.refuse("anna/nothing"))
        self.assertIn("no such model, revision or file", self.refuse("anna/tiny@v3"))
        self.assertIn("no such model, revision or file", self.refuse(self.server.url() + "/files/nothing.gguf"))
        self.server.repositories["anna/empty"] = {"README.md": b""}
        self.assertIn("got none of them", self.refuse("anna/empty"))
        self.assertEqual(self.listed(), [])

    def test_an_architecture_that_is_not_supported(self):
        config = json.loads(self.tiny["config.json"]) | {"architectures": ["BertModel"], "model_type": "bert"}
        self.server.repositories["anna/bert"] = self.tiny | {"config.json": json.dumps(config).encode()}
        self.assertIn("bert", self.refuse("anna/bert", expect=UNSUPPORTED))
        self.assertEqual(self.server.asked(".safetensors"), [])
        self.nothing_is_there()

    def test_words_that_are_no_names(self):
        for word in ("tiny", "a/b/c", "../tiny", "a/..", "/etc/passwd", "a/b:", "a/b@", "a/b:../c", ".a/b", "a/b c", "ftp://a/b.gguf"):
            with self.subTest(word):
                self.assertIn(": expected ", self.refuse(word, expect=USAGE))
        for url in ("/page.html", "/.gguf", "/a%2fb.gguf", "/x.gguf#sha256=12", "/"):
            self.refuse(self.server.url() + url, expect=USAGE)
        self.assertIn("HF_ENDPOINT: ", self.refuse("anna/tiny", expect=USAGE, env={"HF_ENDPOINT": "nonsense:"}))
        self.assertEqual(self.server.requests, [])
        self.nothing_is_there()

    def test_hostile_listings(self):
        names = ("../model.safetensors", "/model.safetensors", "a/../../model.safetensors", "a\\b.safetensors", "a//b", "..", "")
        names += ("./model.safetensors", "a\nb.safetensors", "a\x1b[2J.safetensors", "x" * 300 + ".safetensors", "config.json")
        for name in names:
            with self.subTest(name):
                self.server.listing = lambda listing, name=name: listing["siblings"].append(
                    listing["siblings"][0] | {"rfilename": name}
                )
                line = self.refuse("anna/tiny")
                self.assertIn("listing of anna/tiny", line)
                self.assertIn("rfilename: expected the name of another file in a folder", line)
        changes = {
            "sha": lambda listing: listing.update(sha="../../x"),
            "siblings": lambda listing: listing.update(siblings={}),
            "checksum": lambda listing: listing["siblings"][0].update(blobId="", lfs=None),
            "size": lambda listing: listing["siblings"][0].update(size="1"),
        }
        for what, change in changes.items():
            with self.subTest(what):
                self.server.listing = change
                self.assertIn(what, self.refuse("anna/tiny"))
        self.server.listing = None
        self.nothing_is_there()
        self.assertEqual([path for path, _ in self.server.requests if "/resolve/" in path], [])
        # Hidden files, and those of folders, are no part of a model.
        self.server.repositories["anna/tiny"] |= {".hidden.safetensors": b"x", "onnx/model.safetensors": b"x"}
        self.llamac("pull", "anna/tiny")
        self.assertNotIn("anna/tiny/.hidden.safetensors", self.files())

    def test_more_bytes_than_are_listed(self):
        def shrink(listing):
            for entry in listing["siblings"]:
                if entry["rfilename"] == "small.Q4_1.gguf":
                    entry["lfs"]["size"] = 1 << 20

        self.server.listing = shrink
        self.assertIn(f"expected {1 << 20} bytes, got more", self.refuse("anna/small-GGUF"))
        self.assertEqual(self.listed(), [])

    def test_two_pulls_of_one_model(self):
        self.server.delay = 0.05
        first = self.spawn("anna/small-GGUF")
        self.assertIn("another at work", self.refuse("anna/small-GGUF", expect=USAGE))
        self.server.delay = 0
        self.assertEqual(first.wait(timeout=60), OK)
        self.assertEqual(self.listed(), ["anna/small-GGUF"])

    def spawn(self, name, **options):
        """A pull, once its first bytes are there."""
        env = dict(os.environ, **self.environment)
        process = subprocess.Popen([LLAMAC, "pull", name], env=env, **options)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not any(name.endswith(".part") and size for name, size in self.files().items()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return process

    def test_an_interrupt_keeps_what_is_there(self):
        self.server.delay = 0.02
        process = self.spawn("anna/small-GGUF", stderr=subprocess.PIPE, text=True)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertRegex(said, r"anna/small-GGUF: stopped; \d.* are kept, and the same command goes on there\n$")
        self.assertEqual(self.listed(), [])
        self.server.delay = 0
        self.llamac("pull", "anna/small-GGUF")
        self.assertRegex(self.server.asked(".gguf")[-1]["Range"], r"^bytes=[1-9]\d*-$")

    def test_progress_on_a_terminal(self):
        self.server.delay = 0.01
        terminal, other = pty.openpty()
        process = subprocess.Popen(
            [LLAMAC, "pull", "anna/small-GGUF"], env=dict(os.environ, **self.environment), stderr=other
        )
        os.close(other)
        shown = b""
        try:
            while block := os.read(terminal, 1 << 16):
                shown += block
        except OSError:
            pass  # The other end is closed.
        os.close(terminal)
        self.assertEqual(process.wait(timeout=60), OK)
        self.assertRegex(shown.decode(), r"pulling anna/small-GGUF: [\d.]+ [KM]iB of [\d.]+ MiB, [\d.]+ [KM]iB/s, \d+ s left")
        self.assertTrue(shown.decode().splitlines()[-1].startswith("\r\x1b[Kpulled ") or "pulled " in shown.decode())


class Trust(PullCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority, *cls.tls = make_certificate(cls.folder)

    def test_a_certificate(self):
        server = self.start(tls=self.tls)
        server.repositories = self.server.repositories
        env = {"HF_ENDPOINT": server.url("localhost")}
        self.assertIn(
            "localhost: expected a certificate that is trusted", self.refuse("anna/tiny", env=env)
        )
        # The certificate is one of another host.
        wrong = {"HF_ENDPOINT": server.url(), "SSL_CERT_FILE": self.authority}
        self.assertIn("expected a certificate that is trusted", self.refuse("anna/tiny", env=wrong))
        self.nothing_is_there()
        self.assertEqual(server.requests, [])
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            self.llamac("pull", "anna/tiny", env=env | {name: self.authority})
            self.llamac("rm", "anna/tiny")

    def test_https_stays_https(self):
        server = self.start(tls=self.tls)
        server.repositories = self.server.repositories
        server.redirects = self.server.url()
        env = {"HF_ENDPOINT": server.url("localhost"), "SSL_CERT_FILE": self.authority}
        self.assertIn("expected https, got a redirect", self.refuse("anna/small-GGUF", env=env))
        self.assertEqual(self.server.requests, [])

    def test_the_token_is_for_one_host(self):
        other = self.start()
        other.repositories = self.server.repositories
        env = {"HF_TOKEN": "secret"}
        for redirects in (other.url(), other.url("localhost")):
            self.server.redirects = redirects
            self.llamac("pull", "anna/small-GGUF", env=env)
            self.llamac("rm", "anna/small-GGUF")
        for _, fields in self.server.requests:
            self.assertEqual(fields["Authorization"], "Bearer secret")
        self.assertEqual(len(other.asked(".gguf")), 2)
        for _, fields in other.requests:
            self.assertNotIn("Authorization", fields)
        # Nor is it for a link to elsewhere.
        other.files["/small.gguf"] = self.gguf
        self.llamac("pull", other.url() + "/small.gguf", env=env)
        self.assertNotIn("Authorization", other.requests[-1][1])
        self.assertNotIn("secret", json.dumps(self.files()))


if __name__ == "__main__":
    unittest.main()
