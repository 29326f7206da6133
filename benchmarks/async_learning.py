#!/usr/bin/env python3
"""Learning of the digit task with asynchronous batches.

async_learning.py TROUPE FOLDER [--modes pinned,free] [--etas 0,1,4] [--seeds 5] [--steps 400] [--learning-rate 2.5e-4]
                  [--at-least REWARD]

Runs the warm-up of launch/quickstart once, then GRPO from it for each mode, eta and seed, with one thread for the rollouts and one for the
policy. The learning rate is half of that of launch/quickstart/grpo.yaml, with which the policy moves so far in the first four batches that
eta 4 does not learn. Prints the mean reward of the last 20 steps and the seconds of a run, averaged over the seeds. A run whose metrics are complete is
not repeated. The exit code is 1 if an average reward is below REWARD, or if a staleness exceeds eta.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

QUICKSTART = pathlib.Path(__file__).resolve().parent.parent / "launch" / "quickstart"


def train(troupe, output, config, *settings):
    """Seconds of the run."""
    command = [troupe, "train", "--config", str(QUICKSTART / config), "--set", f"data.path={QUICKSTART / 'train.jsonl'}",
               "--set", f"output={output}", "--quiet"]
    for setting in settings:
        command += ["--set", setting]
    start = time.monotonic()
    subprocess.run(command, check=True, cwd=QUICKSTART.parent.parent, stdin=subprocess.DEVNULL)
    return time.monotonic() - start


def metrics_of(run):
    file = run / "metrics.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def warm_start(troupe, folder):
    """The checkpoint of the warm-up below the folder, which is made if it is not there."""
    warm = folder / "warm"
    if not metrics_of(warm):
        train(troupe, warm, "sft.yaml", "train.seed=0")
    return max(warm.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))


def learn(args, warm, mode, eta, seed):
    """(mean reward of the last 20 steps, greatest staleness, seconds)"""
    run = args.folder / f"{mode}-eta{eta}-seed{seed}"
    done = run / "seconds"
    if not done.exists():
        seconds = train(args.troupe, run, "grpo.yaml", f"model={warm}", f"async.mode={mode}", f"async.eta={eta}", "rollout.threads=1",
                        "train.threads=1", f"train.seed={seed}", f"train.steps={args.steps}", f"train.learning_rate={args.learning_rate}")
        done.write_text(f"{seconds}\n")
    lines = [line for line in metrics_of(run) if "reward" in line]
    last = lines[-20:]
    return (sum(line["reward"] for line in last) / len(last), max(line["staleness/max"] for line in lines), float(done.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--modes", default="pinned,free")
    parser.add_argument("--etas", default="0,1,4")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--learning-rate", type=float, default=2.5e-4)
    parser.add_argument("--at-least", type=float, default=0.95)
    args = parser.parse_args()
    args.troupe = str(pathlib.Path(args.troupe).resolve())
    args.folder = args.folder.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    start = warm_start(args.troupe, args.folder)
    bad = False
    print("| mode | eta | reward of the last 20 steps | staleness/max | seconds |\n|---|---|---|---|---|")
    for mode in args.modes.split(","):
        for eta in map(int, args.etas.split(",")):
            results = [learn(args, start, mode, eta, seed) for seed in range(args.seeds)]
            reward, _, seconds = (sum(column) / len(results) for column in zip(*results))
            worst = max(result[1] for result in results)
            bad |= reward < args.at_least or worst > eta
            print(f"| {mode} | {eta} | {reward:.3f} | {worst:.0f} | {seconds:.0f} |", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
