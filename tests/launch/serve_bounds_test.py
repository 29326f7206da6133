"""Bounds of what one request of troupe serve may ask for: serve_bounds_test.py PROGRAM SOURCE."""
import json
import os
import re
import socket
import sys
import tempfile
import unittest
from http.client import HTTPConnection

from served import STORIES, Server, answer_of

MOST = 64 << 20  # bytes by which a refused request may raise the memory
IDS = [[i + 3] for i in range(8)]
# AddressSanitizer keeps what was freed.
os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1"]))


def resident(server, name="VmHWM"):
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        return int(re.search(rf"{name}:\s+(\d+) kB", file.read())[1]) << 10


def send(server, **fields):
    """A connection that stays open, with a completion request."""
    connection = socket.create_connection(("127.0.0.1", server.port), 60)
    body = json.dumps(fields).encode()
    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return connection


class Bounds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.output

    def refused(self, words, **fields):
        before = resident(self.server)
        status, _, body = self.server.request("POST", "/v1/completions", dict({"max_tokens": 4}, **fields))
        error = json.loads(body)["error"]
        self.assertEqual(status, 400, error)
        for word in words:
            self.assertIn(word, error["message"])
        self.assertLess(resident(self.server) - before, MOST)

    def test_lists_are_bounded_before_they_are_copied(self):
        self.refused(["stop", "400000", "at most 64"], prompt=IDS, n=128, stop=["a"] * 400_000)
        self.refused(["stop[1]", "1025", "at most 1024"], prompt=[3], stop=["a", "a" * 1025])
        self.refused(["stop_token_ids", "at most 1024"], prompt=IDS, n=128, stop_token_ids=[3] * 400_000)

    def test_products_of_fields_are_bounded(self):
        ids = [i % 500 + 3 for i in range(400)]
        self.refused(["logit_bias", "500 entries", "1024 sequences", "262144"], prompt=IDS, n=128, logit_bias={str(i): 1 for i in range(500)})
        self.refused(["n (128)", "echo", "logprobs (20)", "1048576"], prompt=ids, n=128, echo=True, logprobs=20)
        self.refused(["n (128)", "prompt_logprobs (20)", "1048576"], prompt=ids, n=128, prompt_logprobs=20)
        self.refused(["echo", "prompt_logprobs", "1048576"], prompt=[ids] * 3, n=128, echo=True, logprobs=9, prompt_logprobs=9)
        self.refused(["stream", "echo", "32768"], prompt=ids, n=8, echo=True, logprobs=20, stream=True)
        self.refused(["max_tokens", "logprobs", "4194304"], prompt=IDS, n=128, logprobs=20, max_tokens=400)

    def test_a_request_at_a_bound_is_answered_without_many_times_its_memory(self):
        before = resident(self.server)
        ids = [i % 500 + 3 for i in range(400)]
        answer = self.server.complete(prompt=ids, n=124, echo=True, logprobs=20, max_tokens=1, return_token_ids=False)
        self.assertEqual(len(answer["choices"]), 124)
        for choice in answer["choices"]:
            self.assertEqual(len(choice["logprobs"]["tokens"]), 401)
            self.assertEqual(choice["logprobs"]["top_logprobs"][:400], answer["choices"][0]["logprobs"]["top_logprobs"][:400])
        self.assertLess(resident(self.server) - before, 200 << 20)

    def test_allowed_tokens_cost_no_list_per_sequence(self):
        answer = self.server.complete(prompt=[3], n=64, max_tokens=5, allowed_token_ids=[40, 41], ignore_eos=True, return_token_ids=True)
        for choice in answer["choices"]:
            self.assertLessEqual(set(choice["token_ids"]), {40, 41})
        both = self.server.complete(prompt=[3], max_tokens=8, structured_outputs={"regex": "[a-f]*"}, allowed_token_ids=list(range(3, 500)))
        self.assertRegex(both["choices"][0]["text"], "^[a-f]*$")

    def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenized(self):
        text = "a b c d " * 240_000
        for path, body in (("/v1/completions", {"prompt": text}), ("/v1/completions", {"prompt": ["x", text]}), ("/tokenize", {"prompt": text})):
            status, _, answer = self.server.request("POST", path, body)
            self.assertEqual(status, 400, path)
            message = json.loads(answer)["error"]["message"]
            self.assertRegex(message, "a text of 1920000 bytes cannot fit the context of 512 tokens, which have at most [0-9]+ bytes each")
        status, _, answer = self.server.request("POST", "/v1/completions", {"prompt": "a b " * 600})
        self.assertEqual(status, 400)
        self.assertIn("maximum context length is 512", json.loads(answer)["error"]["message"], "a text that could fit is tokenized")

    def test_echo_of_all_choices_of_a_stream_waits_for_the_scores(self):
        """Two long prompts are computed in parts: later choices have tokens before the first one's scores are there."""
        prompts = [[i % 400 + 3 + n for i in range(450)] for n in range(3)]
        fields = {"prompt": prompts, "n": 2, "echo": True, "logprobs": 0, "max_tokens": 5, "seed": 4, "ignore_eos": True}
        whole = self.server.complete(**fields)
        for _ in range(3):
            tokens = {n: [] for n in range(6)}
            for event in self.server.stream("/v1/completions", **fields):
                for choice in event["choices"]:
                    tokens[choice["index"]] += choice["logprobs"]["tokens"]
            for choice in whole["choices"]:
                self.assertEqual(tokens[choice["index"]], choice["logprobs"]["tokens"])


