"""Random requests with random disconnects: serve_fuzz.py PROGRAM SOURCE [REQUESTS] [SEED]. Sends REQUESTS (2,000) requests, fields and bytes of all
endpoints, to `troupe serve` of a language model and of a pooling model, and to a run with serve.listen that gets its samples over HTTP. The servers
must answer afterwards and end with exit code 0, and none may print a report of a sanitizer. The seed determines the requests; it is printed on a failure."""
import asyncio
import os
import random
import signal
import sys
import tempfile

from live_run import SMALL, LiveRun
from served import SOURCE, STORIES, TOOLS, Server
from serve_requests import check_routes, random_request

REQUESTS = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
CLIENTS = 12
KEY = "0123456789abcdef0123456789abcdef"
REPORTS = ("AddressSanitizer", "runtime error:", "LeakSanitizer", "terminate called", "BUG")


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if "transfer-encoding: chunked" in head:
        while await reader.readuntil(b"\r\n") != b"0\r\n":
            pass
        return 200
    length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
    await reader.readexactly(length)
    return int(head.split()[1])


async def send_one(port, rng, live, generates, counts):
    method, path, body = random_request(rng, live, 300, generates)
    leaves = rng.random()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    try:
        field = f"Authorization: Bearer {KEY}\r\n" if live and rng.random() < 0.95 else ""
        data = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{field}Content-Length: {len(body)}\r\n\r\n".encode() + body
        if leaves < 0.05:
            data = data[:rng.randrange(len(data))]
        writer.write(data)
        await writer.drain()
        if leaves < 0.4:
            if leaves > 0.2:
                await asyncio.sleep(0.05 * rng.random())
            if leaves > 0.35:
                await reader.read(rng.choice([1, 100, 4000]))
            counts["left"] = counts.get("left", 0) + 1
            return
        status = await asyncio.wait_for(answer(reader), 120)
        counts[status] = counts.get(status, 0) + 1
    finally:
        writer.transport.abort()


async def client(port, rng, live, generates, counts, left):
    while left[0] > 0:
        left[0] -= 1
        try:
            await send_one(port, rng, live, generates, counts)
        except (ConnectionError, asyncio.IncompleteReadError):
            counts["closed"] = counts.get("closed", 0) + 1


def fuzz(port, requests, name, live=False, generates=True):
    counts, left = {}, [requests]

    async def run():
        await asyncio.gather(*(client(port, random.Random(f"{SEED} {name} {n}"), live, generates, counts, left) for n in range(CLIENTS)))
    asyncio.run(run())
    print(f"{name}: {requests} requests {dict(sorted(counts.items(), key=str))}", flush=True)
    # Of the requests that are not abandoned; many are mutated, and some endpoints belong to the other kind of model.
    assert counts.get(200, 0) > (requests - counts.get("left", 0)) // 8, counts
    assert counts.get(500, 0) == 0, counts


def checked(code, text, name):
    for report in REPORTS:
        assert report not in text, text[-8000:]
    assert code in (0, 130), (name, code, text[-8000:])  # 130: a run that SIGTERM has ended


def fuzz_server(requests, name, *options):
    server = Server(STORIES, "--template", TOOLS, "--max-batch", "8", "--request-timeout", "20", *options)
    try:
        fuzz(server.port, requests, name, generates="pooling" not in options)
        server.get("/health")
    finally:
        code = server.stop()
        sys.stderr.write("" if code == 0 else server.output[1][-8000:])
    checked(code, server.output[1], name)


def fuzz_run(requests):
    with tempfile.TemporaryDirectory() as where:
        keys = os.path.join(where, "keys")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(f"fuzzer {KEY}\n")
        served = {"model": STORIES, "chat_template": TOOLS, "rollout.source": "service", "serve.listen": 0, "serve.api_key_file": keys, "serve.max_batch": 8,
                  "train.steps": 1000, "rollout.lease_timeout": 1, "serve.request_timeout": 20}
        live = LiveRun(os.path.join(where, "run"), {key: value for key, value in SMALL.items() if key != "reward"} | served)
        try:
            fuzz(live.ports[0], requests, "a run with serve.listen", live=True)
            assert live.running(), "".join(live.lines)
        finally:
            if live.running():
                live.process.send_signal(signal.SIGTERM)
            code = live.wait(120)
        checked(code, "".join(live.lines), "the run")


def main():
    check_routes(SOURCE)
    try:
        fuzz_server(REQUESTS * 6 // 10, "troupe serve")
        fuzz_server(REQUESTS // 10, "troupe serve --runner pooling", "--runner", "pooling")
        fuzz_run(REQUESTS - REQUESTS * 6 // 10 - REQUESTS // 10)
    except BaseException:
        print(f"the requests are those of seed {SEED}: serve_fuzz.py PROGRAM SOURCE {REQUESTS} {SEED}", file=sys.stderr)
        raise


main()
