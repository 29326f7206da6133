#!/usr/bin/env python3
"""`troupe generate` and `troupe eval` beside `troupe serve` with 16 clients.

batched_commands.py TROUPE [--model DIR] [--dtype bf16] [--threads 2] [--prompts 64] [--rows 200] [--tokens 64] [--eval-tokens 32]
                    [--clients 16] [--rounds 3]

Without --model, a random model of Qwen2.5-0.5B's shape in bf16 with the tokenizer of tests/data (needs numpy) is written. In each round
the prompts, 16 to 512 tokens in random order, go to a `troupe generate` that has loaded its model, as lines, and then from the clients to
the server; the rows of `troupe eval` go to the server as texts, and its time is that of all rows less that of one. No round repeats
prompts. The last line is a JSON object: medians in tokens/s, and of the quotients of the rounds (`generate_ratio`, `eval_ratio`)."""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

WORDS = ["time", "house", "river", "green", "seven", "and", "the", "of", "walks", "under", "letter", "quickly"]


def write_model(folder):
    import random_model

    random_model.write(folder)
    for file in (pathlib.Path(__file__).parent.parent / "tests/data/tokenizers/qwen2.5").iterdir():
        shutil.copy(file, folder)
    return folder


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, args, common):
        self.clients, self.port = args.clients, free_port()
        self.process = subprocess.Popen([args.troupe, "serve", *common, "--port", str(self.port), "--max-batch", str(args.clients)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 300
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5):
                    return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise SystemExit("batched_commands.py: troupe serve did not start")
                time.sleep(0.2)

    def ask(self, prompt, tokens):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0}),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200 or answer["usage"]["completion_tokens"] != tokens:
            raise SystemExit(f"batched_commands.py: the server answered {response.status}: {str(answer)[:500]}")

    def seconds(self, prompts, tokens):
        with concurrent.futures.ThreadPoolExecutor(self.clients) as pool:
            start = time.monotonic()
            list(pool.map(lambda prompt: self.ask(prompt, tokens), prompts))
            return time.monotonic() - start


class Generate:
    def __init__(self, args, common):
        self.process = subprocess.Popen([args.troupe, "generate", *common, "--greedy", "--ignore-eos", "--quiet"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def seconds(self, prompts, tokens):
        text = "".join(json.dumps({"ids": prompt, "max_new_tokens": tokens}) + "\n" for prompt in prompts)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            start = time.monotonic()
            written = pool.submit(lambda: (self.process.stdin.write(text), self.process.stdin.flush()))
            answers = [json.loads(self.process.stdout.readline()) for _ in prompts]
            seconds = time.monotonic() - start
            written.result()
        if any(len(answer.get("ids", [])) != tokens for answer in answers):
            raise SystemExit(f"batched_commands.py: troupe generate answered {str(answers)[:500]}")
        return seconds


def eval_seconds(args, common, folder, rows):
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps({"prompt": row, "answer": "none"}) + "\n" for row in rows))
    start = time.monotonic()
    subprocess.run([args.troupe, "eval", *common, "--data", str(file), "--reward", "exact_match", "--temperature", "0", "--max-new-tokens",
                    str(args.eval_tokens), "--set", "rollout.ignore_eos=true"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - start


def measure(args, folder):
    model = args.model or str(write_model(folder / "model"))
    vocabulary = json.loads((pathlib.Path(model) / "config.json").read_text())["vocab_size"]
    common = ["--model", model, "--dtype", args.dtype, "--threads", str(args.threads)]
    server, generate = Server(args, common), Generate(args, common)
    draw, rates = random.Random(2), []
    try:
        for one in (server, generate):
            one.seconds([[1, 2, 3]], args.tokens)  # packs weights
        for _ in range(args.rounds):
            prompts = [[draw.randrange(10, vocabulary) for _ in range(draw.randint(16, 512))] for _ in range(args.prompts)]
            rows = [" ".join(draw.choice(WORDS) for _ in range(draw.randint(16, 64))) for _ in range(args.rows + 1)]
            lines, asked = generate.seconds(prompts, args.tokens), server.seconds(prompts, args.tokens)
            evaluated = eval_seconds(args, common, folder, rows) - eval_seconds(args, common, folder, rows[:1])
            texts = server.seconds(rows[1:], args.eval_tokens)
            rates.append([args.prompts * args.tokens / lines, args.prompts * args.tokens / asked,
                          args.rows * args.eval_tokens / evaluated, args.rows * args.eval_tokens / texts])
            print("generate {:.1f}, serve {:.1f}; eval {:.1f}, serve {:.1f} tokens/s".format(*rates[-1]), flush=True)
    finally:
        for one in (server, generate):
            one.process.terminate()
            one.process.wait()
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("troupe")
    parser.add_argument("--model")
    parser.add_argument("--dtype", default="bf16")
    for name, value in (("threads", 2), ("prompts", 64), ("rows", 200), ("tokens", 64), ("eval-tokens", 32), ("clients", 16), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(args, pathlib.Path(folder))
    names = ("generate", "generate_serve", "eval", "eval_serve")
    out = {"name": "batched_commands", "unit": "tokens/s", **dict(zip(names, (statistics.median(column) for column in zip(*rates))))}
    out["generate_ratio"] = statistics.median(rate[0] / rate[1] for rate in rates)
    out["eval_ratio"] = statistics.median(rate[2] / rate[3] for rate in rates)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
