"""The fields of requests: serve_fields_test.py PROGRAM SOURCE. Every field of the recorded protocols of OpenAI, vLLM, llama.cpp and
SGLang acts, is without effect as the table says, or gets status 400 with its name."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from serve_pooling_test import ROWS, trained
from served import PROGRAM, SOURCE, STORIES, TOOLS, Server

PEERS = {"OpenAI": "openai", "vLLM": "vllm", "llama.cpp": "llama.cpp", "SGLang": "sglang"}
# A request of each endpoint.
MESSAGES = [{"role": "user", "content": "Hi."}]
BODIES = {"/v1/completions": {"prompt": "Once", "max_tokens": 1}, "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 1},
          "/tokenize": {"prompt": "Once"}, "/detokenize": {"tokens": [3, 4]}, "/pooling": {"input": "1,2:"}, "/classify": {"input": "1,2:"},
          "/score": {"text_1": "1,2:", "text_2": "3"}, "/rerank": {"query": "1,2:", "documents": ["3", "4"]}, "/v1/embeddings": {"input": "Once"}}
NEEDED = {"/v1/completions": {"prompt"}, "/v1/chat/completions": {"messages"}, "/tokenize": {"prompt"}, "/detokenize": {"tokens"},
          "/pooling": {"input"}, "/classify": {"input"}, "/score": {"text_1", "text_2"}, "/rerank": {"query", "documents"},
          "/v1/embeddings": {"input"}}
ODD = (5, "zz", {"x": 1}, [[]], True)
# Read with a conversation only.
OF_CONVERSATIONS = {"tools", "tool_choice", "parallel_tool_calls", "reasoning_effort", "chat_template_kwargs", "add_generation_prompt",
                    "continue_final_message", "documents"}


def tables(page):
    """{endpoint: {field: (peers, effect, the value when absent)}} of the page."""
    found = {}
    for part in page.split("\n## ")[1:]:
        path, effect = part.split("\n", 1)[0], "acts"
        for line in part.splitlines():
            effect = {"Without effect:": "without effect", "Refused:": "refused"}.get(line, effect)
            row = re.fullmatch(r"\| `(\w+)` \| ([^|]*) \| (.*) \|", line)
            if not row:
                continue
            absent = re.search(r"\| `([^`]*)`$", row[3]) if effect == "refused" else None
            peers = {PEERS[each] for each in row[2].split(", ") if each}
            found.setdefault(path, {})[row[1]] = (peers, effect, json.loads(absent[1]) if absent else None)
    return found


def recorded():
    """{endpoint: {field: peers}}."""
    found = {}
    for peer in PEERS.values():
        with open(os.path.join(SOURCE, "tests/data/protocols", peer + ".json"), encoding="utf-8") as file:
            for path, names in json.load(file)["endpoints"].items():
                for name in names:
                    found.setdefault(path, {}).setdefault(name, set()).add(peer)
    return found


class Fields(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = subprocess.run([PROGRAM, "explain", "--request-fields"], capture_output=True, text=True, check=True).stdout
        cls.tables, cls.recorded = tables(cls.page), recorded()
        cls.folder = tempfile.TemporaryDirectory()
        reward, _ = trained(cls.folder.name, "orm", ROWS)
        text, scores, vectors = Server(STORIES, "--template", TOOLS), Server(reward), Server(STORIES, "--runner", "pooling")
        cls.all = [text, scores, vectors]
        cls.servers = {path: text for path in ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize")}
        cls.servers.update({path: scores for path in ("/pooling", "/classify", "/score", "/rerank")}, **{"/v1/embeddings": vectors})

    @classmethod
    def tearDownClass(cls):
        assert [server.stop() for server in cls.all] == [0, 0, 0]
        cls.folder.cleanup()

    def test_the_page_is_that_of_the_program(self):
        with open(os.path.join(SOURCE, "docs/request-fields.md"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.page, "run tests/docs/update_generated.sh build/release/troupe")

    def test_the_tables_have_the_recorded_fields(self):
        self.assertEqual(set(self.tables), set(self.recorded))
        for path, fields in self.recorded.items():
            self.assertGreater(len(fields), 2)
            for name, peers in fields.items():
                self.assertIn(name, self.tables[path], path)
                self.assertLessEqual(peers, self.tables[path][name][0], (path, name))
        for path, table in self.tables.items():
            for name, (peers, _, _) in table.items():
                known = set().union(*(fields.get(name, set()) for fields in self.recorded.values()))
                self.assertLessEqual(peers, known, (path, name))

    def answer(self, path, body):
        status, _, answer = self.servers[path].request("POST", path, body)
        return status, json.loads(answer).get("error", {}) if not answer.startswith(b"data:") else {}

    def test_null_is_as_good_as_absent(self):
        for path, table in self.tables.items():
            body = dict({name: None for name in table if name not in NEEDED[path]}, **BODIES[path])
            self.assertEqual(self.answer(path, body), (200, {}), path)

    def test_refused_fields_are_named(self):
        for path, table in self.tables.items():
            for name, (_, effect, absent) in table.items():
                if effect != "refused":
                    continue
                values = [value for value in ODD if value != absent and not (absent == 1 and value is True)]
                for value in values:
                    status, error = self.answer(path, dict(BODIES[path], **{name: value}))
                    self.assertEqual((status, error["param"], error["code"]), (400, name, "unsupported_parameter"), (path, value, error))
                    self.assertIn(name, error["message"])
            absents = {name: absent for name, (_, effect, absent) in table.items() if effect == "refused"}
            self.assertEqual(self.answer(path, dict(BODIES[path], **absents)), (200, {}), path)

    def test_fields_without_effect_take_any_value(self):
        for path, table in self.tables.items():
            names = [name for name, (_, effect, _) in table.items() if effect == "without effect"]
            for value in ODD:
                self.assertEqual(self.answer(path, dict(BODIES[path], **{name: value for name in names})), (200, {}), (path, value))

    def test_acting_fields_are_read(self):
        """A value that a field cannot have gets 400 with its name."""
        tried = 0
        for path, table in self.tables.items():
            for name, (_, effect, _) in table.items():
                if effect != "acts" or (name == "documents" and path not in ("/score", "/rerank")):
                    continue  # templates take any documents
                body = BODIES[path]
                if name in OF_CONVERSATIONS | {"messages"} and "messages" in table:
                    body = {"messages": MESSAGES}
                errors = [self.answer(path, dict(body, **{name: value})) for value in ODD]
                named = [error for status, error in errors if status in (400, 404) and re.match(rf"{name}\b", error["param"] or "")]
                self.assertTrue(named, (path, name, errors))
                tried += 1
        self.assertGreater(tried, 150)

    def test_unknown_fields_are_named_once(self):
        process = subprocess.Popen([PROGRAM, "serve", "--model", STORIES, "--port", "0", "--threads", "1"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        server = Server.__new__(Server)
        server.port = int(re.search(r":(\d+)\n", process.stdout.readline())[1])
        for path in ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"):
            for _ in range(2):
                planted = {"planted_" + path.replace("/", "_"): 1, "planted_everywhere": [2]}
                status, _, body = server.request("POST", path, dict(BODIES[path], **planted))
                self.assertEqual(status, 200, body)
        process.terminate()
        said = process.communicate(timeout=60)[1]
        for path in ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"):
            self.assertEqual(said.count("planted_" + path.replace("/", "_")), 1, said)
        self.assertEqual(said.count("planted_everywhere"), 1, said)
        self.assertEqual(said.count("unknown fields"), 4, said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
