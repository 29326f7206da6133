#!/usr/bin/python3
"""Pretrains a 15M Llama on a text with troupe and with plain PyTorch and compares the validation losses.

Usage: compare_with_torch.py TROUPE TOKENIZER_FOLDER TEXT [STEPS]

Both start from the weights that troupe draws, take Megatron's samples in Megatron's order (computed here again, from
megatron/core/datasets/gpt_dataset.py) and use the same AdamW, schedule and clipping, in f32. The last line is JSON: the
validation losses and their relative difference. Exit code 1 if that is above 1 %. Needs Debian's python3-torch and
python3-numpy (cmake/install_packages.sh with-peers).
"""
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy
import torch

LENGTH, BATCH, EVAL_BATCHES, SEED = 256, 8, 16, 7
PEAK, WARMUP, BETAS, EPS, DECAY, CLIP = 1e-3, 30, (0.9, 0.95), 1e-8, 0.1, 1.0
LAYERS, WIDTH, HEADS, HIDDEN, BASE, NORM_EPS = 8, 384, 6, 1024, 10000.0, 1e-5
TYPES = {1: numpy.uint8, 4: numpy.int32, 8: numpy.uint16}


def read_sequences(prefix):
    """The token arrays of PREFIX.bin, by PREFIX.idx."""
    raw = open(prefix + ".idx", "rb").read()
    assert raw[:9] == b"MMIDIDX\0\0"
    _, kind, count, _ = struct.unpack_from("<QBQQ", raw, 9)
    lengths = numpy.frombuffer(raw, numpy.int32, count, 34)
    starts = numpy.frombuffer(raw, numpy.int64, count, 34 + 4 * count)
    tokens = open(prefix + ".bin", "rb").read()
    return [numpy.frombuffer(tokens, TYPES[kind], n, at).astype(numpy.int64) for n, at in zip(lengths, starts)]


def samples_of(sequences, wanted):
    """`wanted` samples of LENGTH + 1 tokens, in the order of Megatron's GPTDataset."""
    per_epoch = sum(len(each) for each in sequences)
    epochs = 1
    while epochs * per_epoch < wanted * LENGTH + 1:
        epochs += 1
    before = ((epochs - 1) * per_epoch - 1) // LENGTH
    separate = epochs > 1 and wanted - before < int(0.80 * ((per_epoch - 1) // LENGTH))
    random = numpy.random.RandomState(SEED)

    def documents(times):
        order = numpy.tile(numpy.arange(len(sequences), dtype=numpy.int32), times)
        random.shuffle(order)
        return order

    parts = [documents(epochs - 1), documents(1)] if separate else [documents(epochs)]
    stream = numpy.concatenate([sequences[i] for i in numpy.concatenate(parts)])
    count = (len(stream) - 1) // LENGTH
    first, last = numpy.arange(before if separate else count), numpy.arange(before if separate else count, count)
    random.shuffle(first)
    random.shuffle(last)
    order = numpy.concatenate([first, last]).astype(numpy.int64)[:wanted]
    return torch.from_numpy(numpy.stack([stream[i * LENGTH:i * LENGTH + LENGTH + 1] for i in order]))


def read_weights(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32"
            begin, end = entry["data_offsets"]
            values = numpy.frombuffer(raw[8 + size + begin:8 + size + end], numpy.float32)
            out[name] = torch.from_numpy(values.reshape(entry["shape"]).copy()).requires_grad_()
    return out


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + NORM_EPS) * weight


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def loss_of(weights, sample):
    """Mean negative log-likelihood of the tokens of [B, LENGTH + 1] behind the first."""
    inputs, labels = sample[:, :-1], sample[:, 1:]
    size = WIDTH // HEADS
    angles = torch.outer(torch.arange(LENGTH).float(), BASE ** (-torch.arange(0, size, 2).float() / size))
    cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
    mask = torch.full((LENGTH, LENGTH), -math.inf).triu(1)
    x = weights["model.embed_tokens.weight"][inputs]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        h = rms_norm(x, weights[at + "input_layernorm.weight"])
        q, k, v = ((h @ weights[f"{at}self_attn.{p}_proj.weight"].T).view(*h.shape[:2], HEADS, size).transpose(1, 2) for p in "qkv")
        scores = rotate(q, cos, sin) @ rotate(k, cos, sin).transpose(2, 3) / math.sqrt(size) + mask
        h = (scores.softmax(-1) @ v).transpose(1, 2).reshape(h.shape)
        x = x + h @ weights[at + "self_attn.o_proj.weight"].T
        h = rms_norm(x, weights[at + "post_attention_layernorm.weight"])
        gate, up, down = (weights[f"{at}mlp.{p}_proj.weight"] for p in ("gate", "up", "down"))
        x = x + (torch.nn.functional.silu(h @ gate.T) * (h @ up.T)) @ down.T
    logits = rms_norm(x, weights["model.norm.weight"]) @ weights["model.embed_tokens.weight"].T
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def rate(step, steps):
    """Of update `step`, from 0: linear warm-up, then a cosine to a tenth."""
    if step < WARMUP:
        return PEAK * step / WARMUP
    return PEAK * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP))))


