#!/usr/bin/env python3
"""Training losses with weights, gradients and moments in bf16 beside those in f32.

precision.py TROUPE TOKENIZER_FOLDER TEXT [--steps 200] [--tokens 512] [--layers 12] [--width 768]

Pretrains a model of shape b (110 million parameters, benchmarks/README.md) on a text, from the same random weights and with the same samples, once with the
defaults and once for each set of types. Prints the mean loss of the last 20 steps, its difference from f32 in percent, the bytes per trained
parameter that `troupe explain` states, and the peak resident memory. The exit code is 1 if a difference is above 1 %.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TYPES = {"f32": [], "bf16 products": ["train.dtype=bf16"], "bf16 products, moments": ["train.dtype=bf16", "train.moments=bf16"],
         "bf16 products, moments, weights": ["train.dtype=bf16", "train.moments=bf16", "train.weights=bf16"],
         "bf16 products, moments, weights, gradients": ["train.dtype=bf16", "train.moments=bf16", "train.weights=bf16", "train.gradients=bf16"]}


def make_model(args, folder):
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(args.tokenizer / name, folder)
    heads = args.width // 64
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": args.width, "intermediate_size": args.width * 8 // 3,
        "num_hidden_layers": args.layers, "num_attention_heads": heads, "num_key_value_heads": heads, "vocab_size": 32000,
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True, "hidden_act": "silu",
        "initializer_range": 0.02, "bos_token_id": 1, "eos_token_id": 2}))


def train(args, folder, data, sets):
    """(mean loss of the last 20 steps, peak resident memory in MiB, bytes per parameter)"""
    output = folder / "run"
    settings = ["--algorithm", "pretrain", "--set", f"model={folder / 'model'}", "--set", f"data.path={data}", "--set", "data.format=text",
                "--set", f"output={output}", "--set", "train.max_length=256", "--set", f"train.batch_size={args.tokens // 256}",
                "--set", f"train.steps={args.steps}", "--set", "train.learning_rate=3e-4", "--set", "train.warmup_steps=20",
                "--set", "train.seed=1", "--set", f"train.save_every={args.steps}"]
    for each in sets:
        settings += ["--set", each]
    explained = subprocess.run([args.troupe, "explain", *settings], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    bytes_each = re.search(r"bytes per trained parameter +([0-9.]+)", explained)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([args.troupe, "train", *settings], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit((folder / "log").read_text())
    losses = [line["loss"] for line in map(json.loads, (output / "metrics.jsonl").read_text().splitlines()) if "loss" in line]
    shutil.rmtree(output)
    return sum(losses[-20:]) / 20, usage.ru_maxrss / 1024, bytes_each.group(1) if bytes_each else "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    args = parser.parse_args()
    args.troupe = str(pathlib.Path(args.troupe).resolve())
    bad, reference = False, None
    print("| types | loss | difference | bytes per parameter | peak memory, MiB |\n|---|---|---|---|---|")
    for name, sets in TYPES.items():
        with tempfile.TemporaryDirectory() as folder:
            make_model(args, pathlib.Path(folder) / "model")
            loss, memory, size = train(args, pathlib.Path(folder), args.text.resolve(), sets)
        reference = reference or loss
        difference = abs(loss - reference) / reference
        bad |= difference > 0.01
        print(f"| {name} | {loss:.4f} | {100 * difference:.2f} % | {size} | {memory:.0f} |", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
