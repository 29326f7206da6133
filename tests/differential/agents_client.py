"""openai-agents and instructor with /v1/responses of troupe serve: agents_client.py PROGRAM SOURCE. Exit code 77: they are not installed."""
import asyncio
import importlib.metadata
import sys
import typing

from serving import TOOLS, served

try:
    import agents
    import instructor
    import openai
    import pydantic
except ImportError:
    print("SKIP: openai-agents or instructor is not installed")
    sys.exit(77)

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 5, "b": 6}}\n</tool_call>'
called = []


@agents.function_tool
def add(a: int, b: int) -> str:
    """Adds."""
    called.append((a, b))
    return str(a + b)


class Length(pydantic.BaseModel):
    a: int
    unit: typing.Literal["cm", "inch"]


def settings(text=None, **more):
    """Settings of a model that writes a given text."""
    body = {} if text is None else {"structured_outputs": {"choice": [text]}}
    return agents.ModelSettings(extra_body=dict(body, seed=1), max_tokens=150, parallel_tool_calls=False, **more)


async def check_agents(url):
    agents.set_tracing_disabled(True)
    agents.set_default_openai_client(openai.AsyncOpenAI(base_url=url + "/v1", api_key="unused"), use_for_tracing=False)
    talker = agents.Agent(name="talker", instructions="Be brief.", model="model", model_settings=settings("Five."))
    result = await agents.Runner.run(talker, "Add.")
    assert result.final_output == "Five.", result
    again = await agents.Runner.run(talker, result.to_input_list() + [{"role": "user", "content": "Again."}])
    assert again.final_output == "Five." and again.raw_responses[0].usage.input_tokens > result.raw_responses[0].usage.input_tokens
    # The tool is called once; its result is the output.
    caller = agents.Agent(name="caller", model="model", tools=[add], model_settings=settings("So: " + CALL), tool_use_behavior="stop_on_first_tool")
    result = await agents.Runner.run(caller, "Add.")
    assert (result.final_output, called) == ("11", [(5, 6)]), (result.final_output, called)
    forced = agents.Agent(name="forced", model="model", tools=[add], model_settings=settings(tool_choice="required"), tool_use_behavior="stop_on_first_tool")
    streamed = agents.Runner.run_streamed(forced, "Add.")
    kinds = [event.data.type async for event in streamed.stream_events() if event.type == "raw_response_event"]
    assert streamed.final_output == str(sum(called[-1])) and "response.function_call_arguments.delta" in kinds, kinds
    # After a forced call the choice is automatic again: the model sees the result and writes free text.
    turns = agents.Agent(name="turns", model="model", tools=[add], model_settings=settings(tool_choice="required"))
    try:
        result = await agents.Runner.run(turns, "Add.", max_turns=2)
        assert [type(item).__name__ for item in result.new_items][:2] == ["ToolCallItem", "ToolCallOutputItem"], result.new_items
    except agents.MaxTurnsExceeded:
        pass  # a random model may call again
    parsed = agents.Agent(name="parsed", model="model", output_type=Length, model_settings=settings())
    result = await agents.Runner.run(parsed, "Measure.")
    assert isinstance(result.final_output, Length), result


def check_instructor(url):
    client = openai.OpenAI(base_url=url + "/v1", api_key="unused", max_retries=0)
    patched = instructor.from_openai(client, mode=instructor.Mode.RESPONSES_TOOLS)
    for n in range(3):
        found = patched.responses.create(model="model", input="Measure.", response_model=Length, max_output_tokens=200, max_retries=0, extra_body={"seed": n})
        assert isinstance(found, Length), found


def main():
    with served("stories260k/hf", "--template", TOOLS) as url:
        asyncio.run(check_agents(url))
        check_instructor(url)
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("openai-agents", "instructor", "openai"))
    print(", ".join(versions), "passed")


main()
