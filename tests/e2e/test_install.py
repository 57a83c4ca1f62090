# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files that `cmake --install` puts into a prefix: it is all there, works where the prefix
is moved to, and names neither the build folder nor the first place."""

import os
import re
import shutil
import unittest

import support

support.require("numpy", "gguf")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf
from support import LLAMAC

BUILD = os.path.dirname(support.BIN_DIR)
CONFIG = Config(64, 1, 4, 2, vocab=261)
RUN = ("--tokens", "5,6", "-n", "4", "--temp", "0", "--print-ids", "--ignore-eos", "-q")


class Prefix(support.TestCase):
    """The tools and the library in a folder that was moved."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for component in ("runtime", "library", "compiler"):
            command = ["cmake", "--install", BUILD, "--prefix", cls.path("first"), "--component", component]
            support.run(command, check=True)
        cls.unit = cls.path("first", "lib", "systemd", "system", "llamac@.service")
        with open(cls.unit) as f:
            cls.unit_text = f.read()
        cls.prefix = cls.path("moved")
        os.rename(cls.path("first"), cls.prefix)
        cls.model = write_gguf(cls.path("model.gguf"), CONFIG, quantise(random_weights(CONFIG), "F32")[0])
        cls.plan = cls.path("model.plan")

    def tool(self, name, *args):
        result = support.run([os.path.join(self.prefix, "bin", name), *args], cache=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_the_tools_compile_and_run(self):
        self.tool("llamac", "compile", self.model, "-o", self.plan, "-q")
        expected = support.run([LLAMAC, "run", self.plan, *RUN], check=True).stdout
        self.assertEqual(self.tool("llamac-run", self.plan, *RUN), expected)
        self.assertIn("runs cpu      yes", self.tool("llamac", "doctor"))

    def test_programs_find_the_library_by_pkg_config_and_by_cmake(self):
        source = os.path.join(support.ROOT, "examples", "c", "complete.c")
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.prefix, "lib", "pkgconfig"))
        flags = support.run(["pkg-config", "--cflags", "--libs", "llamac"], env=env, check=True).stdout.split()
        by_pkg_config = self.path("by_pkg_config")
        support.run(["clang-19", "-std=c11", source, *flags, "-o", by_pkg_config], check=True)

        folder = self.path("program")
        os.mkdir(folder)
        with open(os.path.join(folder, "CMakeLists.txt"), "w") as f:
            f.write(
                "cmake_minimum_required(VERSION 3.25)\nproject(program C)\n"
                "find_package(llamac 0.1 REQUIRED)\n"
                f"add_executable(program {source})\ntarget_link_libraries(program llamac::llamac)\n"
            )
        configure = ["cmake", "-G", "Ninja", "-S", folder, "-B", folder, "-DCMAKE_C_COMPILER=clang-19"]
        support.run([*configure, f"-DCMAKE_PREFIX_PATH={self.prefix}"], check=True)
        support.run(["cmake", "--build", folder], check=True)

        library = dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.prefix, "lib"))
        for program in (by_pkg_config, os.path.join(folder, "program")):
            # It needs the library by its soname, and ends with its words for no plan.
            needed = support.run(["readelf", "--dynamic", program], check=True).stdout
            self.assertIn("[libllamac.so.0.1]", needed)
            result = support.run([program, self.path("no.plan"), "a", "1"], env=library)
            self.assertIn("no.plan: cannot be opened", result.stderr)

    def test_nothing_names_the_build_folder_or_the_first_place(self):
        names = [BUILD.encode(), self.path("first").encode(), support.ROOT.encode()]
        looked_at = 0
        for folder, _, files in os.walk(self.prefix):
            for file in files:
                path = os.path.join(folder, file)
                if os.path.islink(path) or file == "llamac@.service":
                    continue
                with open(path, "rb") as f:
                    text = f.read()
                looked_at += 1
                for name in names:
                    self.assertNotIn(name, text, path)
        self.assertGreater(looked_at, 20)

    def test_completions_pages_and_texts_are_where_they_are_looked_for(self):
        for tool in ("llamac", "llamac-run"):
            for path, start in [
                (f"share/bash-completion/completions/{tool}", "# Completion"),
                (f"share/zsh/site-functions/_{tool}", f"#compdef {tool}\n"),
                (f"share/fish/vendor_completions.d/{tool}.fish", "# Completion"),
                (f"share/man/man1/{tool}.1", '.\\"'),
            ]:
                with open(os.path.join(self.prefix, path)) as f:
                    self.assertTrue(f.read().startswith(start), path)
        for package in ("llamac", "llamac-runtime"):
            with open(os.path.join(self.prefix, "share", "doc", package, "copyright")) as f:
                text = f.read()
            for license in ("Apache License", "MarkedJS", "DOMPurify", "highlight.js"):
                self.assertIn(license, text)
        self.assertTrue(os.path.exists(os.path.join(self.prefix, "share/doc/llamac/docs/installing.md")))

    def test_the_service_is_sound_and_hardened(self):
        if not shutil.which("systemd-analyze"):
            support.skip("no systemd-analyze")
        self.assertIn(f"ExecStart={self.path('first')}/bin/llamac-run serve ", self.unit_text)
        unit = self.path("llamac@demo.service")
        with open(unit, "w") as f:
            # Pages of the manual are not installed here.
            f.write(re.sub("(?m)^Documentation=.*\n", "", self.unit_text.replace(self.path("first"), self.prefix)))
        # Other units of the machine may be unsound.
        checked = support.run(["systemd-analyze", "verify", unit]).stderr
        self.assertEqual([line for line in checked.splitlines() if "llamac" in line], [])
        limit = ["--offline=true", "--threshold=20", "--no-pager"]
        safe = support.run(["systemd-analyze", "security", *limit, unit])
        self.assertEqual(safe.returncode, 0, safe.stdout[-300:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
