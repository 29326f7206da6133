"""What published commands read: model folders, checkpoints of Megatron and data, made on demand."""

import json
import os
import shutil
import struct
import subprocess
import tempfile
import threading

import replaced
import small_models as models

STORIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/models/stories260k")
# Tokens that published flags name, behind the 512 of the tokenizer.
ADDED = ("ки", "<|eot_id|>", "+", "-")
SENTENCES = ("The dog ran to the park.", "Lily has a red ball.", "Tom and Ben play.",
             "It is a sunny day.", "She likes to sing.", "They see a big tree.")
ROWS = 12
TEXTS = 1000  # of pretraining: --split gives a thousandth of them to the test part
ALPACA = {"prompt": "instruction", "query": "input", "response": "output", "history": "history",
          "system": "system", "chosen": "chosen", "rejected": "rejected"}


class Failed(Exception):
    """A command that ended with another exit code than 0."""


def run(words, folder, text="", timeout=300):
    """Standard output and error of a command; Failed with its end if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=folder, input=text, text=True, check=False,
                          capture_output=True, timeout=timeout, env=environment)
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}\n" + done.stdout[-300:] + done.stderr[-3000:])
    return done.stdout, done.stderr


def sentence(index):
    return SENTENCES[index % len(SENTENCES)]


def alpaca_row(index, kind):
    """Values by MindSpeed's names of the columns."""
    row = {"prompt": "Say it again.", "query": sentence(index + 1), "response": sentence(index)}
    if kind == "pairs":
        del row["response"]
        row.update(chosen=sentence(index), rejected=sentence(index + 2))
    return row


def text_columns(flags):
    return flags.get("json-keys", flags.get("json-key", ["text"]))


def data_rows(flags, count=ROWS):
    """Rows for --handler-name and --map-keys."""
    handler = flags.get("handler-name", ["GeneralPretrainHandler"])[0]
    if handler == "GeneralPretrainHandler":
        text = " ".join(SENTENCES * 4)
        return [{name: f"{text} {index}" for name in text_columns(flags)} for index in range(count)]
    if handler == "AlpacaStyleProcessRewardHandler":
        return [{"input": f"{sentence(index)} Step 1: one ки\nStep 2: two ки", "value": ["+", "-"]}
                for index in range(count)]
    if handler == "SharegptStylePairwiseHandler":
        return [{"conversations": [{"from": "human", "value": sentence(index)}],
                 "chosen": {"from": "gpt", "value": sentence(index + 1)},
                 "rejected": {"from": "gpt", "value": sentence(index + 2)}} for index in range(count)]
    names = {**ALPACA, **json.loads("".join(flags.get("map-keys", ["{}"])))}
    rows = []
    for index in range(count):
        values = alpaca_row(index, "pairs" if "Pairwise" in handler else "rows")
        if "history" in json.loads("".join(flags.get("map-keys", ["{}"]))):
            values["history"] = [[sentence(index + 3), sentence(index + 4)]]
        rows.append({names[key]: value for key, value in values.items() if names.get(key)})
    return rows


