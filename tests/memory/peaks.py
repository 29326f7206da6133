#!/usr/bin/env python3
"""Peak memory of ranks beside what `troupe explain` predicts.

peaks.py TROUPE TOKENIZER_FOLDER [--layers 12] [--width 512] [--only "NAME;..."]

Trains a model with random weights for a step or two with each row of a table of grids and settings. Ranks are processes of mpirun. Compares
the greatest resident memory of each rank (ru_maxrss, which is VmHWM) with the line of its stage and part in the table of `troupe explain`, whose
column "program" is what a process needs without a model. Micro-batches are full, as explain assumes. The column "saving" is by how much the
resident memory grew while the checkpoint at the end was written. The exit code is 1 if a rank differs from its prediction by more than 10 %, if it grew by
more than a bucket of 4 MiB while it saved, or if parallel.zero with four replicas did not make a rank smaller by 8 bytes x N x 3/4, within 10 %.
"""
import argparse
import array
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

TOLERANCE = 0.10
BUCKET_MIB = 4
RANK = pathlib.Path(__file__).resolve().parent / "rank.py"
COLUMNS = ["weights", "gradients", "optimizer", "activations", "operands", "other models", "program", "peak"]
LONG = ["train.micro_batch_tokens=2048", "train.max_length=2048", "train.batch_size=1"]
FULL = "train.recompute=[full]"
# Name: ranks, algorithm, settings. A rank's micro-batches have 512 tokens where no setting says otherwise.
TABLE = {
    "one rank": (1, "sft", []),
    "dp2": (2, "sft", ["parallel.dp=2"]),
    "dp4": (4, "sft", ["parallel.dp=4"]),
    "dp4 zero1": (4, "sft", ["parallel.dp=4", "parallel.zero=1"]),
    "tp2": (2, "sft", ["parallel.tp=2"]),
    "tp2 sp": (2, "sft", ["parallel.tp=2", "parallel.sp=true"]),
    "pp2": (2, "sft", ["parallel.pp=2"]),
    "pp2 vpp2": (2, "sft", ["parallel.pp=2", "parallel.vpp=2"]),
    "pp2 dp2 zero1": (4, "sft", ["parallel.pp=2", "parallel.dp=2", "parallel.zero=1"]),
    "2048 tokens": (1, "sft", LONG),
    "2048 tokens, cp2": (2, "sft", LONG + ["parallel.cp=2"]),
    "2048 tokens, cp4": (4, "sft", LONG + ["parallel.cp=4"]),
    "2048 tokens, cp2 ulysses": (2, "sft", LONG + ["parallel.cp=2", "parallel.cp_algorithm=ulysses"]),
    "2048 tokens, tp2 sp": (2, "sft", LONG + ["parallel.tp=2", "parallel.sp=true"]),
    "2048 tokens, nothing recomputed": (1, "sft", LONG + ["train.recompute=[]"]),
    "2048 tokens, full": (1, "sft", LONG + [FULL]),
    "2048 tokens, uniform 4": (1, "sft", LONG + [FULL, "train.recompute_layers=4"]),
    "2048 tokens, block 6": (1, "sft", LONG + [FULL, "train.recompute_method=block", "train.recompute_layers=6"]),
    "2048 tokens, offload": (1, "sft", LONG + ["train.offload={folder}"]),
    "bf16": (1, "sft", ["train.dtype=bf16"]),
    "16 bytes, split": (1, "sft", ["train.dtype=bf16", "train.weights=split"]),
    "14 bytes": (1, "sft", ["train.dtype=bf16", "train.weights=bf16"]),
    "12 bytes": (1, "sft", ["train.dtype=bf16", "train.weights=bf16", "train.gradients=bf16"]),
    "10 bytes": (1, "sft", ["train.dtype=bf16", "train.weights=bf16", "train.moments=bf16"]),
    "8 bytes": (1, "sft", ["train.dtype=bf16", "train.weights=bf16", "train.gradients=bf16", "train.moments=bf16"]),
    "average": (1, "sft", ["train.ema_decay=0.9"]),
    "LoRA": (1, "sft", ["lora.rank=8"]),
    "DPO": (1, "dpo", []),
    "DPO, dp2": (2, "dpo", ["parallel.dp=2"]),
    "GRPO": (1, "grpo", []),
    "GRPO, bf16": (1, "grpo", ["train.dtype=bf16"]),
    "GRPO, dp2": (2, "grpo", ["parallel.dp=2"]),
    "GRPO, dp2, rollouts tp2": (2, "grpo", ["parallel.dp=2", "parallel.rollout.tp=2"]),
    "GRPO, dp4, rollouts pp4": (4, "grpo", ["parallel.dp=4", "parallel.rollout.pp=4"]),
    "DPO, dp2, reference pp2": (2, "dpo", ["parallel.dp=2", "parallel.reference.pp=2"]),
    "PPO": (1, "ppo", []),
    "PPO, dp2, critic tp2": (2, "ppo", ["parallel.dp=2", "parallel.critic.tp=2"]),
}
# Prompts have 3 tokens.
ROLLOUTS = ["train.steps=2", "rollout.max_new_tokens=61", "rollout.max_sequences=8", "reward=[{rule: length, max: 100, buffer: 100}]"]
OF_ALGORITHM = {
    "sft": ["train.batch_size={rows}"],
    "dpo": ["train.batch_size={rows}"],
    "grpo": [*ROLLOUTS, "train.batch_size={groups}", "grpo.group_size=4"],
    "ppo": [*ROLLOUTS, "train.batch_size={prompts}", "ppo.epochs=1", "ppo.minibatches=1"],
}


