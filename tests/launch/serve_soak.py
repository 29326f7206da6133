"""A long run of troupe serve: serve_soak.py PROGRAM SOURCE [REQUESTS]. 1,000 random JSON schemas; the time until the pages of a cancelled
request are free; then REQUESTS (100,000) requests with random cancellations, timeouts and disconnects, after which all pages are free
and the memory is that of the beginning."""
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
REQUESTS = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
MODEL = os.path.join(SOURCE, "tests/data/models/stories260k/hf")
CLIENTS = 48
MOST_GROWTH = 32 << 20  # bytes


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, "serve", "--model", MODEL, "--port", "0", "--threads", "1", "--quiet", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", self.process.stdout.readline())[1])

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) << 10

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Connection:
    """A connection with keep-alive."""

    def __init__(self, port):
        self.port, self.writer = port, None

    async def send(self, method, path, body=None):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = b"" if body is None else json.dumps(body).encode()
        self.writer.write(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        await self.writer.drain()

    async def head(self):
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:] if line)

    async def answer(self):
        status, headers = await self.head()
        body = await self.reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return status, json.loads(body) if headers["content-type"].startswith("application/json") else body.decode()

    async def request(self, method, path, body=None):
        await self.send(method, path, body)
        return await self.answer()

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
        self.writer = None

    async def metric(self, name):
        _, text = await self.request("GET", "/metrics")
        return float(re.search(rf"^{name}{{.*}} (\S+)$", text, re.MULTILINE)[1])


def random_schema(rng, depth):
    """A schema and a function that says whether a value is an instance."""
    kind = rng.choice(["string", "integer", "number", "boolean", "null", "enum"] + ["array", "object"] * (2 if depth else 0))
    if kind == "string":
        low = rng.randrange(3)
        high = low + rng.randrange(8)
        return {"type": "string", "minLength": low, "maxLength": high}, lambda v: isinstance(v, str) and low <= len(v) <= high
    if kind == "integer":
        low = rng.randrange(-500, 500)
        high = low + rng.randrange(1000)
        return {"type": "integer", "minimum": low, "maximum": high}, lambda v: type(v) is int and low <= v <= high
    if kind == "number":
        return {"type": "number"}, lambda v: type(v) in (int, float)
    if kind == "boolean":
        return {"type": "boolean"}, lambda v: isinstance(v, bool)
    if kind == "null":
        return {"type": "null"}, lambda v: v is None
    if kind == "enum":
        values = rng.sample(["meow", "purr", 7, -1.5, None, True, "two words", ""], rng.randrange(1, 5))
        return {"enum": values}, lambda v: any(type(v) is type(each) and v == each for each in values)
    if kind == "array":
        items, valid = random_schema(rng, depth - 1)
        low = rng.randrange(2)
        high = low + rng.randrange(3)
        return ({"type": "array", "items": items, "minItems": low, "maxItems": high},
                lambda v: isinstance(v, list) and low <= len(v) <= high and all(map(valid, v)))
    members = {name: random_schema(rng, depth - 1) for name in rng.sample(["a", "b", "name", "size of it"], rng.randrange(1, 4))}
    required = [name for name in members if rng.random() < 0.6]
    return ({"type": "object", "properties": {name: schema for name, (schema, _) in members.items()}, "required": required,
             "additionalProperties": False},
            lambda v: isinstance(v, dict) and set(required) <= set(v) <= set(members) and all(members[k][1](v[k]) for k in v))


async def constraints(port, rng):
    """Every output of a random schema is an instance; one that reaches max_tokens says so."""
    connection, lengths = Connection(port), 0
    for number in range(1000):
        schema, valid = random_schema(rng, 3)
        form = {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}
        status, answer = await connection.request("POST", "/v1/completions", dict(
            form, prompt="Once", seed=number, temperature=1.5, max_tokens=480))
        assert status == 200, (schema, answer)
        choice = answer["choices"][0]
        if choice["finish_reason"] == "length":
            lengths += 1
            continue
        assert choice["finish_reason"] == "stop", choice
        assert valid(json.loads(choice["text"])), (schema, choice["text"])
    assert lengths < 100, lengths
    for number in range(200):
        words = rng.sample(["yes", "no", "maybe", "not at all", "yes, of course"], rng.randrange(1, 5))
        pattern = rng.choice([r"[a-f]{2,9}(-[0-9]+){1,3}z", r"(ab|cd){1,4}", r"\d{4}-\d{2}"])
        for form, valid in (({"choice": words}, lambda text: text in words), ({"regex": pattern}, re.compile(pattern).fullmatch)):
            _, answer = await connection.request("POST", "/v1/completions", {
                "prompt": "Once", "seed": number, "temperature": 2, "max_tokens": 200, "structured_outputs": form})
            choice = answer["choices"][0]
            assert choice["finish_reason"] == "length" or valid(choice["text"]), (form, choice)
    connection.close()
    print(f"1,000 schemas, {lengths} of whose outputs reached max_tokens; 200 choices and 200 expressions")


