"""Tool calls and reasoning of troupe serve: serve_tools_test.py PROGRAM SOURCE. A list of choices makes the model write a given text."""
import json
import os
import subprocess
import sys
import unittest

from served import PROGRAM, SOURCE, STORIES, TOOLS, Server

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "unit": {"$ref": "#/$defs/unit"}},
              "required": ["a", "unit"], "$defs": {"unit": {"enum": ["cm", "inch"]}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": PARAMETERS}}
STOP = {"type": "function", "function": {"name": "stop"}}
MESSAGES = [{"role": "user", "content": "Add."}]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 5, "unit": "cm"}}\n</tool_call>'


# The prompt ends with the end of a reasoning.
THOUGHT = {"messages": MESSAGES + [{"role": "assistant", "content": "</think>"}], "add_generation_prompt": False}


def assembled(events):
    """The message and the finish reason of a stream, as clients put them together."""
    message = {"content": "", "reasoning_content": "", "tool_calls": []}
    for event in events:
        delta = event["choices"][0]["delta"]
        for key in ("content", "reasoning_content"):
            message[key] += delta.get(key, "")
        for call in delta.get("tool_calls", []):
            if call["index"] == len(message["tool_calls"]):
                assert call["type"] == "function" and call["id"], call
                message["tool_calls"].append({"id": call["id"], "type": "function", "function": {"name": call["function"]["name"], "arguments": ""}})
            message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return message, events[-1]["choices"][0]["finish_reason"]


class Tools(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES, "--template", TOOLS, *cls.options)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.output

    def answers(self, **fields):
        """The whole answer, which the stream has, too: (content, calls, finish reason, message)."""
        fields = {"messages": MESSAGES, "seed": 3, "max_tokens": 220, **fields}
        choice = self.server.chat(**fields)["choices"][0]
        message, finish = assembled(self.server.stream("/v1/chat/completions", **fields))
        whole = choice["message"]
        self.assertEqual(message["content"], whole["content"] or "")
        self.assertEqual(message["reasoning_content"], whole.get("reasoning_content") or "")
        self.assertNotEqual(whole.get("tool_calls"), [])  # absent without calls, as in the answers of OpenAI and vLLM
        made = whole.get("tool_calls", [])
        self.assertEqual([call["function"] for call in message["tool_calls"]], [call["function"] for call in made])
        self.assertEqual(finish, choice["finish_reason"])
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in made]
        self.assertEqual(len({call["id"] for call in made}), len(calls))
        return whole["content"], calls, finish, whole


