# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lint: the rules of the project, on every tracked file.

Each rule is a function that lists what breaks it, and each is tried on seeded
violations too, so that it is known to be able to find them.
"""

import fnmatch
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN_DIR = os.environ.get("LLAMAC_BIN_DIR", os.path.join(ROOT, "build", "bin"))

CPP = (".cpp", ".c", ".h", ".cuh", ".inc")

# The house. Of each module: its parts in the order in which they know each
# other, where "" is its own folder and those of one tuple are strangers, and
# what else it may include, by path prefix. A part may include those before it
# alone. docs/architecture.md explains it.
HOUSE = {
    "include": ([""], []),
    "python": ([""], ["include"]),
    "examples": ([""], ["include"]),
    "runtime": (
        ["base", "threads", "formats", "io", "packing", "plan", "device", ("cpu", "cuda")]
        + [("weights", "ranks", "tuned"), "load"],
        [],
    ),
    "text": (["tokenizer", "templates", "grammar", "request"], ["runtime/base", "runtime/io"]),
    "engine": (["sampling", "cache", "step", "speculation", ("scheduler", "tuner")], ["runtime", "text"]),
    "serve": (["http", "page", "api"], ["runtime", "text", "engine"]),
    "tools": ([""], ["runtime", "text", "engine", "serve"]),
    "capi": ([""], ["include", "runtime", "text", "engine"]),
    "simulator": ([""], ["runtime"]),
    "ir": (["llama", "kernel", "plan"], ["runtime/base"]),
    "frontends": ([""], ["ir/llama", "runtime/base", "runtime/formats", "runtime/io", "text/tokenizer"]),
    "passes": (["", ("graph", "schedule")], ["ir", "runtime/base"]),
    "codegen": (
        ["plan", "", "clang", ("cpu", "cuda"), "sim", "targets"],
        ["ir", "runtime", "simulator"],
    ),
    "compiler": (
        ["models", "reference", "trial", "driver", ("check", "report"), "llamac", "llamac-opt"],
        ["ir", "frontends", "passes", "codegen", "simulator", "runtime", "text", "engine", "tools"],
    ),
    "tests": (
        [""],
        ["compiler", "ir", "frontends", "passes", "codegen", "simulator"]
        + ["runtime", "text", "engine", "serve", "tools"],
    ),
}
# Tests of modules without LLVM have less than other tests.
LIGHT_TESTS = tuple(f"tests/{module}" for module in ("runtime", "text", "engine", "serve", "tools"))
LIGHT_TESTS_MAY_INCLUDE = [
    "tests", "runtime", "text", "engine", "serve", "tools", "simulator", "frontends", "codegen/plan/PlanWriter.h",
]
PUBLIC_HEADER = "llamac/llamac.h"
# Modules that must build and run where there is no LLVM.
WITHOUT_LLVM = ("include", "runtime", "text", "engine", "serve", "tools", "capi", "simulator", "python", "examples")
WITHOUT_LLVM += LIGHT_TESTS
LLVM_HEADERS = ("llvm", "llvm-c", "mlir", "mlir-c", "clang", "clang-c", "lld")

BANNER = """\
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
"""

# Names of the writer's machine and of how the project is made, and marks of
# unfinished work. Spelt apart so that this file is not found itself.
FORBIDDEN = [
    re.compile(pattern.replace("~", ""))
    for pattern in (
        r"/wo~rk/",
        r"/opt/pe~ers",
        r"\.\./sha~red\b",
        r"/ro~ot/",
        r"/ho~me/\w",
        r"/tmp/bu~ild-",
        r"\bpypi\.o~rg\b",
        r"\bdeb\.deb~ian\.org\b",
        r"\bCla~ude\b",
        r"\b(LL~M|A~I) (agent|assistant)s?\b",
        r"\bTO~DO\b",
        r"\bFIX~ME\b",
        r"\bXX~X\b",
        r"\bHA~CK\b",
    )
]
# Own coinages, and what readers search for instead. Spelt apart as well.
TERMS = {
    re.compile(rf"\b(?:{pattern.replace('~', '')})\b", re.IGNORECASE): term
    for pattern, term in {
        r"hou~se tests?": "lint",
        r"made-u~p": "random",
        r"like~liest": "argmax",
        r"stand-i~ns?": "fake, or what it is",
        r"plan~ted": "seeded",
        r"kept (ob~jects|fi~les)": "cached objects, disk cache",
        r"own ti~les": "default config",
        r"(numbers?|tokens?|phases?|logits?) (that|which) (is|are) no~(ne| numbers?)": "NaN, invalid, unknown",
        r"ho~lds? any~thing|nobody (has |had )?wr~(ote|itten)": "uninitialised",
        r"ways? of rea~ding": "the CPU to tune for",
        r"as they l~et": "depending on load",
        r"AVX2 al~one": "AVX2-only machines",
        r"of a re~ad": "of measured read bandwidth",
        r"dea~l[st]": "partition",
        r"spl~it (over|across|by) (\d+ |the |all )?(ranks|rows|columns|heads)": "partitioned; split is of keys alone",
        r"tables? of (the )?ang~les": "cos/sin cache",
        r"wan~ted (logits )?rows?": "logits rows, output rows",
        r"meeting pla~ces?": "barrier",
    }.items()
}
# Verbatim text of others.
VERBATIM = ("LICENSE", "packaging/licenses.txt", "tests/e2e/data/")

# Comments are sentences or name a thing: these first words make them neither.
FRAGMENT = re.compile(r"(Of|Those|That|The same|As|What|To|By)\b")
# How comments begin, by the ends of files' names.
COMMENTS = {
    (*CPP, ".cu", ".def", ".fbs", ".js", ".mlir", ".td"): re.compile(r"(.*?)//[/<]*(?!\S)\s?(.*)"),
    (".py", ".sh", ".cmake", ".txt", ".toml", ".yaml"): re.compile(r'(|.*?\s)(?:#(?!\S)\s?|""")(.*)'),
}


