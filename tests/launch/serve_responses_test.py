"""/v1/responses of troupe serve: serve_responses_test.py PROGRAM SOURCE. A list of choices makes the model write a given text."""
import json
import os
import sys
import tempfile
import unittest

from served import STORIES, TOOLS, Server

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "unit": {"enum": ["cm", "inch"]}},
              "required": ["a", "unit"]}
ADD = {"type": "function", "name": "add", "description": "Adds.", "parameters": PARAMETERS}
STOP = {"type": "function", "name": "stop", "parameters": {"type": "object", "properties": {}}}
CHAT_ADD = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": PARAMETERS}}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 5, "unit": "cm"}}\n</tool_call>'
ARGUMENTS = '{"a": 5, "unit": "cm"}'
# The prompt ends with the end of a reasoning, so that a constraint describes the whole output.
CLOSED = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}{{ tools | tojson }}</think>"


def without_ids(items):
    """Items without what differs between two requests."""
    return [{key: value for key, value in item.items() if key not in ("id", "call_id")} for item in items]


class Assembled:
    """A response put together from the events of a stream, each checked against those before it."""

    def __init__(self, events):
        self.items, self.kinds = [], [name.removeprefix("response.") for name, _ in events]
        for number, (_, event) in enumerate(events):
            assert event["sequence_number"] == number, event
        assert self.kinds[:2] == ["created", "in_progress"], self.kinds
        assert events[0][1]["response"]["status"] == events[1][1]["response"]["status"] == "in_progress"
        assert self.kinds[-1] in ("completed", "incomplete"), self.kinds
        for name, event in events[2:-1]:
            getattr(self, "on_" + name.removeprefix("response.").replace(".", "_"))(event)
        self.response = events[-1][1]["response"]
        assert self.response["output"] == self.items, (self.response["output"], self.items)

    def item_of(self, event):
        item = self.items[event["output_index"]]
        assert item["id"] == event["item_id"], event
        return item

    def on_output_item_added(self, event):
        assert event["output_index"] == len(self.items), event
        assert event["item"]["status"] == "in_progress"
        self.items.append(event["item"])

    def on_content_part_added(self, event):
        item = self.item_of(event)
        assert event["content_index"] == len(item["content"]) == 0, event
        item["content"].append(event["part"])

    def on_output_text_delta(self, event):
        assert event["logprobs"] == [] and event["delta"] != ""
        self.item_of(event)["content"][event["content_index"]]["text"] += event["delta"]

    on_reasoning_text_delta = lambda self, event: self.on_output_text_delta(dict(event, logprobs=[]))

    def on_output_text_done(self, event):
        assert self.item_of(event)["content"][event["content_index"]]["text"] == event["text"], event

    on_reasoning_text_done = on_output_text_done

    def on_content_part_done(self, event):
        assert self.item_of(event)["content"][event["content_index"]] == event["part"], event

    def on_function_call_arguments_delta(self, event):
        self.item_of(event)["arguments"] += event["delta"]

    def on_function_call_arguments_done(self, event):
        item = self.item_of(event)
        assert (item["arguments"], item["name"]) == (event["arguments"], event["name"]), event

    def on_output_item_done(self, event):
        item = self.items[event["output_index"]]
        item["status"] = event["item"]["status"]
        assert item == event["item"], (item, event)


class Responses(unittest.TestCase):
    options = ("--template", TOOLS)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES, *cls.options)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.output

    def answer(self, **fields):
        """The whole answer, whose items the stream has, too."""
        fields = {"input": "Add.", "seed": 3, "max_output_tokens": 220, **fields}
        whole = self.server.post("/v1/responses", **fields)
        streamed = Assembled(self.server.events("/v1/responses", **fields)).response
        self.assertEqual(without_ids(whole["output"]), without_ids(streamed["output"]))
        for key in ("status", "incomplete_details", "temperature", "tools", "tool_choice", "text", "metadata", "instructions"):
            self.assertEqual(whole[key], streamed[key], key)
        for key in ("input_tokens", "output_tokens", "total_tokens", "output_tokens_details"):
            self.assertEqual(whole["usage"][key], streamed["usage"][key], key)
        return whole

    def chat(self, **fields):
        return self.server.chat(seed=3, **fields)

    def refused(self, param, **fields):
        status, _, body = self.server.request("POST", "/v1/responses", {"input": "Add.", "max_output_tokens": 4, **fields})
        error = json.loads(body)["error"]
        self.assertEqual((status, error["param"]), (400, param), (fields, error))
        return error["message"]


