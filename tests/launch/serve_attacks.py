"""What one expensive request costs the others: serve_attacks.py PROGRAM SOURCE [--only WORDS] [--rounds 3]. Each attack is sent alone and four times
at once to a fresh server beside a client that streams. Printed are the peak of the resident memory above that of the idle server (limit 512 MiB), the
longest gap between two tokens of the client with and without the attack (limit: 1 s longer, medians of the rounds), and how long the server takes to
end after SIGTERM during the attack (limit: --drain-timeout + 5 s). The same attack, alone, meets a training run with serve.listen, which gets SIGTERM:
it must save its checkpoint and end within its longest step + 30 s. The model is a Llama of width 8 with random weights, a context of 32,768 tokens and
the tokenizer in tests/data with the largest vocabulary. Exit code 1 beyond a limit."""
import argparse
import array
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from live_run import SMALL, LiveRun

MEMORY_LIMIT, GAP_LIMIT, DRAIN, END_LIMIT, RUN_END_LIMIT = 512, 1.0, 3, 5, 30
SECONDS = 15  # of an attack; those that are not answered then are left
IDS = [[i % 1000 + 10] for i in range(8)]


def write_model(source, folder):
    folders = [entry.path for entry in os.scandir(os.path.join(source, "tests/data/tokenizers"))]
    tokenizer = max((each for each in folders if os.path.exists(each + "/tokenizer.json")), key=lambda path: os.path.getsize(path + "/tokenizer.json"))
    for name in os.listdir(tokenizer):
        shutil.copyfile(os.path.join(tokenizer, name), os.path.join(folder, name))
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        content = json.load(file)
    ids = list(content["model"]["vocab"].values()) + [each["id"] for each in content["added_tokens"]]
    vocabulary = (max(ids) + 16) // 16 * 16
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
              "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": vocabulary, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 0}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [vocabulary, 8], "model.norm.weight": [8],
              layer + "input_layernorm.weight": [8], layer + "post_attention_layernorm.weight": [8],
              layer + "self_attn.q_proj.weight": [8, 8], layer + "self_attn.k_proj.weight": [4, 8],
              layer + "self_attn.v_proj.weight": [4, 8], layer + "self_attn.o_proj.weight": [8, 8],
              layer + "mlp.gate_proj.weight": [16, 8], layer + "mlp.up_proj.weight": [16, 8], layer + "mlp.down_proj.weight": [8, 16]}
    header, data, rng = {}, bytearray(), random.Random(1)
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        values = array.array("f", (1.0 if len(shape) == 1 else rng.uniform(-0.5, 0.5) for _ in range(count)))
        begin = len(data)
        data += values.tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def regex(pattern, tokens=20):
    return {"prompt": [3], "max_tokens": tokens, "structured_outputs": {"regex": pattern}}


def schema(value):
    return {"prompt": [3], "max_tokens": 4, "response_format": {"type": "json_schema", "json_schema": {"schema": value}}}