def project_files(*suffixes):
    """All files but those that git ignores: new ones too, before they are added."""
    listing = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return [f for f in listing if f.endswith(suffixes or "") and os.path.isfile(os.path.join(ROOT, f))]


def read(path):
    with open(os.path.join(ROOT, path), "rb") as f:
        return f.read().decode("utf-8", "replace")


def is_within(path, folder):
    return path == folder or path.startswith(folder + "/")


def part_of(path, parts):
    """The number in `parts` of the part that has the file `path`, given without
    its module; and its name."""
    folder = os.path.dirname(path)
    best = None
    for number, names in enumerate(parts):
        for name in (names,) if isinstance(names, str) else names:
            if (name == "" or is_within(folder, name)) and (best is None or len(name) > len(best[1])):
                best = number, name
    return best


def may_include(path):
    """The headers that the file `path` may include, by path prefix, and of its
    own module the parts by their names; None for a file of no module."""
    module, _, rest = path.partition("/")
    if path.startswith("tests/capi/"):
        return ["tests", "include", "capi", "runtime", "text", "engine"], None
    if any(is_within(path, folder) for folder in LIGHT_TESTS):
        return LIGHT_TESTS_MAY_INCLUDE, None
    if module not in HOUSE:
        return None
    parts, others = HOUSE[module]
    own = part_of(rest, parts)
    if not own:
        return None
    before = [name for names in parts[: own[0]] for name in ((names,) if isinstance(names, str) else names)]
    return others, [*before, own[1]]


def wrong_includes(path, text):
    """Includes in `text`, the file `path`, that its part of a module may not have."""
    allowed = may_include(path)
    if not allowed:
        return []
    others, parts = allowed
    module = path.split("/")[0]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        header = match.group(1)
        if header == PUBLIC_HEADER:
            header = "include/" + header
        where = f"{path}:{number}: "
        if header.startswith("."):
            found.append(f"{where}{header} is not relative to the root")
        elif parts is not None and header.split("/")[0] == module:
            part = part_of(header.partition("/")[2], HOUSE[module][0])
            if not part or part[1] not in parts:
                found.append(f"{where}{header}: of {module}, may include only {', '.join(parts)}")
        elif header.split("/")[0] in HOUSE:
            if not any(is_within(header, prefix) for prefix in others):
                found.append(f"{where}{header}: may include only {', '.join(others)}")
        elif header.split("/")[0] in LLVM_HEADERS:
            if any(is_within(path, folder) for folder in WITHOUT_LLVM):
                found.append(f"{where}{header}: builds without LLVM")
    return found