class Text(Responses):
    def test_a_text_is_that_of_a_chat(self):
        found = self.answer(instructions="Be brief.", input="Tell me a story.", max_output_tokens=30, ignore_eos=True)
        chat = self.chat(messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me a story."}], max_tokens=30, ignore_eos=True)
        message = found["output"][0]
        self.assertEqual(message["content"][0]["text"], chat["choices"][0]["message"]["content"])
        self.assertEqual((message["type"], message["role"], message["status"]), ("message", "assistant", "incomplete"))
        self.assertEqual((found["status"], found["incomplete_details"], found["completed_at"]), ("incomplete", {"reason": "max_output_tokens"}, None))
        self.assertEqual((found["usage"]["input_tokens"], found["usage"]["output_tokens"]), (chat["usage"]["prompt_tokens"], 30))
        self.assertEqual(found["usage"]["total_tokens"], chat["usage"]["total_tokens"])

    def test_an_answer_that_ends_is_complete(self):
        found = self.answer(structured_outputs={"choice": ["Five."]}, metadata={"run": "7"}, user="me", temperature=0.5, top_p=0.25)
        self.assertEqual((found["status"], found["incomplete_details"], found["error"]), ("completed", None, None))
        self.assertGreaterEqual(found["completed_at"], found["created_at"])
        self.assertEqual(found["output"][0]["content"], [{"type": "output_text", "text": "Five.", "annotations": [], "logprobs": []}])
        self.assertEqual((found["metadata"], found["user"], found["temperature"], found["top_p"]), ({"run": "7"}, "me", 0.5, 0.25))
        self.assertEqual((found["store"], found["object"], found["background"]), (False, "response", False))
        self.assertTrue(found["id"].startswith("resp_"))

    def test_an_output_without_characters_is_a_message(self):
        found = self.answer(temperature=0, logit_bias={"2": 100})
        self.assertEqual([(item["type"], item["content"][0]["text"]) for item in found["output"]], [("message", "")])

    def test_items_become_messages_of_a_chat(self):
        items = [{"role": "developer", "content": "Be brief."}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
                 {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "why"}], "encrypted_content": None, "status": None},
                 {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                  "content": [{"type": "output_text", "text": "I add.", "annotations": [], "logprobs": []}]},
                 {"type": "function_call", "id": "fc_1", "call_id": "abcdefghi", "name": "add", "arguments": '{"a": 5}', "status": "completed"},
                 {"type": "function_call", "call_id": "abcdefghj", "name": "add", "arguments": ""},
                 {"type": "function_call_output", "call_id": "abcdefghi", "output": "5"},
                 {"type": "function_call_output", "call_id": "abcdefghj", "output": [{"type": "input_text", "text": "6"}]},
                 {"role": "assistant", "content": "Eleven."}, {"role": "user", "content": "c"}]
        call = {"type": "function", "id": "abcdefghi", "function": {"name": "add", "arguments": '{"a": 5}'}}
        other = {"type": "function", "id": "abcdefghj", "function": {"name": "add", "arguments": "{}"}}
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a\nb"},
                    {"role": "assistant", "reasoning_content": "why", "content": "I add.", "tool_calls": [call, other]},
                    {"role": "tool", "tool_call_id": "abcdefghi", "content": "5"}, {"role": "tool", "tool_call_id": "abcdefghj", "content": "6"},
                    {"role": "assistant", "content": "Eleven."}, {"role": "user", "content": "c"}]
        found = self.answer(input=items, tools=[ADD], max_output_tokens=12, temperature=0)
        chat = self.chat(messages=messages, tools=[CHAT_ADD], max_tokens=12, temperature=0)
        self.assertEqual(found["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["content"])
        self.assertEqual(found["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])

    def test_the_output_is_input_of_the_next_request(self):
        first = self.answer(tools=[ADD], structured_outputs={"choice": ["I add. " + CALL + "\n" + CALL]})
        items = [{"role": "user", "content": "Add."}, *first["output"]]
        items += [{"type": "function_call_output", "call_id": each["call_id"], "output": "5"} for each in first["output"] if each["type"] == "function_call"]
        calls = [{"type": "function", "id": each["call_id"], "function": {"name": "add", "arguments": ARGUMENTS}} for each in first["output"][1:]]
        messages = [{"role": "user", "content": "Add."}, {"role": "assistant", "content": "I add. ", "tool_calls": calls}]
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "5"} for call in calls]
        chat = self.chat(messages=messages, tools=[CHAT_ADD], max_tokens=1)
        self.assertEqual(self.answer(input=items, tools=[ADD], max_output_tokens=1)["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])

    def test_structured_output(self):
        form = {"type": "json_schema", "name": "sum", "schema": PARAMETERS, "strict": True}
        found = self.answer(text={"format": form, "verbosity": None})
        value = json.loads(found["output"][0]["content"][0]["text"])
        self.assertEqual((list(value), found["status"], found["text"]), (["a", "unit"], "completed", {"format": form}))
        found = self.answer(text={"format": {"type": "json_object"}}, max_output_tokens=40)
        self.assertTrue(found["output"][0]["content"][0]["text"].lstrip().startswith("{"))
        self.assertEqual(self.answer(text={"format": {"type": "text"}}, max_output_tokens=2)["text"], {"format": {"type": "text"}})

    def test_null_is_a_field_that_is_absent(self):
        names = ("instructions tools tool_choice parallel_tool_calls text reasoning temperature top_p max_output_tokens stream metadata user store truncation "
                 "previous_response_id conversation background include prompt service_tier safety_identifier prompt_cache_key top_logprobs max_tool_calls "
                 "stream_options context_management moderation prompt_cache_retention prompt_cache_options").split()
        fields = dict(dict.fromkeys(names), structured_outputs={"choice": ["Five."]})
        self.assertEqual(self.server.post("/v1/responses", input="Add.", **fields)["status"], "completed")

    def test_fields_without_effect(self):
        self.answer(max_output_tokens=2, store=True, truncation="disabled", background=False, include=["reasoning.encrypted_content"], service_tier="auto",
                    reasoning={"effort": None, "summary": "auto"}, stream_options=None, top_logprobs=0, max_tool_calls=3, tools=[])

    def test_mistakes_are_named(self):
        self.assertIn("previous_response_id", self.refused("previous_response_id", previous_response_id="resp_1"))
        part = {"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}
        message = self.refused("input[1].content[0]", input=[{"role": "user", "content": "x"}, part])
        self.assertIn("input_image", message)
        for name in ("web_search", "file_search", "code_interpreter", "mcp", "custom", "local_shell"):
            self.assertIn(name, self.refused("tools[0].type", tools=[{"type": name}]))
        for name in ("web_search_call", "item_reference", "computer_call"):
            self.assertIn(name, self.refused("input[0].type", input=[{"type": name, "id": "x"}]))
        call = {"type": "function_call", "call_id": "a", "name": "add", "arguments": "{"}
        schema = {"type": "json_schema", "name": "a", "schema": {"not": {}}}
        cases = [("conversation", dict(conversation="conv_1")), ("background", dict(background=True)), ("prompt", dict(prompt={"id": "x"})),
                 ("truncation", dict(truncation="auto")), ("input", dict(input=None)), ("input", dict(input=5)), ("input", dict(input=[])),
                 ("input[0].role", dict(input=[{"role": "tool", "content": "x"}])), ("input[0].content", dict(input=[{"role": "user"}])),
                 ("input[0].arguments", dict(input=[call])), ("input[0].call_id", dict(input=[{"type": "function_call_output", "output": "x"}])),
                 ("input[0].encrypted_content", dict(input=[{"type": "reasoning", "summary": [], "encrypted_content": "x"}])), ("input[0].type", dict(input=[{"id": "x"}])),
                 ("max_output_tokens", dict(max_output_tokens=0)), ("temperature", dict(temperature=-1)), ("messages", dict(messages=[{"role": "user", "content": "x"}])), ("n", dict(n=2)),
                 ("max_tokens", dict(max_tokens=5)), ("logprobs", dict(logprobs=True)), ("response_format", dict(response_format={"type": "text"})),
                 ("include", dict(include=["message.output_text.logprobs"])), ("top_logprobs", dict(top_logprobs=3)), ("metadata", dict(metadata={"a": 1})),
                 ("text.format.type", dict(text={"format": {"type": "xml"}})), ("text.format.schema", dict(text={"format": {"type": "json_schema", "name": "a"}})),
                 ("text.format.schema", dict(text={"format": schema})), ("text.verbosity", dict(text={"verbosity": "low"})), ("tools", dict(tools=[ADD] * 129)),
                 ("tools[0].name", dict(tools=[{"type": "function"}])), ("tools[0].parameters", dict(tools=[{"type": "function", "name": "f", "parameters": 5}])),
                 ("tool_choice", dict(tools=[ADD], tool_choice="all")), ("tool_choice.name", dict(tools=[ADD], tool_choice={"type": "function", "name": "other"})),
                 ("tool_choice.type", dict(tools=[ADD], tool_choice={"type": "web_search_preview"})), ("tool_choice", dict(tool_choice="required")),
                 ("tool_choice.tools[0].name", dict(tools=[ADD], tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "x"}]})),
                 ("tool_choice.tools", dict(tools=[ADD], tool_choice={"type": "allowed_tools", "mode": "auto", "tools": []})),
                 ("tool_choice.mode", dict(tools=[ADD], tool_choice={"type": "allowed_tools", "tools": [{"type": "function", "name": "add"}]})),
                 ("input", dict(input="a " * 900)), ("input", dict(input="a", max_output_tokens=5000))]
        for param, fields in cases:
            message = self.refused(param, **fields)
            self.assertNotIn("max_completion_tokens", message)
            self.assertNotIn("messages", message.replace("/v1/messages", "").replace("messages is not", ""))
        status, _, body = self.server.request("POST", "/v1/responses", {"input": "x", "model": "other"})
        self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "model_not_found"))


