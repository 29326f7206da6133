"""Scores and embeddings of troupe serve: serve_pooling_test.py PROGRAM SOURCE. Scores are compared with those of troupe score."""
import base64
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

from served import DIGITS, PROGRAM, STORIES, Server

ROWS = [{"prompt": "1,2:", "chosen": "3", "rejected": "1,2"}, {"prompt": "4,5:", "chosen": "6", "rejected": "9"}]


def trained(folder, algorithm, rows):
    """A reward model after two steps."""
    data, output = os.path.join(folder, "rows.jsonl"), os.path.join(folder, algorithm)
    with open(data, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    sets = {"train.batch_size": 2, "train.steps": 2, "train.threads": 1, "train.learning_rate": "1e-2"}
    subprocess.run([PROGRAM, "train", "--algorithm", algorithm, "--model", DIGITS, "--data", data, "--output", output, "--quiet",
                    *(word for key, value in sets.items() for word in ("--set", f"{key}={value}"))], check=True, timeout=120)
    return os.path.join(output, "latest"), data


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


class Rewards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model, cls.data = trained(cls.folder.name, "orm", ROWS)
        cls.server = Server(cls.model, "--served-model-name", "reward")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.output
        assert "/pooling" in cls.server.output[1], cls.server.output
        cls.folder.cleanup()

    def score(self, text):
        return self.server.post("/pooling", input=text)["data"][0]["data"][0]

    def test_scores_are_those_of_troupe_score(self):
        said = subprocess.run([PROGRAM, "score", "--model", self.model, "--data", self.data, "--quiet"], capture_output=True, text=True,
                              check=True)
        expected = json.loads(said.stdout)
        with open(os.path.join(self.model, "config.json"), encoding="utf-8") as file:
            end = self.server.post("/detokenize", tokens=[json.load(file)["eos_token_id"]])["prompt"]
        margins = [self.score(row["prompt"] + row["chosen"] + end) - self.score(row["prompt"] + row["rejected"] + end) for row in ROWS]
        self.assertAlmostEqual(sum(margins) / len(margins), expected["margin"], places=12)
        self.assertNotEqual(margins[0], 0)

    def test_texts_of_all_kinds(self):
        ids = self.server.post("/tokenize", prompt="1,2:3")["tokens"]
        whole = self.server.post("/pooling", input=["1,2:3", "4", "1,2:3"], model="reward")
        self.assertEqual([entry["index"] for entry in whole["data"]], [0, 1, 2])
        self.assertEqual(whole["usage"]["prompt_tokens"], 2 * len(ids) + len(self.server.post("/tokenize", prompt="4")["tokens"]))
        for text in ("1,2:3", ids, [ids]):
            self.assertEqual(self.server.post("/pooling", input=text)["data"][0]["data"], whole["data"][0]["data"])
        self.assertEqual(whole["data"][2]["data"], whole["data"][0]["data"])
        self.assertNotEqual(whole["data"][1]["data"], whole["data"][0]["data"])
        messages = [{"role": "user", "content": "1,2:"}, {"role": "assistant", "content": "3"}]
        tokens = self.server.post("/tokenize", messages=messages, add_generation_prompt=False)["tokens"]
        self.assertEqual(self.server.post("/pooling", messages=messages)["data"], self.server.post("/pooling", input=tokens)["data"])

    def test_classify_gives_probabilities(self):
        entry = self.server.post("/classify", input="1,2:3")["data"][0]
        self.assertEqual(entry["num_classes"], 1)
        self.assertAlmostEqual(entry["probs"][0], sigmoid(self.score("1,2:3")), places=12)
        self.assertEqual(self.server.post("/classify", input="1,2:3", use_activation=False)["data"][0]["probs"], [self.score("1,2:3")])

    def test_score_joins_two_texts(self):
        found = self.server.post("/score", text_1="1,2:", text_2=["3", "9"])["data"]
        self.assertEqual([entry["object"] for entry in found], ["score", "score"])
        for entry, text in zip(found, ("1,2:3", "1,2:9")):
            self.assertAlmostEqual(entry["score"], sigmoid(self.score(text)), places=12)
        pairs = self.server.post("/score", text_1=["1,2:", "4,5:"], text_2=["3", "6"])["data"]
        self.assertEqual(pairs[0]["score"], found[0]["score"])

    def test_mistakes_are_named(self):
        cases = [("/pooling", {}, "input"), ("/pooling", {"input": []}, "input"), ("/pooling", {"input": ["a", 5]}, "input[1]"),
                 ("/pooling", {"input": [1] * 3000}, "input"), ("/pooling", {"input": "1", "encoding_format": "byte"}, "encoding_format"),
                 ("/score", {"text_1": "1"}, "text_2"), ("/score", {"text_1": ["1", "2"], "text_2": ["1", "2", "3"]}, "text_2"),
                 ("/v1/embeddings", {"input": "1"}, None), ("/v1/completions", {"prompt": "1"}, None),
                 ("/v1/chat/completions", {"messages": [{"role": "user", "content": "1"}]}, None)]
        for path, body, param in cases:
            status, _, answer = self.server.request("POST", path, body)
            self.assertEqual((status, json.loads(answer)["error"]["param"]), (400, param), (path, body, answer))


class Steps(unittest.TestCase):
    def test_a_token_classifier_scores_every_token(self):
        rows = [{"prompt": "1,2:", "completions": ["3", "4"], "labels": [True, False]}] * 2
        with tempfile.TemporaryDirectory() as folder:
            model, _ = trained(folder, "prm", rows)
            server = Server(model)
            try:
                tokens = server.post("/tokenize", prompt="1,2:3")["tokens"]
                data = server.post("/pooling", input="1,2:3")["data"][0]["data"]
                self.assertEqual([len(row) for row in data], [2] * len(tokens))
                shares = server.post("/pooling", input="1,2:3", use_activation=True)["data"][0]["data"]
                for row, share in zip(data, shares):
                    self.assertAlmostEqual(share[1], sigmoid(row[1] - row[0]), places=12)
                self.assertEqual(server.request("POST", "/classify", {"input": "1"})[0], 400)
            finally:
                server.stop()


class Embeddings(unittest.TestCase):
    def test_embeddings_have_length_one(self):
        server = Server(STORIES, "--runner", "pooling")
        try:
            found = server.post("/v1/embeddings", input=["Once upon a time", "The end"])["data"]
            for entry in found:
                self.assertAlmostEqual(sum(value * value for value in entry["embedding"]), 1, places=5)
            self.assertNotEqual(found[0]["embedding"], found[1]["embedding"])
            coded = server.post("/v1/embeddings", input="Once upon a time", encoding_format="base64")["data"][0]["embedding"]
            values = base64.b64decode(coded, validate=True)
            self.assertEqual(list(struct.unpack(f"<{len(values) // 4}f", values)), found[0]["embedding"])
            hidden = server.post("/pooling", input="Once upon a time")["data"][0]["data"]
            length = math.sqrt(sum(value * value for value in hidden))
            for value, part in zip(hidden, found[0]["embedding"]):
                self.assertAlmostEqual(value / length, part, places=6)
            self.assertEqual(server.request("POST", "/classify", {"input": "1"})[0], 400)
            self.assertEqual(server.metric("vllm:num_requests_waiting"), 0)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_a_generating_server_names_the_option(self):
        server = Server(STORIES)
        try:
            status, _, body = server.request("POST", "/v1/embeddings", {"input": "a"})
            self.assertEqual(status, 400)
            self.assertIn("--runner pooling", json.loads(body)["error"]["message"])
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