def wrong_banner(path, text):
    first, _, rest = text.partition("\n")
    name = re.escape(os.path.basename(path))
    if not re.fullmatch(rf"//===- {name} - .* -*(\*- C\+\+ -\*)?-*===//", first):
        return [f"{path}:1: expected //===- {os.path.basename(path)} - what it is ---===//, got {first[:80]}"]
    if len(first) != 80:
        return [f"{path}:1: expected 80 columns, got {len(first)}"]
    if not rest.startswith(BANNER):
        return [f"{path}:2: expected the licence, as in runtime/base/Status.h"]
    return []


def wrong_words(path, text):
    if path.startswith(VERBATIM) or path.endswith(".png"):
        return []
    lines = list(enumerate(text.splitlines(), 1))
    found = [
        f"{path}:{number}: {match.group(0)}"
        for number, line in lines
        for pattern in FORBIDDEN
        for match in pattern.finditer(line)
    ]
    return found + [
        f"{path}:{number}: {match.group(0)}: write {term}"
        for number, line in lines
        for pattern, term in TERMS.items()
        for match in pattern.finditer(line)
    ]


def fragments(path, text):
    """Comments in `text`, the file `path`, that begin as no sentence does: paragraphs
    of blocks, comments behind code, and docstrings."""
    forms = [form for suffixes, form in COMMENTS.items() if path.endswith(suffixes)]
    if not forms:
        return []
    found, block = [], None
    for number, line in enumerate(text.splitlines(), 1):
        match = forms[0].fullmatch(line)
        code, comment = match.groups() if match else ("", "")
        if comment and (code.strip() or len(code) != block) and FRAGMENT.match(comment):
            found.append(f"{path}:{number}: {comment}: name what it is about")
        block = len(code) if comment else None
    return found


# Folders of device code, and their files that may hold inline assembly.
DEVICE_CODE = ("codegen/cuda/",)
PTX_WRAPPERS = re.compile(r"codegen/cuda/kernels/ptx(_\w+)?\.cuh")
SHARED_MACROS = "codegen/cuda/kernels/types.cuh"


def wrong_device_code(path, text):
    """Inline assembly and raw __shared__ in `text`, outside their one place:
    the simulator cannot run them."""
    if not path.startswith(DEVICE_CODE):
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        where = f"{path}:{number}: "
        if re.search(r"\b(__)?asm(__)?\b", code) and not PTX_WRAPPERS.fullmatch(path):
            found.append(f"{where}asm: add a wrapper to codegen/cuda/kernels/ptx.cuh instead")
        if re.search(r"\b__shared__\b", code) and path != SHARED_MACROS:
            found.append(f"{where}__shared__: use LLAMAC_SHARED of {SHARED_MACROS} instead")
    return found


# Lines of a file that can be read at a sitting.
MOST_LINES = 800


def too_long(path, text):
    """A file is read by whoever looks for something in it; a generated page is not
    written by hand."""
    lines = len(text.splitlines())
    if lines <= MOST_LINES or text.startswith(GENERATED):
        return []
    return [f"{path}: expected at most {MOST_LINES} lines, got {lines}: divide it by meaning"]


# Columns of a document: of its lines, and of rows of tables, which cannot be
# wrapped. Generated pages have their text from TableGen files.
DOCUMENT_COLUMNS = 99
TABLE_COLUMNS = 160
GENERATED = "<!-- Generated from "


