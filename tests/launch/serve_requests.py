"""Requests of every endpoint of troupe serve and of a run with serve.listen, for tests that cancel and fuzz them."""
import json
import os
import re

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
                                                                               "required": ["city"]}}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "legs": {"type": "integer", "minimum": 0, "maximum": 8}},
          "required": ["name", "legs"]}
MESSAGES = [{"role": "user", "content": "Tell me a story."}]

# Without the lengths of prompt and output, which a test chooses.
COMPLETIONS = {
    "plain": {},
    "logprobs": {"logprobs": 3},
    "echo": {"echo": True},
    "echo with logprobs": {"echo": True, "logprobs": 0},
    "echo with alternatives": {"echo": True, "logprobs": 20},
    "prompt_logprobs": {"prompt_logprobs": 0},
    "prompt_logprobs with alternatives": {"prompt_logprobs": 5, "logprobs": 2, "return_token_ids": True},
    "n": {"n": 3},
    "n with echo": {"n": 3, "echo": True, "logprobs": 2, "prompt_logprobs": 1},
    "best_of": {"n": 2, "best_of": 4},
    "stop": {"stop": ["never", "Zyx"], "stop_token_ids": [7], "include_stop_str_in_output": True},
    "biases": {"logit_bias": {str(token): token % 7 for token in range(3, 200)}},
    "allowed tokens": {"allowed_token_ids": list(range(3, 400))},
    "penalties": {"presence_penalty": 1, "frequency_penalty": 1, "repetition_penalty": 1.2, "min_p": 0.01, "top_k": 40},
    "ids": {"return_token_ids": True, "return_weight_versions": True, "return_tokens_as_token_ids": True, "logprobs": 1},
    "masks": {"return_sampling_mask": True, "logprobs": 1, "top_k": 3},
    "salt": {"cache_salt": "of a client"},
    "named alternatives": {"logprobs": 1, "logprob_token_ids": [3, 4, 300]},
    "truncated": {"truncate_prompt_tokens": 2, "truncation_side": "right"},
    "typical": {"typical_p": 0.5, "n_cmpl": 2},
    "regex": {"structured_outputs": {"regex": "[a-z ]{300,400}"}},
    "regex and allowed tokens": {"structured_outputs": {"regex": "[a-z ]*"}, "allowed_token_ids": list(range(3, 500))},
    "choice": {"structured_outputs": {"choice": ["yes" * 100, "no" * 100]}},
    "grammar": {"structured_outputs": {"grammar": 'root ::= "a" root | "b"'}},
    "schema": {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
}
CHATS = {
    "plain": {},
    "logprobs": {"logprobs": True, "top_logprobs": 4},
    "prompt_logprobs": {"prompt_logprobs": 2},
    "n": {"n": 3},
    "json": {"response_format": {"type": "json_object"}},
    "tools": {"tools": [TOOL], "tool_choice": "required"},
    "named tool": {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
}
RESPONSE_TOOL = {"type": "function", **TOOL["function"]}
RESPONSES = {
    "plain": {"instructions": "Be brief.", "metadata": {"a": "b"}, "store": True, "user": "me"},
    "items": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "y"}]},
                        {"type": "function_call", "call_id": "abcdefghi", "name": "weather", "arguments": '{"city": "Oslo"}'},
                        {"type": "function_call_output", "call_id": "abcdefghi", "output": "12"}]},
    "json": {"text": {"format": {"type": "json_object"}}},
    "schema": {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}},
    "tools": {"tools": [RESPONSE_TOOL], "tool_choice": "required", "parallel_tool_calls": False},
    "named tool": {"tools": [RESPONSE_TOOL], "tool_choice": {"type": "function", "name": "weather"}},
    "allowed tools": {"tools": [RESPONSE_TOOL], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "weather"}]}},
}
MESSAGE_TOOL = {"name": "weather", "input_schema": TOOL["function"]["parameters"]}
ANTHROPIC = {
    "plain": {"system": [{"type": "text", "text": "Be brief."}], "metadata": {"user_id": "me"}},
    "blocks": {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]},
                            {"role": "assistant", "content": [{"type": "thinking", "thinking": "y", "signature": ""}, {"type": "tool_use", "id": "abcdefghi", "name": "weather", "input": {}}]},
                            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "abcdefghi", "content": "12"}, {"type": "text", "text": "z"}]}]},
    "stop": {"stop_sequences": ["never", "Zyx"], "top_k": 40, "top_p": 0.9, "temperature": 0.5},
    "schema": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "tools": {"tools": [MESSAGE_TOOL], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
    "named tool": {"tools": [MESSAGE_TOOL], "tool_choice": {"type": "tool", "name": "weather"}},
}
STREAMS = {"": {}, " streamed": {"stream": True}, " streamed with usage": {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}}


