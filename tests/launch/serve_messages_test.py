"""/v1/messages of troupe serve: serve_messages_test.py PROGRAM SOURCE. A list of choices makes the model write a given text."""
import json
import os
import sys
import tempfile
import unittest
from http.client import HTTPConnection

from served import STORIES, TOOLS, Server, answer_of
from serve_responses_test import ARGUMENTS, CALL, CHAT_ADD, CLOSED, PARAMETERS

ADD = {"name": "add", "description": "Adds.", "input_schema": PARAMETERS}
STOP = {"name": "stop", "input_schema": {"type": "object", "properties": {}}}
USER = [{"role": "user", "content": "Add."}]
KEY = "0123456789abcdef0123456789abcdef"


def assembled(events):
    """The message of a stream, as clients put it together."""
    names = [name for name, _ in events]
    assert names[:2] == ["message_start", "ping"] and names[-2:] == ["message_delta", "message_stop"], names
    message, inputs, open_index = events[0][1]["message"], {}, None
    assert (message["content"], message["stop_reason"], message["usage"]["output_tokens"]) == ([], None, 0)
    for name, event in events[2:-2]:
        if name == "content_block_start":
            assert (open_index, event["index"]) == (None, len(message["content"])), event
            open_index = event["index"]
            message["content"].append(event["content_block"])
        elif name == "content_block_stop":
            assert event["index"] == open_index, event
            open_index = None
        else:
            assert (name, event["index"]) == ("content_block_delta", open_index), event
            block, delta = message["content"][open_index], event["delta"]
            key = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}[delta["type"]]
            if key == "partial_json":
                inputs[open_index] = inputs.get(open_index, "") + delta[key]
            else:
                block[key] += delta[key]
    assert open_index is None
    for index, text in inputs.items():
        try:
            message["content"][index]["input"] = json.loads(text)
        except ValueError:
            message["content"][index]["input"] = {"INVALID_JSON": text}
    message.update(events[-2][1]["delta"])
    message["usage"].update(events[-2][1]["usage"])
    return message


def without_ids(content):
    return [{key: value for key, value in block.items() if key != "id"} for block in content]


class Messages(unittest.TestCase):
    options = ("--template", TOOLS)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES, *cls.options)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.output

    def answer(self, **fields):
        """The whole answer, which the stream has, too; its input tokens are those of count_tokens."""
        fields = {"messages": USER, "seed": 3, "max_tokens": 220, **fields}
        whole = self.server.post("/v1/messages", **fields)
        streamed = assembled(self.server.events("/v1/messages", **fields))
        self.assertEqual(without_ids(whole["content"]), without_ids(streamed["content"]))
        for key in ("type", "role", "model", "stop_reason", "stop_sequence", "usage"):
            self.assertEqual(whole[key], streamed[key], key)
        counted = self.server.post("/v1/messages/count_tokens", **{key: value for key, value in fields.items() if key not in ("seed", "max_tokens")})
        self.assertEqual(counted, {"input_tokens": whole["usage"]["input_tokens"]})
        return whole

    def refused(self, words, **fields):
        status, _, body = self.server.request("POST", "/v1/messages", {"messages": USER, "max_tokens": 4, **fields})
        found = json.loads(body)
        self.assertEqual((status, found["type"], found["error"]["type"]), (400, "error", "invalid_request_error"), (fields, found))
        for word in words.split():
            self.assertIn(word, found["error"]["message"], fields)


