#!/usr/bin/env python3
"""Learning of the digit task from samples of a truncated distribution, with and without replay of sampling masks.

mask_learning.py TROUPE FOLDER [--seeds 5] [--steps 400] [--epochs 1,4] [--top-p 0.8] [--tolerance 0.02]

Runs the warm-up of launch/quickstart once, then GRPO from it: untruncated, and with rollout.top_p with and without replay, for each seed and number of epochs. The KL divergence to
the start is added to the loss with a coefficient of 1e-6, so that it is measured; with replay it is over the tokens that were left, otherwise over the vocabulary. Prints the mean reward of the last 20 steps, the first step from which the mean of ten
steps is 0.9 or more, the KL divergence of the last 20 steps and the mean clipped share, with standard errors over the seeds. A run whose metrics are complete is not repeated. The
exit code is 1 if with one epoch the reward with replay is below that of untruncated samples by more than the tolerance.
"""
import argparse
import math
import pathlib
import sys

from async_learning import metrics_of, train, warm_start

KINDS = {"untruncated": [], "replay": ["rollout.replay_sampling_mask=on"], "no replay": ["rollout.replay_sampling_mask=off"]}


def mean(values):
    return sum(values) / len(values)


def with_error(values, decimals):
    """Mean and standard error."""
    if len(values) < 2:
        return f"{mean(values):.{decimals}f}" if values else "-"
    error = math.sqrt(sum((value - mean(values)) ** 2 for value in values) / (len(values) - 1) / len(values))
    return f"{mean(values):.{decimals}f} +- {error:.{decimals}f}"


def first_step(rewards):
    for step in range(len(rewards) - 9):
        if mean(rewards[step:step + 10]) >= 0.9:
            return step + 1
    return None


def learn(args, start, kind, epochs, seed):
    """Mean reward, step at which 0.9 is reached or None, KL, clipped share. A batch of samples makes `epochs` steps."""
    run = args.folder / f"{kind.replace(' ', '-')}-epochs{epochs}-seed{seed}"
    steps = args.steps * epochs
    filters = [] if kind == "untruncated" else [f"rollout.top_p={args.top_p}"]
    if not (run / "done").exists():
        train(args.troupe, run, "grpo.yaml", f"model={start}", f"train.seed={seed}", f"train.steps={steps}", f"grpo.epochs={epochs}", "train.save_every=0", "train.threads=1", "grpo.beta=1e-6", *filters, *KINDS[kind])
        (run / "done").touch()
    lines = [line for line in metrics_of(run) if "reward" in line]
    # Every update of a batch has its reward.
    rewards = [line["reward"] for line in lines[::epochs]]
    last = lines[-20 * epochs:]
    # Updates whose advantages are all 0 have neither.
    kl = [line["kl"] for line in last if "kl" in line]
    clipped = [line["clip_ratio/region_mean"] for line in lines if "clip_ratio/region_mean" in line]
    return mean(rewards[-20:]), first_step(rewards), mean(kl), mean(clipped)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--epochs", default="1,4")
    parser.add_argument("--top-p", type=float, default=0.8)
    parser.add_argument("--tolerance", type=float, default=0.02)
    args = parser.parse_args()
    args.troupe = str(pathlib.Path(args.troupe).resolve())
    args.folder = args.folder.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    start = warm_start(args.troupe, args.folder)
    bad = False
    print("| samples | `grpo.epochs` | reward of the last 20 steps | step of 0.9 | KL to the start | clipped share |\n|---|---|---|---|---|---|")
    for epochs in map(int, args.epochs.split(",")):
        rewards = {}
        for kind in KINDS:
            results = [learn(args, start, kind, epochs, seed) for seed in range(args.seeds)]
            reward, step, kl, clipped = zip(*results)
            rewards[kind] = mean(reward)
            reached = [each for each in step if each is not None]
            text = with_error(reached, 0) + ("" if len(reached) == len(step) else f" ({len(reached)} of {len(step)})")
            print(f"| {kind} | {epochs} | {with_error(reward, 3)} | {text} | {with_error(kl, 3)} | {with_error(clipped, 4)} |", flush=True)
        bad |= epochs == 1 and rewards["replay"] < rewards["untruncated"] - args.tolerance
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