def kinds(prompt, tokens):
    """(name, path, body) of requests that generate `tokens` tokens after `prompt`."""
    limits = {"max_tokens": tokens, "ignore_eos": True, "seed": 1}
    for stream, more in STREAMS.items():
        for path, key, start, fields in (("/v1/completions", "prompt", prompt, COMPLETIONS), ("/v1/chat/completions", "messages", MESSAGES, CHATS)):
            for name, of_kind in fields.items():
                if stream and ("prompt_logprobs" in of_kind or name == "best_of"):
                    continue
                # A conversation has a longer prompt.
                length = tokens if key == "prompt" else min(tokens, 120)
                yield f"{path} {name}{stream}", path, {key: start, **limits, "max_tokens": length, **of_kind, **more}
        if "usage" in stream:
            continue
        yield f"/invocations text{stream}", "/invocations", {"prompt": prompt, **limits, **more}
        yield f"/invocations chat{stream}", "/invocations", {"messages": MESSAGES, **limits, "max_tokens": min(tokens, 120), **more}
        for path, key, start, limit, fields in (("/v1/responses", "input", MESSAGES[0]["content"], "max_output_tokens", RESPONSES),
                                                ("/v1/messages", "messages", MESSAGES, "max_tokens", ANTHROPIC)):
            for name, of_kind in fields.items():
                yield f"{path} {name}{stream}", path, {key: start, "ignore_eos": True, "seed": 1, limit: min(tokens, 120), **of_kind, **more}