def wrong_document(path, text):
    """Lines of a document that are too long, and links to no file."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        limit = TABLE_COLUMNS if line.startswith("|") else DOCUMENT_COLUMNS
        if len(line) > limit and not text.startswith(GENERATED):
            found.append(f"{path}:{number}: expected at most {limit} columns, got {len(line)}")
    for target in re.findall(r"\[[^\]]+\]\(([^)#\s]+)", text):
        linked = os.path.join(ROOT, os.path.dirname(path), target)
        if "://" not in target and not os.path.exists(linked):
            found.append(f"{path}: links to {target}, which does not exist")
    return found


RELIABILITY = "docs/reliability.md"


def named_test(cell):
    """(script, class, name) of the test that a cell of the table names, or (file,
    "", "") of a lit test or a path; None for a cell of another form."""
    form = (
        r"`(?:tests/)?(?P<file>[\w/.-]+\.(?:test|mlir|py))`"
        r"|`tests/fuzz`, reader `(?P<reader>[\w-]+)`"
        r"|(?:`(?P<script>\w+)` )?`(?:(?P<suite>\w+)\.)?(?P<name>[\w*]+)`(?: case `(?P<case>\w+)`)?"
    )
    match = re.fullmatch(form, cell)
    return match.groupdict() if match else None


def python_methods(text):
    """Each class of a script: itself and its bases, and the test methods of all
    of these."""
    classes = {}
    for part in re.split(r"^(?=class )", text, flags=re.MULTILINE)[1:]:
        name, bases = re.match(r"class (\w+)(?:\(([^)]*)\))?", part).groups()
        names, methods = {name}, set(re.findall(r"^    def (test_\w+)\(", part, flags=re.MULTILINE))
        for base in re.findall(r"\w+", bases or ""):
            of_base = classes.get(base, (set(), set()))
            names |= of_base[0]
            methods |= of_base[1]
        classes[name] = names, methods
    return classes


def runs_script(path, suite, sources):
    """Whether the CMakeLists.txt of the script's folder runs it, with all of its
    classes or, as an argument, `suite`."""
    lists = sources.get(os.path.dirname(path) + "/CMakeLists.txt", "")

    def expanded(loop):
        variable, values, body = loop.groups()
        return "".join(body.replace("${" + variable + "}", value) for value in values.split())

    lists = re.sub(r"foreach\((\w+)\s+([^)]*)\)(.*?)endforeach\(\)", expanded, lists, flags=re.DOTALL)
    for call in re.findall(r"llamac_python_test\(([^)]*)\)", lists):
        words = call.split()
        if os.path.basename(path) in words:
            classes = [word for word in words[2:] if word.isalnum() and word[0].isupper() and not word.isupper()]
            if not (suite and classes) or suite in classes:
                return True
    return False


def is_test(named, sources):
    """Whether `sources`, by path, have the test and a CMakeLists.txt runs it."""
    lists = "\n".join(text for path, text in sources.items() if path.endswith("CMakeLists.txt"))
    if named["reader"]:
        return f'{{"{named["reader"]}", ' in sources.get("tests/fuzz/FuzzReaders.cpp", "")
    if named["file"]:
        name = named["file"]
        found = [path for path in sources if path == f"tests/{name}" or path.endswith(f"/{name}")]
        return bool(found) and (not name.endswith(".py") or runs_script(found[0], "", sources))
    name, suite = named["name"], named["suite"]
    if name.startswith("test_"):
        script = rf".*/test_{named['script'] or '.*'}(_text|_served)?\.py"
        for path in (path for path in sources if re.fullmatch(script, path)):
            classes = python_methods(sources[path])
            for found, (names, methods) in classes.items():
                if suite:
                    methods = classes[suite][1] if suite in names & set(classes) else ()
                if fnmatch.filter(methods, name) and runs_script(path, found, sources):
                    return True
        return False
    pattern = rf"TEST(_[FP])?\(\s*{suite},\s*{name}\)" if suite else rf"TEST(_[FP])?\(\s*{name},"
    return any(
        re.search(pattern, text) and (named["case"] or "") in text and os.path.basename(path) in lists
        for path, text in sources.items()
        if path.endswith(".cpp")
    )


def wrong_promises(text, sources):
    """Rows of the tables in `text` that are not a promise and a test, which
    `sources`, by path, have and run. Only the first row of a promise says it."""
    found = []
    rows = [line for line in text.splitlines() if re.match(r"\|(?! promise |---)", line)]
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        named = named_test(cells[1].rstrip(" |")) if len(cells) == 2 else None
        if len(cells) != 2:
            found.append(f"{row}: expected a promise and its test, got {len(cells)} columns; a number of cases changes")
        elif not named:
            found.append(f"{row}: expected one test as docs/reliability.md names them")
        elif not is_test(named, sources):
            found.append(f"{row}: no such test runs")
    return found


def llvm_in_binary(path):
    """Libraries that only the compiler may need, of those that a binary needs, and
    symbols of LLVM in it."""

    def readelf(option):
        return subprocess.run(
            ["readelf", "-W", option, path], capture_output=True, text=True, check=True
        ).stdout

    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic"))
    found = [lib for lib in needed if re.search(r"LLVM|MLIR|clang|lld|curl", lib)]
    symbols = re.findall(r"\b_ZN?K?(?:4llvm|4mlir|5clang)\w+", readelf("--symbols"))
    return found + symbols[:5]


class LintTest(unittest.TestCase):
    maxDiff = None

    def assert_clean(self, rule, files):
        self.assertTrue(files, "found no files to look at")
        found = [problem for f in files for problem in rule(f, read(f))]
        self.assertEqual(found, [], "\n" + "\n".join(found))


class IncludeDirections(LintTest):
    def test_every_include_goes_the_allowed_way(self):
        self.assert_clean(wrong_includes, project_files(*CPP))

    def test_finds_seeded_violations(self):
        seeded = [
            ("runtime/cpu/A.cpp", '#include "codegen/cpu/B.h"'),
            ("runtime/cpu/A.cpp", '#include "llvm/ADT/StringRef.h"'),
            ("engine/step/A.h", "#  include <mlir/IR/Value.h>"),
            ("runtime/io/A.h", '#include "runtime/plan/Plan.h"'),
            ("runtime/cpu/A.h", '#include "runtime/cuda/CudaDevice.h"'),
            ("runtime/load/A.h", '#include "engine/step/Engine.h"'),
            ("text/request/A.h", '#include "engine/sampling/Sampler.h"'),
            ("engine/cache/A.h", '#include "engine/step/Engine.h"'),
            ("serve/http/A.h", '#include "serve/api/Service.h"'),
            ("simulator/A.h", '#include "codegen/sim/SimBackend.h"'),
            ("codegen/A.h", '#include "codegen/cuda/CudaTarget.h"'),
            ("compiler/driver/A.h", '#include "compiler/check/Check.h"'),
            ("tests/runtime/io/A.cpp", '#include "clang/Basic/Version.h"'),
            ("tests/runtime/io/A.cpp", '#include "passes/Passes.h"'),
            ("ir/llama/A.cpp", '#include "passes/Passes.h"'),
            ("passes/graph/A.cpp", '#include "codegen/cpu/B.h"'),
            ("frontends/gguf/A.cpp", '#include "engine/step/Engine.h"'),
            ("codegen/cpu/A.cpp", '#include "engine/step/Engine.h"'),
            ("codegen/cpu/A.cpp", '#include "../plan/B.h"'),
            ("engine/step/A.cpp", '#include "llamac/llamac.h"'),
            ("include/llamac/A.h", '#include "runtime/base/Status.h"'),
            ("python/src/A.cpp", '#include "runtime/base/Status.h"'),
            ("examples/c/a.c", '#include "mlir/IR/Value.h"'),
        ]
        for path, line in seeded:
            with self.subTest(path=path, line=line):
                self.assertEqual(len(wrong_includes(path, f"#include <vector>\n{line}\n")), 1)

    def test_lets_right_includes_pass(self):
        for path, line in [
            ("compiler/check/A.cpp", '#include "engine/step/Engine.h"'),
            ("engine/tuner/A.cpp", '#include "engine/step/Engine.h"'),
            ("codegen/cuda/kernels/A.cpp", '#include "codegen/Backend.h"'),
            ("codegen/cpu/A.cpp", '#include "runtime/cpu/KernelAbi.h"'),
            ("codegen/cpu/A.cpp", '#include "clang/Basic/Version.h"'),
            ("engine/step/A.cpp", '#include "absl/status/status.h"'),
        ]:
            self.assertEqual(wrong_includes(path, line), [])


class Banners(LintTest):
    def test_every_cpp_file_names_itself_and_its_licence(self):
        self.assert_clean(wrong_banner, project_files(*CPP))

    def test_finds_seeded_violations(self):
        first = "//===- A.h - A thing ".ljust(80 - len("*- C++ -*-===//"), "-") + "*- C++ -*-===//\n"
        self.assertEqual(wrong_banner("ir/A.h", first + BANNER), [])
        for what, path, text in [
            ("another file's name", "ir/B.h", first + BANNER),
            ("79 columns", "ir/A.h", first.replace("--", "-", 1) + BANNER),
            ("no licence", "ir/A.h", first + BANNER.replace("SPDX", "")),
            ("no banner", "ir/A.h", "#include <vector>\n"),
        ]:
            with self.subTest(what):
                self.assertEqual(len(wrong_banner(path, text)), 1)


class Words(LintTest):
    def test_no_file_names_a_machine_or_unfinished_work(self):
        self.assert_clean(wrong_words, project_files())

    def test_finds_seeded_violations(self):
        for parts in [
            ("// see /wo", "rk/main"),
            ("cd /ro", "ot/x"),
            ("# TO", "DO: later"),
            ("/ho", "me/me/x"),
            ("// FIX", "ME"),
        ]:
            self.assertEqual(len(wrong_words("ir/A.h", "line\n" + "".join(parts))), 1)


    def test_finds_own_coinages(self):
        for parts in [
            ("// Random, not made-", "up weights."),
            ("the like", "liest token"),
            ("A NaN for num", "bers that are no", "ne."),
            ("# Nobody: a byte that nobody wr", "ote"),
            ("Wan", "ted rows come first."),
            ("| 81 to 84 % of a re", "ad |"),
            ("The scheduler dea", "ls rows to threads."),
            ("one table of ang", "les"),
        ]:
            line = "".join(parts)
            self.assertEqual(len(wrong_words("docs/a.md", f"# A\n{line}\n")), 1, line)

    def test_lets_the_terms_of_the_field_pass(self):
        for line in ["an ideal partition", "rows that are wanted", "a read of a reader", "NaN of no number", "AVX2 only"]:
            self.assertEqual(wrong_words("docs/a.md", line), [], line)


class Comments(LintTest):
    def test_every_comment_names_what_it_is_about(self):
        self.assert_clean(fragments, project_files(*(suffix for suffixes in COMMENTS for suffix in suffixes)))

    def test_finds_seeded_violations(self):
        for path, text in [
            ("ir/A.h", "  int rows; ///< Of a launch."),
            ("ir/A.h", "/// What the op reads.\nint f();"),
            ("ir/A.h", "// A plan has kernels.\n//\n// Those of cpu are objects."),
            ("ir/A.h", "int a; ///< Rows.\n/// By kernel.\nint b;"),
            ("ir/A.h", "int a; ///< Rows.\nint b; ///< The same."),
            ("serve/page/a.js", "  views: new Map(), // By message."),
            ("ir/A.td", "// As the plan has it."),
            ("bench/a.py", "SIZE = 2  #" " That of a block."),
            ("bench/a.py", 'def f():\n    """' "The same of a file."),
            ("cmake/A.cmake", "# To be found by ccache."),
        ]:
            with self.subTest(path=path, text=text):
                self.assertEqual(len(fragments(path, text)), 1)

    def test_lets_right_comments_pass(self):
        for path, text in [
            ("ir/A.h", "  int rows; ///< Rows of a launch."),
            ("ir/A.h", "/// Calls `visit` for each op.\n/// What it gives ends the walk.\nint f();"),
            ("ir/A.h", "int a; ///< Rows that all launches\n       ///< Of the step share."),
            ("ir/A.h", 'auto url = "https://That";'),
            ("bench/a.py", "# A block's size.\nSIZE = 2  # Bytes."),
            ("docs/a.md", "# What it is"),
        ]:
            with self.subTest(path=path, text=text):
                self.assertEqual(fragments(path, text), [])


