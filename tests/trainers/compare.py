#!/usr/bin/env python3
"""Compares the losses of troupe's methods with `compat: trl` with those of TRL's trainers, step by step.

compare.py PROGRAM DATA [--only METHOD] [--template NAME] [--keep FOLDER] [--record FILE]

DATA is tests/data. Each method runs over three epochs of 26 rows in batches of 4 (21 steps, the last of each epoch with fewer rows) for each chat
template of inputs.py, in float32, with the rows in their order. Prints a table of the largest differences; exit code 1: one is above 1e-4.
Exit code 77: a library is missing. The versions are those of requirements.txt.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

BOUND = 1e-4


class Method:
    """A row of the table. `trl` and `troupe` are settings of the two in addition to the common ones."""

    def __init__(self, name, algorithm, rows, trl=None, troupe=(), model="causal", adapter=False):
        self.name, self.algorithm, self.rows, self.trl, self.troupe = name, algorithm, rows, trl or {}, list(troupe)
        self.model, self.adapter = model, adapter


METHODS = [
    Method("SFT", "sft", "completions"),
    Method("SFT, whole rows", "sft", "messages", troupe=["sft.mask_prompt=false"]),
    Method("DPO", "dpo", "pairs"),
    Method("DPO, no prompt column", "dpo", "whole pairs"),
    Method("DPO, continued adapter", "dpo", "pairs", adapter=True),
    Method("KTO", "kto", "unpaired"),
    Method("KTO, continued adapter", "kto", "unpaired", adapter=True),
    Method("ORPO", "orpo", "pairs"),
    Method("CPO", "cpo", "pairs"),
    Method("SimPO", "simpo", "pairs", trl={"loss_type": "simpo"}),
    Method("reward model", "orm", "pairs", model="scored"),
]


def settings_of(method):
    return ["compat=trl", "data.shuffle=false", "train.batch_size=4", "train.epochs=3", "train.learning_rate=1e-4", "train.max_length=160",
            "tokenizer_ids=transformers5", *method.troupe]


def troupe_losses(program, method, folder, adapter, rows, output):
    settings = settings_of(method) + ["train.threads=1", "train.save_every=0"]
    if adapter:
        settings.append("lora.adapter=" + adapter)
    command = [program, "train", "--quiet", "--algorithm", method.algorithm, "--model", folder, "--data", rows, "--output", output]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    with open(os.path.join(output, "metrics.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line)["loss"] for line in lines]


def compared(program, method, template, folder, data, root):
    """(steps of TRL, steps of troupe, largest difference, its step) of one run."""
    import inputs
    import trl_runs
    name = os.path.join(root, f"{method.name.replace(' ', '-').replace(',', '')}-{template}")
    rows = inputs.rows_of(data, method.rows, template != "text")
    inputs.write_rows(name + ".jsonl", rows)
    used = inputs.scored(folder) if method.model == "scored" else folder
    adapter = inputs.adapted(folder) if method.adapter else None
    theirs = trl_runs.losses(method.algorithm, used, rows, name + "-trl", adapter, **method.trl)
    ours = troupe_losses(program, method, used, adapter, name + ".jsonl", name + "-troupe")
    with open(name + ".json", "w", encoding="utf-8") as file:
        json.dump({"trl": theirs, "troupe": ours}, file)
    differences = [abs(a - b) if math.isfinite(a) and math.isfinite(b) else math.inf for a, b in zip(theirs, ours)]
    worst = max(range(len(differences)), key=differences.__getitem__)
    return len(theirs), len(ours), differences[worst], worst + 1


def record(path, data, root):
    """Writes what the test of continuous integration compares with: TRL's losses of few rows, by method and template."""
    import inputs
    import trl_runs
    folders = inputs.folders(data, root)
    templates = {"plain": inputs.PLAIN, "chatml": inputs.CHATML, "text": ""}
    rows, runs = {}, []
    for method in METHODS:
        for template in templates if method.model == "causal" and not method.adapter else ():
            kind = method.rows + (" of text" if template == "text" else "")
            rows[kind] = inputs.rows_of(data, method.rows, template != "text", 6)
            found = trl_runs.losses(method.algorithm, folders[template], rows[kind], os.path.join(root, "recorded"), **method.trl)
            runs.append({"name": f"{method.name}, {template}", "algorithm": method.algorithm, "rows": kind, "template": template,
                         "settings": settings_of(method), "losses": found})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"made_with": versions(), "templates": templates, "rows": rows, "runs": runs}, file, ensure_ascii=False, indent=1)
    return 0


def versions():
    import peft
    import torch
    import transformers
    import trl
    return {"TRL": trl.__version__, "transformers": transformers.__version__, "PEFT": peft.__version__, "torch": torch.__version__}


def print_table(found, templates):
    width = max(len(method.name) for method in METHODS) + 2
    print("".ljust(width) + "".join(name.rjust(11) for name in templates))
    for method in METHODS:
        cells = [found.get((method.name, name)) for name in templates]
        if any(cells):
            print(method.name.ljust(width) + "".join((f"{cell[2]:.1e}" if cell else "-").rjust(11) for cell in cells))


def bad(result):
    return result[0] != result[1] or not result[2] <= BOUND


def run(options, root):
    import inputs
    import torch
    torch.set_num_threads(1)
    print(", ".join(f"{name} {version}" for name, version in versions().items()), flush=True)
    if options.record:
        return record(options.record, options.data, root)
    folders = inputs.folders(options.data, root)
    templates = [name for name in folders if options.template in (None, name)]
    found = {}
    for method in METHODS:
        for template in templates:
            if options.only in (None, method.name):
                start = time.time()
                result = compared(options.program, method, template, folders[template], options.data, root)
                found[method.name, template] = result
                print(f"{method.name}, {template}: {result[0]} and {result[1]} steps, largest difference {result[2]:.2e} at step {result[3]}, "
                      f"{time.time() - start:.0f} s{', WRONG' if bad(result) else ''}", file=sys.stderr, flush=True)
    print_table(found, templates)
    return 1 if not found or any(map(bad, found.values())) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("data", type=os.path.abspath)
    parser.add_argument("--only", metavar="METHOD", choices=[method.name for method in METHODS])
    parser.add_argument("--template")
    parser.add_argument("--keep", metavar="FOLDER", help="write the runs there, and leave them")
    parser.add_argument("--record", metavar="FILE", type=os.path.abspath, help="write TRL's losses of six rows there instead, for tests/data/golden")
    options = parser.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1",
                      TRL_EXPERIMENTAL_SILENCE="1")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    try:
        import trl_runs  # noqa: F401
    except ImportError as missing:
        print(f"left out: {missing}", file=sys.stderr)
        return 77
    root = options.keep or tempfile.mkdtemp()
    os.makedirs(root, exist_ok=True)
    try:
        return run(options, root)
    finally:
        if not options.keep:
            shutil.rmtree(root)


if __name__ == "__main__":
    sys.exit(main())
