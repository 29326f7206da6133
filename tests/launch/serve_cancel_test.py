"""Every kind of request whose client disconnects: serve_cancel_test.py PROGRAM SOURCE. While it waits behind a full batch, while its prompt is
computed, and while it streams or generates; of `troupe serve`, of one with --runner pooling, and of a run with serve.listen."""
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
import unittest

from live_run import SMALL, LiveRun
from serve_requests import check_routes, kinds, others
from served import SOURCE, STORIES, TOOLS, Server

BATCH = 4


class Client:
    """Raw requests and metrics of a server."""

    def __init__(self, port):
        self.port = port

    def send(self, path, body):
        connection = socket.create_connection(("127.0.0.1", self.port), 60)
        data = json.dumps(body).encode()
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        return connection

    def answer(self, path, body):
        with self.send(path, body) as connection:
            return connection.recv(12)

    def metric(self, name):
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        return float(re.search(rf"^vllm:{name}{{.*}} (\S+)$", text, re.MULTILINE)[1])

    def wait_until(self, name, wanted):
        deadline = time.monotonic() + 60
        while not wanted(self.metric(name)):
            assert time.monotonic() < deadline, f"{name} is {self.metric(name)}"

    def wait_until_idle(self):
        for name in ("num_requests_waiting", "num_requests_running"):
            self.wait_until(name, lambda value: value == 0)

    def fill(self):
        """Connections of sequences that take the whole batch."""
        held = [self.send("/v1/completions", {"prompt": [3], "max_tokens": 500, "ignore_eos": True, "n": BATCH}) for _ in range(8)]
        self.wait_until("num_requests_running", lambda value: value == BATCH)
        return held


def close(connections):
    for connection in connections:
        connection.close()


class Cancelled:
    """`self.client` is that of a server, `alive()` fails if it has ended."""

    def test_every_endpoint_has_a_request(self):
        check_routes(SOURCE)

    def check(self):
        self.client.wait_until_idle()
        self.alive()
        self.assertEqual(self.client.answer("/v1/completions", {"prompt": [3], "max_tokens": 1}), b"HTTP/1.1 200")

    def test_while_it_waits(self):
        for name, path, body in kinds([3, 4], 1):
            with self.subTest(name):
                held = self.client.fill()
                one = self.client.send(path, body)
                # More sequences than the others have.
                self.client.wait_until("num_requests_waiting", lambda value: value > 7 * BATCH or value == 0)
                one.close()
                close(held)
                self.check()

    def test_all_while_they_wait(self):
        held = self.client.fill()
        all_kinds = [self.client.send(path, body) for _, path, body in kinds([3, 4], 2)]
        self.client.wait_until("num_requests_waiting", lambda value: value >= 7 * BATCH + len(all_kinds) // 2)
        close(all_kinds)
        close(held)
        self.check()

    def test_while_its_prompt_is_computed(self):
        for round in range(3):
            ones = [self.client.send(path, body) for _, path, body in kinds([3 + round] * (400 - round), 1)]
            self.client.wait_until("num_requests_running", lambda value: value > 0)
            close(ones[::2])
            close(ones)
            self.check()

    def test_while_it_streams(self):
        for name, path, body in kinds([3, 4], 400):
            with self.subTest(name):
                before = self.client.metric("generation_tokens_total")
                one = self.client.send(path, body)
                if "streamed" in name:
                    self.assertEqual(one.recv(12), b"HTTP/1.1 200", name)
                else:
                    self.client.wait_until("generation_tokens_total", lambda value: value > before)
                one.close()
                self.check()

    def test_of_the_other_endpoints(self):
        for path, body in others(False):
            close([self.client.send(path, body) for _ in range(20)])
        self.check()


class Served(Cancelled, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES, "--template", TOOLS, "--max-batch", str(BATCH))
        cls.client = Client(cls.server.port)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, (cls.server.process.returncode, cls.server.output)

    def alive(self):
        self.assertIsNone(self.server.process.poll())


class OfARun(Cancelled, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        served = {"model": STORIES, "chat_template": TOOLS, "serve.listen": 0, "serve.max_batch": BATCH, "train.steps": 100000}
        cls.live = LiveRun(os.path.join(cls.folder.name, "run"), SMALL | served)
        cls.client = Client(cls.live.ports[0])
        cls.client.answer("/v1/completions", {"prompt": [3], "max_tokens": 1})  # there are weights

    @classmethod
    def tearDownClass(cls):
        if cls.live.running():
            cls.live.process.send_signal(signal.SIGTERM)
        code = cls.live.wait(120)
        cls.folder.cleanup()
        assert code == 130, (code, "".join(cls.live.lines)[-4000:])  # interrupted by SIGTERM

    def alive(self):
        self.assertTrue(self.live.running(), "".join(self.live.lines)[-4000:])


class Pooled(unittest.TestCase):
    def test_texts_whose_client_has_gone(self):
        server = Server(STORIES, "--runner", "pooling", "--max-batch", str(BATCH))
        client = Client(server.port)
        for path, body in others(True):
            many = dict(body, **{name: value * 100 for name, value in body.items() if isinstance(value, list)})
            close([client.send(path, many) for _ in range(8)])
            client.wait_until_idle()
        self.assertEqual(client.answer("/pooling", {"input": "x"}), b"HTTP/1.1 200")
        self.assertEqual(server.stop(), 0, server.output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