class DeviceCode(LintTest):
    def test_assembly_and_shared_memory_have_their_one_place(self):
        self.assert_clean(wrong_device_code, project_files(*CPP))

    def test_finds_seeded_violations(self):
        for path, line in [
            ("codegen/cuda/kernels/gemm.cuh", '  asm volatile("bar.sync 0;");'),
            ("codegen/cuda/Emitter.cpp", '  out << "  __asm__(\\"exit;\\");";'),
            ("codegen/cuda/kernels/gemm.cuh", "  __shared__ float tile[32];"),
            ("codegen/cuda/kernels/ptx.cuh", "  extern __shared__ char bytes[];"),
        ]:
            with self.subTest(path=path, line=line):
                self.assertEqual(len(wrong_device_code(path, line)), 1)

    def test_lets_right_code_pass(self):
        for path, line in [
            ("codegen/cuda/kernels/ptx.cuh", '  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));'),
            ("codegen/cuda/kernels/ptx_sm90.cuh", '  asm volatile("griddepcontrol.wait;");'),
            ("codegen/cuda/kernels/gemm.cuh", "  LLAMAC_SHARED(tile, float[32]); // not __shared__"),
            ("runtime/cpu/A.cpp", '  asm("pause");'),
        ]:
            self.assertEqual(wrong_device_code(path, line), [])


