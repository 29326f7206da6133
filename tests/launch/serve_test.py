"""troupe serve with Python's HTTP client: serve_test.py PROGRAM SOURCE. Tokens and numbers are compared with `troupe generate` and
`troupe logprobs`."""
import concurrent.futures
import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest

from served import DIGITS, PROGRAM, SOURCE, STORIES, TOOLS, Server, run


class Stories(unittest.TestCase):
    """A language model of stories."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, (code, cls.server.output)
        assert "curl http://127.0.0.1" in cls.server.output[1], cls.server.output
        assert re.search(r"cache of [1-9]\d* tokens", cls.server.output[1]), cls.server.output

    def tearDown(self):
        self.assertEqual(self.server.metric("vllm:kv_cache_usage_perc"), 0)

    def test_models_and_probes(self):
        models = json.loads(self.server.get("/v1/models"))
        self.assertEqual([m["id"] for m in models["data"]], [STORIES])
        self.assertEqual(models["data"][0]["max_model_len"], 512)
        for path in ("/health", "/livez", "/readyz"):
            self.server.get(path)
        self.assertRegex(json.loads(self.server.get("/version"))["version"], r"\d+\.\d+")
        self.assertEqual(self.server.request("GET", "/v1/models/other%2")[0], 404)
        self.assertEqual(json.loads(self.server.get("/v1/models/" + STORIES.replace("/", "%2F")))["id"], STORIES)

    def test_a_known_beginning_of_a_prompt_is_not_computed_again(self):
        settings = {"max_tokens": 8, "seed": 3, "logprobs": 2}
        prompt = "Once upon a time there was a girl named Lily who could not find her blue ball. " * 4
        found, hits = [], [self.server.metric("vllm:prefix_cache_hits_total")]
        for _ in range(2):
            found.append(self.server.complete(prompt=prompt, **settings))
            hits.append(self.server.metric("vllm:prefix_cache_hits_total"))
        self.assertEqual(found[0]["choices"], found[1]["choices"])
        cached = [one["usage"]["prompt_tokens_details"]["cached_tokens"] for one in found]
        tokens = found[0]["usage"]["prompt_tokens"]
        self.assertEqual(cached[1], (tokens - 1) // 16 * 16)
        self.assertEqual([hits[1] - hits[0], hits[2] - hits[1]], cached)
        end = self.server.stream("/v1/completions", prompt=prompt, stream_options={"include_usage": True}, **settings)[-1]
        self.assertEqual(end["usage"], found[1]["usage"])
        self.assertGreaterEqual(self.server.metric("vllm:prefix_cache_queries_total"), 3 * tokens)

    def test_salts_separate_cached_prompts(self):
        fields = {"prompt": "There was a boy named Tim who liked to play with his red car. " * 4, "max_tokens": 4, "seed": 3}

        def cached(**more):
            answer = self.server.complete(**fields, **more)
            texts.add(answer["choices"][0]["text"])
            return answer["usage"]["prompt_tokens_details"]["cached_tokens"]

        texts = set()
        self.assertEqual([cached(cache_salt="one"), cached(cache_salt="two"), cached()], [0, 0, 0])
        self.assertGreater(min(cached(cache_salt="one"), cached(cache_salt="two"), cached()), 32)
        self.assertEqual(len(texts), 1)

    def test_drafts_change_nothing(self):
        prompt = "The cat sat. The dog sat. The cat sat. The dog"
        settings = {"seed": 5, "max_tokens": 60, "temperature": 0.5}
        fields = dict(settings, prompt=prompt, n=2, logprobs=2, return_token_ids=True)
        expected = self.server.complete(**fields)["choices"]
        for options in (["--lookup", "6", "--no-prefix-cache"], ["--draft", STORIES, "--draft-tokens", "3"]):
            server = Server(STORIES, *options)
            try:
                self.assertEqual(server.complete(**fields)["choices"], expected)
                self.assertEqual(server.complete(**fields)["choices"], expected)
                self.assertEqual(server.metric("vllm:prefix_cache_queries_total") == 0, "--no-prefix-cache" in options)
                accepted, drafted = (server.metric(f"vllm:spec_decode_num_{name}_tokens_total") for name in ("accepted", "draft"))
                self.assertGreater(accepted, 0)
                self.assertEqual(drafted == accepted, "--draft" in options)  # a model's draft of itself is right
            finally:
                self.assertEqual(server.stop(), 0)
            command = ["generate", "--model", STORIES, *(each for each in options if each != "--no-prefix-cache")]
            lines = run(command, dict(settings, prompt=prompt, num_return_sequences=2))
            self.assertEqual([each["ids"] for each in lines[0]["samples"]], [each["token_ids"] for each in expected])

    def test_a_draft_model_with_another_vocabulary_is_refused(self):
        said = subprocess.run([PROGRAM, "serve", "--model", STORIES, "--draft", DIGITS], capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 2, said.stderr)
        self.assertIn("the draft model's vocabulary has", said.stderr)

    def test_tokens_are_those_of_generate(self):
        settings = {"temperature": 0.9, "top_p": 0.95, "seed": 17, "max_tokens": 24}
        expected = run(["generate", "--model", STORIES], dict(settings, prompt="Once upon a time", num_return_sequences=3,
                                                              top_logprobs=2))[0]["samples"]
        found = self.server.complete(prompt="Once upon a time", n=3, logprobs=2, return_token_ids=True, return_weight_versions=True,
                                     model=STORIES, **settings)
        self.assertEqual(len(found["choices"]), 3)
        for index, (choice, sample) in enumerate(zip(found["choices"], expected)):
            self.assertEqual(choice["index"], index)
            self.assertEqual(choice["token_ids"], sample["ids"])
            self.assertEqual(choice["text"], sample["text"])
            self.assertEqual(choice["finish_reason"], sample["finish_reason"])
            self.assertEqual(choice["logprobs"]["token_logprobs"], sample["logprobs"])
            self.assertEqual(choice["weight_versions"], [0] * len(sample["ids"]))
            for tops, alternatives in zip(choice["logprobs"]["top_logprobs"], sample["top_logprobs"]):
                self.assertEqual(sorted(tops.values(), reverse=True)[:2], [each["logprob"] for each in alternatives])
        total = sum(len(sample["ids"]) for sample in expected)
        self.assertEqual(found["usage"]["completion_tokens"], total)
        self.assertEqual(found["usage"]["total_tokens"], total + found["usage"]["prompt_tokens"])

    def test_64_concurrent_requests_get_the_tokens_of_generate(self):
        lines = [{"prompt": f"One day, {name} went to the", "seed": seed, "temperature": 1.0, "max_tokens": 8 + seed % 5}
                 for seed, name in enumerate(["Tim", "Lily", "a dog", "the cat"] * 16)]
        expected = run(["generate", "--model", STORIES], *lines)
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            found = list(pool.map(lambda line: self.server.complete(return_token_ids=True, **line), lines))
        self.assertEqual([each["choices"][0]["token_ids"] for each in found], [each["ids"] for each in expected])

    def test_a_stream_has_the_text_of_the_whole_answer(self):
        settings = {"prompt": "Once", "seed": 3, "temperature": 1.0, "n": 2, "max_tokens": 20, "logprobs": 1, "return_token_ids": True,
                    "stop": ["was", "\n"]}
        whole = self.server.complete(**settings)
        events = self.server.stream("/v1/completions", stream_options={"include_usage": True}, **settings)
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"], whole["usage"])
        for choice in whole["choices"]:
            mine = [event["choices"][0] for event in events[:-1] if event["choices"][0]["index"] == choice["index"]]
            self.assertEqual("".join(each["text"] for each in mine), choice["text"])
            self.assertEqual([id for each in mine for id in each["token_ids"]], choice["token_ids"])
            for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
                self.assertEqual([x for each in mine for x in each["logprobs"][key]], choice["logprobs"][key])
            self.assertEqual([each["finish_reason"] for each in mine], [None] * (len(mine) - 1) + [choice["finish_reason"]])

    def test_stop_strings_end_the_text(self):
        free = self.server.complete(prompt="Once upon a time", temperature=0, max_tokens=40)["choices"][0]
        word = free["text"].split()[5]
        cut = self.server.complete(prompt="Once upon a time", temperature=0, max_tokens=40, stop=word)["choices"][0]
        self.assertEqual(cut["text"], free["text"][:free["text"].index(word)])
        self.assertEqual((cut["finish_reason"], cut["stop_reason"]), ("stop", word))
        kept = self.server.complete(prompt="Once upon a time", temperature=0, max_tokens=40, stop=[word],
                                    include_stop_str_in_output=True)["choices"][0]
        self.assertEqual(kept["text"], cut["text"] + word)
        pieces = self.server.stream("/v1/completions", prompt="Once upon a time", temperature=0, max_tokens=40, stop=word)
        self.assertEqual("".join(event["choices"][0]["text"] for event in pieces), cut["text"])

    def test_scores_of_prompts_are_those_of_logprobs(self):
        items = [[1] + [(7 * n + 3 * t) % 500 + 3 for t in range(2 + n % 30)] for n in range(200)]
        expected = run(["logprobs", "--model", STORIES], *({"ids": ids} for ids in items))
        for max_tokens in (0, 1):
            found = self.server.complete(prompt=items, echo=True, logprobs=1, max_tokens=max_tokens, temperature=0,
                                         return_tokens_as_token_ids=True)["choices"]
            for choice, ids, score in zip(found, items, expected):
                logprobs = choice["logprobs"]
                self.assertEqual(logprobs["token_logprobs"][:len(ids)], score["logprobs"])
                self.assertEqual(logprobs["tokens"][:len(ids)], [f"token_id:{id}" for id in ids])
                self.assertEqual(len(logprobs["tokens"]), len(ids) + max_tokens)
                self.assertIsNone(logprobs["top_logprobs"][0])
                for own, tops in zip(logprobs["token_logprobs"][1:], logprobs["top_logprobs"][1:]):
                    self.assertIn(own, tops.values())
                    self.assertLessEqual(len(tops), 2)

    def test_prompt_logprobs(self):
        ids = [1, 403, 407, 261]
        expected = run(["logprobs", "--model", STORIES], {"ids": ids})[0]["logprobs"]
        found = self.server.complete(prompt=ids, prompt_logprobs=2, max_tokens=1)["choices"][0]["prompt_logprobs"]
        self.assertIsNone(found[0])
        self.assertEqual([entry[str(id)]["logprob"] for entry, id in zip(found[1:], ids[1:])], expected[1:])
        self.assertEqual([min(e["rank"] for e in entry.values()) for entry in found[1:]], [1, 1, 1])

    def test_prompts_of_all_kinds(self):
        text = "Tim had a"
        ids = self.server.post("/tokenize", prompt=text)["tokens"]
        answers = [self.server.complete(prompt=prompt, seed=5, temperature=1.0)["choices"]
                   for prompt in (text, [text, text], ids, [ids, ids])]
        self.assertEqual([len(choices) for choices in answers], [1, 2, 1, 2])
        self.assertEqual(len({choice["text"] for choices in answers for choice in choices}), 1)
        self.assertEqual(self.server.complete(prompt=ids, echo=True, temperature=0)["choices"][0]["text"],
                         self.server.complete(prompt=text, echo=True, temperature=0)["choices"][0]["text"])

    def test_sampling_settings(self):
        def ids(**fields):
            return self.server.complete(prompt="Lily", return_token_ids=True, max_tokens=6, **fields)["choices"][0]["token_ids"]
        greedy = ids(temperature=0)
        self.assertEqual(ids(top_k=1, seed=9), greedy)
        self.assertEqual(ids(min_p=1.0), greedy)
        self.assertEqual(ids(allowed_token_ids=[400]), [400] * 6)
        self.assertLessEqual(set(ids(allowed_token_ids=[300, 400], temperature=1.5)), {300, 400})
        self.assertEqual(ids(temperature=0, logit_bias={"300": 100}), [300] * 6)
        self.assertEqual(ids(temperature=0, stop_token_ids=[greedy[2]]), greedy[:3])
        self.assertGreaterEqual(len(ids(temperature=0, stop_token_ids=[greedy[2]], min_tokens=5)), 5)
        self.assertEqual(len(ids(temperature=0, logit_bias={"2": 100})), 1)
        self.assertEqual(ids(temperature=0, logit_bias={"2": 100}, ignore_eos=True), [2] * 6)
        self.assertNotEqual(ids(temperature=1.5), ids(temperature=1.5))

    def test_penalties_are_those_of_generate(self):
        base = {"prompt": "Lily", "temperature": 0, "max_tokens": 60}
        lines = [base, dict(base, presence_penalty=1.5), dict(base, frequency_penalty=0.5), dict(base, repetition_penalty=1.3)]
        expected = [each["ids"] for each in run(["generate", "--model", STORIES], *lines)]
        found = [self.server.complete(return_token_ids=True, **line)["choices"][0]["token_ids"] for line in lines]
        self.assertEqual(found, expected)
        self.assertEqual(len({tuple(each) for each in found}), 4)

    def test_best_of_returns_the_most_likely(self):
        def sums(**fields):
            answer = self.server.complete(prompt="Lily", seed=1, temperature=1.5, logprobs=0, stop=["a"], **fields)
            rows = [choice["logprobs"]["token_logprobs"] for choice in answer["choices"]]
            self.assertEqual(answer["usage"]["completion_tokens"], sum(map(len, rows)))
            return [sum(row) for row in rows]
        self.assertEqual(sums(n=2, best_of=8), sorted(sums(n=8), reverse=True)[:2])

    def test_mistakes_are_named(self):
        cases = [({"prompt": 5}, "prompt"), ({}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": [1, "a"]}, "prompt[1]"),
                 ({"prompt": [1, 512]}, "prompt[1]"), ({"prompt": ["a", [1]]}, "prompt[1]"), ({"prompt": "a", "n": 0}, "n"),
                 ({"prompt": "a", "temperature": -1}, "temperature"), ({"prompt": "a", "temperature": "hot"}, "temperature"),
                 ({"prompt": "a", "top_p": 0}, "top_p"), ({"prompt": "a", "max_tokens": 600}, "prompt"),
                 ({"prompt": "a", "max_tokens": 1.5}, "max_tokens"), ({"prompt": "a", "logit_bias": {"x": 1}}, "logit_bias"),
                 ({"prompt": "a", "logprobs": 21}, "logprobs"), ({"prompt": "a", "stream_options": {}}, "stream_options"),
                 ({"prompt": "a", "best_of": 1, "n": 2}, "best_of"), ({"prompt": "a", "suffix": "b"}, "suffix"),
                 ({"prompt": "a", "guided_regex": "a**"}, "guided_regex"), ({"prompt": "a", "min_tokens": 17}, "min_tokens"),
                 ({"prompt": "a", "response_format": {"type": "xml"}}, "response_format"),
                 ({"prompt": "a", "response_format": {"type": "json_schema"}}, "response_format.json_schema"),
                 ({"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}},
                  "response_format.json_schema.schema"),
                 ({"prompt": "a", "structured_outputs": {"regex": "(?=a)"}}, "structured_outputs.regex"),
                 ({"prompt": "a", "structured_outputs": {"json": "{"}}, "structured_outputs.json"),
                 ({"prompt": "a", "structured_outputs": {"choice": []}}, "structured_outputs.choice"),
                 ({"prompt": "a", "structured_outputs": {"grammar": "a"}}, "structured_outputs.grammar"),
                 ({"prompt": "a", "structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs.choice"),
                 ({"prompt": "a", "structured_outputs": {"tag": "a"}}, "structured_outputs.tag"),
                 ({"prompt": "a", "guided_choice": ["a", 5]}, "guided_choice"),
                 ({"prompt": "a", "cache_salt": ""}, "cache_salt"), ({"prompt": "a", "cache_salt": "x" * 257}, "cache_salt"),
                 ({"prompt": [3] * 512}, "prompt"), ({"prompt": "a", "stop": ["b", 3]}, "stop[1]")]
        for body, param in cases:
            status, _, answer = self.server.request("POST", "/v1/completions", body)
            error = json.loads(answer)["error"]
            self.assertEqual((status, error["param"]), (400, param), (body, error))
            self.assertEqual(error["type"], "invalid_request_error")
        for raw in (b"", b"{", b"[]", b"null", b'{"prompt":"a","prompt":"b"}', b'{"prompt":"\xff"}', b"[" * 100000):
            self.assertEqual(self.server.request("POST", "/v1/completions", raw)[0], 400, raw[:40])
        self.assertEqual(self.server.request("POST", "/v1/completions", {"prompt": "a", "model": "other"})[0], 404)
        self.assertEqual(self.server.request("POST", "/v1/embeddings", {"input": "a"})[0], 400)
        self.assertEqual(self.server.request("GET", "/v1/completions")[0], 405)
        self.assertEqual(self.server.request("GET", "/nothing")[0], 404)
        self.server.complete(prompt="a", unknown_field=1, user="me")

    def test_a_row_without_tokens_to_sample_fails_alone(self):
        body = {"prompt": "a", "allowed_token_ids": [2], "min_tokens": 3, "max_tokens": 5}
        status, _, answer = self.server.request("POST", "/v1/completions", body)
        self.assertEqual(status, 400, answer)
        self.assertIn("ban every token", json.loads(answer)["error"]["message"])

    def test_tokenize_and_detokenize(self):
        found = self.server.post("/tokenize", prompt="Once upon", return_token_strs=True)
        self.assertEqual(found["count"], len(found["tokens"]))
        self.assertEqual(len(found["token_strs"]), found["count"])
        self.assertEqual(found["tokens"], run(["tokenize", "--model", STORIES, "--special"], {"text": "Once upon"})[0]["ids"])
        plain = self.server.post("/tokenize", prompt="Once upon", add_special_tokens=False)["tokens"]
        self.assertEqual(self.server.post("/detokenize", tokens=plain)["prompt"], "Once upon")

    def test_a_disconnected_client_frees_its_pages(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "n": 8, "max_tokens": 500, "ignore_eos": True,
                                                                  "stream": True}))
        connection.getresponse().read(100)
        connection.close()
        deadline = time.monotonic() + 5
        while self.server.metric("vllm:kv_cache_usage_perc") > 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)


SCHEMA = {"type": "object", "required": ["name", "tags"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 6},
    "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "tags": {"type": "array", "items": {"enum": ["a\"b", "\u00e9", None, 1.5]}, "minItems": 1, "maxItems": 3},
    "inner": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}}}


class Constraints(unittest.TestCase):
    """Outputs that a request describes."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.metric("vllm:kv_cache_usage_perc") == 0
        assert cls.server.stop() == 0, cls.server.output

    def choices(self, **fields):
        settings = dict({"prompt": "Once", "seed": 5, "temperature": 2.0, "n": 24, "max_tokens": 200}, **fields)
        return self.server.complete(**settings)["choices"]

    def check(self, text):
        value = json.loads(text)
        self.assertLessEqual({"name", "tags"}, set(value))
        self.assertLessEqual(set(value), {"name", "age", "tags", "inner"})
        self.assertTrue(1 <= len(value["name"]) <= 6, value)
        self.assertTrue(0 <= value.get("age", 0) <= 120, value)
        self.assertTrue(1 <= len(value["tags"]) <= 3, value)
        self.assertTrue(all(tag in ['a"b', "\u00e9", None, 1.5] for tag in value["tags"]), value)
        self.assertIn(value.get("inner", {"ok": True})["ok"], (True, False))

    def test_every_output_is_an_instance_of_the_schema(self):
        format = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
        found = [self.choices(response_format=format), self.choices(structured_outputs={"json": SCHEMA}),
                 self.choices(guided_json=json.dumps(SCHEMA))]
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        for choice in found[0]:
            self.assertEqual(choice["finish_reason"], "stop")
            self.check(choice["text"])
        self.assertGreater(len({choice["text"] for choice in found[0]}), 20)

    def test_a_truncated_output_says_so(self):
        for choice in self.choices(structured_outputs={"json": SCHEMA}, max_tokens=12):
            self.assertEqual(choice["finish_reason"], "length")
            self.assertTrue('{"name":'.startswith(choice["text"][:8].replace(" ", "")), choice)

    def test_expressions_choices_and_grammars(self):
        for choice in self.choices(structured_outputs={"regex": "[A-F]{2}-(\\d{1,3}|\u00e9+!)"}):
            if choice["finish_reason"] == "stop":
                self.assertRegex(choice["text"], "^[A-F]{2}-(\\d{1,3}|\u00e9+!)$")
        found = {(choice["text"], choice["finish_reason"]) for choice in self.choices(guided_choice=["yes", "no", " perhaps"])}
        self.assertLessEqual(found, {("yes", "stop"), ("no", "stop"), (" perhaps", "stop")})
        self.assertGreater(len(found), 1)
        for choice in self.choices(structured_outputs={"grammar": 'root ::= "[" (root ("," root)?)? "]"'}):
            if choice["finish_reason"] == "stop":
                json.loads(choice["text"])
        for choice in self.choices(response_format={"type": "json_object"}, temperature=0.8):
            if choice["finish_reason"] == "stop":
                self.assertIsInstance(json.loads(choice["text"]), dict)

    def test_a_text_after_an_empty_one_keeps_its_spaces(self):
        # Decoding drops the space at the beginning of a text, which follows the prompt of BOS alone.
        for choice in self.choices(prompt=[1], structured_outputs={"regex": " ?a| ?b"}):
            self.assertIn(choice["text"], ("a", "b"))

    def test_a_stream_has_the_text_of_the_whole_answer(self):
        settings = {"prompt": "Once", "seed": 9, "max_tokens": 200, "structured_outputs": {"json": SCHEMA}}
        whole = self.server.complete(**settings)["choices"][0]
        events = self.server.stream("/v1/completions", **settings)
        self.assertEqual("".join(event["choices"][0]["text"] for event in events), whole["text"])
        self.check(whole["text"])

    def test_an_unsupported_keyword_is_named(self):
        schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
        status, _, body = self.server.request("POST", "/v1/completions", {"prompt": "a", "guided_json": schema})
        self.assertEqual(status, 400, body)
        self.assertIn('#/properties/a: uniqueItems is supported for lists of at most one element', json.loads(body)["error"]["message"])

    def test_a_request_at_a_limit_fails_alone(self):
        regex = "(%s)x" % "|".join("(.?){0,%d}q%d" % (n, n) for n in range(1, 600))
        hostile = {"prompt": "a", "max_tokens": 400, "structured_outputs": {"regex": regex}}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answer = pool.submit(self.server.request, "POST", "/v1/completions", hostile)
            honest = pool.submit(self.choices, guided_choice=["yes"])
            self.assertEqual(honest.result()[0]["text"], "yes")
        status, _, body = answer.result()
        self.assertEqual(status, 400, body)
        self.assertIn("simplify it", json.loads(body)["error"]["message"])


