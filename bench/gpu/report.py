# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results for people, as far as there are any."""

import statistics

MOST_LISTED = 40  # A list shows at most so many; all are in results.json.


def table(results):
    parts = [head(results), conformance(results), decode(results), throughput(results.get("throughput", []))]
    parts += [resident(results.get("resident", [])), serving(results.get("serving", []))]
    parts += [kernels(results), profile(results.get("profile", []))]
    parts += [fidelity(row) for row in results.get("fidelity", [])]
    parts += [answers(results.get("answers", [])), launch_rows(results.get("rows"))]
    parts += [ranks(results.get("ranks", [])), peers(results.get("peers", []))]
    parts += [sanitizer(results.get("sanitizer", []))]
    parts += [listing("Problems", results["problems"]), listing("Left out, for the time was over", results["left_out"])]
    parts += [[f"{results.get('seconds', 0)} s in all."]]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def rows_of(header, rows):
    """A table; none without rows."""
    if not rows:
        return []
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]


def listing(title, items):
    if not items:
        return []
    rest = [f"- and {len(items) - MOST_LISTED} more, in results.json"] if len(items) > MOST_LISTED else []
    return [f"{title}:", "", *(f"- {item}" for item in items[:MOST_LISTED]), *rest]


def head(results):
    lines = []
    if results.get("dry_run"):
        lines += ["**A dry run on a fake driver: times mean nothing.**", ""]
    if results.get("running"):
        lines += [f"**Not complete: step {results['running']} has begun and not ended.**", ""]
    bandwidth = results.get("bandwidth", {})
    named = ", ".join(filter(None, (bandwidth.get("device"), results.get("machine"))))
    lines += [f"GPU {results.get('gpu_index', 0)}: {named or 'not measured'}"]
    if bandwidth:
        lines += ["", f"Read {bandwidth['read_gb_s']} GB/s, copy {bandwidth['copy_gb_s']} GB/s (read and written)."]
    return lines


def conformance(results):
    counted = results.get("conformance")
    if not counted:
        return []
    skipped = f", {counted['skipped']} not for this GPU" if counted["skipped"] else ""
    left_out = f", {len(counted['left_out'])} left out" if counted["left_out"] else ""
    lines = [f"Conformance: {counted['passed']} passed, {len(counted['failed'])} failed{skipped}{left_out}."]
    if counted["failed"]:
        rows = [[f["case"], f["result"], f["message"].replace("|", "/")] for f in counted["failed"][:MOST_LISTED]]
        lines += ["", *rows_of(["case", "result", "message"], rows)]
    return lines


def decode(results):
    header = ["model", "weights", "prompt", "batch", "ms a step", "GB a step", "share of read"]
    rows = []
    for row in results.get("workload", []) + results.get("decode", []):
        load = f"{row['load_s']:.2f}" + (f" ({row['cache']})" if "cache" in row else "")
        share = f"{100 * row['share']:.1f} %" if row["share"] is not None else "-"
        cells = [row["shape"], row["weights"], str(row["prompt_tokens"]), str(row["batch"]), f"{row['step_ms']:.3f}"]
        cells += [f"{row['gb_per_step']:.2f}", share, f"{row['prefill_tok_s']:.0f}", load]
        rows.append(cells)
    return rows_of([*header, "prefill tok/s", "load s"], rows)


def resident(rows):
    cells = []
    for row in rows:
        line = [row["shape"], row["weights"]]
        if not row["runs"]:
            cells.append([*line, "-", "-", "-", "-", "does not run"])
            continue
        many, one = (statistics.median(row[name]) for name in ("many_ms", "one_ms"))
        bits = "the same" if row["same_bits"] else "others"
        cells.append([*line, str(row["prompt_tokens"]), f"{many:.3f}", f"{one:.3f}", f"{many / one:.2f}", bits])
    return rows_of(["step in one launch of", "weights", "prompt", "many, ms", "one, ms", "ratio", "bits"], cells)


def throughput(rows):
    cells = []
    for row in rows:
        steps = "batch-invariant" if row["batch_invariant"] else "the fastest"
        name = [row["shape"], row["weights"], str(row["sequences"]), steps]
        cells.append([*name, f"{row['output_tok_s']:.0f}", f"{row['seconds']:.2f}"])
    return rows_of(["throughput of", "weights", "sequences", "steps", "tok/s", "s in all"], cells)


