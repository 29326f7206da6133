#include "launch/serve/api/fields/field_table.h"

#include "launch/serve/api/fields/sampling_rows.h"

namespace troupe::launch::serve::api {

namespace {

constexpr FieldRow response_fields[] = {
    {"input", openai | vllm | llama | sglang, Effect::acts,
     "a text or a list of items; see [Responses](serving.md#responses)"},
    {"instructions", openai | vllm | llama | sglang, Effect::acts,
     "the first message, of role system"},
    {"max_output_tokens", openai | vllm | llama | sglang, Effect::acts,
     "most tokens of the answer with its reasoning; as many as the context holds"},
    {"text", openai | vllm | sglang, Effect::acts,
     "`format`: text, json_object or json_schema; `verbosity`: medium only"},
    {"reasoning", openai | vllm | llama | sglang, Effect::acts,
     "`effort`: for the template; `summary` is without effect"},
    {"tools", openai | vllm | llama | sglang, Effect::acts, "functions that the model may call"},
    {"tool_choice", openai | vllm | llama | sglang, Effect::acts,
     "`none`, `auto`, `required`, a function, or `allowed_tools`; `auto`"},
    {"parallel_tool_calls", openai | vllm | llama | sglang, Effect::acts,
     "more than one call is allowed; true"},
    {"include", openai | vllm | sglang, Effect::acts,
     "names of things that never occur here or are always there; log-probabilities are refused"},
    {"include_reasoning", vllm, Effect::acts, "false: reasoning is left out of the answer; true"},
    {"stop", vllm | llama | sglang, Effect::acts,
     "a text or a list of at most 64 texts, of at most 1,024 bytes, that end the output and are "
     "cut from it"},
    {"metadata", openai | vllm | sglang, Effect::acts, "repeated in the answer"},
    {"user", openai | vllm | sglang, Effect::acts, "repeated in the answer"},
    {"safety_identifier", openai | vllm, Effect::acts, "repeated in the answer"},
    {"prompt_cache_key", openai | vllm, Effect::acts, "repeated in the answer"},
    {"stream_options", openai | llama, Effect::acts,
     "an object; `include_obfuscation` is without effect"},
    {"store", openai | vllm | sglang, Effect::without_effect, "nothing is stored"},
    {"service_tier", openai | vllm | sglang, Effect::without_effect, "there is one"},
    {"max_tool_calls", openai | vllm | sglang, Effect::without_effect,
     "counts the tools of the server, which has none"},
    {"prompt_cache_retention", openai | vllm, Effect::without_effect,
     "pages stay until space is needed"},
    {"prompt_cache_options", openai | vllm, Effect::without_effect,
     "the prefix cache changes no result"},
    {"previous_response_id", openai | vllm | llama | sglang, Effect::refused,
     "the server keeps no responses; send the whole conversation as input", "\"\""},
    {"conversation", openai, Effect::refused,
     "the server keeps no responses; send the whole conversation as input"},
    {"previous_input_messages", vllm, Effect::refused, "send the whole conversation as input"},
    {"background", openai | vllm | sglang, Effect::refused, "the answer is that of the request",
     "false"},
    {"background_options", openai, Effect::refused, "the answer is that of the request"},
    {"prompt", openai | vllm, Effect::refused, "the server has no stored prompts; send input"},
    {"context_management", openai, Effect::refused, "the server drops nothing of a conversation",
     "[]"},
    {"truncation", openai | vllm | sglang, Effect::refused,
     "the server drops nothing of a conversation", "\"disabled\""},
    {"top_logprobs", openai | vllm | llama | sglang, Effect::refused,
     "use logprobs of /v1/chat/completions", "0"},
    {"enable_response_messages", vllm, Effect::refused, "the answer has output items", "false"},
    {"image", openai, Effect::refused, "answers are text"},
    {"access_programs", openai, Effect::refused, "the server has none", "[]"},
    {"moderation", openai, Effect::refused, "answers are those of the model"},
    {"messages", troupe, Effect::refused, "use input"},
    {"max_tokens", llama, Effect::refused, "use max_output_tokens"},
    {"response_format", llama, Effect::refused, "use text.format"},
    {"reasoning_effort", troupe, Effect::refused, "use reasoning.effort"},
};

constexpr FieldRow message_fields[] = {
    {"max_tokens", anthropic | vllm | llama | sglang, Effect::acts,
     "most tokens of the answer with its reasoning; required"},
    {"stop_sequences", anthropic | vllm | llama | sglang, Effect::acts,
     "a list of at most 64 texts, of at most 1,024 bytes, that end the output and are cut from it"},
};

constexpr FieldRow message_conversation[] = {
    {"messages", anthropic | vllm | llama | sglang, Effect::acts,
     "of roles user and assistant; see [Messages](serving.md#messages)"},
    {"system", anthropic | vllm | llama | sglang, Effect::acts, "a text or blocks of type text"},
    {"tools", anthropic | vllm | llama | sglang, Effect::acts, "functions that the model may call"},
    {"tool_choice", anthropic | vllm | llama | sglang, Effect::acts,
     "an object of type `auto`, `any`, `tool` or `none`, with `disable_parallel_tool_use`"},
    {"thinking", anthropic | vllm | llama | sglang, Effect::acts,
     "an object of type `enabled`, `disabled` or `adaptive`: for the template"},
    {"output_config", anthropic | vllm, Effect::acts,
     "`format`: json_schema; `effort`: for the template"},
    {"cache_control", anthropic, Effect::without_effect, "prompts are always cached"},
    {"user_profile_id", anthropic, Effect::without_effect, "nothing is stored"},
    {"workspace_id", anthropic, Effect::without_effect, "nothing is stored"},
    {"billing_policy", anthropic, Effect::without_effect, "nothing is billed"},
    {"context_management", anthropic, Effect::refused,
     "the server drops nothing of a conversation"},
    {"compaction", anthropic, Effect::refused, "the server drops nothing of a conversation"},
    {"mcp_servers", anthropic, Effect::refused, "the server runs no tools", "[]"},
    {"speed", anthropic, Effect::refused, "the server has one", "\"standard\""},
    {"output_format", troupe, Effect::refused, "use output_config"},
    {"response_format", troupe, Effect::refused, "use output_config.format"},
    {"reasoning_effort", troupe, Effect::refused, "use output_config.effort"},
    {"parallel_tool_calls", troupe, Effect::refused, "use tool_choice.disable_parallel_tool_use",
     "true"},
};

constexpr FieldRow message_others[] = {
    {"metadata", anthropic | vllm | llama | sglang, Effect::without_effect, "nothing is stored"},
    {"service_tier", anthropic, Effect::without_effect, "there is one"},
    {"fallback_credit_token", anthropic, Effect::without_effect, "nothing is billed"},
    {"container", anthropic, Effect::refused, "the server runs no tools"},
    {"inference_geo", anthropic, Effect::refused, "the server has one place"},
    {"diagnostics", anthropic, Effect::refused, "the server compares no requests"},
    {"fallbacks", anthropic, Effect::refused, "the answer is that of the named model", "[]"},
    {"thread", anthropic, Effect::refused, "the server keeps no conversations"},
    {"stop", troupe, Effect::refused, "use stop_sequences", "[]"},
    {"top_logprobs", troupe, Effect::refused, "use /v1/chat/completions", "0"},
};

// Of a request whose tokens are counted.
constexpr FieldRow uncounted[] = {
    {"max_tokens", troupe, Effect::without_effect, "the prompt is counted"},
    {"stop_sequences", troupe, Effect::without_effect, "the prompt is counted"},
    {"stream", troupe, Effect::without_effect, "the prompt is counted"},
    {"temperature", troupe, Effect::without_effect, "the prompt is counted"},
    {"top_p", troupe, Effect::without_effect, "the prompt is counted"},
    {"top_k", troupe, Effect::without_effect, "the prompt is counted"},
    {"metadata", troupe, Effect::without_effect, "nothing is stored"},
    {"service_tier", troupe, Effect::without_effect, "there is one"},
    {"truncate_prompt_tokens", troupe, Effect::refused, "the whole prompt is counted"},
};

constexpr FieldRow counted[] = {
    {"model", anthropic | vllm | llama | sglang, Effect::acts,
     "the served name, or that of an adapter; others get 404. Absent: the model"},
    {"add_special_tokens", troupe, Effect::acts, "adds BOS, where the template does not; false"},
};

constexpr FieldRow template_fields[] = {
    {"chat_template_kwargs", vllm | llama | sglang, Effect::acts, "variables for the template"},
    {"documents", troupe, Effect::acts, "for the template"},
    {"media_io_kwargs", vllm, Effect::refused, "answers are to texts"},
    {"mm_processor_kwargs", vllm, Effect::refused, "answers are to texts"},
    {"add_generation_prompt", llama, Effect::refused, "the answer is a new message", "true"},
    {"continue_final_message", llama, Effect::refused, "the answer is a new message", "false"},
};

// Whose results the answers have no place for.
constexpr FieldRow chat_only_fields[] = {
    {"max_completion_tokens", llama, Effect::refused, "of /v1/chat/completions only"},
    {"n_predict", llama, Effect::refused, "of /v1/chat/completions only", "-1"},
    {"n", llama, Effect::refused, "of /v1/chat/completions only", "1"},
    {"n_cmpl", llama, Effect::refused, "of /v1/chat/completions only", "1"},
    {"logprobs", llama, Effect::refused, "of /v1/chat/completions only", "false"},
    {"prompt_logprobs", troupe, Effect::refused, "of /v1/chat/completions only"},
    {"logprob_token_ids", troupe, Effect::refused, "of /v1/chat/completions only"},
    {"return_token_ids", troupe, Effect::refused, "of /v1/chat/completions only", "false"},
    {"return_tokens_as_token_ids", troupe, Effect::refused, "of /v1/chat/completions only",
     "false"},
    {"return_weight_versions", troupe, Effect::refused, "of /v1/chat/completions only", "false"},
    {"return_sampling_mask", troupe, Effect::refused, "of /v1/chat/completions only", "false"},
    {"functions", troupe, Effect::refused, "use tools and tool_choice", "[]"},
    {"function_call", troupe, Effect::refused, "use tools and tool_choice"},
    {"modalities", troupe, Effect::refused, "answers are text", "[\"text\"]"},
    {"audio", troupe, Effect::refused, "answers are text"},
    {"echo", llama, Effect::refused, "of /v1/completions only", "false"},
};

}  // namespace

std::vector<EndpointFields> format_tables() {
  return {
      {"/v1/responses",
       {response_fields, template_fields, sampling_rows(), chat_only_fields, unsupported_rows()}},
      {"/v1/messages",
       {message_conversation, message_fields, message_others, template_fields, sampling_rows(),
        chat_only_fields, unsupported_rows()}},
      {"/v1/messages/count_tokens",
       {message_conversation, counted, template_fields, uncounted, unsupported_rows()}}};
}

}  // namespace troupe::launch::serve::api
