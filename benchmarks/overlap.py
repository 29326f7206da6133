#!/usr/bin/env python3
"""Overlap of sampling and training in a run, from its timeline.jsonl.

overlap.py RUN [--at-least SHARE]

Takes the time during which at least one `generate` ran, that of `train_step`, and that of both at once. The last line is one JSON
object: `overlap`, the last divided by the smaller of the first two. The exit code is 1 if it is below SHARE.
"""
import argparse
import json
import pathlib
import sys


def spans(lines, message):
    """The disjoint spans, in order, during which a handler of this message ran."""
    found = sorted((line["began"], line["ended"]) for line in lines if line["message"] == message and line["began"] is not None)
    joined = []
    for began, ended in found:
        if joined and began <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], ended)
        else:
            joined.append([began, ended])
    return joined


def length(some):
    return sum(ended - began for began, ended in some)


def common(a, b):
    """Seconds in spans of both lists."""
    seconds, i, j = 0.0, 0, 0
    while i < len(a) and j < len(b):
        seconds += max(0.0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--at-least", type=float, default=0.0)
    args = parser.parse_args()
    lines = [json.loads(line) for line in (args.run / "timeline.jsonl").read_text().splitlines()]
    generating, training = spans(lines, "generate"), spans(lines, "train_step")
    smaller = min(length(generating), length(training))
    if smaller == 0:
        sys.exit(f"{args.run}/timeline.jsonl: expected generate and train_step lines, found none of one of them")
    both = common(generating, training)
    print(json.dumps({"generate": round(length(generating), 3), "train_step": round(length(training), 3), "both": round(both, 3),
                      "overlap": round(both / smaller, 3)}))
    return 0 if both / smaller >= args.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
