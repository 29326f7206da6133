"""Fields of other servers' protocols that act, and the details of answers and streams: serve_protocol_test.py PROGRAM SOURCE."""
import base64
import json
import math
import os
import re
import struct
import sys
import tempfile
import time
import unittest

from serve_pooling_test import ROWS, sigmoid, trained
from served import SOURCE, STORIES, TOOLS, Server, mask_ids

MESSAGES = [{"role": "user", "content": "Tell me a story."}]
ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}},
                                                                       "required": ["a"]}}}
STOP = {"type": "function", "function": {"name": "stop"}}
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}<end>\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}" \
           "{% if reasoning_effort is defined %}[{{ reasoning_effort }} {{ enable_thinking }}]{% endif %}"


class Text(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES, "--template", TOOLS)

    @classmethod
    def tearDownClass(cls):
        assert json.loads(cls.server.get("/load")) == {"server_load": 0}
        assert cls.server.stop() == 0, cls.server.output

    def choice(self, **fields):
        return self.server.complete(**dict({"prompt": "Once upon a time", "temperature": 0, "max_tokens": 12}, **fields))["choices"][0]

    def error(self, path, **fields):
        status, _, body = self.server.request("POST", path, fields)
        self.assertEqual(status, 400, body)
        return json.loads(body)["error"]["param"]

    def detokenized(self, **fields):
        return self.server.post("/detokenize", tokens=self.server.post("/tokenize", **fields)["tokens"])["prompt"]

    # Constraints.

    def test_the_names_of_llama_cpp_and_sglang_constrain(self):
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
        for fields in ({"json_schema": schema}, {"json_schema": json.dumps(schema)}, {"response_format": {"type": "json_object", "schema": schema}}):
            self.assertIn(json.loads(self.choice(max_tokens=40, **fields)["text"]), ({"a": 1}, {"a": 2}), fields)
        for fields in ({"grammar": 'root ::= "ab" | "cd"'}, {"ebnf": 'root ::= "ab" | "cd"'}, {"regex": "ab|cd"}):
            self.assertIn(self.choice(**fields)["text"], ("ab", "cd"), fields)
            chat = self.server.chat(messages=MESSAGES, max_tokens=8, **fields)["choices"][0]["message"]["content"]
            self.assertIn(chat, ("ab", "cd"), fields)
        self.assertEqual(self.choice(grammar="", regex="", json_schema=""), self.choice())
        self.assertEqual(self.error("/v1/completions", prompt="a", response_format={"type": "json_object", "schema": 123}), "response_format.schema")
        self.assertEqual(self.error("/v1/completions", prompt="a", regex="a", grammar='root ::= "a"'), "regex")

    def test_an_integer_that_is_not_kept_is_refused(self):
        for value in (12345678901234567890, -9223372036854775809):
            for schema in ({"enum": [value]}, {"const": {"a": [value]}}, {"type": "integer", "enum": [value, 3]}):
                status, _, body = self.server.request("POST", "/v1/completions", {"prompt": "Once", "json_schema": schema})
                self.assertEqual(status, 400, body)
                message = json.loads(body)["error"]["message"]
                self.assertIn("beyond 64 bits", message)
                self.assertNotIn("1234567890123456", message)  # the digits of the double that it was read as
        for value in (12345678901234567890, -9223372036854775809):
            status, _, body = self.server.request("POST", "/v1/completions", {"prompt": "Once", "seed": value})
            self.assertEqual((status, json.loads(body)["error"]["param"]), (400, "seed"))
            self.assertIn("more than 64 bits; allowed: ", json.loads(body)["error"]["message"])
        for value in (9223372036854775807, -9223372036854775808, 1e18, 0.5):
            self.assertEqual(json.loads(self.choice(max_tokens=60, json_schema={"enum": [value]})["text"]), value)

    # Stop strings and lengths.

    def test_a_stop_string_ends_beyond_min_tokens(self):
        free = self.choice(max_tokens=40, return_token_ids=True)
        found = self.choice(max_tokens=40, stop=[","], min_tokens=5, return_token_ids=True)
        at = free["text"].index(",", 2)
        self.assertEqual(free["text"][0], ",")
        self.assertEqual((found["text"], found["stop_reason"]), (free["text"][:at], ","))
        self.assertEqual(self.choice(max_tokens=40, stop=[","])["text"], "")
        for fields in ({"min_tokens": 5}, {"min_tokens": 5, "include_stop_str_in_output": True}, {}):
            settings = dict({"prompt": "Once upon a time", "temperature": 0, "max_tokens": 40, "stop": [",", "zzz"]}, **fields)
            events = self.server.stream("/v1/completions", **settings)
            self.assertEqual("".join(event["choices"][0]["text"] for event in events), self.choice(**settings)["text"])
        # The text within the first tokens is not held back.
        events = self.server.stream("/v1/completions", prompt="Once upon a time", temperature=0, max_tokens=40, stop=[","], min_tokens=20)
        self.assertEqual(events[0]["choices"][0]["text"], ",")

    def test_bad_words_are_not_written(self):
        free = self.choice(max_tokens=60)["text"]
        words = free.replace(",", " ").replace(".", " ").split()
        for word in set(words[:4]):
            found = self.choice(max_tokens=60, bad_words=[word])["text"]
            self.assertNotIn(word, found.replace(",", " ").replace(".", " ").split(), free)
        self.assertEqual(self.choice(max_tokens=60, bad_words=[" " + words[0]])["text"], self.choice(max_tokens=60, bad_words=words[0])["text"])
        for value in ([""], [" "], [5], ["a"] * 1025, "a" * 1025):
            self.assertTrue(self.error("/v1/completions", prompt="a", bad_words=value).startswith("bad_words"))

    def test_every_sampling_parameter_refuses_values_beyond_its_range(self):
        with open(os.path.join(SOURCE, "docs/request-fields.md")) as page:
            rows = re.findall(r"^\| `(\w+)` \|[^|]*\|.*\((?:0, or )?(?:at least|above) (-?[\d.]+), (?:at most|below) ([\d.]+)\) \|$", page.read(), re.M)
        self.assertGreaterEqual({name for name, _, _ in rows}, {"temperature", "top_k", "top_h", "presence_penalty", "min_tokens"})
        for name, low, high in set(rows):
            for value in (float(low) - 1, float(high) + 1):
                self.assertEqual(self.error("/v1/completions", prompt="a", **{name: value}), name, value)

    def test_whole_numbers_may_have_a_point(self):
        self.assertEqual(self.choice(max_tokens=5.0), self.choice(max_tokens=5))
        self.assertEqual(self.choice(n_predict=5, max_tokens=None), self.choice(max_tokens=5))
        self.assertEqual(self.error("/v1/completions", prompt="a", max_tokens=5.5), "max_tokens")

    def test_prompts_are_truncated(self):
        ids = self.server.post("/tokenize", prompt="Once upon a time there was a girl")["tokens"]
        for fields, expected in (({"truncate_prompt_tokens": 4}, ids[-4:]), ({"truncate_prompt_tokens": 4, "truncation_side": "right"}, ids[:4]),
                                 ({"truncate_prompt_tokens": 100}, ids), ({"truncate_prompt_tokens": -1}, ids)):
            self.assertEqual(self.choice(prompt="Once upon a time there was a girl", return_token_ids=True, **fields)["prompt_token_ids"], expected)
        long = self.choice(prompt=ids * 100, truncate_prompt_tokens=-1, return_token_ids=True, echo=True)
        self.assertEqual(long["prompt_token_ids"], (ids * 100)[-500:])
        chat = self.server.chat(messages=MESSAGES * 100, truncate_prompt_tokens=7, max_tokens=1)
        self.assertEqual(chat["usage"]["prompt_tokens"], 7)
        for value in (0, -2, 513):
            self.assertEqual(self.error("/v1/completions", prompt="a", truncate_prompt_tokens=value), "truncate_prompt_tokens")

    # Log-probabilities.

    def test_sampling_masks_are_the_tokens_that_were_left(self):
        fields = dict(prompt="Once", max_tokens=12, logprobs=3, top_k=3, seed=4, temperature=1, return_tokens_as_token_ids=True,
                      return_token_ids=True, return_sampling_mask=True)
        whole = self.choice(**fields)
        for mask, top, token in zip(whole["sampling_mask"], whole["logprobs"]["top_logprobs"], whole["token_ids"]):
            ids = mask_ids(mask)
            self.assertEqual(ids, sorted(int(name.removeprefix("token_id:")) for name in top))
            self.assertIn(token, ids)
        logprobs = whole["logprobs"]
        for top, own, kept in zip(logprobs["top_logprobs"], logprobs["token_logprobs"], whole["sampling_logprobs"]):
            self.assertAlmostEqual(kept, own - math.log(sum(map(math.exp, top.values()))), delta=1e-4)
        events = self.server.stream("/v1/completions", **fields)
        self.assertEqual([mask for event in events for mask in event["choices"][0]["sampling_mask"]], whole["sampling_mask"])
        self.assertEqual([value for event in events for value in event["choices"][0]["sampling_logprobs"]], whole["sampling_logprobs"])
        self.assertEqual(self.choice(**dict(fields, top_k=0))["sampling_mask"], [""] * 12)
        allowed = self.choice(**dict(fields, top_k=0, allowed_token_ids=[5, 6, 7]))
        self.assertEqual([mask_ids(mask) for mask in allowed["sampling_mask"]], [[5, 6, 7]] * 12)
        chat = self.server.chat(messages=MESSAGES, max_tokens=5, logprobs=True, top_k=2, return_sampling_mask=True)["choices"][0]
        self.assertEqual({len(mask_ids(mask)) for mask in chat["sampling_mask"]}, {2})
        self.assertEqual(len(chat["sampling_logprobs"]), 5)
        self.assertNotIn("sampling_mask", self.choice(max_tokens=2, logprobs=1))
        self.assertEqual(self.error("/v1/completions", prompt="a", return_sampling_mask=True), "return_sampling_mask")

    def test_bytes_and_offsets_are_those_of_the_text(self):
        for text in ("ab \U0001f642 c\xe9", " \U0001f642\U0001f642 a", "Lily \xe9t\xe9", "a"):
            settings = {"max_tokens": 40, "temperature": 0, "structured_outputs": {"choice": [text]}}
            fields = dict(settings, messages=MESSAGES, logprobs=True, top_logprobs=1)
            choice = self.server.chat(**fields)["choices"][0]
            self.assertEqual(choice["message"]["content"], text)
            self.assertEqual(bytes(b for token in choice["logprobs"]["content"] for b in token["bytes"]), text.encode())
            streamed = [event["choices"][0]["logprobs"]["content"] for event in self.server.stream("/v1/chat/completions", **fields)]
            self.assertEqual([token for part in streamed for token in part], choice["logprobs"]["content"])
            for prompt in ("Once", [1])[:1 if text.startswith(" ") else 2]:  # a text does not begin with a space
                fields = dict(settings, prompt=prompt, logprobs=1)
                found = self.server.complete(**fields)["choices"][0]
                logprobs, shown = found["logprobs"], found["text"]
                names = list(zip(logprobs["text_offset"], logprobs["tokens"]))
                for offset, name in names:
                    if "\ufffd" not in name:
                        self.assertEqual(shown[offset:offset + len(name)], name, (shown, names))
                self.assertEqual(sorted(logprobs["text_offset"]), logprobs["text_offset"])
                parts = [event["choices"][0]["logprobs"] for event in self.server.stream("/v1/completions", **fields)]
                for key in logprobs:
                    self.assertEqual([each for part in parts for each in part[key]], logprobs[key])

    def test_offsets_of_an_echoed_prompt(self):
        for prompt in ("Once upon a time", [1, 403, 407, 261]):
            found = self.choice(prompt=prompt, echo=True, logprobs=2)
            names = list(zip(found["logprobs"]["text_offset"], found["logprobs"]["tokens"]))[1:]
            for offset, name in names:
                self.assertEqual(found["text"][offset:offset + len(name)], name, (found["text"], names))

    def test_an_end_token_has_no_bytes(self):
        choice = self.server.chat(messages=MESSAGES, max_tokens=8, logit_bias={"2": 100}, logprobs=True)["choices"][0]
        self.assertEqual(choice["message"]["content"], "")
        self.assertEqual([token["bytes"] for token in choice["logprobs"]["content"]], [[]])
        self.assertNotEqual(choice["logprobs"]["content"][0]["token"], "")

    def test_the_sampled_token_comes_first(self):
        found = self.choice(temperature=1.5, seed=4, logprobs=3, max_tokens=30)["logprobs"]
        orders = set()
        for name, logp, top in zip(found["tokens"], found["token_logprobs"], found["top_logprobs"]):
            self.assertEqual(list(top)[0], name)
            self.assertEqual(top[name], logp)
            orders.add(list(top.values()) == sorted(top.values(), reverse=True))
        self.assertEqual(orders, {True, False})

    def test_every_token_of_a_prompt_has_its_rank(self):
        ids = [1, 403, 407, 261, 90, 17]
        whole = self.choice(prompt=ids, prompt_logprobs=-1, max_tokens=1)["prompt_logprobs"]
        none = self.choice(prompt=ids, prompt_logprobs=0, max_tokens=1)["prompt_logprobs"]
        self.assertEqual((whole[0], none[0]), (None, None))
        ranks = []
        for id, all, own in zip(ids[1:], whole[1:], none[1:]):
            self.assertEqual(len(all), 512)
            self.assertEqual(own, {str(id): all[str(id)]})
            self.assertEqual(sorted(entry["rank"] for entry in all.values()), list(range(1, 513)))
            ordered = sorted(all.values(), key=lambda entry: entry["rank"])
            self.assertEqual([entry["logprob"] for entry in ordered], sorted((entry["logprob"] for entry in ordered), reverse=True))
            self.assertAlmostEqual(sum(math.exp(entry["logprob"]) for entry in all.values()), 1, places=4)
            ranks.append(own[str(id)]["rank"])
        self.assertGreater(max(ranks), 20)

    def test_the_request_names_the_alternatives(self):
        prompt = [1, 403, 407]
        after = {}
        for id in (5, 300, 417):
            after[id] = self.choice(prompt=prompt + [id], prompt_logprobs=0, max_tokens=1)["prompt_logprobs"][3][str(id)]["logprob"]
        found = self.choice(prompt=prompt, logprobs=1, logprob_token_ids=list(after), max_tokens=1, return_tokens_as_token_ids=True)["logprobs"]
        top = found["top_logprobs"][0]
        self.assertEqual(list(top)[0], found["tokens"][0])
        self.assertEqual({f"token_id:{id}" for id in after} | {found["tokens"][0]}, set(top))
        for id, logp in after.items():
            self.assertAlmostEqual(top[f"token_id:{id}"], logp, places=5)
        chat = self.server.chat(messages=MESSAGES, logprobs=True, logprob_token_ids=[5, 300], max_tokens=3, return_tokens_as_token_ids=True)
        for token in chat["choices"][0]["logprobs"]["content"]:
            self.assertLessEqual({"token_id:5", "token_id:300", token["token"]}, {each["token"] for each in token["top_logprobs"]})
            self.assertEqual(token["top_logprobs"][0]["logprob"], token["logprob"])
        self.assertEqual(self.error("/v1/completions", prompt="a", logprob_token_ids=[5]), "logprob_token_ids")
        self.assertEqual(self.error("/v1/completions", prompt="a", logprobs=1, logprob_token_ids=[512]), "logprob_token_ids[0]")

    def test_token_ids_are_null_unless_they_are_asked_for(self):
        for fields in ({}, {"return_token_ids": False}):
            choice = self.choice(**fields)
            self.assertIsNone(choice["token_ids"])
            self.assertIsNone(choice["prompt_token_ids"])
            chat = self.server.chat(messages=MESSAGES, max_tokens=2, **fields)
            self.assertIsNone(chat["prompt_token_ids"])
            self.assertIsNone(chat["choices"][0]["token_ids"])

    # Streams.

    def test_the_last_token_has_the_finish_reason(self):
        settings = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 20, "ignore_eos": True, "return_token_ids": True}
        for fields in ({}, {"logprobs": 1}, {"echo": True, "logprobs": 1}, {"n": 2}):
            events = [event["choices"][0] for event in self.server.stream("/v1/completions", **settings, **fields)]
            self.assertEqual(len(events), 20 * fields.get("n", 1))
            self.assertEqual([event["finish_reason"] for event in events if event["finish_reason"]], ["length"] * fields.get("n", 1))
            self.assertEqual([len(event["token_ids"]) for event in events], [1] * len(events))
        events = [event["choices"][0] for event in self.server.stream("/v1/completions", prompt="a", max_tokens=0, echo=True)]
        self.assertEqual([(event["text"], event["finish_reason"]) for event in events], [("a", "length")])

    def test_the_last_delta_of_a_message_without_text_is_empty(self):
        events = self.server.stream("/v1/chat/completions", messages=MESSAGES, max_tokens=8, guided_choice=["ab cd"])
        self.assertEqual(events[0]["choices"][0]["delta"]["role"], "assistant")
        events = self.server.stream("/v1/chat/completions", messages=MESSAGES, max_tokens=8, temperature=0, logit_bias={"300": 100}, stop_token_ids=[300], min_tokens=2)
        last = events[-1]["choices"][0]
        self.assertEqual(last["finish_reason"] is not None, True)
        events = self.server.stream("/v1/chat/completions", messages=MESSAGES, max_tokens=8, guided_regex="(ab)")
        ends = [event["choices"][0] for event in events if event["choices"][0]["finish_reason"]]
        self.assertEqual(len(ends), 1)

    def test_continuous_usage_needs_usage(self):
        settings = {"prompt": "Once", "max_tokens": 3, "ignore_eos": True}
        for options, count in (({"continuous_usage_stats": True}, 0), ({"include_usage": False, "continuous_usage_stats": True}, 0),
                               ({"include_usage": True, "continuous_usage_stats": True}, 4), ({"include_usage": True}, 1)):
            events = self.server.stream("/v1/completions", stream_options=options, **settings)
            self.assertEqual(sum(bool(event.get("usage")) for event in events), count, options)

    def test_times_and_counts_are_measured(self):
        before = self.server.metrics()
        self.choice(max_tokens=9, ignore_eos=True, prompt=[1, 403, 407, 261])
        more = {name: value - before[name] for name, value in self.server.metrics().items()}
        for name in ("queue_time", "prefill_time", "decode_time", "inference_time", "time_per_output_token"):
            self.assertEqual(more[f"vllm:request_{name}_seconds_count"], 1, name)
            self.assertGreater(more[f"vllm:request_{name}_seconds_sum"], 0, name)
        parts = [more[f"vllm:request_{name}_time_seconds_sum"] for name in ("queue", "prefill", "decode")]
        self.assertAlmostEqual(parts[1] + parts[2], more["vllm:request_inference_time_seconds_sum"], places=6)
        self.assertLessEqual(sum(parts), more["vllm:e2e_request_latency_seconds_sum"])
        self.assertEqual((more["vllm:request_params_n_sum"], more["vllm:request_params_max_tokens_sum"]), (1, 9))
        # Four tokens of the prompt, and the output but its last token.
        self.assertEqual((more["vllm:iteration_tokens_total_sum"], more["vllm:iteration_tokens_total_count"]), (4 + 8, 9))
        self.assertIn('block_size="16"', self.server.get("/metrics"))

    # Conversations.

    def test_allowed_tools(self):
        def choice(mode, *names):
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [{"type": "function", "function": {"name": name}} for name in names]}}

        settings = {"messages": MESSAGES, "tools": [ADD, STOP], "max_tokens": 80, "parallel_tool_calls": False}
        for seed in range(4):
            calls = self.server.chat(tool_choice=choice("required", "stop"), seed=seed, **settings)["choices"][0]["message"]["tool_calls"]
            self.assertEqual([call["function"]["name"] for call in calls], ["stop"])
        shown = self.detokenized(messages=MESSAGES, tools=[ADD, STOP], tool_choice=choice("auto", "add"))
        self.assertEqual(shown, self.detokenized(messages=MESSAGES, tools=[ADD]))
        for wrong, param in ((choice("none", "add"), "tool_choice.allowed_tools.mode"), (choice("auto"), "tool_choice.allowed_tools.tools"),
                             (choice("auto", "other"), "tool_choice.allowed_tools.tools[0].function.name"),
                             ({"type": "allowed_tools"}, "tool_choice.allowed_tools")):
            self.assertEqual(self.error("/v1/chat/completions", **dict(settings, tool_choice=wrong)), param)

    def test_the_last_message_goes_on(self):
        talk = MESSAGES + [{"role": "assistant", "content": "Sure, once upon"}]
        text = self.detokenized(messages=talk, continue_final_message=True)
        self.assertTrue(text.endswith("assistant: Sure, once upon"), text)
        answer = self.server.chat(messages=talk, continue_final_message=True, temperature=0, max_tokens=6, return_token_ids=True)
        prompt = self.server.post("/tokenize", messages=talk, continue_final_message=True, add_generation_prompt=False)["tokens"]
        self.assertEqual(answer["prompt_token_ids"], prompt)
        whole = self.server.complete(prompt=prompt, temperature=0, max_tokens=6)["choices"][0]["text"]
        self.assertEqual(answer["choices"][0]["message"]["content"], whole)
        self.assertEqual(self.error("/v1/chat/completions", messages=talk, continue_final_message=True, add_generation_prompt=True),
                         "continue_final_message")

    def test_the_endpoints_about_the_server(self):
        # The request of the test before may end a moment after its answer has arrived.
        deadline = time.monotonic() + 60
        while json.loads(self.server.get("/load")) != {"server_load": 0}:
            self.assertLess(time.monotonic(), deadline)
        info = json.loads(self.server.get("/tokenizer_info"))
        with open(TOOLS, encoding="utf-8") as file:
            self.assertEqual(info["chat_template"].strip(), file.read().strip())
        self.assertTrue(info["tokenizer_class"])
        self.assertNotIn(STORIES, json.dumps(info))
        for method in ("GET", "POST"):
            self.assertEqual(self.server.request(method, "/ping")[0], 200)
        status, _, body = self.server.request("POST", "/completion", {"prompt": "Once"})  # of llama.cpp
        self.assertEqual(status, 404)
        offered = json.loads(body)["error"]["message"].partition("; this server has ")[2].split(", ")
        self.assertLessEqual({"/v1/completions", "/v1/chat/completions", "/tokenize", "/health"}, set(offered))
        self.assertEqual(len(offered), len(set(offered)))

    # Endpoints of SageMaker and llama.cpp.

    def test_invocations_are_those_of_the_endpoint_that_the_members_name(self):
        for path, fields in (("/v1/completions", {"prompt": "Once"}), ("/v1/chat/completions", {"messages": MESSAGES}),
                             ("/v1/chat/completions", {"messages": MESSAGES, "prompt": None})):
            fields = dict(fields, max_tokens=5, temperature=0, logprobs=None)
            found, expected = self.server.post("/invocations", **fields), self.server.post(path, **fields)
            self.assertEqual((found["object"], found["choices"]), (expected["object"], expected["choices"]))
            streamed = self.server.stream("/invocations", **fields)
            self.assertEqual([event["choices"] for event in streamed], [event["choices"] for event in self.server.stream(path, **fields)])
        self.assertEqual(self.error("/invocations", prompt="Once", prompt_embeds="x"), "prompt_embeds")
        status, _, body = self.server.request("POST", "/invocations", {"input": "Once", "prompt": None})
        self.assertEqual(status, 400)
        self.assertIn("expected messages (of /v1/chat/completions) or prompt", json.loads(body)["error"]["message"])

    def test_apply_template_gives_the_text_of_a_conversation(self):
        for fields in ({}, {"tools": [ADD]}, {"tools": []}, {"add_generation_prompt": False}, {"tools": [ADD], "tool_choice": "none"}):
            fields = dict(fields, messages=MESSAGES)
            text = self.server.post("/apply-template", **fields)["prompt"]
            self.assertEqual(self.server.post("/tokenize", prompt=text, add_special_tokens=False)["tokens"], self.server.post("/tokenize", **fields)["tokens"])
        self.assertIn("Tell me a story.", text)
        self.assertEqual(self.error("/apply-template", prompt="Once"), "messages")
        self.assertEqual(self.error("/apply-template", messages=MESSAGES, chat_template="x"), "chat_template")


