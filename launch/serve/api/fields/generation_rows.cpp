#include "launch/serve/api/fields/field_table.h"

#include "launch/serve/api/fields/sampling_rows.h"

namespace troupe::launch::serve::api {

namespace {

constexpr FieldRow output_fields[] = {
    {"max_tokens", openai | vllm | llama | sglang, Effect::acts,
     "most tokens of an output; 16 for completions, else as many as the context holds. 0: none, "
     "for `echo`"},
    {"n_predict", llama, Effect::acts, "the same as max_tokens; -1: as many as the context holds"},
    {"n", openai | vllm | llama | sglang, Effect::acts, "outputs per prompt, 1 to 128; 1"},
    {"n_cmpl", llama, Effect::acts, "the same as n"},
    {"stop", openai | vllm | llama | sglang, Effect::acts,
     "a text or a list of at most 64 texts, of at most 1,024 bytes, that end the output and are "
     "cut from it"},
    {"response_format", openai | vllm | llama | sglang, Effect::acts,
     "`text`, `json_object` (with an optional `schema`) or `json_schema`"},
    {"stream_options", openai | vllm | llama | sglang, Effect::acts,
     "`include_usage`, and with it `continuous_usage_stats`"},
    {"prompt_logprobs", vllm, Effect::acts,
     "number of alternatives per token of the prompt, 0 to 20; -1: the whole vocabulary"},
    {"logprob_token_ids", vllm, Effect::acts,
     "with logprobs: the alternatives of each token are these, at most 128, instead of the most "
     "likely"},
    {"return_tokens_as_token_ids", vllm, Effect::acts, "tokens are reported as `token_id:17`"},
    {"return_token_ids", vllm | sglang, Effect::acts,
     "adds `token_ids` and `prompt_token_ids`, which are null otherwise"},
    {"return_weight_versions", vllm, Effect::acts, "adds `weight_versions`, a version per token"},
    {"return_sampling_mask", troupe, Effect::acts,
     "with logprobs: adds `sampling_mask`, the tokens that each token was sampled from, in base64 "
     "(grpo.md#sampling-masks), and `sampling_logprobs`, over these tokens at the request's "
     "temperature"},
    {"user", openai | vllm | sglang, Effect::without_effect, "nothing is stored"},
};

constexpr FieldRow completion_fields[] = {
    {"prompt", openai | vllm | llama | sglang, Effect::acts,
     "a text, a list of texts, a list of token ids or a list of such lists"},
    {"best_of", openai | sglang, Effect::acts,
     "sequences of which the `n` with the highest log-probability are returned and counted"},
    {"echo", openai | vllm | llama | sglang, Effect::acts,
     "the prompt is part of the answer; false"},
    {"logprobs", openai | vllm | llama | sglang, Effect::acts,
     "number of alternatives per token, 0 to 20"},
    {"max_completion_tokens", llama, Effect::acts, "the same as max_tokens"},
    {"parallel_tool_calls", troupe, Effect::without_effect, "completions have no tools"},
    {"metadata", troupe, Effect::without_effect, "nothing is stored"},
    {"store", troupe, Effect::without_effect, "nothing is stored"},
    {"service_tier", troupe, Effect::without_effect, "there is one"},
    {"suffix", openai | vllm | sglang, Effect::refused, "the model does not fill in the middle",
     "\"\""},
    {"prompt_embeds", vllm, Effect::refused, "send text or token ids"},
    {"continue_final_message", llama, Effect::refused, "of /v1/chat/completions only", "false"},
};

constexpr FieldRow chat_fields[] = {
    {"messages", openai | vllm | llama | sglang, Effect::acts, "the conversation"},
    {"max_completion_tokens", openai | vllm | llama | sglang, Effect::acts,
     "newer name of max_tokens, takes precedence"},
    {"logprobs", openai | vllm | llama | sglang, Effect::acts, "reports log-probabilities; false"},
    {"top_logprobs", openai | vllm | llama | sglang, Effect::acts,
     "with logprobs: number of alternatives per token, 0 to 20"},
    {"tools", openai | vllm | llama | sglang, Effect::acts, "functions that the model may call"},
    {"tool_choice", openai | vllm | llama | sglang, Effect::acts,
     "`none`, `auto`, `required`, a function, or `allowed_tools`; `auto`"},
    {"parallel_tool_calls", openai | vllm | llama | sglang, Effect::acts,
     "more than one call is allowed; true"},
    {"reasoning_effort", openai | vllm | sglang, Effect::acts,
     "none, minimal, low, medium, high, xhigh or max: for the template, with `enable_thinking` "
     "false for none and else true"},
    {"include_reasoning", vllm, Effect::acts, "false: reasoning is left out of the answer; true"},
    {"chat_template_kwargs", vllm | llama | sglang, Effect::acts, "variables for the template"},
    {"add_generation_prompt", vllm | llama, Effect::acts,
     "the prompt ends with the beginning of an answer; true"},
    {"continue_final_message", vllm | llama | sglang, Effect::acts,
     "the answer continues the last message; false"},
    {"documents", vllm, Effect::acts, "for the template"},
    {"modalities", openai, Effect::acts, "[\"text\"] only"},
    {"metadata", openai, Effect::without_effect, "nothing is stored"},
    {"store", openai, Effect::without_effect, "nothing is stored"},
    {"service_tier", openai, Effect::without_effect, "there is one"},
    {"safety_identifier", openai, Effect::without_effect, "nothing is stored"},
    {"prompt_cache_key", openai, Effect::without_effect, "cache_salt separates requests"},
    {"prompt_cache_retention", openai, Effect::without_effect, "pages stay until space is needed"},
    {"prompt_cache_options", openai, Effect::without_effect, "the prefix cache changes no result"},
    {"prediction", openai, Effect::without_effect, "a hint for drafts, which change no result"},
    {"functions", openai, Effect::refused, "use tools and tool_choice", "[]"},
    {"function_call", openai, Effect::refused, "use tools and tool_choice"},
    {"audio", openai, Effect::refused, "answers are text"},
    {"moderation", openai, Effect::refused, "answers are those of the model"},
    {"web_search_options", openai, Effect::refused, "the server searches nothing"},
    {"verbosity", openai, Effect::refused, "say so in a message", "\"medium\""},
    {"chat_template", vllm, Effect::refused, "the template of the server is used; see --template"},
    {"echo", vllm | llama, Effect::refused, "of /v1/completions only", "false"},
    {"return_prompt_text", vllm, Effect::refused,
     "POST /tokenize with the messages gives the prompt", "false"},
    {"return_prompt_token_ids", sglang, Effect::refused, "use return_token_ids", "false"},
    {"return_meta_info", sglang, Effect::refused, "answers have usage", "false"},
    {"input_ids", sglang, Effect::refused, "use /v1/completions"},
    {"task", sglang, Effect::refused, "send the prompt of the task as a message"},
    {"separate_reasoning", sglang, Effect::refused, "the server has a --reasoning-parser", "true"},
    {"stream_reasoning", sglang, Effect::refused, "streams have every token", "true"},
    {"media_io_kwargs", vllm, Effect::refused, "answers are to texts"},
    {"mm_processor_kwargs", vllm, Effect::refused, "answers are to texts"},
    {"max_dynamic_patch", sglang, Effect::refused, "answers are to texts"},
    {"min_dynamic_patch", sglang, Effect::refused, "answers are to texts"},
    {"use_audio_in_video", sglang, Effect::refused, "answers are to texts", "false"},
};

constexpr FieldRow token_fields[] = {
    {"prompt", vllm | sglang, Effect::acts, "a text, instead of `messages`"},
    {"add_special_tokens", vllm | sglang, Effect::acts,
     "adds BOS; true for a text, false for a conversation"},
    {"return_token_strs", vllm, Effect::acts, "adds `token_strs`; false"},
};

constexpr FieldRow conversation_fields[] = {
    {"model", vllm | sglang, Effect::acts, "the served name, or that of an adapter"},
    {"messages", vllm | llama | sglang, Effect::acts, "a conversation"},
    {"tools", vllm | llama | sglang, Effect::acts, "for the template"},
    {"tool_choice", llama | sglang, Effect::acts, "as in a chat request"},
    {"parallel_tool_calls", llama, Effect::acts, "as in a chat request"},
    {"reasoning_effort", sglang, Effect::acts, "as in a chat request"},
    {"chat_template_kwargs", vllm | llama | sglang, Effect::acts, "variables for the template"},
    {"add_generation_prompt", vllm | llama, Effect::acts,
     "the prompt ends with the beginning of an answer; true"},
    {"continue_final_message", vllm | llama | sglang, Effect::acts,
     "the text ends within the last message; false"},
    {"documents", troupe, Effect::acts, "for the template"},
    {"chat_template", vllm, Effect::refused, "the template of the server is used; see --template"},
    {"media_io_kwargs", vllm, Effect::refused, "answers are to texts"},
    {"mm_processor_kwargs", vllm, Effect::refused, "answers are to texts"},
};

constexpr FieldRow detokenize_fields[] = {
    {"model", vllm | sglang, Effect::acts, "the served name, or that of an adapter"},
    {"tokens", vllm | sglang, Effect::acts, "token ids"},
    {"skip_special_tokens", sglang, Effect::acts, "the text has no special tokens; false"},
};

}  // namespace

std::vector<EndpointFields> generation_tables() {
  return {
      {"/v1/completions", {completion_fields, output_fields, sampling_rows(), unsupported_rows()}},
      {"/v1/chat/completions", {chat_fields, output_fields, sampling_rows(), unsupported_rows()}},
      {"/tokenize", {token_fields, conversation_fields}},
      {"/apply-template", {conversation_fields}},
      {"/detokenize", {detokenize_fields}}};
}

}  // namespace troupe::launch::serve::api