def others(pooling):
    """(path, body) of one request of each endpoint that answers without generating."""
    texts = ["The cat sat on the mat.", "Mat the on sat."]
    found = [("/tokenize", {"prompt": "Tell me a story.", "return_token_strs": True}), ("/detokenize", {"tokens": [3, 4, 5]}), ("/apply-template", {"messages": MESSAGES}),
             ("/v1/messages/count_tokens", {"messages": MESSAGES, "tools": [MESSAGE_TOOL]}), ("/pooling", {"input": texts}), ("/classify", {"input": texts}),
             ("/score", {"text_1": texts[0], "text_2": texts}), ("/v1/score", {"queries": texts[0], "items": texts}),
             *((path, {"query": texts[0], "documents": texts, "top_n": 1}) for path in ("/rerank", "/v1/rerank", "/v2/rerank")),
             ("/v1/embeddings", {"input": texts, "encoding_format": "base64", "embed_dtype": "float16", "endianness": "big"})]
    if pooling:
        found += [(path, {"prompt": "Once"}) for path in ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages")]
    return found


EXPERIENCE = [("/v1/lease", {"groups": 1}), ("/v1/experience", {"sample_id": 1, "lease": "x", "token_ids": [3, 4], "logprobs": [-1, -2], "reward": 1,
                                                                "weight_versions": [0, 0], "finish_reason": "stop"})]
GETS = ["/health", "/ping", "/livez", "/readyz", "/version", "/load", "/tokenizer_info", "/metrics", "/v1/models", "/v1/models/*"]


def routes(source):
    """The paths that the program's tables of routes have."""
    found = set()
    for name in ("api/api.cpp", "formats/chat_formats.cpp", "live/experience_api.cpp"):
        with open(os.path.join(source, "launch/serve", name), encoding="utf-8") as file:
            found.update(re.findall(r'(?:add\w*\((?:router, )?|\{"(?:GET|POST)", |\.path = )"(/[^"]+)"', file.read()))
    return found


def check_routes(source):
    """Fails where an endpoint has no request here."""
    covered = {path for _, path, _ in kinds([3], 1)} | {path for path, _ in others(False) + EXPERIENCE} | set(GETS)
    table = routes(source)
    assert len(table) > 15, table
    assert table == covered, f"endpoints without a request in serve_requests.py: {table - covered}; no endpoints: {covered - table}"


def mutated(rng, body):
    """The body with some fields of other kinds, other values, or other types."""
    body = json.loads(json.dumps(body))
    values = [None, True, False, 0, 1, -1, 2, 7, 20, 21, 128, 1024, 2**31, 2**63 - 1, -2**63, 1e308, 0.5, "", "a", "\u0000", "\U0001F600", "x" * 300,
              [], [[]], {}, [3], [3, 4, 5], [-1], [10**9], ["a"] * 65, {"3": 1}, {"type": "text"}, {"x": {}}, [{"role": "user", "content": "x"}], [{"role": "tool"}]]
    names = sorted({name for fields in (*COMPLETIONS.values(), *CHATS.values(), *RESPONSES.values(), *ANTHROPIC.values()) for name in fields} | {
        "max_output_tokens", "reasoning", "text", "include", "truncation", "previous_response_id", "background", "thinking", "system",
        "prompt", "messages", "input", "tokens", "max_tokens", "max_completion_tokens", "min_tokens", "temperature", "top_p", "seed", "stream",
        "stream_options", "echo", "logprobs", "top_logprobs", "prompt_logprobs", "best_of", "model", "user", "text_1", "text_2", "groups", "sample_id",
        "lease", "reward", "add_special_tokens", "skip_special_tokens", "encoding_format", "use_activation", "unknown_field", "truncate_prompt_tokens", "logprob_token_ids", "reasoning_effort", "continue_final_message", "json_schema", "regex", "ebnf",
        "grammar", "task", "embed_dtype", "endianness", "top_n", "query", "chat_template_kwargs", "documents", "parallel_tool_calls"})
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        name = rng.choice(names if rng.random() < 0.6 or not body else list(body))
        action = rng.random()
        if action < 0.2:
            body.pop(name, None)
        elif action < 0.5:
            body.update(rng.choice([*COMPLETIONS.values(), *CHATS.values(), *RESPONSES.values(), *ANTHROPIC.values(), *STREAMS.values()]))
        else:
            body[name] = rng.choice(values)
    return body


def random_request(rng, live, longest, generates):
    """(method, path, bytes) of a request, mostly nearly right; `live`: with the endpoints of a run; `longest`: of a prompt;
    `generates`: the server is that of a language model."""
    kind = rng.random()
    if kind < 0.03:
        return "GET", rng.choice(GETS).replace("*", "x%2Fy"), b""
    if kind < (0.2 if generates else 0.9):
        path, body = rng.choice(others(rng.random() < 0.1) + (EXPERIENCE * 2 if live else []))
    else:
        prompts = [[rng.randrange(3, 500) for _ in range(rng.choice([1, 2, 20, longest]))] for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        prompt = prompts[0] if len(prompts) == 1 else prompts
        _, path, body = rng.choice(list(kinds(rng.choice([prompt, "Once upon a time"]), rng.choice([0, 1, 1, 3, 30]))))
    body = mutated(rng, body)
    text = json.dumps(body).encode()
    if rng.random() < 0.08:  # bytes
        at = rng.randrange(len(text) + 1)
        text = rng.choice([text[:at], text[:at] + bytes([rng.randrange(256)]) + text[at + 1:], text[:at] + text[at + 3:], text + text[:at],
                           bytes(rng.randrange(256) for _ in range(40)), b"[" * rng.randrange(1, 300), text[:at] + b"\xff\x00" + text[at:]])
    return rng.choice(["POST"] * 40 + ["PUT", "GET"]), path, text