async def cancellations(port, rng):
    """Milliseconds from a disconnect to the moment at which its pages are seen free, while other sequences run."""
    monitor, times = Connection(port), []
    for _ in range(500):
        stream = Connection(port)
        await stream.send("POST", "/v1/completions", {"prompt": [3] * 100, "max_tokens": 380, "n": 8, "stream": True, "ignore_eos": True,
                                                      "seed": rng.randrange(1000)})
        await stream.head()
        while await monitor.metric("vllm:kv_cache_usage_perc") == 0:
            pass
        stream.close()
        start = time.monotonic()
        while await monitor.metric("vllm:kv_cache_usage_perc") > 0:
            pass
        times.append(1e3 * (time.monotonic() - start))
    monitor.close()
    times.sort()
    print(f"pages are free {times[250]:.1f} ms (median) and {times[495]:.1f} ms (p99) after a disconnect")
    assert times[495] <= 50, times[-10:]


async def client(port, rng, counts, left):
    connection = Connection(port)
    while left[0] > 0:
        left[0] -= 1
        kind = rng.random()
        prompt = [3] * rng.randrange(1, 40) + [rng.randrange(3, 500) for _ in range(rng.randrange(1, 20))]
        body = {"prompt": prompt, "max_tokens": rng.randrange(1, 6), "seed": rng.randrange(100), "ignore_eos": rng.random() < 0.5}
        if kind < 0.6:
            status, answer = await connection.request("POST", "/v1/completions", body)
            counts[status] = counts.get(status, 0) + 1
        elif kind < 0.99:
            # A disconnect at once, or after a part of a stream.
            body.update(max_tokens=300, stream=kind < 0.8)
            await connection.send("POST", "/v1/completions", body)
            if kind < 0.8:
                await connection.head()
            elif kind < 0.9:
                await asyncio.sleep(0.002 * rng.random())
            connection.close()
            counts["disconnected"] = counts.get("disconnected", 0) + 1
        else:
            body.update(max_tokens=380, n=16, ignore_eos=True)
            status, answer = await connection.request("POST", "/v1/completions", body)
            counts[status] = counts.get(status, 0) + 1
    connection.close()


async def soak(server, rng):
    monitor, counts = Connection(server.port), {}
    await asyncio.gather(*(client(server.port, rng, counts, left) for left in [[REQUESTS // 10]] for _ in range(CLIENTS)))
    before = server.resident()
    await asyncio.gather(*(client(server.port, rng, counts, left) for left in [[REQUESTS - REQUESTS // 10]] for _ in range(CLIENTS)))
    deadline = time.monotonic() + 30
    while await monitor.metric("vllm:kv_cache_usage_perc") > 0 or await monitor.metric("vllm:num_requests_running") > 0:
        assert time.monotonic() < deadline, "sequences of requests that ended are still running"
    after, hits = server.resident(), await monitor.metric("vllm:prefix_cache_hits_total")
    monitor.close()
    print(f"{REQUESTS} requests {counts}, {hits:.0f} cached tokens; {before >> 20} MiB after a tenth of them, {after >> 20} at the end")
    assert set(counts) <= {200, 429, 503, "disconnected"}, counts
    assert counts[200] > REQUESTS // 2 and counts["disconnected"] > REQUESTS // 4 and counts.get(503, 0) > 0, counts
    assert after - before < MOST_GROWTH


async def main():
    rng = random.Random(1)
    server = Server("--lookup", "3")
    await constraints(server.port, rng)
    await cancellations(server.port, rng)
    assert server.stop() == 0
    server = Server("--request-timeout", "1", "--cache-tokens", "16384")
    await soak(server, rng)
    assert server.stop() == 0


asyncio.run(main())
