"""The official anthropic client with troupe serve: anthropic_client.py PROGRAM SOURCE. Exit code 77: the client is not installed."""
import asyncio
import os
import sys
import tempfile
import typing

from serving import TOOLS, served

try:
    import anthropic
    import pydantic
except ImportError:
    print("SKIP: the anthropic client is not installed")
    sys.exit(77)

USER = [{"role": "user", "content": "Add."}]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 5, "unit": "cm"}}\n</tool_call>'
ADD = {"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "unit": {"enum": ["cm", "inch"]}},
                                                               "required": ["a", "unit"]}}
CLOSED = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}{{ tools | tojson }}</think>"


class Length(pydantic.BaseModel):
    a: int
    unit: typing.Literal["cm", "inch"]


def valid(message):
    """The message, whose members have the types of the client."""
    return anthropic.types.Message.model_validate(message.to_dict())


def same(client, **settings):
    """The whole message, whose content the stream has, too."""
    whole = valid(client.messages.create(**settings))
    with client.messages.stream(**settings) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
    dumped = [[{key: value for key, value in block.to_dict().items() if key not in ("id", "parsed_output")} for block in message.content] for message in (whole, final)]
    assert dumped[0] == dumped[1], dumped
    assert (whole.stop_reason, whole.stop_sequence) == (final.stop_reason, final.stop_sequence)
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (final.usage.input_tokens, final.usage.output_tokens)
    raw = list(client.messages.create(stream=True, **settings))
    assert raw[0].message.role == "assistant" and raw[-1].type == "message_stop"
    return whole


def check_text(client, model):
    settings = {"model": model, "messages": USER, "max_tokens": 20, "system": "Be brief.", "extra_body": {"ignore_eos": True, "seed": 1}}
    found = same(client, **settings)
    assert (found.content[0].type, found.stop_reason, found.usage.output_tokens) == ("text", "max_tokens", 20), found
    counted = client.messages.count_tokens(model=model, messages=USER, system="Be brief.")
    assert counted.input_tokens == found.usage.input_tokens
    choice = {"structured_outputs": {"choice": ["One, two, three."]}}
    found = same(client, model=model, messages=USER, max_tokens=50, stop_sequences=["two"], extra_body=dict(choice, temperature=0.5, top_p=0.9, top_k=10))
    assert (found.content[0].text, found.stop_reason, found.stop_sequence) == ("One, ", "stop_sequence", "two"), found
    with client.messages.stream(model=model, messages=USER, max_tokens=50, extra_body=choice) as stream:
        assert "".join(stream.text_stream) == "One, two, three."


def check_tools(client, model):
    for choice, body in (({"type": "tool", "name": "add"}, {}), ({"type": "any", "disable_parallel_tool_use": True}, {}), ({"type": "auto"}, {"structured_outputs": {"choice": ["So: " + CALL]}})):
        found = same(client, model=model, messages=USER, max_tokens=200, tools=[ADD], tool_choice=choice, extra_body=dict(body, seed=1))
        call = found.content[-1]
        assert (call.type, call.name, found.stop_reason) == ("tool_use", "add", "tool_use"), found
        assert call.input["unit"] in ("cm", "inch")
    messages = USER + [{"role": "assistant", "content": found.content}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "5 cm"}]}]
    more = same(client, model=model, messages=messages, max_tokens=4, tools=[ADD], extra_body={"seed": 1})
    assert more.usage.input_tokens == client.messages.count_tokens(model=model, messages=messages, tools=[ADD]).input_tokens > found.usage.input_tokens


def check_parsed(client, model):
    found = client.messages.parse(model=model, messages=USER, max_tokens=100, output_format=Length, extra_body={"seed": 1})
    assert isinstance(found.parsed_output, Length), found


def check_errors(client, model):
    for settings, kind in (({"model": "other"}, anthropic.NotFoundError), ({"max_tokens": 0}, anthropic.BadRequestError),
                           ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://x"}}]}]}, anthropic.BadRequestError)):
        try:
            client.messages.create(**{"model": model, "messages": USER, "max_tokens": 5, **settings})
            raise AssertionError(settings)
        except kind as error:
            assert error.body["type"] == "error" and error.body["error"]["type"] == error.type, error.body
    try:
        client.with_options(api_key="wrong").messages.create(model=model, messages=USER, max_tokens=5)
        raise AssertionError("a wrong key was accepted")
    except anthropic.AuthenticationError as error:
        assert error.type == "authentication_error", error.body


def check_asynchronous(client, model):
    async def run():
        async with anthropic.AsyncAnthropic(base_url=str(client.base_url), api_key=client.api_key) as other:
            async with other.messages.stream(model=model, messages=USER, max_tokens=5) as stream:
                return await stream.get_final_message()
    assert asyncio.run(run()).usage.output_tokens > 0


def check_thinking(client, model):
    # The same text has several token sequences, between which only a temperature of 0 always decides alike.
    body = {"structured_outputs": {"choice": ["<think>Why?</think>So."]}, "temperature": 0}
    found = same(client, model=model, messages=USER, max_tokens=100, thinking={"type": "enabled", "budget_tokens": 1024}, extra_body=body)
    assert [block.type for block in found.content] == ["thinking", "text"], found
    assert (found.content[0].thinking, found.content[1].text) == ("Why?", "So.")
    messages = USER + [{"role": "assistant", "content": found.content}] + USER
    assert client.messages.create(model=model, messages=messages, max_tokens=1).usage.output_tokens == 1


def with_server(checks, *options):
    key = "0123456789abcdef0123456789abcdef"
    with tempfile.TemporaryDirectory() as where:
        keys = os.path.join(where, "keys")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(key + "\n")
        with served("stories260k/hf", "--api-key-file", keys, *options) as url:
            client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
            for check in checks:
                check(client, "model")


def main():
    with_server((check_text, check_tools, check_parsed, check_errors, check_asynchronous), "--template", TOOLS)
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "closed.jinja")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CLOSED)
        with_server((check_thinking,), "--template", path, "--reasoning-parser", "qwen3", "--tool-call-parser", "hermes")
    print("anthropic", anthropic.__version__, "passed")


main()