def attacks():
    """Name -> the requests, as (path, body, reads the answer), and whether they come behind a full batch. Bodies are made when they are needed."""
    completion = "/v1/completions"
    many = {"prompt": IDS, "n": 128, "max_tokens": 8}
    characters = "".join(chr(0x10000 + 2 * i) for i in range(500_000))

    def one(make, path=completion, reads=True):
        return lambda: [(path, make(), reads)]
    return {
        "H1 500,000 stop strings": one(lambda: dict(many, stop=["a"] * 500_000)),
        "H1 65,000 biases": one(lambda: dict(many, logit_bias={str(i): 1 for i in range(65_000)})),
        "H1 65,000 biases, n 4": one(lambda: {"prompt": [3], "n": 4, "max_tokens": 50, "logit_bias": {str(i): 1 for i in range(65_000)}}),
        "H1 echo of 10,000 ids, n 128": one(lambda: {"prompt": [i % 5000 + 3 for i in range(10_000)], "n": 128, "echo": True, "logprobs": 20, "max_tokens": 1}),
        "H1 echo and prompt_logprobs": one(lambda: {"prompt": [[i % 400 + 3] * 500 for i in range(3)], "n": 128, "max_tokens": 1,
                                                    "echo": True, "logprobs": 20, "prompt_logprobs": 20}),
        "H1 the largest accepted echo": one(lambda: {"prompt": [i % 5000 + 3 for i in range(2400)], "n": 20, "echo": True, "logprobs": 20, "max_tokens": 1}),
        "H1 the largest accepted prompt_logprobs": one(lambda: {"prompt": [i % 5000 + 3 for i in range(2400)], "n": 20, "prompt_logprobs": 20, "max_tokens": 1}),
        "H1 allowed_token_ids": one(lambda: dict(many, allowed_token_ids=[1], max_tokens=20)),
        "H1 120 expressions wait": lambda: [(completion, regex(f"b{{{i + 1}}}a{{65000}}c{{65000}}d{{65000}}"), True) for i in range(120)],
        "H1 120 long expressions wait": lambda: [(completion, regex("ab" * 95_000 + str(i)), True) for i in range(120)],
        "H1 1,000 streams of 20 stop strings": lambda: [(completion, {"prompt": [3], "max_tokens": 20, "stream": True, "n": 100,
                                                                      "stop": ["x" * 1000 + str(i) for i in range(20)]}, True)] * 10,
        "m7 60 unread answers": lambda: [("/tokenize", {"prompt": "a b " * 500_000, "return_token_strs": True}, False)] * 60,
        "H2 a class of 500,000 characters": one(lambda: regex(f"[{characters}]")),
        "H2 oneOf of 12,000 constants": one(lambda: schema({"oneOf": [{"const": i} for i in range(12_000)]})),
        "H2 oneOf of 100,000 constants": one(lambda: schema({"oneOf": [{"const": i} for i in range(100_000)]})),
        "H2 required of 180,000 names": one(lambda: schema({"type": "object", "required": [str(i) for i in range(180_000)]})),
        "H2 30,000 properties": one(lambda: schema({"type": "object", "required": ["p29999"] * 100_000,
                                                    "properties": {f"p{i}": {} for i in range(30_000)}})),
        "H2 60 bodies of 2 MB behind two schemas": lambda: [(completion, schema({"oneOf": [{"const": i} for i in range(100_000)]}), True)] * 2 + [
            (completion, {"prompt": [3], "max_tokens": 1, "user": "u" * 2_000_000}, True)] * 60,
        "H2 a conversation of 2 MB": one(lambda: {"messages": [{"role": "user", "content": "a b c d "}] * 40_000, "max_tokens": 1}, "/v1/chat/completions"),
        "H2 a prompt of 2 MB": one(lambda: {"prompt": "a b c d " * 250_000, "max_tokens": 1}),
        "H3 (.?){0,1500}": one(lambda: regex("(.?){0,1500}")),
        "H3 (.?.?){0,1000}x": one(lambda: regex("(.?.?){0,1000}x")),
        "H3 ((a|.)?){0,900}": one(lambda: regex("((a|.)?){0,900}")),
        "H3 eight of (.?){0,1500}": lambda: [(completion, regex(f"(.?){{0,{1500 + i}}}"), True) for i in range(8)],
        "H3 three classes": one(lambda: regex("([^\\x01]{0,6}[^\\x02]{0,6}[^\\x03]{0,6}){0,100}")),
    }


def open_and_send(port, path, body):
    try:
        connection = socket.create_connection(("127.0.0.1", port), 60)
    except ConnectionRefusedError:
        return socket.socket()  # the server ends
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    try:
        connection.sendall(head + body)
    except OSError:
        pass  # refused before it was read
    return connection