class Lengths(LintTest):
    def test_every_file_can_be_read_at_a_sitting(self):
        self.assert_clean(too_long, [f for f in project_files() if not f.endswith(".png")])

    def test_finds_seeded_violations(self):
        self.assertEqual(len(too_long("codegen/cuda/kernels/gemm.cuh", "line\n" * 801)), 1)
        self.assertEqual(too_long("codegen/cuda/kernels/gemm.cuh", "line\n" * 800), [])
        self.assertEqual(too_long("docs/passes.md", GENERATED + "A.td -->\n" + "line\n" * 800), [])


class Documents(LintTest):
    def test_lines_end_before_100_columns_and_links_lead_somewhere(self):
        self.assert_clean(wrong_document, project_files(".md"))

    def test_the_test_of_each_promise_exists_and_runs(self):
        sources = {f: read(f) for f in project_files() if f.startswith("tests/")}
        found = wrong_promises(read(RELIABILITY), sources)
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_finds_seeded_violations(self):
        for line in ["x" * 100, "|" + "x" * 160, "see [that](no-such-page.md#part)"]:
            self.assertEqual(len(wrong_document("docs/a.md", f"# A\n\n{line}\n")), 1, line)
        self.assertEqual(wrong_document("docs/a.md", GENERATED + "A.td -->\n" + "x" * 100), [])
        sources = {
            "tests/a/b.test": "",
            "tests/A.cpp": "TEST_F(A,\n       B) {}\nTEST_P(P, Q) {} Case{}",
            "tests/Unlisted.cpp": "TEST(Unlisted, X) {}",
            "tests/e2e/test_some.py": "class Base:\n    def test_c(self):\n\nclass D(Base):\n    def test_e(self):\n",
            "tests/e2e/test_parts.py": "class Run:\n    def test_r(self):\n\nclass Left:\n    def test_l(self):\n",
            "tests/fuzz/FuzzReaders.cpp": '    {"json", json, texts},',
            "tests/CMakeLists.txt": "llamac_gtest(A SOURCES A.cpp)",
            "tests/e2e/CMakeLists.txt": "llamac_python_test(some test_some.py EXHAUSTIVE)\n"
            "foreach(part Run)\n  llamac_python_test(parts.${part} test_parts.py ARGS ${part})\nendforeach()",
        }
        right = ("A.B", "b.test", "D.test_c", "D.test_*", "A", "Run.test_r")
        rows = [f"| it holds | `{name}` |" for name in right]
        rows += ["| | `some` `D.test_e` |", "| | `P.Q` case `Case` |", "| | `tests/fuzz`, reader `json` |"]
        self.assertEqual(wrong_promises("\n".join(rows), sources), [])
        wrong = ("A.C", "c.test", "D.test_f", "Base.test_e", "Unlisted.X", "Left.test_l", "B")
        rows = [f"| it holds | `{name}` |" for name in wrong]
        rows += ["| | `parts` `D.test_e` |", "| | `P.Q` case `Other` |", "| | `tests/fuzz`, reader `xml` |"]
        rows += ["| it holds | `A.B` | 12 |", "| it holds | |", "| it holds | `A.B`, `b.test` |"]
        self.assertEqual(len(wrong_promises("\n".join(rows), sources)), len(rows))

    def test_lets_right_documents_pass(self):
        for line in ["x" * 99, "|" + "x" * 159, "[a](architecture.md#errors) [b](https://c.org/d)"]:
            self.assertEqual(wrong_document("docs/a.md", line), [])