class Templates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "effort.jinja")
        with open(path, "w", encoding="utf-8") as file:
            file.write(TEMPLATE)
        cls.server = Server(STORIES, "--template", path, "--reasoning-parser", "deepseek_r1")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.output
        cls.folder.cleanup()

    def text(self, **fields):
        tokens = self.server.post("/tokenize", **dict({"messages": MESSAGES}, **fields))["tokens"]
        return self.server.post("/detokenize", tokens=tokens)["prompt"]

    def test_the_template_receives_the_effort(self):
        self.assertTrue(self.text(reasoning_effort="high").endswith("[high True]"))
        self.assertTrue(self.text(reasoning_effort="none").endswith("[none False]"))
        self.assertTrue(self.text(reasoning_effort="low", chat_template_kwargs={"enable_thinking": 7}).endswith("[low 7]"))
        self.assertTrue(self.text().endswith("assistant:"))
        self.assertEqual(self.server.request("POST", "/v1/chat/completions", {"messages": MESSAGES, "reasoning_effort": "huge"})[0], 400)
        usage = self.server.chat(messages=MESSAGES, reasoning_effort="max", max_tokens=1)["usage"]["prompt_tokens"]
        self.assertEqual(usage, self.server.post("/tokenize", messages=MESSAGES, reasoning_effort="max")["count"])

    def test_an_open_message_has_no_end(self):
        for content in ("Sure,", "Sure,\n", "Sure,\nx"):
            talk = MESSAGES + [{"role": "assistant", "content": content}]
            self.assertTrue(self.text(messages=talk, continue_final_message=True).endswith("assistant: " + content))

    def test_reasoning_has_both_names_and_may_be_left_out(self):
        settings = {"messages": MESSAGES, "max_tokens": 60, "logit_bias": {"2": -100}, "temperature": 0, "guided_choice": ["So."]}
        message = self.server.chat(**settings)["choices"][0]["message"]
        self.assertNotEqual(message["reasoning"], None)
        self.assertEqual(message["reasoning"], message["reasoning_content"])
        deltas = [event["choices"][0]["delta"] for event in self.server.stream("/v1/chat/completions", **settings)]
        self.assertEqual("".join(delta.get("reasoning", "") for delta in deltas), message["reasoning"])
        self.assertEqual("".join(delta.get("reasoning_content", "") for delta in deltas), message["reasoning"])
        hidden = self.server.chat(include_reasoning=False, **settings)["choices"][0]["message"]
        self.assertEqual((hidden["reasoning"], hidden["reasoning_content"], hidden["content"]), (None, None, message["content"]))
        deltas = [event["choices"][0]["delta"] for event in self.server.stream("/v1/chat/completions", include_reasoning=False, **settings)]
        self.assertFalse(any("reasoning" in delta for delta in deltas), deltas)