class Server:
    def __init__(self, program, model):
        words = ["prlimit", f"--as={10 << 30}", program, "serve", "--model", model, "--port", "0", "--quiet", "--threads", "1", "--max-batch", "8"]
        self.process = subprocess.Popen([*words, "--drain-timeout", str(DRAIN)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", self.process.stdout.readline())[1])

    def resident(self, name="VmRSS"):
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
                return int(re.search(rf"{name}:\s+(\d+)", file.read())[1]) >> 10
        except (OSError, TypeError):
            return -1

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="utf-8") as file:
            file.write("5")

    def send(self, path, body):
        return open_and_send(self.port, path, body)

    def end(self):
        """Seconds until SIGTERM has ended it, or None."""
        return seconds_to_end(self.process, DRAIN + END_LIMIT + 5)


def seconds_to_end(process, patience):
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(patience)
        return time.monotonic() - start
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


class Honest(threading.Thread):
    """A client that streams one answer after the other."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.times, self.running = server, [], True
        self.start()

    def run(self):
        body = json.dumps({"prompt": [3], "max_tokens": 32000, "ignore_eos": True, "stream": True}).encode()
        while self.running:
            try:
                with self.server.send("/v1/completions", body) as connection:
                    while self.running and (data := connection.recv(65536)):
                        self.times += [time.monotonic()] * (b"data: " in data)
            except OSError:
                if self.running:
                    time.sleep(0.01)

    def longest_gap(self, begin, end):
        times = [begin] + [each for each in self.times if begin < each < end] + [end]
        return max(b - a for a, b in zip(times, times[1:]))


def drain(connection, reads):
    """The status; an answer that nobody reads stays open."""
    try:
        data = connection.recv(4096)
        while reads and connection.recv(1 << 20):
            pass
        return int(data.split()[1]) if data else 0
    except OSError:
        return 0


def attack(port, requests):
    """Sends all at once; the statuses of those that were answered in time."""
    connections, statuses, threads = [], [], []

    def send(path, body, reads):
        connection = open_and_send(port, path, body)
        connection.settimeout(SECONDS)
        connections.append(connection)
        statuses.append(drain(connection, reads))

    for each in requests:
        threads.append(threading.Thread(target=send, args=each, daemon=True))
        threads[-1].start()
    deadline = time.monotonic() + SECONDS
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    return connections, list(statuses)


def encoded(requests):
    """With bodies as bytes; equal ones once."""
    bytes_of = {}
    return [(path, bytes_of.setdefault(id(body), json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()), reads)
            for path, body, reads in requests]


def measure(program, model, make, times, waits):
    server = Server(program, model)
    server.send("/v1/completions", b'{"prompt": [3], "max_tokens": 2}').recv(1 << 16)
    requests = encoded(make()) * times
    held = [server.send("/v1/completions", json.dumps({"prompt": [3], "max_tokens": 30000, "ignore_eos": True}).encode()) for _ in range(8 if waits else 0)]
    honest = None if waits else Honest(server)
    begin = time.monotonic()
    time.sleep(3)
    idle, quiet = server.resident(), 0 if waits else honest.longest_gap(begin + 0.5, time.monotonic())
    server.forget_peak()
    begin = time.monotonic()
    connections, statuses = attack(server.port, requests)
    gap = 0 if waits else honest.longest_gap(begin, time.monotonic())
    peak = server.resident("VmHWM")
    found = {"memory": peak - idle if server.process.poll() is None else 10**6, "gap": gap - quiet, "quiet": quiet, "statuses": statuses}
    threading.Thread(target=attack, args=(server.port, requests), daemon=True).start()
    time.sleep(0.3)
    if honest:
        honest.running = False
    found["end"] = server.end()
    for each in connections + held:
        each.close()
    return found


class Steps(threading.Thread):
    """Watches the longest step of a run: the longest time between two lines of its metrics."""

    def __init__(self, live):
        super().__init__(daemon=True)
        self.live, self.longest = live, 0
        self.start()

    def run(self):
        path, lines, since = os.path.join(self.live.output, "metrics.jsonl"), 0, time.monotonic()
        while self.live.running():
            with open(path, "rb") if os.path.exists(path) else open(os.devnull, "rb") as file:
                now = file.read().count(b"\n")
            if now > lines:
                self.longest, since, lines = max(self.longest, time.monotonic() - since), time.monotonic(), now
            time.sleep(0.05)


def end_of_run(model, make):
    """SIGTERM of a run with serve.listen during the attack: seconds until its end (None: never), its longest step, and whether it was saved."""
    with tempfile.TemporaryDirectory() as where:
        live = LiveRun(os.path.join(where, "run"), SMALL | {"model": model, "serve.listen": 0, "serve.max_batch": 8, "train.steps": 100_000})
        steps = Steps(live)
        with open_and_send(live.ports[0], "/v1/completions", b'{"prompt": [3], "max_tokens": 2}') as connection:
            connection.recv(1 << 16)  # there are weights
        threading.Thread(target=attack, args=(live.ports[0], encoded(make())), daemon=True).start()
        time.sleep(1)
        seconds = seconds_to_end(live.process, steps.longest + RUN_END_LIMIT + 30)
        steps.join()
        code = live.wait()
        saved = os.path.exists(os.path.join(where, "run", "latest", "model.safetensors"))
        return {"seconds": seconds, "step": steps.longest, "saved": saved and code == 130}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as model:
        write_model(options.source, model)
        print(f"{'attack':44} times  memory MiB  gap s (without)  end s  end of a run s (its longest step)  statuses")
        for name, make in attacks().items():
            if options.only not in name:
                continue
            for times in (1, 4):
                rounds = [measure(options.program, model, make, times, "wait" in name) for _ in range(options.rounds)]
                memory, gap = max(each["memory"] for each in rounds), statistics.median(each["gap"] for each in rounds)
                quiet = statistics.median(each["quiet"] for each in rounds)
                ends = [each["end"] for each in rounds]
                late = any(each is None or each > DRAIN + END_LIMIT for each in ends)
                run, said = None, ""
                if times == 1:
                    run = end_of_run(model, make)
                    late = late or not run["saved"] or run["seconds"] is None or run["seconds"] > run["step"] + RUN_END_LIMIT
                    said = f"{'never' if run['seconds'] is None else format(run['seconds'], '.1f')} ({run['step']:.1f}){'' if run['saved'] else ' not saved'}"
                bad = memory > MEMORY_LIMIT or gap > GAP_LIMIT or late
                failed += [f"{name} x {times}"] * bad
                statuses = rounds[0]["statuses"]
                print(f"{name:44} {times:5} {memory:11} {gap + quiet:7.2f} ({quiet:.2f})  {'never' if None in ends else f'{max(ends):.1f}':>9}"
                      f"  {said:>12}  {({status: statuses.count(status) for status in sorted(set(statuses))})}{'  BEYOND A LIMIT' if bad else ''}", flush=True)
    if failed:
        print("beyond a limit: " + ", ".join(failed))
    return 1 if failed else 0


sys.exit(main())