class Tools(Responses):
    def calls(self, **fields):
        found = self.answer(**fields)
        return found, [(item["name"], item["arguments"]) for item in found["output"] if item["type"] == "function_call"]

    def test_calls_and_texts_are_items_in_their_order(self):
        found, calls = self.calls(tools=[ADD], structured_outputs={"choice": ["I add. " + CALL + "\n" + CALL]})
        self.assertEqual(([item["type"] for item in found["output"]], found["status"]), (["message", "function_call", "function_call"], "completed"))
        self.assertEqual((found["output"][0]["content"][0]["text"], calls), ("I add. ", [("add", ARGUMENTS)] * 2))
        ids = [item["call_id"] for item in found["output"][1:]]
        self.assertEqual(len(set(ids)), 2)
        for each in ids:
            self.assertRegex(each, "^[0-9a-z]{9}$")
        self.assertEqual(self.calls(tools=[ADD], structured_outputs={"choice": [CALL]}, tool_choice="none")[1], [])

    def test_a_required_call(self):
        for seed in range(4):
            found, calls = self.calls(tools=[ADD, STOP], tool_choice="required", parallel_tool_calls=False, seed=seed)
            self.assertEqual((len(calls), found["status"], found["tool_choice"], found["parallel_tool_calls"]), (1, "completed", "required", False))
            self.assertEqual(list(json.loads(calls[0][1])), ["a", "unit"] if calls[0][0] == "add" else [])

    def test_the_named_function(self):
        found, calls = self.calls(tools=[ADD, STOP], tool_choice={"type": "function", "name": "add"})
        self.assertEqual(([item["type"] for item in found["output"]], calls[0][0], found["tools"]), (["function_call"], "add", [ADD, STOP]))
        self.assertLessEqual(json.loads(calls[0][1])["a"], 99)

    def test_a_format_of_texts_beside_a_required_call(self):
        form = {"type": "json_schema", "name": "sum", "schema": {"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"]}}
        found, calls = self.calls(tools=[ADD], tool_choice={"type": "function", "name": "add"}, text={"format": form})
        self.assertEqual((list(json.loads(calls[0][1])), found["text"]), (["a", "unit"], {"format": form}))

    def test_allowed_tools(self):
        choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "stop"}]}
        for seed in range(3):
            found, calls = self.calls(tools=[ADD, STOP], tool_choice=choice, parallel_tool_calls=False, seed=seed)
            self.assertEqual((calls[0][0], found["tool_choice"]), ("stop", choice))
        found = self.calls(tools=[ADD, STOP], tool_choice=dict(choice, mode="auto"), max_output_tokens=5)[0]
        self.assertEqual(found["usage"]["input_tokens"], self.answer(tools=[STOP], max_output_tokens=5)["usage"]["input_tokens"])

    def test_a_call_that_is_cut_off_is_incomplete(self):
        found, calls = self.calls(tools=[ADD], tool_choice={"type": "function", "name": "add"}, max_output_tokens=2)
        self.assertEqual((found["status"], found["output"][-1]["status"], calls[0][0]), ("incomplete", "incomplete", "add"))