class Digits(unittest.TestCase):
    """Conversations."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(DIGITS, "--served-model-name", "digits")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    messages = [{"role": "user", "content": "4,5,6:"}]

    def test_an_answer_is_that_of_generate(self):
        expected = run(["generate", "--model", DIGITS], {"messages": self.messages, "temperature": 0.8, "seed": 4, "max_tokens": 12,
                                                         "top_logprobs": 3})[0]
        found = self.server.chat(messages=self.messages, temperature=0.8, seed=4, max_completion_tokens=12, logprobs=True,
                                 top_logprobs=3, return_token_ids=True, model="digits")
        choice = found["choices"][0]
        self.assertEqual(found["object"], "chat.completion")
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertEqual(choice["message"]["content"], expected["text"])
        self.assertEqual(choice["token_ids"], expected["ids"])
        self.assertEqual([each["logprob"] for each in choice["logprobs"]["content"]], expected["logprobs"])
        self.assertEqual([[top["logprob"] for top in each["top_logprobs"]] for each in choice["logprobs"]["content"]],
                         [[top["logprob"] for top in each] for each in expected["top_logprobs"]])
        self.assertEqual(found["usage"]["prompt_tokens"], len(found["prompt_token_ids"]))

    def test_a_stream_has_the_text_of_the_whole_answer(self):
        settings = {"messages": self.messages, "seed": 4, "max_tokens": 12}
        whole = self.server.chat(**settings)["choices"][0]
        events = [event["choices"][0] for event in self.server.stream("/v1/chat/completions", **settings)]
        self.assertEqual(events[0]["delta"]["role"], "assistant")
        self.assertEqual("".join(event["delta"].get("content", "") for event in events), whole["message"]["content"])
        self.assertEqual(events[-1]["finish_reason"], whole["finish_reason"])

    def test_parts_of_text_are_joined(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "4,5,6:"}]}]
        self.assertEqual(self.server.post("/tokenize", messages=parts), self.server.post("/tokenize", messages=self.messages))

    def test_mistakes_are_named(self):
        user = {"messages": self.messages}
        cases = [({}, "messages"), ({"messages": []}, "messages"), ({"messages": [{"content": "a"}]}, "messages[0].role"),
                 ({"messages": [{"role": "user"}]}, "messages[0].content"), ({"messages": [5]}, "messages[0]"),
                 ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
                 (dict(user, top_logprobs=2), "top_logprobs"), (dict(user, tools=[{"type": "function"}]), "tools[0].function"),
                 (dict(user, tool_choice="required"), "tool_choice"), (dict(user, chat_template="x"), "chat_template"),
                 (dict(user, chat_template_kwargs=[]), "chat_template_kwargs"), (dict(user, max_tokens=-1), "max_tokens")]
        for body, param in cases:
            status, _, answer = self.server.request("POST", "/v1/chat/completions", body)
            error = json.loads(answer)["error"]
            self.assertEqual((status, error["param"]), (400, param), (body, error))


class Limits(unittest.TestCase):
    def test_requests_beyond_the_queue_get_429(self):
        server = Server(STORIES, "--max-batch", "1", "--max-waiting", "2")
        try:
            status, headers, body = server.request("POST", "/v1/completions", {"prompt": "a", "n": 3})
            self.assertEqual((status, headers["retry-after"]), (429, "1"), body)
            self.assertEqual(json.loads(body)["error"]["code"], "rate_limit_exceeded")
            self.assertEqual(len(server.complete(prompt="a", n=2)["choices"]), 2)
        finally:
            server.stop()

    def test_sigterm_lets_requests_finish(self):
        server = Server(STORIES)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 400, "ignore_eos": True, "stream": True}))
        answer = connection.getresponse()
        first = answer.read(50)
        server.process.send_signal(signal.SIGTERM)
        text = (first + answer.read()).decode()
        connection.close()
        self.assertTrue(text.endswith("data: [DONE]\n\n"), text[-200:])
        self.assertIn('"finish_reason":"length"', text)
        self.assertEqual(server.stop(), 0)

    def test_a_conversation_needs_a_template(self):
        server = Server(os.path.join(SOURCE, "tests/data/models/tinystories-656k"))
        try:
            status, _, body = server.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})
            self.assertEqual(status, 400)
            self.assertIn("no chat template", json.loads(body)["error"]["message"])
        finally:
            server.stop()

    def test_a_port_in_use_is_an_error(self):
        server = Server(STORIES)
        try:
            again = subprocess.run([PROGRAM, "serve", "--model", STORIES, "--port", str(server.port)], capture_output=True, text=True)
            self.assertNotEqual(again.returncode, 0)
            self.assertEqual(again.stdout, "")
            self.assertIn(str(server.port), again.stderr)
        finally:
            server.stop()


class Page(unittest.TestCase):
    """Executes every request of docs/serving.md."""

    def test_every_command_works(self):
        with open(os.path.join(SOURCE, "docs/serving.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```sh\n(curl .*?)```", file.read(), re.DOTALL)
        self.assertGreater(len(blocks), 5)
        server = Server(STORIES, "--served-model-name", "my-model", "--template", TOOLS)
        try:
            for block in blocks:
                self.check(server, [word for word in shlex.split(block)[1:] if word != "-N"])
        finally:
            server.stop()

    def check(self, server, words):
        """Sends what curl would send."""
        path = words[0].removeprefix("http://127.0.0.1:8000")
        self.assertTrue(path.startswith("/"), words)
        self.assertIn(words[1:2], ([], ["-d"]))
        status, _, body = server.request("POST", path, words[2].encode()) if words[1:] else server.request("GET", path)
        self.assertEqual(status, 200, (words, body))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