class Hermes(Tools):
    def test_a_call_is_separated_from_the_text(self):
        arguments = '{"a": 5, "unit": "cm"}'
        found = self.answers(tools=[ADD], guided_choice=[CALL])
        self.assertEqual(found[:3], (None, [("add", arguments)], "tool_calls"))
        self.assertRegex(found[3]["tool_calls"][0]["id"], "^[0-9a-z]{9}$")
        found = self.answers(tools=[ADD], guided_choice=["I add. " + CALL + "\n" + CALL])
        self.assertEqual(found[:3], ("I add. ", [("add", arguments)] * 2, "tool_calls"))

    def test_without_a_call_the_text_is_the_content(self):
        self.assertEqual(self.answers(tools=[ADD], guided_choice=["Five."])[:3], ("Five.", [], "stop"))
        self.assertEqual(self.answers(tools=[ADD], guided_choice=[CALL], tool_choice="none")[:3], (CALL, [], "stop"))
        self.assertEqual(self.answers(guided_choice=[CALL])[:3], (CALL, [], "stop"))

    def test_an_end_token_is_not_part_of_the_content(self):
        found = self.answers(tools=[ADD], temperature=0, logit_bias={"2": 100})
        self.assertEqual(found[:3], ("", [], "stop"))

    def test_a_free_output_has_the_text_that_it_has_without_tools(self):
        prompt = self.server.post("/tokenize", messages=MESSAGES, tools=[ADD])["tokens"]
        expected = self.server.complete(prompt=prompt, seed=3, max_tokens=30)["choices"][0]["text"]
        self.assertEqual(self.answers(tools=[ADD], max_tokens=30)[0], expected)

    def test_a_required_call_has_the_schema_of_a_tool(self):
        for seed in range(4):
            content, calls, finish, _ = self.answers(tools=[ADD, STOP], tool_choice="required", parallel_tool_calls=False, seed=seed)
            self.assertEqual((content, len(calls), finish), (None, 1, "tool_calls"))
            name, arguments = calls[0][0], json.loads(calls[0][1])
            if name == "stop":
                self.assertEqual(arguments, {})
            else:
                self.assertEqual((name, list(arguments)), ("add", ["a", "unit"]))
                self.assertIn(arguments["unit"], ("cm", "inch"))

    def test_the_named_function_is_called(self):
        content, calls, finish, _ = self.answers(tools=[ADD, STOP], tool_choice={"type": "function", "function": {"name": "add"}})
        self.assertEqual((content, calls[0][0], len(calls), finish), (None, "add", 1, "stop"))
        self.assertLessEqual(json.loads(calls[0][1])["a"], 99)

    def test_a_truncated_call_ends_with_length(self):
        content, calls, finish, _ = self.answers(tools=[ADD], tool_choice={"type": "function", "function": {"name": "add"}}, max_tokens=2)
        self.assertEqual((content, calls[0][0], finish), (None, "add", "length"))

    def test_the_template_receives_tools_calls_and_results(self):
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "add", "arguments": '{"a": 5}'}}
        messages = MESSAGES + [{"role": "assistant", "content": None, "tool_calls": [call]},
                               {"role": "tool", "tool_call_id": "abcdefghi", "content": "5"}]
        tokens = self.server.post("/tokenize", messages=messages, tools=[ADD])["tokens"]
        text = self.server.post("/detokenize", tokens=tokens)["prompt"]
        parsed = json.loads(json.dumps(call))
        parsed["function"]["arguments"] = {"a": 5}
        line = {"messages": messages[:1] + [dict(messages[1], content="", tool_calls=[parsed])] + messages[2:], "tools": [ADD],
                "add_generation_prompt": True}
        said = subprocess.run([PROGRAM, "render", "--template", TOOLS], input=json.dumps(line) + "\n", capture_output=True, text=True, check=True)
        self.assertEqual(text.strip(), json.loads(said.stdout)["text"].strip())
        self.assertIn('"arguments": {"a": 5}', text)
        usage = self.server.chat(messages=messages, tools=[ADD], max_tokens=1)["usage"]
        self.assertEqual(usage["prompt_tokens"], len(tokens))

    def test_mistakes_are_named(self):
        named = {"type": "function", "function": {"name": "other"}}
        bad = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}
        cases = [(dict(tools=5), "tools"), (dict(tools=[{}]), "tools[0].function"), (dict(tools=[{"type": "x"}]), "tools[0].type"),
                 (dict(tools=[ADD, {"function": {}}]), "tools[1].function.name"), (dict(tools=[ADD] * 129), "tools"),
                 (dict(tools=[{"function": {"name": "f", "parameters": []}}]), "tools[0].function.parameters"),
                 (dict(tools=[ADD], tool_choice="all"), "tool_choice"), (dict(tools=[ADD], tool_choice=named), "tool_choice.function.name"),
                 (dict(tool_choice="required"), "tool_choice"), (dict(tools=[ADD], tool_choice="required", guided_choice=["a"]), "tool_choice"),
                 (dict(tools=[{"function": {"name": "f", "parameters": {"not": {}}}}], tool_choice="required"), "tools"),
                 (dict(functions=[{}]), "functions"), (dict(messages=[bad]), "messages[0].tool_calls[0].function.arguments"),
                 (dict(messages=[{"role": "assistant", "tool_calls": [{}]}]), "messages[0].tool_calls[0].function.name"),
                 (dict(messages=[{"role": "assistant", "tool_calls": {}}]), "messages[0].tool_calls")]
        for fields, param in cases:
            status, _, body = self.server.request("POST", "/v1/chat/completions", {"messages": MESSAGES, **fields})
            error = json.loads(body)["error"]
            self.assertEqual((status, error["param"]), (400, param), (fields, error))