def store_bf16(source, target):
    """Copies a safetensors file of f32 with the upper halves of its numbers, as published models
    are stored."""
    with open(source, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head, body = json.loads(file.read(size)), file.read()
    parts, at = [], 0
    for name, each in head.items():
        if name == "__metadata__":
            continue
        begin, end = each["data_offsets"]
        halves = memoryview(body)[begin:end].cast("H")[1::2].tobytes()
        parts.append(halves)
        each.update(dtype="BF16", data_offsets=[at, at + len(halves)])
        at += len(halves)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def put_tokenizer(folder):
    shutil.copy(f"{STORIES}/hf/tokenizer_config.json", folder)
    shutil.copy(f"{STORIES}/tok512.model", folder + "/tokenizer.model")
    with open(f"{STORIES}/hf/tokenizer.json", encoding="utf-8") as file:
        content = json.load(file)
    for at, token in enumerate(ADDED):
        content["added_tokens"].append({
            "id": content["model"]["vocab"].get(token, 512 + at), "content": token, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": token.startswith("<")})
    with open(folder + "/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(content, file)


class Inputs:
    """Makes each input once, in a folder of its own, for all threads."""

    def __init__(self, troupe, root):
        self.troupe, self.root = troupe, root
        self.made, self.lock = {}, threading.RLock()

    def once(self, key, make):
        with self.lock:
            if key not in self.made:
                folder = tempfile.mkdtemp(prefix="input-", dir=self.root)
                make(folder)
                self.made[key] = folder
            return self.made[key]

    def model(self, config):
        """A Hugging Face folder with random weights."""
        def make(folder):
            start = folder + "/start"
            os.makedirs(start)
            put_tokenizer(start)
            with open(start + "/config.json", "w", encoding="utf-8") as file:
                json.dump(config, file)
            with open(folder + "/text.txt", "w", encoding="utf-8") as file:
                file.write("\n".join(SENTENCES) + "\n")
            run([self.troupe, "train", "--algorithm", "pretrain", "--model", start, "--data",
                 "text.txt", "--output", "run", "--steps", "1", "--set", "train.max_length=32",
                 "init.weights=random", "train.save_only_model=true", "train.dtype=bf16"], folder)
            store_bf16(f"{folder}/run/latest/model.safetensors", start + "/model.safetensors")
            shutil.rmtree(folder + "/run")
        return self.once("model " + models.key_of(config), make) + "/start"

    def megatron(self, config, tensor=1, pipeline=1, more=()):
        """A checkpoint of Megatron of the same model."""
        def make(folder):
            run([self.troupe, "convert", "--use-mcore-models", "--load-model-type", "hf",
                 "--save-model-type", "mg", "--load-dir", self.model(config), "--save-dir", folder,
                 "--target-tensor-parallel-size", str(tensor), "--target-pipeline-parallel-size",
                 str(pipeline), *more], self.root)
        key = f"megatron {tensor} {pipeline} {more} {models.key_of(config)}"
        return self.once(key, make)

    def rows(self, flags, count=ROWS):
        """A file of rows."""
        rows = data_rows(flags, count)

        def make(folder):
            with open(folder + "/rows.jsonl", "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        return self.once("rows " + json.dumps(rows), make) + "/rows.jsonl"

    def token_files(self, config, handler, more):
        """The prefix that --data-path takes."""
        flags = {"handler-name": [handler], **more}
        plain = handler == "GeneralPretrainHandler"

        def make(folder):
            rows = self.rows(flags, TEXTS if plain else ROWS)
            run([self.troupe, "preprocess", "--input", rows, "--output-prefix",
                 folder + "/data", "--tokenizer-name-or-path", self.model(config),
                 *replaced.words_of(flags)], self.root)
        key = f"tokens {replaced.words_of(flags)} {models.key_of(config)}"
        folder = self.once(key, make)
        return folder + ("/data_text_document" if plain else "/data")

    def reward_model(self, config):
        """A reward model, as --stage orm saves it."""
        def make(folder):
            data = self.token_files(config, "AlpacaStylePairwiseHandler", {"prompt-type": ["empty"]})
            run([self.troupe, "posttrain_gpt", "--stage", "orm", "--is-pairwise-dataset",
                 "--tokenizer-name-or-path", self.model(config), "--load", self.model(config),
                 "--finetune", "--data-path", data, "--save", folder + "/save", "--train-iters",
                 "1", "--global-batch-size", "4", "--micro-batch-size", "1", "--seq-length",
                 str(replaced.SEQUENCE), "--lr", "1e-6", "--norm-epsilon",
                 str(config["rms_norm_eps"]), "--rotary-base", str(config["rope_theta"])], folder)
        return self.once("reward " + models.key_of(config), make) + "/save"

    def adapter(self, config, flags):
        """What a run with the same LoRA saved."""
        lora = {name: flags[name] for name in ("lora-r", "lora-alpha", "lora-target-modules")
                if name in flags}

        def make(folder):
            data = self.token_files(config, "AlpacaStyleInstructionHandler",
                                    {"prompt-type": ["empty"]})
            run([self.troupe, "posttrain_gpt", "--stage", "sft", "--is-instruction-dataset",
                 "--tokenizer-name-or-path", self.model(config), "--load", self.model(config),
                 "--finetune", "--data-path", data, "--save", folder + "/save", "--train-iters",
                 "1", "--global-batch-size", "4", "--micro-batch-size", "1", "--seq-length",
                 str(replaced.SEQUENCE), "--lr", "1e-3", *replaced.words_of(lora)], folder)
        return self.once(f"adapter {lora} {models.key_of(config)}", make) + "/save"