class Vectors(unittest.TestCase):
    def test_types_and_order_of_bytes(self):
        server = Server(STORIES, "--runner", "pooling")
        try:
            plain = server.post("/v1/embeddings", input="Once upon a time")["data"][0]["embedding"]
            for dtype, letter, error in (("float32", "f", 0), ("float16", "e", 1e-3), ("bfloat16", None, 1e-2)):
                for order, sign in (("native", "<"), ("little", "<"), ("big", ">")):
                    coded = server.post("/v1/embeddings", input="Once upon a time", encoding_format="base64", embed_dtype=dtype, endianness=order)
                    data = base64.b64decode(coded["data"][0]["embedding"], validate=True)
                    if letter:
                        values = struct.unpack(f"{sign}{len(plain)}{letter}", data)
                    else:
                        halves = struct.unpack(f"{sign}{len(plain)}H", data)
                        values = struct.unpack(f"<{len(plain)}f", struct.pack(f"<{len(plain)}I", *(half << 16 for half in halves)))
                    for value, expected in zip(values, plain):
                        self.assertAlmostEqual(value, expected, delta=error * abs(expected) + (1e-7 if error else 0))
            for dtype, mantissa, bias in (("fp8_e4m3", 3, 7), ("fp8_e5m2", 2, 15)):
                coded = server.post("/v1/embeddings", input="Once upon a time", encoding_format="base64", embed_dtype=dtype)
                for byte, expected in zip(base64.b64decode(coded["data"][0]["embedding"], validate=True), plain, strict=True):
                    exponent, steps = max((byte & 127) >> mantissa, 1), byte & ((1 << mantissa) - 1)
                    steps += (1 << mantissa) if (byte & 127) >> mantissa else 0
                    step = 2.0 ** (exponent - bias - mantissa)
                    self.assertAlmostEqual((-1 if byte & 128 else 1) * steps * step, expected, delta=step / 2)
            texts = {"input": ["Once", "upon a time"], "embed_dtype": "float16"}
            numbers = [entry["embedding"] for entry in server.post("/v1/embeddings", **dict(texts, encoding_format="base64"))["data"]]
            expected = b"".join(base64.b64decode(each) for each in numbers)
            status, headers, data = server.request("POST", "/v1/embeddings", dict(texts, encoding_format="bytes"))
            self.assertEqual((status, headers["content-type"], data), (200, "application/octet-stream", expected))
            described = json.loads(headers["metadata"])
            half = len(expected) // 2
            self.assertEqual([(each["index"], each["start"], each["end"], each["shape"], each["embed_dtype"], each["endianness"]) for each in described["data"]],
                             [(0, 0, half, [half // 2], "float16", "little"), (1, half, 2 * half, [half // 2], "float16", "little")])
            self.assertGreater(described["usage"]["prompt_tokens"], 2)
            status, headers, data = server.request("POST", "/v1/embeddings", dict(texts, encoding_format="bytes_only"))
            self.assertEqual((status, data, headers.get("metadata")), (200, expected, None))
            rows = json.loads(server.request("POST", "/pooling", {"input": [[3, 4, 5]], "task": "token_embed", "encoding_format": "bytes"})[1]["metadata"])
            self.assertEqual(rows["data"][0]["shape"], [3, len(plain)])
            raw = server.post("/v1/embeddings", input="Once upon a time", use_activation=False)["data"][0]["embedding"]
            self.assertEqual(raw, server.post("/pooling", input="Once upon a time")["data"][0]["data"])
            tokens = server.post("/tokenize", prompt="Once upon a time")["tokens"]
            every = server.post("/pooling", input=tokens, task="token_embed", use_activation=False)["data"][0]["data"]
            self.assertEqual(len(every), len(tokens))
            self.assertEqual(every[-1], raw)
            for row in server.post("/pooling", input=tokens, task="token_embed")["data"][0]["data"]:
                self.assertAlmostEqual(sum(value * value for value in row), 1, places=5)
            self.assertEqual(server.post("/pooling", input=tokens, task="embed")["data"][0]["data"], plain)
            cut = server.post("/v1/embeddings", input=tokens, truncate_prompt_tokens=3)["data"][0]["embedding"]
            self.assertEqual(cut, server.post("/v1/embeddings", input=tokens[-3:])["data"][0]["embedding"])
            for fields, param in (({"task": "classify"}, "task"), ({"task": "x"}, "task"), ({"embed_dtype": "fp8"}, "embed_dtype"),
                                  ({"endianness": "middle"}, "endianness"), ({"encoding_format": "byte"}, "encoding_format"),
                                  ({"encoding_format": "bytes", "input": ["a"] * 257}, "encoding_format")):
                status, _, body = server.request("POST", "/pooling", dict({"input": "a"}, **fields))
                self.assertEqual((status, json.loads(body)["error"]["param"]), (400, param), body)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_documents_are_ranked(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(trained(folder, "orm", ROWS)[0])
            try:
                documents = ["3", "9", "6", "1"]
                scores = [entry["score"] for entry in server.post("/score", text_1="1,2:", text_2=documents)["data"]]
                self.assertEqual(len(set(scores)), 4)
                for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
                    found = server.post(path, query="1,2:", documents=documents)
                    order = sorted(range(4), key=lambda n: -scores[n])
                    self.assertEqual([(each["index"], each["document"]["text"], each["relevance_score"]) for each in found["results"]],
                                     [(n, documents[n], scores[n]) for n in order])
                    self.assertGreater(found["usage"]["prompt_tokens"], 4)
                best = server.post("/rerank", query="1,2:", documents=documents, top_n=2, return_documents=False)["results"]
                self.assertEqual(best, [{"index": n, "relevance_score": scores[n]} for n in order[:2]])
                raw = server.post("/rerank", query="1,2:", documents=documents, use_activation=False)["results"][0]["relevance_score"]
                self.assertAlmostEqual(sigmoid(raw), max(scores), places=9)
                self.assertEqual(server.post("/rerank", query="1,2:", texts=documents), [{"index": n, "score": scores[n]} for n in order])
                self.assertEqual(server.post("/rerank", query="1,2:", texts=documents, top_n=1, return_text=True),
                                 [{"index": order[0], "text": documents[order[0]], "score": scores[order[0]]}])
                for path, fields in (("/rerank", {"query": "1,2:", "documents": documents}), ("/score", {"text_1": "1,2:", "text_2": documents}),
                                     ("/classify", {"input": documents}), ("/classify", {"messages": MESSAGES})):
                    found, expected = server.post("/invocations", **fields), server.post(path, **fields)
                    self.assertEqual(dict(found, id="", created=0), dict(expected, id="", created=0))
                status, _, body = server.request("POST", "/invocations", {"prompt": "1"})
                self.assertEqual(status, 400)
                self.assertIn("query (of /rerank)", json.loads(body)["error"]["message"])
                for names in (("queries", "documents"), ("queries", "items"), ("data_1", "data_2")):
                    self.assertEqual([entry["score"] for entry in server.post("/v1/score", **dict(zip(names, ("1,2:", documents))))["data"]], scores)
                status, _, body = server.request("POST", "/rerank", {"query": ["1", "2"], "documents": documents})
                self.assertEqual((status, json.loads(body)["error"]["param"]), (400, "query"), body)
                for name, fields in (("documents", {"query": "1", "documents": [1, 2]}), ("texts", {"query": "1", "texts": [[1], [2]]}),
                                     ("query", {"query": [1, 2], "documents": documents})):
                    status, _, body = server.request("POST", "/rerank", fields)
                    self.assertEqual((status, json.loads(body)["error"]["param"]), (400, name), body)
            finally:
                self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