class Format(LintTest):
    CLANG_FORMAT = "clang-format-19"

    def setUp(self):
        if not shutil.which(self.CLANG_FORMAT):
            print(f"cannot run: no {self.CLANG_FORMAT}", file=sys.stderr)
            sys.exit(1 if os.environ.get("CI") == "true" else 77)

    def test_clang_format_would_change_nothing(self):
        files = project_files(*(s for s in CPP if s != ".inc"))
        result = subprocess.run(
            [self.CLANG_FORMAT, "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])

    def test_finds_seeded_violations(self):
        result = subprocess.run(
            [self.CLANG_FORMAT, "--dry-run", "-Werror", "--assume-filename=ir/A.cpp"],
            input="int  f( int x ){return x;}\n",
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        self.assertNotEqual(result.returncode, 0)


class Python(LintTest):
    COMMAND = (sys.executable, "-m", "ruff", "check", "--no-cache", "--quiet")

    def setUp(self):
        if importlib.util.find_spec("ruff") is None:
            print("cannot run: no ruff; scripts/setup.sh test installs what is missing", file=sys.stderr)
            sys.exit(1 if os.environ.get("CI") == "true" else 77)

    def test_no_name_is_undefined_unused_or_hidden(self):
        result = subprocess.run([*self.COMMAND, *project_files(".py")], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_finds_seeded_violations(self):
        for code in ("import os\n", "print(nothing)\n", "for x in x:\n    print(x)\n"):
            with self.subTest(code):
                result = subprocess.run([*self.COMMAND, "-"], input=code, cwd=ROOT, capture_output=True, text=True)
                self.assertNotEqual(result.returncode, 0)


class Shell(LintTest):
    def setUp(self):
        if not shutil.which("shellcheck"):
            print("cannot run: no shellcheck; scripts/setup.sh test installs what is missing", file=sys.stderr)
            sys.exit(1 if os.environ.get("CI") == "true" else 77)

    def test_shellcheck_has_nothing_to_say(self):
        scripts = [f for f in project_files() if re.match(r"#!.*\b(ba)?sh\b", read(f))]
        self.assertTrue({".ci/run", "scripts/test.sh"}.issubset(scripts), scripts)
        result = subprocess.run(
            ["shellcheck", *scripts], cwd=ROOT, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_finds_seeded_violations(self):
        result = subprocess.run(["shellcheck", "-"], input="#!/bin/sh\nrm $1\n", capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)


class Links(LintTest):
    LIBRARY = os.path.join(os.path.dirname(BIN_DIR), "lib", "libllamac.so")

    def test_the_runtime_holds_no_llvm(self):
        self.assertEqual(llvm_in_binary(os.path.join(BIN_DIR, "llamac-run")), [])
        self.assertEqual(llvm_in_binary(self.LIBRARY), [])

    def test_llamac_needs_no_library_of_llvm(self):
        found = llvm_in_binary(os.path.join(BIN_DIR, "llamac"))
        self.assertEqual([lib for lib in found if ".so" in lib], ["libcurl.so.4"])

    def test_the_library_shows_what_its_header_declares(self):
        declared = re.findall(r"LLAMAC_API [\w\s*]*?\b(llamac_\w+)\(", read("include/llamac/llamac.h"))
        listing = subprocess.run(
            ["readelf", "-W", "--dyn-syms", self.LIBRARY], capture_output=True, text=True, check=True
        ).stdout
        shown = re.findall(r" GLOBAL +DEFAULT +\d+ (\w+)@@LLAMAC_", listing)
        self.assertGreater(len(declared), 30)
        self.assertEqual(sorted(shown), sorted(declared))

    def test_finds_llvm_where_it_is(self):
        self.assertNotEqual(llvm_in_binary(os.path.join(BIN_DIR, "llamac")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
