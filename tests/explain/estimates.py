#!/usr/bin/env python3
"""Estimates of `troupe explain` beside runs.

estimates.py TROUPE ROOT [--only "NAME;..."]

For each run of a table (the demo's run files, and methods over small models of tests/data) it prints the range of times that explain predicts, the time
of the run, the peak memory that explain predicts for its batches, and the greatest resident memory of the process (ru_maxrss, which is VmHWM). The time is
that of the steps in timings.jsonl without evaluations and checkpoints, on a machine that does nothing else. The exit code is 1 if a time is out of its
range, if a peak differs from its prediction by more than 10 %, or, where the lengths of completions are not known, exceeds it by as much.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.10
UNITS = {"s": 1, "min": 60, "h": 3600, "days": 86400}
STORIES = ["--set", "model={data}/models/stories260k/hf", "--set", "train.batch_size=16", "--set", "train.steps=20", "--set", "train.micro_batch_tokens=2048"]
ROLLOUTS = ["--set", "reward=[{{rule: regex, pattern: was}}]", "--set", "rollout.max_new_tokens=48"]
TABLE = {
    "demo sft": ["--config", "launch/quickstart/sft.yaml", "--set", "data.path=launch/quickstart/train.jsonl"],
    "demo grpo": ["--config", "launch/quickstart/grpo.yaml", "--set", "data.path=launch/quickstart/train.jsonl", "--set", "model={warm}", "--set", "train.steps=20"],
    "sft": ["--algorithm", "sft", *STORIES],
    "sft, LoRA": ["--algorithm", "sft", *STORIES, "--set", "lora.rank=8"],
    "dpo": ["--algorithm", "dpo", *STORIES],
    "grpo": ["--algorithm", "grpo", *STORIES, *ROLLOUTS, "--set", "grpo.group_size=4"],
    "ppo": ["--algorithm", "ppo", *STORIES, *ROLLOUTS],
    "pretrain": ["--algorithm", "pretrain", *STORIES, "--set", "train.max_length=128", "--set", "data.path={data}/datasets/pretrain/tinystories_train.txt"],
    "kto": ["--algorithm", "kto", *STORIES],
    "orm": ["--algorithm", "orm", *STORIES],
    "dpo, LoRA": ["--algorithm", "dpo", *STORIES, "--set", "lora.rank=8"],
    "sft, large micro-batch": ["--algorithm", "sft", *STORIES, "--set", "train.batch_size=64", "--set", "train.micro_batch_tokens=8192"],
}


def write_rows(path):
    words = ["time", "there", "was", "little", "girl", "who", "her", "day", "play", "with"]
    with path.open("w") as file:
        for i in range(320):
            text = " ".join(words[(i * j + j) % 10] for j in range(1, 40))
            file.write(json.dumps({"prompt": f"Once upon a {words[i % 10]}", "completion": " " + text, "chosen": " " + text, "rejected": text[::-1], "answer": "the"}) + "\n")


def seconds(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


def predicted(troupe, root, line):
    """(shortest time, longest time, peak in MiB, whether the peak is no upper bound)"""
    text = subprocess.run([troupe, "explain", *line], cwd=root, capture_output=True, text=True, check=True).stdout
    time = re.search(r"^  time +([0-9.]+ \w+) to ([0-9.]+ \w+),", text, re.MULTILINE)
    peak = re.search(r"^  peak memory +(about|up to) ([0-9.]+) ([MG])iB", text, re.MULTILINE)
    if not time or not peak:
        sys.exit(f"explain: expected a range of times and a peak, found:\n{text}")
    return seconds(time[1]), seconds(time[2]), float(peak[2]) * (1024 if peak[3] == "G" else 1), peak[1] == "about"


def measured(troupe, root, line, output):
    """(seconds, peak in MiB)"""
    process = subprocess.Popen([troupe, "train", *line], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    log = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(line)}:\n{log}")
    steps = [json.loads(text) for text in (output / "timings.jsonl").read_text().splitlines()]
    return sum(step["timing/all"] - step.get("timing/eval", 0) - step.get("timing/save", 0) for step in steps if step.get("step", 0) > 0), usage.ru_maxrss / 1024


def warm_model(troupe, root, folder):
    """The demo's model after its SFT, whose samples have rewards that differ."""
    measured(troupe, root, [*TABLE["demo sft"], "--set", f"output={folder}"], folder)
    return folder / "latest"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--only", help="names of rows of the table, separated by ;")
    args = parser.parse_args()
    troupe, root = str(pathlib.Path(args.troupe).resolve()), args.root.resolve()
    good = True
    print("| run | predicted, s | measured, s | predicted, MiB | measured, MiB | difference |\n|---|---|---|---|---|---|")
    for name in args.only.split(";") if args.only else list(TABLE):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_rows(folder / "rows.jsonl")
            warm = warm_model(troupe, root, folder / "warm") if any("{warm}" in word for word in TABLE[name]) else ""
            line = [word.format(data=root / "tests/data", warm=warm) for word in TABLE[name]]
            if "--config" not in line and not any(word.startswith("data.path=") for word in line):
                line += ["--set", f"data.path={folder / 'rows.jsonl'}"]
            line += ["--set", f"output={folder / 'run'}"]
            least, most, peak, about = predicted(troupe, root, line)
            time, resident = measured(troupe, root, line, folder / "run")
        difference = peak / resident - 1
        fits = least <= time <= most and difference >= -TOLERANCE and (difference <= TOLERANCE or not about)
        good &= fits
        print(f"| {name} | {least:.2f} to {most:.1f} | {time:.2f} | {peak:.0f} | {resident:.0f} | {100 * difference:+.1f} %{'' if fits else ' (out)'} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