def train(weights, samples, validation, steps):
    matrices = [w for w in weights.values() if w.dim() > 1]
    vectors = [w for w in weights.values() if w.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}], betas=BETAS, eps=EPS)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        loss = loss_of(weights, samples[step * BATCH:(step + 1) * BATCH])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), CLIP)
        optimizer.step()
        if step % 20 == 0:
            print(f"torch: step {step + 1}/{steps} loss {loss.item():.4f}", file=sys.stderr, flush=True)
    with torch.no_grad():
        losses = [loss_of(weights, validation[i * BATCH:(i + 1) * BATCH]).item() for i in range(EVAL_BATCHES)]
    return sum(losses) / len(losses)


def run_troupe(troupe, folder, prefix, valid, output, steps, **settings):
    command = [troupe, "train", "--algorithm", "pretrain", "--model", folder, "--data", prefix, "--output", output, "--steps", str(steps)]
    values = {"train.max_length": LENGTH, "train.batch_size": BATCH, "train.seed": SEED, "train.learning_rate": PEAK,
              "train.schedule": "cosine", "train.warmup_steps": WARMUP, "train.min_lr_ratio": 0.1, "train.betas": list(BETAS),
              "train.eps": EPS, "train.weight_decay": DECAY, "train.max_grad_norm": CLIP, "init.weights": "random",
              "pretrain.split": "1", "pretrain.eval_batches": EVAL_BATCHES, "eval.path": valid, "eval.every": steps, **settings}
    for key, value in values.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True)
    return [json.loads(line) for line in open(os.path.join(output, "metrics.jsonl"))]


def main():
    troupe, tokenizer, text = (os.path.abspath(path) for path in sys.argv[1:4])
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 300
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        shutil.copytree(tokenizer, "model", ignore=shutil.ignore_patterns("*.safetensors"))
        config = json.load(open("model/config.json"))
        config.update(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=HEADS,
                      head_dim=WIDTH // HEADS, intermediate_size=HIDDEN, rope_theta=BASE, rms_norm_eps=NORM_EPS)
        os.chmod("model", 0o700)
        os.remove("model/config.json")
        json.dump(config, open("model/config.json", "w"))
        lines = [line for line in open(text, encoding="utf-8") if line.strip()]
        held_out = max(1, len(lines) // 20)
        for name, part in (("train", lines[:-held_out]), ("valid", lines[-held_out:])):
            open(name + ".txt", "w", encoding="utf-8").writelines(part)
            subprocess.run([troupe, "preprocess", "--input", name + ".txt", "--output-prefix", name,
                            "--tokenizer-name-or-path", "model", "--append-eod"], check=True, stdout=subprocess.DEVNULL)
        # A step with a learning rate of 0 writes the initial weights.
        run_troupe(troupe, "model", "train_text_document", "valid_text_document", "initial", 1,
                   **{"train.learning_rate": 0, "train.warmup_steps": 0})
        ours = run_troupe(troupe, "model", "train_text_document", "valid_text_document", "run", steps)[-1]["eval/loss"]
        samples = samples_of(read_sequences("train_text_document"), steps * BATCH)
        validation = samples_of(read_sequences("valid_text_document"), EVAL_BATCHES * BATCH)
        weights = read_weights("initial/latest/model.safetensors")
        parameters = sum(w.numel() for w in weights.values())
        theirs = train(weights, samples, validation, steps)
    difference = ours / theirs - 1
    print(json.dumps({"parameters": parameters, "steps": steps, "troupe": ours, "torch": theirs, "difference": difference}))
    return 0 if abs(difference) <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
