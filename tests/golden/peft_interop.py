"""By hand: an adapter that troupe wrote loads in PEFT and gives troupe's numbers.

    python3 -m venv VENV && VENV/bin/pip install torch peft transformers
    troupe logprobs --model BASE --adapter ADAPTER < rows.jsonl > ours.jsonl     # rows: {"ids": [...]}
    VENV/bin/python tests/golden/peft_interop.py BASE ADAPTER rows.jsonl ours.jsonl

Prints the largest difference of a log-probability, in nats, with the adapter loaded and with it merged by PEFT.
"""
import json
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM


def logprobs(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    chosen = torch.log_softmax(logits[:-1], -1)
    return [float(chosen[t, ids[t + 1]]) for t in range(len(ids) - 1)]


def main():
    base, adapter, rows, ours = sys.argv[1:]
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), adapter).eval()
    rows = [json.loads(line)["ids"] for line in open(rows)]
    ours = [json.loads(line)["logprobs"][1:] for line in open(ours)]
    for name in ("loaded", "merged"):
        worst = max(abs(a - b) for ids, found in zip(rows, ours) for a, b in zip(logprobs(model, ids), found))
        print(f"{name}: {len(rows)} rows, largest difference {worst:.3g} nats")
        if name == "loaded":
            model = model.merge_and_unload()


main()
