#!/usr/bin/env python3
"""Steps of SFT and DPO over long sequences with and without context parallelism.

long_context.py TROUPE TOKENIZER_FOLDER TEXT [--lengths 16384,32768] [--methods sft,dpo] [--cp 4] [--algorithm ring] [--steps 1]

A model of shape a (benchmarks/README.md) with random weights trains on one sequence of each length (DPO: on a pair) of the text, in one
process and in `cp` processes of mpirun, which divide the sequences of the reference model, too. Prints the relative difference of the
losses, the greatest peak resident memory of a process, its ratio to that of one process, samples per second and MFU, beside the MFU that
MindSpeed-LLM publishes for 64 and 128 Ascend NPUs. The exit code is 1 if the losses differ by more than 4e-6, or if the memory ratio at 32,768 tokens is above 0.35.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SHAPE_A = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 288, "intermediate_size": 768, "num_hidden_layers": 6,
           "num_attention_heads": 6, "num_key_value_heads": 6, "vocab_size": 32000, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
           "tie_word_embeddings": True, "hidden_act": "silu", "initializer_range": 0.02, "bos_token_id": 1, "eos_token_id": 2}
PUBLISHED = "MindSpeed-LLM: 37.4 % and 48.4 %"


def make_model(args, folder, length):
    """Writes random weights, as a run of pretraining starts with them; its one step has a learning rate of 0."""
    empty, data = folder / "empty", folder / "text.jsonl"
    empty.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(args.tokenizer / name, empty)
    (empty / "config.json").write_text(json.dumps(SHAPE_A | {"max_position_embeddings": length}))
    data.write_text(json.dumps({"text": "Once upon a time there was a long text. " * 8}) + "\n")
    run([args.troupe, "train", "--algorithm", "pretrain", "--set", f"model={empty}", "--set", f"data.path={data}", "--set", "data.format=text",
         "--set", f"output={folder / 'random'}", "--set", "train.max_length=16", "--set", "train.batch_size=1", "--set", "train.steps=1",
         "--set", "train.learning_rate=0", "--set", "train.seed=1", "--set", "train.warmup_steps=0"], folder)
    (folder / "random" / "checkpoint-1").rename(folder / "model")


def write_rows(text, method, length, path):
    """Texts of more than `length` tokens, which train.max_length truncates; a token has at most 8 bytes."""
    parts = [text[i * 8 * length:(i + 1) * 8 * length] for i in range(2)]
    assert len(parts[1]) == 8 * length, "the text is too short"
    row = {"prompt": "Once", "completion": parts[0]} if method == "sft" else {"prompt": "Once", "chosen": parts[0], "rejected": parts[1]}
    path.write_text(json.dumps(row) + "\n")


def run(command, folder):
    """Greatest resident memory of the processes, in MiB."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}:\n{(folder / 'log').read_text()}")
    return usage.ru_maxrss / 1024


def step(args, folder, method, length, cp):
    output = folder / f"cp{cp}"
    command = [args.troupe, "train", "--algorithm", method, "--set", f"model={folder / 'model'}", "--set", f"data.path={folder / 'rows.jsonl'}",
               "--set", f"output={output}", "--set", "train.batch_size=1", "--set", f"train.steps={args.steps}",
               "--set", f"train.max_length={length}", "--set", f"train.micro_batch_tokens={length}", "--set", "train.seed=1",
               "--set", "train.save_every=0"]
    if cp > 1:
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(cp)] + command
        for section in ["parallel"] + ["parallel.reference"] * (method == "dpo"):
            command += ["--set", f"{section}.cp={cp}", "--set", f"{section}.cp_algorithm={args.algorithm}"]
    memory = run(command, folder)
    metrics = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    timings = [json.loads(line) for line in (output / "timings.jsonl").read_text().splitlines()]
    timing = [line for line in timings if "perf/mfu" in line][-1]
    return {"loss": [line["loss"] for line in metrics if "loss" in line], "memory": memory, "mfu": timing["perf/mfu"],
            "samples": timing["perf/samples_per_second"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--lengths", default="16384,32768")
    parser.add_argument("--methods", default="sft,dpo")
    parser.add_argument("--cp", type=int, default=4)
    parser.add_argument("--algorithm", default="ring")
    parser.add_argument("--steps", type=int, default=1)
    args = parser.parse_args()
    args.troupe = str(pathlib.Path(args.troupe).resolve())
    text = args.text.read_text()
    bad = False
    print("| method | tokens | cp | difference of the loss | peak memory, MiB | of cp 1 | samples/s | MFU |\n|---|---|---|---|---|---|---|---|")
    for length in map(int, args.lengths.split(",")):
        for method in args.methods.split(","):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                make_model(args, folder, length)
                write_rows(text, method, length, folder / "rows.jsonl")
                one, many = step(args, folder, method, length, 1), step(args, folder, method, length, args.cp)
            difference = max(abs(a - b) / max(1, abs(a)) for a, b in zip(one["loss"], many["loss"], strict=True))
            ratio = many["memory"] / one["memory"]
            bad |= difference > 4e-6 or (length == 32768 and ratio > 0.35)
            for cp, each in ((1, one), (args.cp, many)):
                print(f"| {method} | {length} | {cp} | {difference:.1e} | {each['memory']:.0f} | {each['memory'] / one['memory']:.2f} | "
                      f"{each['samples']:.4f} | {100 * each['mfu']:.1f} % |", flush=True)
    print(f"MFU published for other hardware ({PUBLISHED})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
