"""Compares the prompts of `troupe eval --print-prompt` with those of lm-evaluation-harness.

Usage: same_prompts.py PROGRAM PYTHON MODEL FOLDER TASK[@SHOTS]...   (PYTHON as for reference.py)
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def main():
    program, python, model, folder, *tasks = sys.argv[1:]
    done = subprocess.run([python, str(HERE / "reference.py"), "prompts", folder, *tasks], check=True, capture_output=True, text=True)
    expected = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {}
    for task in tasks:
        name, _, shots = task.partition("@")
        words = [program, "eval", "--model", model, "--task", name, "--task-data", folder, "--print-prompt", "1000000"]
        done = subprocess.run(words + (["--num-fewshot", shots] if shots else []), check=True, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            item = json.loads(line)
            found[item["task"], item["doc_id"]] = (item["context"], item["continuations"])
    wrong = [f"{e['task']} item {e['doc_id']}" for e in expected if found.get((e["task"], e["doc_id"])) != (e["context"], e["continuations"])]
    print(f"{len(expected)} prompts, {len(wrong)} different", *wrong[:20], sep="\n  ")
    return 1 if wrong or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