class Log(unittest.TestCase):
    def test_a_client_cannot_fill_it_with_fields_that_do_not_exist(self):
        server = Server(STORIES, quiet=False)
        for i in range(130):
            server.complete(prompt=[3], max_tokens=1, **{f"field {i % 120}": 1, "x" * 5000: 1})
        self.assertEqual(server.stop(), 0, server.output)
        lines = [line for line in server.output[1].splitlines() if "unknown fields are ignored" in line]
        self.assertEqual(len(lines), 99, "a hundred names, two of them in one line")
        for i in range(99):
            self.assertEqual(len(re.findall(rf"field {i}\b", server.output[1])), 1, i)
        self.assertLess(max(map(len, lines)), 400)


class Read(unittest.TestCase):
    def test_answers_that_were_read_are_freed_while_their_connections_stay(self):
        server = Server(STORIES)
        try:
            held, before = [], resident(server, "VmRSS")
            for _ in range(10):  # of about 20 MB
                held.append(HTTPConnection("127.0.0.1", server.port, timeout=60))
                held[-1].request("POST", "/v1/completions", json.dumps({"prompt": [3, 4] * 250, "n": 99, "echo": True, "logprobs": 20, "max_tokens": 1}))
                self.assertGreater(len(held[-1].getresponse().read()), 10 << 20)
            self.assertLess(resident(server, "VmRSS") - before, 100 << 20)
            for each in held:
                each.close()
        finally:
            self.assertEqual(server.stop(), 0, server.output)


class Unread(unittest.TestCase):
    def test_answers_that_nobody_reads_are_bounded_in_total(self):
        server = Server(STORIES)
        try:
            before, held = resident(server), []
            for _ in range(24):  # of about 20 MB
                held.append(send(server, prompt=[3, 4] * 250, n=99, echo=True, logprobs=20, max_tokens=1))
            statuses = [each.recv(12)[9:] for each in held]
            self.assertIn(b"503", statuses)
            self.assertIn(b"200", statuses)
            self.assertLess(resident(server) - before, 512 << 20)
            self.assertEqual(len(server.complete(prompt=[3], max_tokens=2)["choices"]), 1)
            for each in held:
                each.close()
        finally:
            self.assertEqual(server.stop(), 0, server.output)


class Keys(unittest.TestCase):
    def test_the_keys_name_is_the_salt_of_the_prefix_cache(self):
        with tempfile.TemporaryDirectory() as where:
            path, keys = os.path.join(where, "keys"), {"alice": "a" * 32, "bob": "b" * 32}
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
                file.writelines(f"{name} {key}\n" for name, key in keys.items())
            server = Server(STORIES, "--api-key-file", path)
            try:
                def cached(name, **more):
                    connection, body = HTTPConnection("127.0.0.1", server.port, timeout=60), dict(more, prompt=[5] * 200, max_tokens=1)
                    status, answer = answer_of(connection, "POST", "/v1/completions", body, {"Authorization": f"Bearer {keys[name]}"})
                    self.assertEqual(status, 200, answer)
                    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                self.assertEqual([cached("alice"), cached("bob")], [0, 0])
                self.assertGreater(min(cached("alice"), cached("bob")), 100)
                self.assertEqual(cached("bob", cache_salt="key alice"), 0)
                self.assertGreater(cached("alice", cache_salt="key alice"), 100)  # a common salt is shared
            finally:
                self.assertEqual(server.stop(), 0, server.output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