def serving(rows):
    cells = []
    for row in rows:
        for way in ("engine", "serve"):
            found = row[way]
            line = [row["shape"], row["lengths"], str(row["requests"]), way]
            line += [f"{found['output_tok_s']:.0f}", f"{found['total_tok_s']:.0f}"]
            for name in ("ttft_s", "itl_s"):
                line.append(", ".join(f"{1e3 * seconds:.1f}" for seconds in found.get(name, {}).values()) or "-")
            share = f"{row['serve_share']:.2f}" if way == "serve" else "-"
            cells.append([*line, share, f"{100 * found['host_share']:.1f} %" if "host_share" in found else "-"])
    header = ["serving of", "tokens in/out", "requests", "by", "output tok/s", "total tok/s", "TTFT p50, p99 ms"]
    return rows_of([*header, "ITL p50, p99 ms", "of the engine", "host"], cells)


def kernels(results):
    rows = []
    for row in results.get("kernels", []):
        cells = [row["shape"], row["part"], row["kernel"], str(row["launches"])]
        rows.append(cells + [f"{row['us']:.1f}", f"{row['gb_s']:.0f}", f"{row['tflops']:.1f}"])
    lines = rows_of(["model", "of a", "kernel", "launches", "us each", "GB/s", "TFLOP/s"], rows)
    return [*lines, "", "![Roofline](roofline.svg)"] if lines and results.get("bandwidth") else lines


def profile(rows):
    if isinstance(rows, str):
        return [f"Nsight Compute: {rows}."]

    def percent(share):
        return "-" if share is None else f"{share:.0f} %"

    cells = []
    for row in rows:
        stalls = ", ".join(f"{name} {percent(100 * share)}" for name, share in row["stalls"]) or "-"
        registers = "-" if row["registers"] is None else f"{row['registers']:.0f}"
        figures = [percent(100 * row["time_share"]), percent(row["dram"]), percent(row["issue"]), registers, stalls]
        cells.append([row["shape"], row["work"], row["kernel"], *figures])
    header = ["model", "of", "kernel", "of its time", "DRAM", "issue slots busy", "registers", "warps wait for"]
    return rows_of(header, cells)


def fidelity(row):
    lines = []
    for what, key in (("mean KL", "kl"), ("mean error of NLL", "nll_error")):
        figures = row["plan"][f"mean_{key}"], row["bf16"][f"mean_{key}"], row[f"excess_{key}_upper95"]
        lines.append([what, *(f"{figure:.3g}" for figure in figures)])
    title = f"{row['shape']} against fp32 on {row['positions']} tokens:"
    return [title, "", *rows_of(["", "plan", "plain bf16", "upper bound of the excess"], lines)]


def peers(rows):
    lines = []
    for row in rows:
        if row["command"] == "decode":
            figure = f"{row['ms_per_token']:.3f} ms a token"
        elif row["command"] == "attention":
            figure = f"{row['tflops']:.0f} TFLOP/s, {row['rows']} rows"
        else:
            speeds = {name: product["tflops"] for name, product in row["products"].items()}
            figure = ", ".join(f"{name} {speed:.0f}" for name, speed in speeds.items())
            figure += f" TFLOP/s, median {statistics.median(speeds.values()):.0f}, {row['rows']} rows"
        lines.append([row["command"], row["shape"], figure])
    return [f"PyTorch {rows[0]['torch']}", "", *rows_of(["peer", "model", "figure"], lines)] if rows else []


def answers(rows):
    cells = [[row["run"], f"{row['answers'] - len(row['different'])} of {row['answers']}"] for row in rows]
    return rows_of([f"answers of {rows[0]['shape']}" if rows else "", "the same bits as few at a time"], cells)


def launch_rows(row):
    if not row:
        return []
    found = f"the first that differ: {row['difference']}" if row["difference"] else "all have the same bits"
    return [f"Rows of launches of {row['shape']}, alone and among others: {row['compared']} compared, {found}."]


def ranks(rows):
    if isinstance(rows, str):
        return [f"Two ranks: {rows}."]
    cells = []
    for row in rows:
        same = "the same" if row["same_bits_twice"] else "others"
        cells.append([row["shape"], str(row["gpus"]), str(row["chunk"]), f"{row['difference']:.2g}", same])
    header = ["two ranks of", "GPUs", "tokens a step", "logits apart from one rank's, of the largest", "bits again"]
    return rows_of(header, cells)


def sanitizer(rows):
    if isinstance(rows, str):
        return [f"Sanitizer: {rows}."]
    cells = [[row["tool"], f"{row['ended']} of {row['cases']}", str(row["errors"])] for row in rows]
    return rows_of(["compute-sanitizer", "cases", "errors"], cells)
