"""The fields of requests: serve_fields_test.py PROGRAM SOURCE. Every field of the recorded protocols of OpenAI, Anthropic, vLLM,
llama.cpp and SGLang acts, is without effect as the table says, or gets status 400 with its name."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from serve_pooling_test import ROWS, trained
from served import PROGRAM, SOURCE, STORIES, TOOLS, Server

PEERS = {"OpenAI": "openai", "Anthropic": "anthropic", "vLLM": "vllm", "llama.cpp": "llama.cpp", "SGLang": "sglang"}
# A request of each endpoint.
MESSAGES = [{"role": "user", "content": "Hi."}]
BODIES = {"/v1/completions": {"prompt": "Once", "max_tokens": 1}, "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 1},
          "/tokenize": {"prompt": "Once"}, "/detokenize": {"tokens": [3, 4]}, "/pooling": {"input": "1,2:"}, "/classify": {"input": "1,2:"},
          "/score": {"text_1": "1,2:", "text_2": "3"}, "/rerank": {"query": "1,2:", "documents": ["3", "4"]}, "/v1/embeddings": {"input": "Once"},
          "/v1/responses": {"input": "Hi.", "max_output_tokens": 1}, "/v1/messages": {"messages": MESSAGES, "max_tokens": 1},
          "/v1/messages/count_tokens": {"messages": MESSAGES}, "/apply-template": {"messages": MESSAGES}}
NEEDED = {"/v1/completions": {"prompt"}, "/v1/chat/completions": {"messages"}, "/tokenize": {"prompt"}, "/detokenize": {"tokens"},
          "/pooling": {"input"}, "/classify": {"input"}, "/score": {"text_1", "text_2"}, "/rerank": {"query", "documents"},
          "/v1/embeddings": {"input"}, "/v1/responses": {"input"}, "/v1/messages": {"messages", "max_tokens"},
          "/v1/messages/count_tokens": {"messages"}, "/apply-template": {"messages"}}
# Values that fields have when they are absent, by the protocols.
ABSENT = {"tools": [], "logit_bias": {}, "stop": [], "stop_sequences": [], "stop_token_ids": [], "metadata": {}, "include": [], "text": {},
          "reasoning": {}, "stream": False, "parallel_tool_calls": True, "include_reasoning": True, "top_p": 1, "n": 1, "top_k": -1, "min_p": 0,
          "typical_p": 1, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "min_tokens": 0, "ignore_eos": False,
          "skip_special_tokens": True, "include_stop_str_in_output": False, "output_config": {}, "bad_words": [], "grammar": "", "regex": "",
          "ebnf": "", "json_schema": "", "chat_template_kwargs": {}, "documents": [], "truncation_side": "left", "logprobs": False,
          "top_logprobs": 0, "response_format": {"type": "text"}, "tool_choice": "none", "return_token_ids": False, "echo": False, "best_of": 1,
          "continue_final_message": False, "encoding_format": "float", "embed_dtype": "float32", "endianness": "native", "top_n": 0}
ODD = (5, "zz", {"x": 1}, [[]], True)
PLANTED = ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/apply-template", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens")
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
        cls.servers = {path: text for path in ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/v1/responses", "/v1/messages",
                                                "/v1/messages/count_tokens", "/apply-template")}
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
        """The status and the error, in OpenAI's form. Errors of Anthropic's form begin with the field."""
        status, _, answer = self.servers[path].request("POST", path, body)
        if status == 200:
            return status, {}
        error = json.loads(answer)["error"]
        if "param" not in error:
            error["param"] = re.match(r"[\w.]*", error["message"])[0]
            error["code"] = "unsupported_parameter" if "is not supported" in error["message"] else None
        return status, error

    def test_null_is_as_good_as_absent(self):
        for path, table in self.tables.items():
            body = dict({name: None for name in table if name not in NEEDED[path]}, **BODIES[path])
            self.assertEqual(self.answer(path, body), (200, {}), path)

    def test_a_value_as_when_absent_is_accepted(self):
        tried = 0
        for path, table in self.tables.items():
            for name, (_, effect, _) in table.items():
                if effect != "acts" or name not in ABSENT or name in NEEDED[path] | {"messages"}:
                    continue
                value = {"type": "none"} if name == "tool_choice" and "/messages" in path else ABSENT[name]
                value = None if name == "logprobs" and path == "/v1/completions" else value
                body = {"messages": MESSAGES} if name in OF_CONVERSATIONS and "messages" in table and path[:4] != "/v1/" else BODIES[path]
                if name == "documents" and path in ("/score", "/rerank"):
                    continue
                self.assertEqual(self.answer(path, dict(body, **{name: value})), (200, {}), (path, name))
                tried += 1
        self.assertGreater(tried, 140)

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
                if name in OF_CONVERSATIONS | {"messages"} and table.get("messages", "")[1:2] == ("acts",):
                    body = dict({key: value for key, value in body.items() if key not in ("prompt", "input")}, messages=MESSAGES)
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
        for path in PLANTED:
            for _ in range(2):
                planted = {"planted_" + path.replace("/", "_"): 1, "planted_everywhere": [2]}
                status, _, body = server.request("POST", path, dict(BODIES[path], **planted))
                self.assertEqual(status, 200, body)
        process.terminate()
        said = process.communicate(timeout=60)[1]
        for path in PLANTED:
            self.assertEqual(len(re.findall("planted_" + path.replace("/", "_") + r"\b", said)), 1, said)
        self.assertEqual(said.count("planted_everywhere"), 1, said)
        self.assertEqual(said.count("unknown fields"), len(PLANTED), said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
