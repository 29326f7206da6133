"""Prompts of the suite mindspeed on published data, against hashes of an independent rendering.

Usage: mindspeed_prompts.py PROGRAM MODEL DATA CHECKOUT

DATA has mmlu/val and mmlu/dev, boolq_dev_head.jsonl, bbh, agieval, gsm8k_test_head.jsonl and HumanEval.jsonl.gz.
"""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Task, mode, subject, number of the item, length in bytes, first 16 digits of the SHA-256.
EXPECTED = [
    ("mmlu", "direct", "virology", 0, 1336, "b6f7813c77028cd2"), ("mmlu", "alternative", "virology", 0, 1913, "8b07fe2fcd2a2e9f"),
    ("mmlu_ppl", "direct", "virology", 0, 1344, "38b08e2988ab5c28"), ("boolq", "direct", "boolq_dev_head", 0, 1436, "d60d3bdf82e9de6b"),
    ("boolq", "alternative", "boolq_dev_head", 0, 1464, "7ce2d74aafd366f5"), ("bbh", "direct", "boolean_expressions", 0, 217, "362b24565bc13678"),
    ("bbh", "direct", "date_understanding", 0, 766, "58f5f7ac19fe59b2"), ("bbh", "cot", "boolean_expressions", 0, 1893, "9927f0a4d46a1ad1"),
    ("agieval", "direct", "aqua-rat", 0, 2058, "6da51c355c847f07"), ("agieval", "direct", "sat-math", 0, 1934, "a486b2e946c15b88"),
    ("agieval", "alternative", "aqua-rat", 0, 485, "a4a0b355f8286da8"), ("gsm8k", "direct", "gsm8k_test_head", 0, 1054, "9b7133eb61a89349"),
    ("gsm8k", "cot", "gsm8k_test_head", 0, 4930, "86493f6e082a55fb"), ("human_eval", "direct", "HumanEval", 0, 486, "ee716931c0e51182"),
    ("human_eval", "alternative", "HumanEval", 0, 384, "b19a3c697a8df671"),
]


def arranged(data, folder):
    """A folder for each task, in the layouts of the suite."""
    for link, target in (("mmlu/test", "mmlu/val"), ("mmlu/dev", "mmlu/dev"), ("bbh", "bbh"), ("agieval", "agieval")):
        (folder / link).parent.mkdir(parents=True, exist_ok=True)
        (folder / link).symlink_to(data / target)
    for task, file in (("boolq", "boolq_dev_head.jsonl"), ("gsm8k", "gsm8k_test_head.jsonl"), ("human_eval", "HumanEval.jsonl.gz")):
        (folder / task).mkdir()
        shutil.copy(next(data.rglob(file)), folder / task)


def main():
    program, model, data, checkout = sys.argv[1:]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        arranged(pathlib.Path(data).resolve(), pathlib.Path(folder))
        for task, mode, subject, number, length, digest in EXPECTED:
            words = [program, "eval", "--suite", "mindspeed", "--model", model, "--task-data", folder, "--fewshot-data", checkout, "--task", task, "--mode", mode,
                     "--no-chat-template", "--print-prompt", str(number + 1)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            (line,) = [line for line in lines if line["task"] == f"{task}_{subject}" and line["doc_id"] == number]
            text = line["context"] + ("A" if task == "mmlu_ppl" else "")
            found = hashlib.sha256(text.encode()).hexdigest()[:16]
            if (len(text.encode()), found) != (length, digest):
                print(f"{task} {mode} {subject}: expected {length} bytes, {digest}; found {len(text.encode())}, {found}")
                wrong += 1
    print(f"{len(EXPECTED)} prompts of the suite mindspeed, {wrong} different")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
