"""The official openai client with troupe serve: openai_client.py PROGRAM SOURCE. Exit code 77: the client is not installed."""
import sys
import typing

from serving import TOOLS, served

try:
    import openai
    import pydantic
except ImportError:
    print("SKIP: the openai client is not installed")
    sys.exit(77)

MESSAGES = [{"role": "user", "content": "4,5,6:"}]


class Add(pydantic.BaseModel):
    a: int
    unit: typing.Literal["cm", "inch"]


def check_completions(client, model):
    settings = {"model": model, "prompt": "4,5,6:", "max_tokens": 8, "seed": 1, "temperature": 1.0}
    whole = client.completions.create(logprobs=2, n=2, **settings)
    assert [choice.index for choice in whole.choices] == [0, 1]
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    first = whole.choices[0]
    assert len(first.logprobs.tokens) == len(first.logprobs.token_logprobs) == len(first.logprobs.top_logprobs)
    assert first.finish_reason in ("stop", "length")
    chunks = list(client.completions.create(stream=True, stream_options={"include_usage": True}, **settings))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == first.text
    assert chunks[-1].usage.completion_tokens > 0
    scored = client.completions.create(model=model, prompt=[[3, 4, 5], [5, 4, 3, 2]], echo=True, logprobs=1, max_tokens=0)
    assert [len(choice.logprobs.token_logprobs) for choice in scored.choices] == [3, 4]
    assert scored.choices[0].logprobs.token_logprobs[0] is None


def check_chat(client, model):
    settings = {"model": model, "messages": MESSAGES, "max_completion_tokens": 8, "seed": 1}
    whole = client.chat.completions.create(logprobs=True, top_logprobs=3, **settings)
    message = whole.choices[0].message
    assert message.role == "assistant" and isinstance(message.content, str)
    content = whole.choices[0].logprobs.content
    assert len(content) == whole.usage.completion_tokens
    assert all(len(each.top_logprobs) == 3 for each in content)
    chunks = list(client.chat.completions.create(stream=True, **settings))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == message.content
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    ids = client.chat.completions.create(extra_body={"return_token_ids": True}, **settings).choices[0].token_ids
    assert len(ids) == whole.usage.completion_tokens


def check_errors(client, model):
    try:
        client.chat.completions.create(model="other", messages=MESSAGES)
        raise AssertionError("another model was accepted")
    except openai.NotFoundError as error:
        assert (error.param, error.code) == ("model", "model_not_found")
    try:
        client.completions.create(model=model, prompt="4,", temperature=-1)
        raise AssertionError("a negative temperature was accepted")
    except openai.BadRequestError as error:
        assert error.param == "temperature"
    try:
        client.chat.completions.create(model=model, messages=MESSAGES, tools=[{"type": "function", "function": {"name": "f"}}])
        raise AssertionError("tools were accepted, which the template does not have")
    except openai.BadRequestError as error:
        assert error.code == "unsupported_parameter"


def check_tools(client, model):
    tool = openai.pydantic_function_tool(Add)
    settings = {"model": model, "messages": MESSAGES, "tools": [tool], "max_tokens": 200, "seed": 1}
    text = 'So: <tool_call>\n{"name": "Add", "arguments": {"a": 5, "unit": "cm"}}\n</tool_call>'
    for choice, finish in (("required", "tool_calls"), ({"type": "function", "function": {"name": "Add"}}, "stop"), ("auto", "tool_calls")):
        body = {"structured_outputs": {"choice": [text]}} if choice == "auto" else {}
        whole = client.chat.completions.create(tool_choice=choice, parallel_tool_calls=False, extra_body=body, **settings).choices[0]
        call = whole.message.tool_calls[0]
        assert (call.type, call.function.name, whole.finish_reason) == ("function", "Add", finish), whole
        Add.model_validate_json(call.function.arguments)
        with client.chat.completions.stream(tool_choice=choice, parallel_tool_calls=False, extra_body=body, **settings) as stream:
            streamed = stream.get_final_completion().choices[0].message
        assert streamed.tool_calls[0].function.arguments == call.function.arguments
        assert streamed.tool_calls[0].function.parsed_arguments == Add.model_validate_json(call.function.arguments)
        assert (streamed.content or "") == (whole.message.content or "")
    messages = MESSAGES + [whole.message, {"role": "tool", "tool_call_id": call.id, "content": "5 cm"}]
    assert client.chat.completions.create(model=model, messages=messages, tools=[tool], max_tokens=4).usage.completion_tokens > 0