class Reasoning(Responses):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "closed.jinja")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CLOSED)
        cls.options = ("--template", path, "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_reasoning_is_an_item(self):
        found = self.answer(structured_outputs={"choice": ["<think>\nWhy?\n</think>\n\nSo."]})
        self.assertEqual([item["type"] for item in found["output"]], ["reasoning", "message"])
        self.assertEqual((found["output"][0]["content"], found["output"][0]["summary"]), ([{"type": "reasoning_text", "text": "\nWhy?\n"}], []))
        self.assertEqual(found["output"][1]["content"][0]["text"], "\n\nSo.")
        usage = found["usage"]
        self.assertGreater(usage["output_tokens_details"]["reasoning_tokens"], 3)
        self.assertGreater(usage["output_tokens"], usage["output_tokens_details"]["reasoning_tokens"])

    def test_reasoning_precedes_a_call(self):
        found = self.answer(tools=[ADD], structured_outputs={"choice": ["<think>Why?</think>" + CALL]})
        self.assertEqual([item["type"] for item in found["output"]], ["reasoning", "function_call"])
        self.assertEqual(self.answer(structured_outputs={"choice": ["So."]})["usage"]["output_tokens_details"], {"reasoning_tokens": 0})


class Log(unittest.TestCase):
    def test_unknown_fields_are_named_once(self):
        server = Server(STORIES, "--template", TOOLS, quiet=False)
        for _ in range(2):
            server.post("/v1/responses", input=[{"role": "user", "content": "x", "of_item": 1}], max_output_tokens=1, of_body=1, text={"of_text": 1})
            server.post("/v1/messages", messages=[{"role": "user", "content": "x", "of_message": 1}], max_tokens=1, of_request=1)
        self.assertEqual(server.stop(), 0)
        for name in ("of_body", "input[0].of_item", "text.of_text", "of_request", "messages[0].of_message"):
            self.assertEqual(server.output[1].count(name), 1, server.output[1])


class Long(unittest.TestCase):
    def test_a_stream_may_repeat_a_long_request(self):
        """The events at the beginning repeat the instructions: more bytes than may wait for a slow reader otherwise."""
        server = Server(STORIES, "--template", TOOLS)
        try:
            tools = [dict(ADD, description="x" * 200_000)] * 3
            names = [dict(tool, name=f"f{n}") for n, tool in enumerate(tools)]
            events = server.events("/v1/responses", input="x", tools=names, tool_choice="none", max_output_tokens=2)
            self.assertEqual(len(events[-1][1]["response"]["tools"]), 3)
        finally:
            self.assertEqual(server.stop(), 0, server.output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