class Mistral(Tools):
    options = ("--tool-call-parser", "mistral", "--reasoning-parser", "qwen3")

    def test_calls_follow_a_marker(self):
        text = '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 5}}, {"name": "stop", "arguments": {}}]'
        self.assertEqual(self.answers(tools=[ADD, STOP], guided_choice=[text], **THOUGHT)[:3], (None, [("add", '{"a": 5}'), ("stop", "{}")], "tool_calls"))

    def test_reasoning_precedes_the_content(self):
        content, calls, finish, message = self.answers(guided_choice=["<think>\nWhy?\n</think>\n\nSo."], **THOUGHT)
        self.assertEqual((message["reasoning_content"], content, calls, finish), ("\nWhy?\n", "\n\nSo.", [], "stop"))
        self.assertIsNone(self.answers(guided_choice=["So."], **THOUGHT)[3]["reasoning_content"])

    def test_a_constraint_is_of_what_follows_the_reasoning(self):
        mark = str(self.server.post("/tokenize", prompt="a<", add_special_tokens=False)["tokens"][-1])
        content, _, finish, message = self.answers(guided_choice=["So."], logit_bias={mark: -100})
        self.assertEqual((message["reasoning_content"], content, finish), (None, "So.", "stop"))
        content, _, finish, message = self.answers(guided_choice=["So."], logit_bias={mark: 100}, max_tokens=20)
        self.assertEqual((content, finish), ("", "length"))
        self.assertRegex(message["reasoning_content"], "^<+$")
        content, _, finish, message = self.answers(tools=[ADD], tool_choice="required", logit_bias={mark: 100}, max_tokens=20)
        self.assertEqual((content, finish, message.get("tool_calls")), ("", "length", None))
        for choice in ("required", {"type": "function", "function": {"name": "add"}}):  # cut within <think>
            content, calls, finish, message = self.answers(tools=[ADD], tool_choice=choice, logit_bias={mark: 100}, max_tokens=1)
            self.assertEqual((content, calls, finish, message["reasoning_content"]), ("", [], "length", "<"))


class Llama(Tools):
    options = ("--tool-call-parser", "llama3_json")

    def test_the_output_is_a_call(self):
        text = '{"name": "add", "parameters": {"a": 5}}'
        self.assertEqual(self.answers(tools=[ADD], guided_choice=[text])[:3], (None, [("add", '{"a": 5}')], "tool_calls"))


class DeepSeek(Tools):
    options = ("--reasoning-parser", "deepseek_r1")

    def test_an_output_begins_with_reasoning_that_is_free(self):
        content, _, finish, message = self.answers(max_tokens=10)
        self.assertEqual((content, finish), ("", "length"))
        self.assertNotEqual(message["reasoning_content"], "")
        constrained = self.answers(max_tokens=10, structured_outputs={"regex": "[0-9]"})[3]
        self.assertEqual(constrained["reasoning_content"], message["reasoning_content"])


class Start(unittest.TestCase):
    def refused(self, *options):
        said = subprocess.run([PROGRAM, "serve", "--model", STORIES, "--port", "0", *options], capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stdout), (2, ""))
        return said.stderr

    def test_unknown_parsers_are_refused(self):
        self.assertIn("expected one of hermes, llama3_json, mistral", self.refused("--tool-call-parser", "xml"))
        self.assertIn("expected one of deepseek_r1, qwen3", self.refused("--reasoning-parser", "o1"))

    def test_the_template_must_have_tools(self):
        server = Server(STORIES)
        try:
            status, _, body = server.request("POST", "/v1/chat/completions", {"messages": MESSAGES, "tools": [ADD]})
            self.assertEqual((status, json.loads(body)["error"]["param"]), (400, "tools"), body)
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