class Text(Messages):
    def test_a_text_is_that_of_a_chat(self):
        found = self.answer(system="Be brief.", messages=[{"role": "user", "content": "Tell me a story."}], max_tokens=30, ignore_eos=True)
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me a story."}]
        chat = self.server.chat(messages=messages, seed=3, max_tokens=30, ignore_eos=True)
        self.assertEqual(found["content"], [{"type": "text", "text": chat["choices"][0]["message"]["content"], "citations": None}])
        self.assertEqual((found["stop_reason"], found["stop_sequence"]), ("max_tokens", None))
        self.assertEqual((found["usage"]["input_tokens"], found["usage"]["output_tokens"]), (chat["usage"]["prompt_tokens"], 30))
        self.assertTrue(found["id"].startswith("msg_"))
        # input_tokens are all tokens of the prompt.
        self.assertEqual((found["usage"]["cache_read_input_tokens"], found["usage"]["cache_creation_input_tokens"]), (0, 0))

    def test_why_an_answer_ends(self):
        found = self.answer(structured_outputs={"choice": ["Five."]})
        self.assertEqual((found["content"][0]["text"], found["stop_reason"], found["stop_sequence"]), ("Five.", "end_turn", None))
        found = self.answer(structured_outputs={"choice": ["One, two, three."]}, stop_sequences=["never", "two"])
        self.assertEqual((found["content"][0]["text"], found["stop_reason"], found["stop_sequence"]), ("One, ", "stop_sequence", "two"))
        found = self.answer(temperature=0, logit_bias={"2": 100})
        self.assertEqual((found["content"][0]["text"], found["stop_reason"]), ("", "end_turn"))

    def test_blocks_become_messages_of_a_chat(self):
        messages = [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]},
                    {"role": "assistant", "content": [{"type": "thinking", "thinking": "why", "signature": "x"}, {"type": "text", "text": "I add."},
                                                      {"type": "tool_use", "id": "abcdefghi", "name": "add", "input": {"a": 5}},
                                                      {"type": "tool_use", "id": "abcdefghj", "name": "add", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "abcdefghi", "content": "5"},
                                                 {"type": "tool_result", "tool_use_id": "abcdefghj", "content": [{"type": "text", "text": "6"}], "is_error": True},
                                                 {"type": "text", "text": "c"}]}]
        call = {"type": "function", "id": "abcdefghi", "function": {"name": "add", "arguments": '{"a": 5}'}}
        other = {"type": "function", "id": "abcdefghj", "function": {"name": "add", "arguments": "{}"}}
        chat = [{"role": "system", "content": "d\ne"}, {"role": "user", "content": "a\nb"},
                {"role": "assistant", "reasoning_content": "why", "content": "I add.", "tool_calls": [call, other]},
                {"role": "tool", "tool_call_id": "abcdefghi", "content": "5"}, {"role": "tool", "tool_call_id": "abcdefghj", "content": "6"},
                {"role": "user", "content": "c"}]
        system = [{"type": "text", "text": "d", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "e"}]
        found = self.answer(messages=messages, system=system, tools=[ADD], max_tokens=12, temperature=0)
        expected = self.server.chat(messages=chat, tools=[CHAT_ADD], max_tokens=12, temperature=0)
        self.assertEqual(found["content"][0]["text"], expected["choices"][0]["message"]["content"])
        self.assertEqual(found["usage"]["input_tokens"], expected["usage"]["prompt_tokens"])

    def test_structured_output(self):
        found = self.answer(output_config={"format": {"type": "json_schema", "schema": PARAMETERS}})
        self.assertEqual(list(json.loads(found["content"][0]["text"])), ["a", "unit"])

    def test_a_prompt_beyond_the_context_is_counted(self):
        messages = [{"role": "user", "content": "a " * 900}]
        self.assertGreater(self.server.post("/v1/messages/count_tokens", messages=messages)["input_tokens"], 512)
        self.refused("maximum context length", messages=messages)

    def test_null_is_a_field_that_is_absent(self):
        names = ("system stop_sequences temperature top_p top_k tools tool_choice thinking metadata stream container context_management inference_geo service_tier "
                 "output_config cache_control speed mcp_servers diagnostics").split()
        self.assertEqual(self.answer(**dict.fromkeys(names), structured_outputs={"choice": ["Five."]})["stop_reason"], "end_turn")

    def test_mistakes_are_named(self):
        def block(block, role="user"):
            return {"messages": [{"role": role, "content": [block]}, *USER]}
        cases = [("max_tokens is missing", dict(max_tokens=None)), ("max_tokens 0", dict(max_tokens=0)), ("messages missing", dict(messages=None)),
                 ("messages at least one", dict(messages=[])), ("messages[0].content[0] image", block({"type": "image", "source": {}})),
                 ("messages[0].content[0] document", block({"type": "document"})), ("messages[0].content[0] tool_use", block({"type": "tool_use"})),
                 ("messages[0].content[0] redacted_thinking", block({"type": "redacted_thinking", "data": "x"}, "assistant")),
                 ("messages[0].content[0].text", block({"type": "text"})), ("messages[0].content[0].tool_use_id", block({"type": "tool_result"})),
                 ("messages[0].content[0].content[0] image", block({"type": "tool_result", "tool_use_id": "x", "content": [{"type": "image"}]})),
                 ("messages[0].content[0].input", block({"type": "tool_use", "id": "x", "name": "f", "input": "5"}, "assistant")),
                 ("messages[0].content", dict(messages=[{"role": "user", "content": []}])), ("messages[0].content", dict(messages=[{"role": "user"}])),
                 ("messages[0].role tool", dict(messages=[{"role": "tool", "content": "x"}])), ("messages assistant", dict(messages=USER + [{"role": "assistant", "content": "x"}])),
                 ("system[0]", dict(system=[{"type": "image"}])), ("temperature", dict(temperature=-1)), ("top_k", dict(top_k=-2)), ("stop_sequences", dict(stop_sequences="x")),
                 ("stop_sequences at most 64", dict(stop_sequences=["a"] * 65)), ("stop ", dict(stop="x")), ("n ", dict(n=2)), ("response_format", dict(response_format={"type": "text"})),
                 ("tools[0].type web_search_20250305", dict(tools=[{"type": "web_search_20250305", "name": "web_search"}])), ("tools[0].input_schema", dict(tools=[{"name": "f"}])),
                 ("tools at most 128", dict(tools=[ADD] * 129)), ("tools[0].name", dict(tools=[{"input_schema": {}}])), ("tool_choice.type", dict(tools=[ADD], tool_choice={"type": "all"})),
                 ("tool_choice.name other", dict(tools=[ADD], tool_choice={"type": "tool", "name": "other"})), ("tool_choice", dict(tool_choice={"type": "any"})),
                 ("tool_choice", dict(tools=[ADD], tool_choice="auto")), ("thinking reasoning-parser", dict(thinking={"type": "enabled", "budget_tokens": 1024})),
                 ("thinking.type", dict(thinking={"type": "between_tools"})), ("container", dict(container="x")), ("mcp_servers", dict(mcp_servers=[{}])),
                 ("output_config.format.schema", dict(output_config={"format": {"type": "json_schema"}})),
                 ("output_config.format.schema", dict(output_config={"format": {"type": "json_schema", "schema": {"not": {}}}}))]
        for words, fields in cases:
            self.refused(words, **fields)

    def test_errors_have_the_types_of_their_status(self):
        cases = [("POST", "/v1/messages", {"messages": USER, "max_tokens": 1, "model": "other"}, 404, "not_found_error"),
                 ("GET", "/v1/messages", None, 405, "invalid_request_error"), ("POST", "/v1/messages", b"{", 400, "invalid_request_error"),
                 ("POST", "/v1/messages/count_tokens", {"messages": []}, 400, "invalid_request_error"), ("POST", "/v1/messages", b"x" * (3 << 20), 413, "request_too_large")]
        for method, path, body, status, kind in cases:
            found, _, text = self.server.request(method, path, body)
            self.assertEqual((found, json.loads(text)["type"], json.loads(text)["error"]["type"]), (status, "error", kind), text)
        self.assertIn("param", json.loads(self.server.request("POST", "/v1/completions", {})[2])["error"])