def check_structured_output(client, model):
    parsed = client.chat.completions.parse(model=model, messages=MESSAGES, response_format=Add, max_tokens=200, seed=1).choices[0].message.parsed
    assert isinstance(parsed, Add)
    chosen = client.completions.create(model=model, prompt="Did she?", extra_body={"structured_outputs": {"choice": ["yes", "no"]}})
    assert chosen.choices[0].text in ("yes", "no")


def check_embeddings(client, model):
    found = client.embeddings.create(model=model, input=["Once upon a time", "The end"])
    plain = client.embeddings.create(model=model, input="The end", encoding_format="float")
    assert [entry.index for entry in found.data] == [0, 1] and found.usage.prompt_tokens > 0
    assert list(found.data[1].embedding) == plain.data[0].embedding


def responded(client, **settings):
    """The whole response, whose output the stream has, too; each has the members that the client's types need."""
    whole = client.responses.create(**settings)
    openai.types.responses.Response.model_validate(whole.to_dict())
    with client.responses.stream(**settings) as stream:
        events = list(stream)
    assert events[0].type == "response.created", events[0]
    last = events[-1]
    assert last.type == f"response.{whole.status}", last
    for event in client.responses.create(stream=True, **settings):
        pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent).validate_python(event.to_dict())
    texts = ("".join(event.delta for event in events if event.type == "response.output_text.delta"), last.response.output_text)
    assert texts == (whole.output_text, whole.output_text), texts
    assert [item.type for item in last.response.output] == [item.type for item in whole.output]
    return whole


def check_responses(client, model):
    settings = {"model": model, "extra_body": {"seed": 1}}
    found = responded(client, input="4,5,6:", instructions="Go on.", max_output_tokens=8, temperature=1.0, metadata={"a": "b"}, **settings)
    assert found.usage.total_tokens == found.usage.input_tokens + found.usage.output_tokens
    assert (found.metadata, found.instructions) == ({"a": "b"}, "Go on.")
    history = [{"role": "user", "content": "4,5,6:"}, *found.output, {"role": "user", "content": "And?"}]
    assert responded(client, input=history, max_output_tokens=4, **settings).usage.input_tokens > found.usage.input_tokens
    try:
        client.responses.create(input="x", previous_response_id="resp_1", **settings)
        raise AssertionError("an earlier response was accepted")
    except openai.BadRequestError as error:
        assert error.param == "previous_response_id"


def check_response_tools(client, model):
    tool = {"type": "function", "name": "Add", "description": "Adds.", "strict": True, "parameters": Add.model_json_schema()}
    text = 'So: <tool_call>\n{"name": "Add", "arguments": {"a": 5, "unit": "cm"}}\n</tool_call>'
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "Add"}]}
    for choice in ("required", {"type": "function", "name": "Add"}, allowed, "auto"):
        body = {"seed": 1, **({"structured_outputs": {"choice": [text]}} if choice == "auto" else {})}
        found = responded(client, model=model, input="Add.", tools=[tool], tool_choice=choice, parallel_tool_calls=False, max_output_tokens=200, extra_body=body)
        call = found.output[-1]
        assert (call.type, call.name, call.status) == ("function_call", "Add", "completed"), found
        Add.model_validate_json(call.arguments)
    items = [{"role": "user", "content": "Add."}, *found.output, {"type": "function_call_output", "call_id": call.call_id, "output": "5 cm"}]
    assert responded(client, model=model, input=items, tools=[tool], max_output_tokens=4, extra_body={"seed": 1}).usage.input_tokens > found.usage.input_tokens
    parsed = client.responses.parse(model=model, input="Add.", tools=[openai.pydantic_function_tool(Add)], tool_choice="required", max_output_tokens=200,
                                    parallel_tool_calls=False)
    assert isinstance(parsed.output[0].parsed_arguments, Add)
    parsed = client.responses.parse(model=model, input="Add.", text_format=Add, max_output_tokens=200)
    assert isinstance(parsed.output_parsed, Add), parsed
    with client.responses.stream(model=model, input="Add.", text_format=Add, max_output_tokens=200) as stream:
        assert isinstance(stream.get_final_response().output_parsed, Add)


def with_server(model, checks, *options):
    with served(model, *options) as url:
        client = openai.OpenAI(base_url=url + "/v1", api_key="unused", max_retries=0)
        model = client.models.list().data[0].id
        assert client.models.retrieve(model).id == model
        for check in checks:
            check(client, model)


def main():
    with_server("digit-completion", (check_completions, check_chat, check_errors))
    with_server("stories260k/hf", (check_tools, check_responses, check_response_tools, check_structured_output), "--template", TOOLS)
    with_server("stories260k/hf", (check_embeddings,), "--runner", "pooling")
    print("openai", openai.__version__, "passed")


main()
