#!/usr/bin/env python3
"""`troupe serve` beside llama.cpp's server, with one random model of Qwen2.5-0.5B's shape in bf16.

llama_server.py TROUPE LLAMA_SERVER [--clients 16] [--prompt 32] [--tokens 128] [--rounds 3] [--threads 2]

The weights are written once as safetensors and as GGUF (needs PyPI's `gguf` and numpy). In each round the clients send their requests
at once to the one server and then to the other, as token ids, without stopping at an end token; no prompt is a prefix of another one.
The last line is a JSON object: `value` and `llama` are medians of tokens/s, `ratio` is the median of the quotients of the rounds."""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

import gguf
import numpy

import random_model
from random_model import HEADS, INNER, KV_HEADS, LAYERS, VOCABULARY, WIDTH


def write_models(folder):
    """The folder for troupe, and the GGUF file."""
    model, file = folder / "model", folder / "model.gguf"
    writer = gguf.GGUFWriter(file, "qwen2")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(1e4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"<{i}>" for i in range(VOCABULARY)])
    writer.add_token_types([gguf.TokenType.NORMAL] * VOCABULARY)
    writer.add_token_merges(["< 0"])

    def add(name, half):
        if half.ndim == 1:  # llama.cpp adds biases and multiplies by norms in f32
            writer.add_tensor(name, (half.astype(numpy.uint32) << 16).view(numpy.float32))
        else:
            writer.add_tensor(name, half.view(numpy.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)

    random_model.write(model, add)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model, file


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    if response.status != 200:
        raise SystemExit(f"llama_server.py: {path} answered {response.status}: {text[:500]}")
    return json.loads(text)


class Troupe:
    def __init__(self, args, model):
        self.port = free_port()
        self.process = subprocess.Popen(
            [args.troupe, "serve", "--model", model, "--port", str(self.port), "--dtype", "bf16", "--threads", str(args.threads),
             "--max-batch", str(args.clients), "--cache-tokens", str(args.clients * (args.prompt + args.tokens) + 1024)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, prompt, tokens):
        usage = post(self.port, "/v1/completions", {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True})["usage"]
        return usage["completion_tokens"]


class Llama:
    def __init__(self, args, file):
        self.port = free_port()
        # Without --kv-unified each sequence has its own part of the cache, which is faster here.
        self.process = subprocess.Popen(
            [args.llama, "-m", file, "--port", str(self.port), "-t", str(args.threads), "-np", str(args.clients),
             "-c", str(args.clients * (args.prompt + args.tokens + 64)), "-ctk", "bf16", "-ctv", "bf16", "--no-webui"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, prompt, tokens):
        answer = post(self.port, "/completion", {"prompt": prompt, "n_predict": tokens, "ignore_eos": True, "cache_prompt": False})
        return answer["tokens_predicted"]


def wait_until_ready(server, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.process.poll() is not None:
            raise SystemExit(f"llama_server.py: {server.process.args[0]} exited with {server.process.returncode}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit(f"llama_server.py: {server.process.args[0]} was not ready within {seconds} s")


def rate(server, args, generator):
    prompts = [generator.integers(10, VOCABULARY, args.prompt).tolist() for _ in range(args.clients)]
    with concurrent.futures.ThreadPoolExecutor(args.clients) as pool:
        start = time.monotonic()
        made = sum(pool.map(lambda prompt: server.ask(prompt, args.tokens), prompts))
        seconds = time.monotonic() - start
    if made != args.clients * args.tokens:
        raise SystemExit(f"llama_server.py: {made} tokens instead of {args.clients * args.tokens}")
    return made / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("llama")
    for name, value in (("clients", 16), ("prompt", 32), ("tokens", 128), ("rounds", 3), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    generator = numpy.random.default_rng(2)
    servers, rates = [], []
    with tempfile.TemporaryDirectory() as folder:
        model, file = write_models(pathlib.Path(folder))
        try:
            servers = [Troupe(args, model), Llama(args, file)]
            for server in servers:
                wait_until_ready(server)
                rate(server, args, generator)  # packs weights
            for _ in range(args.rounds):
                rates.append([rate(server, args, generator) for server in servers])
                print("troupe {:.1f}, llama.cpp {:.1f} tokens/s".format(*rates[-1]), flush=True)
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait()
    ours, theirs = (statistics.median(column) for column in zip(*rates))
    print(json.dumps({"name": "llama_server", "clients": args.clients, "value": ours, "llama": theirs, "unit": "tokens/s",
                      "ratio": statistics.median(a / b for a, b in rates)}))


if __name__ == "__main__":
    main()