class Tools(Messages):
    def test_calls_and_texts_are_blocks_in_their_order(self):
        found = self.answer(tools=[ADD], structured_outputs={"choice": ["I add. " + CALL + "\n" + CALL]})
        self.assertEqual(([block["type"] for block in found["content"]], found["stop_reason"]), (["text", "tool_use", "tool_use"], "tool_use"))
        self.assertEqual([(block["name"], block["input"]) for block in found["content"][1:]], [("add", json.loads(ARGUMENTS))] * 2)
        self.assertEqual(len({block["id"] for block in found["content"][1:]}), 2)
        found = self.answer(tools=[ADD], structured_outputs={"choice": [CALL]}, tool_choice={"type": "none"})
        self.assertEqual(([block["type"] for block in found["content"]], found["stop_reason"]), (["text"], "end_turn"))

    def test_a_required_call(self):
        for seed in range(4):
            found = self.answer(tools=[ADD, STOP], tool_choice={"type": "any", "disable_parallel_tool_use": True}, seed=seed)
            self.assertEqual(([block["type"] for block in found["content"]], found["stop_reason"]), (["tool_use"], "tool_use"))
            self.assertEqual(list(found["content"][0]["input"]), ["a", "unit"] if found["content"][0]["name"] == "add" else [])

    def test_the_named_tool(self):
        found = self.answer(tools=[ADD, STOP], tool_choice={"type": "tool", "name": "add"})
        self.assertEqual((found["content"][0]["name"], len(found["content"]), found["stop_reason"]), ("add", 1, "tool_use"))
        form = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
        self.assertEqual(self.answer(tools=[ADD], tool_choice={"type": "tool", "name": "add"}, output_config=form)["stop_reason"], "tool_use")

    def test_arguments_that_are_no_object_are_kept_as_text(self):
        found = self.answer(tools=[ADD], tool_choice={"type": "tool", "name": "add"}, max_tokens=2)
        self.assertEqual((found["stop_reason"], list(found["content"][0]["input"])), ("max_tokens", ["INVALID_JSON"]))