def tensors_of(config):
    width, inner, kv = config["hidden_size"], config["intermediate_size"], config["num_key_value_heads"] * config["head_dim"]
    yield "model.embed_tokens.weight", [config["vocab_size"], width]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [width]
        for name, shape in (("q", [width, width]), ("k", [kv, width]), ("v", [kv, width]), ("o", [width, width])):
            yield f"{at}self_attn.{name}_proj.weight", shape
        yield at + "post_attention_layernorm.weight", [width]
        for name, shape in (("gate", [inner, width]), ("up", [inner, width]), ("down", [width, inner])):
            yield f"{at}mlp.{name}_proj.weight", shape
    yield "model.norm.weight", [width]
    yield "lm_head.weight", [config["vocab_size"], width]


def make_model(args, folder):
    """Writes a model whose matrices repeat a block of random values. Returns its number of parameters.

    The head is not tied to the embedding: the second gradient of a tied table takes memory only in the rows of tokens that occur, which are few here.
    """
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(args.tokenizer / name, folder)
    heads = args.width // 64
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": args.width, "intermediate_size": args.width * 8 // 3 // 64 * 64,
              "num_hidden_layers": args.layers, "num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": 64, "vocab_size": 8192,
              "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu",
              "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    for name, shape in tensors_of(config):
        begin, end = end, end + 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    draw = random.Random(1)
    block = array.array("f", (draw.gauss(0, 0.02) for _ in range(65537))).tobytes()  # a prime number: rows differ
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, each in header.items():
            size = each["data_offsets"][1] - each["data_offsets"][0]
            if len(each["shape"]) == 1:
                file.write(array.array("f", [1.0]).tobytes() * (size // 4))
                continue
            for at in range(0, size, len(block)):
                file.write(block[:min(len(block), size - at)])
    return end // 4


def write_rows(folder):
    """Rows that are longer than train.max_length in tokens."""
    draw = random.Random(1)
    words = ["time", "there", "was", "little", "girl", "who", "her", "day", "play", "with"]
    files = {name: (folder / f"{name}.jsonl").open("w") for name in OF_ALGORITHM}
    for _ in range(64):
        long = [" ".join(draw.choice(words) for _ in range(2100)) for _ in range(2)]
        prompt = "Once upon a"
        for name, row in {"sft": {"completion": long[0]}, "dpo": {"chosen": long[0], "rejected": long[1]}, "grpo": {"answer": "1"}, "ppo": {"answer": "1"}}.items():
            files[name].write(json.dumps({"prompt": prompt} | row) + "\n")
    for file in files.values():
        file.close()


def settings_of(folder, algorithm, ranks, own):
    """The command line of a run, with four micro-batches of each replica where stages divide the model, otherwise one."""
    values = ["train.max_length=128", "train.micro_batch_tokens=512", "train.steps=1", "train.save_every=0", "train.seed=1", "train.threads=1",
              *OF_ALGORITHM[algorithm], *own]
    replicas = 1
    for value in own:
        if match := re.fullmatch(r"parallel\.(dp|cp)=(\d+)", value):
            replicas *= int(match[2])
    stages = any(value.startswith("parallel.pp") for value in own)
    rows = replicas * (16 if stages else 4) // (2 if algorithm == "dpo" else 1)
    line = ["--algorithm", algorithm, "--set", f"model={folder / 'model'}", "--set", f"data.path={folder / (algorithm + '.jsonl')}", "--set", f"output={folder / 'run'}"]
    for value in dict((value.split("=")[0], value) for value in values).values():  # the last one of each key
        line += ["--set", value.replace("{folder}", str(folder)).replace("{rows}", str(rows)).replace("{groups}", str(rows // 2)).replace("{prompts}", str(2 * rows))]
    return line


def predicted(args, line):
    """For each stage and part, the columns of explain in MiB."""
    text = subprocess.run([args.troupe, "explain", *line], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    rows = re.findall(r"^  stage (\d+), part (\d+)((?: +[0-9.]+)+)$", text, re.MULTILINE)
    if not rows:
        sys.exit(f"explain: expected a table of ranks, found:\n{text}")
    return {(int(stage), int(part)): dict(zip(COLUMNS, map(float, numbers.split()), strict=True)) for stage, part, numbers in rows}


def measured(args, folder, ranks, line):
    """For each rank, what rank.py found."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    shutil.rmtree(folder / "peaks", ignore_errors=True)
    (folder / "peaks").mkdir()
    command = [sys.executable, str(RANK), str(folder / "peaks"), str(folder / "run"), args.troupe, "train", *line]
    if ranks > 1:
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *command]
    with (folder / "log").open("w") as log:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT).returncode
    if code != 0:
        sys.exit(f"{' '.join(command)}:\n{(folder / 'log').read_text()}")
    return [json.loads((folder / "peaks" / str(rank)).read_text()) for rank in range(ranks)]


def compare(args, folder, name):
    """Prints a line for each rank. Returns the peaks and whether all are predicted."""
    ranks, algorithm, own = TABLE[name]
    line = settings_of(folder, algorithm, ranks, own)
    table = predicted(args, line)
    stages, parts = max(stage for stage, _ in table), max(part for _, part in table)
    peaks = measured(args, folder, ranks, line)
    good = True
    for rank, found in enumerate(peaks):
        row = table[rank * stages // ranks + 1, rank % parts + 1]
        difference = row["peak"] / found["peak"] - 1
        good &= abs(difference) <= TOLERANCE and found["saving"] is not None and found["saving"] <= BUCKET_MIB
        cells = " | ".join(f"{row[column]:.0f}" for column in COLUMNS)
        print(f"| {name} | {rank} | {cells} | {found['peak']:.0f} | {100 * difference:+.1f} % | {found['saving'] or 0:.1f} |", flush=True)
    return [found["peak"] for found in peaks], good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--only", help="names of rows of the table, separated by ;")
    args = parser.parse_args()
    args.troupe = str(pathlib.Path(args.troupe).resolve())
    names = args.only.split(";") if args.only else list(TABLE)
    good, peaks = True, {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        count = make_model(args, folder / "model")
        write_rows(folder)
        print(f"{count} parameters\n| run | rank | {' | '.join(COLUMNS)} | measured | difference | saving |\n|{'---|' * (len(COLUMNS) + 5)}")
        for each in names:
            peaks[each], fits = compare(args, folder, each)
            good &= fits
        if "dp4" in peaks and "dp4 zero1" in peaks:
            wanted = 8 * count * 3 / 4 / 2**20
            for rank, (all_of, part) in enumerate(zip(peaks["dp4"], peaks["dp4 zero1"])):
                less = all_of - part
                print(f"zero 1, rank {rank}: {less:.0f} MiB less; 8 bytes x N x 3/4 is {wanted:.0f} MiB")
                good &= abs(less - wanted) <= TOLERANCE * wanted
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
