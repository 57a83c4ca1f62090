#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proves and measures the cuda target on a GPU, on a machine that has neither LLVM nor a network: packed where llamac
is built, run where the GPU is."""

import argparse
import os
import re
import sys

import check
import compare
import package
from process import ProgramError

HERE = os.path.dirname(os.path.abspath(__file__))


def number(kind, least, most=float("inf")):
    """A number from `least` on, as argparse takes it."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"expected a number from {least}, got {text}")
        return value

    return parse


def pattern(text):
    """A regular expression, as argparse takes it."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"expected a regular expression, got {text}: {error}") from error
    return text


def formats(text):
    """A list of formats, as argparse takes it."""
    found = text.split(",")
    if unknown := set(found) - set(package.ALL_FORMATS):
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(package.ALL_FORMATS)}, got {unknown.pop()}")
    return found


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message):
        self.exit(2, f"gpu_check.sh: error: {message}; see gpu_check.sh --help\n")


def make_parser(is_package):
    parser = Parser(prog="gpu_check.sh", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=Parser)
    if is_package:
        run = verbs.add_parser("run", help="test and measure the GPU (the verb may be left out)")
        run.add_argument("out", nargs="?", metavar="OUT", help="for results.json and results.md (default: the package)")
        parser.epilog = "gpu_check.sh run --help lists the options."
    else:
        pack = verbs.add_parser("pack", help="all that is needed where the GPU is, under 60 MB")
        pack.add_argument("folder", metavar="FOLDER")
        run = verbs.add_parser("dry-run", help="packs a tiny model, and runs it on the fake driver of the tests")
        run.add_argument("folder", metavar="FOLDER")
        run.add_argument(
            "--cases", type=pattern, metavar="REGEX", help="of conformance, by their whole names (default: all)"
        )
        for packing in (pack, run):
            packing.add_argument(
                "--weights",
                type=formats,
                default=package.ALL_FORMATS,
                metavar="FORMATS",
                help=f"of the plans beside bf16, with commas between (default: {','.join(package.ALL_FORMATS[1:])})",
            )
    run.add_argument("--quick", action="store_true", help="wrappers, a few ops and the 1B in bf16, in three minutes")
    run.add_argument(
        "--profile", action="store_true", help="in place of all else, what Nsight Compute tells of the largest kernels"
    )
    run.add_argument(
        "--steps", type=pattern, metavar="REGEX", help="only these, by the names in results.json (default: all)"
    )
    run.add_argument("--gpu-index", type=number(int, 0, 1023), default=0, metavar="N", help="which GPU (default: 0)")
    run.add_argument(
        "--ops",
        type=number(int, 1),
        metavar="N",
        help=f"so many cases of each kind of op (default: all; {check.QUICK_OPS} with --quick)",
    )
    seconds = number(float, 1)
    run.add_argument(
        "--limit",
        type=seconds,
        metavar="SECONDS",
        help="that a case of conformance may take; other programs take four times it at most "
        f"(default: {check.LIMIT}; {check.QUICK_LIMIT} with --quick)",
    )
    run.add_argument(
        "--budget",
        type=seconds,
        metavar="SECONDS",
        help="that all may take; what does not fit is named "
        f"(default: {check.BUDGET}; {check.QUICK_BUDGET} with --quick)",
    )
    compared = verbs.add_parser("compare", help="the ratios of two results.json")
    compared.add_argument("old", metavar="OLD")
    compared.add_argument("new", metavar="NEW")
    return parser


def main(arguments):
    packed = os.path.dirname(HERE)
    is_package = os.path.exists(os.path.join(packed, "check.json"))
    if is_package and (not arguments or arguments[0] not in ("run", "compare", "-h", "--help")):
        arguments = ["run", *arguments]
    options = make_parser(is_package).parse_args(arguments)
    try:
        if options.verb == "compare":
            return compare.main(options.old, options.new)
        if options.verb == "run":
            package.unpack(packed)
            return check.Check(packed, options.out or packed, options).run()
        folder = os.path.abspath(options.folder)
        if options.verb == "pack":
            package.pack(folder, options.weights)
            return 0
        package.pack(folder, options.weights, options.cases, options.steps, dry=True)
        package.unpack(folder)
        return check.Check(folder, folder, options).run()
    except (OSError, ProgramError) as error:
        print(f"gpu_check.sh: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