class Thinking(Messages):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "closed.jinja")
        with open(path, "w", encoding="utf-8") as file:
            file.write("{{ enable_thinking }}" + CLOSED)
        cls.options = ("--template", path, "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_reasoning_is_a_block(self):
        found = self.answer(tools=[ADD], structured_outputs={"choice": ["<think>Why?</think>So." + CALL]}, thinking={"type": "enabled", "budget_tokens": 1024})
        self.assertEqual([block["type"] for block in found["content"]], ["thinking", "text", "tool_use"])
        self.assertEqual((found["content"][0]["thinking"], found["content"][0]["signature"], found["content"][1]["text"]), ("Why?", "", "So."))

    def test_the_template_knows_whether_to_think(self):
        choice = {"choice": ["So."]}
        tokens = [self.answer(structured_outputs=choice, **more)["usage"]["input_tokens"] for more in
                  ({}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"thinking": {"type": "disabled"}}, {"thinking": {"type": "adaptive"}})]
        chat = [self.server.chat(messages=USER, structured_outputs=choice, chat_template_kwargs=more)["usage"]["prompt_tokens"] for more in
                ({}, {"enable_thinking": True}, {"enable_thinking": False}, {})]
        self.assertEqual(tokens, chat)
        self.assertEqual(len(set(chat[:3])), 3)


class Keys(unittest.TestCase):
    def test_the_key_is_that_of_either_field(self):
        with tempfile.TemporaryDirectory() as where:
            path = os.path.join(where, "keys")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
                file.write(f"alice {KEY}\n")
            server = Server(STORIES, "--template", TOOLS, "--api-key-file", path)
            try:
                def status(path, headers):
                    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
                    found, body = answer_of(connection, "POST", path, {"messages": USER, "max_tokens": 1}, {"anthropic-version": "2023-06-01", **headers})
                    return (found, body["error"]["type"]) if path.startswith("/v1/messages") and found == 401 else (found, None)
                for path in ("/v1/messages", "/v1/messages/count_tokens"):
                    for headers in ({"x-api-key": KEY}, {"Authorization": "Bearer " + KEY}, {"X-Api-Key": KEY, "Authorization": "Bearer x"}):
                        self.assertEqual(status(path, headers), (200, None))
                    for headers in ({}, {"x-api-key": KEY[::-1]}, {"x-api-key": "Bearer " + KEY}, {"x-api-key": ""}):
                        self.assertEqual(status(path, headers), (401, "authentication_error"))
                self.assertEqual(status("/v1/chat/completions", {"x-api-key": KEY})[0], 401)
                self.assertEqual(status("/v1/chat/completions", {"Authorization": "Bearer " + KEY})[0], 200)
            finally:
                self.assertEqual(server.stop(), 0, server.output)


class Pooled(unittest.TestCase):
    def test_a_pooling_server_refuses_in_the_own_format(self):
        server = Server(STORIES, "--runner", "pooling")
        try:
            for path in ("/v1/messages", "/v1/messages/count_tokens"):
                status, _, body = server.request("POST", path, {"messages": USER, "max_tokens": 1})
                self.assertEqual((status, json.loads(body)["type"]), (400, "error"))
            self.assertEqual(json.loads(server.request("POST", "/v1/responses", {"input": "x"})[2])["error"]["code"], "unsupported_endpoint")
        finally:
            self.assertEqual(server.stop(), 0, server.output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
