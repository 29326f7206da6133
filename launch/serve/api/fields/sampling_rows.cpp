#include "launch/serve/api/fields/sampling_rows.h"

#include <deque>
#include <string>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/serve/api/fields/sampling_names.h"

namespace troupe::launch::serve::api {

namespace {

constexpr FieldRow acting[] = {
    {"model", openai | anthropic | vllm | llama | sglang, Effect::acts,
     "the served name, or that of an adapter; others get 404. Absent: the model"},
    {"logit_bias", openai | vllm | llama | sglang, Effect::acts,
     "object from token ids to biases, -100 to 100; at most 65,536"},
    {"allowed_token_ids", vllm, Effect::acts, "only these tokens are sampled"},
    {"seed", openai | vllm | llama | sglang, Effect::acts, "of sampling; at random"},
    {"stop_token_ids", vllm | sglang, Effect::acts, "at most 1,024 tokens that end the output"},
    {"include_stop_str_in_output", vllm, Effect::acts, "keeps the text of `stop`; false"},
    {"skip_special_tokens", vllm | sglang, Effect::acts, "the text has no special tokens; true"},
    {"structured_outputs", vllm, Effect::acts,
     "one of `json` (a schema), `regex`, `choice`, `grammar`, `json_object`"},
    {"guided_json", troupe, Effect::acts, "older name of structured_outputs.json"},
    {"guided_regex", troupe, Effect::acts, "older name of structured_outputs.regex"},
    {"guided_choice", troupe, Effect::acts, "older name of structured_outputs.choice"},
    {"guided_grammar", troupe, Effect::acts, "older name of structured_outputs.grammar"},
    {"json_schema", llama | sglang, Effect::acts,
     "structured_outputs.json under the name of llama.cpp and SGLang"},
    {"grammar", llama, Effect::acts, "structured_outputs.grammar under the name of llama.cpp"},
    {"regex", sglang, Effect::acts, "structured_outputs.regex under the name of SGLang"},
    {"ebnf", sglang, Effect::acts, "structured_outputs.grammar under the name of SGLang"},
    {"stream", openai | anthropic | vllm | llama | sglang, Effect::acts,
     "server-sent events; false"},
    {"add_special_tokens", vllm, Effect::acts,
     "adds BOS to texts; true for completions, false for chat, where the template writes it"},
    {"truncate_prompt_tokens", vllm, Effect::acts,
     "keeps this number of tokens of a longer prompt; -1: as many as the context allows"},
    {"truncation_side", vllm, Effect::acts,
     "left: the last tokens are kept; right: the first ones; left"},
    {"cache_salt", vllm | sglang, Effect::acts,
     "requests with different ones share nothing of the prefix cache; a text of at most 256 "
     "bytes; with API keys, that of the key"},
};

constexpr FieldRow others[] = {
    {"request_id", vllm | sglang, Effect::without_effect,
     "answers have the id of the HTTP request"},
    {"rid", sglang, Effect::without_effect, "answers have the id of the HTTP request"},
    {"session_id", vllm | sglang, Effect::without_effect,
     "sequences start in the turns of API keys"},
    {"extra_key", sglang, Effect::without_effect, "sequences start in the turns of API keys"},
    {"custom_labels", sglang, Effect::without_effect, "metrics have the labels of vLLM"},
    {"guided_decoding_backend", troupe, Effect::without_effect, "there is one"},
    {"cache_prompt", llama, Effect::without_effect,
     "the prefix cache changes no result; cache_salt separates requests"},
    {"id_slot", llama, Effect::without_effect, "sequences have no fixed slots"},
    {"backend_sampling", llama, Effect::without_effect,
     "where tokens are sampled changes no result"},
    {"sse_ping_interval", llama, Effect::without_effect, "streams have no comments"},
    {"spaces_between_special_tokens", vllm, Effect::without_effect, "decoding adds no spaces"},
    {"mm_payload", vllm, Effect::without_effect, "only with return_mm_kwargs, which is refused"},
    {"routed_experts_prompt_start", vllm, Effect::without_effect,
     "only with routed experts, which are not returned"},
    {"routed_experts_start_len", sglang, Effect::without_effect,
     "only with return_routed_experts, which is refused"},
    {"repeat_last_n", llama, Effect::without_effect, "only with repeat_penalty, which is refused"},
    {"dry_base", llama, Effect::without_effect, "only with dry_multiplier, which is refused"},
    {"dry_allowed_length", llama, Effect::without_effect,
     "only with dry_multiplier, which is refused"},
    {"dry_penalty_last_n", llama, Effect::without_effect,
     "only with dry_multiplier, which is refused"},
    {"dry_sequence_breakers", llama, Effect::without_effect,
     "only with dry_multiplier, which is refused"},
    {"xtc_threshold", llama, Effect::without_effect, "only with xtc_probability, which is refused"},
    {"dynatemp_exponent", llama, Effect::without_effect,
     "only with dynatemp_range, which is refused"},
    {"mirostat_tau", llama, Effect::without_effect, "only with mirostat, which is refused"},
    {"mirostat_eta", llama, Effect::without_effect, "only with mirostat, which is refused"},
    {"adaptive_decay", llama, Effect::without_effect,
     "only with adaptive_target, which is refused"},
    {"reasoning_budget_start_tag", llama, Effect::without_effect,
     "only with reasoning_budget_tokens, which is refused"},
    {"reasoning_budget_end_tag", llama, Effect::without_effect,
     "only with reasoning_budget_tokens, which is refused"},
    {"reasoning_budget_end_tags", llama, Effect::without_effect,
     "only with reasoning_budget_tokens, which is refused"},
    {"reasoning_budget_message", llama, Effect::without_effect,
     "only with reasoning_budget_tokens, which is refused"},
    {"n_cache_reuse", llama, Effect::without_effect,
     "how much of the cache is used changes no result"},
    {"extra_body", troupe, Effect::refused, "its members belong to the request itself"},
    {"use_beam_search", vllm, Effect::refused, "troupe generate --num-beams searches", "false"},
    {"length_penalty", vllm, Effect::refused, "troupe generate --num-beams searches", "1"},
    {"logits_processors", troupe, Effect::refused, "the server runs no code of a request", "[]"},
    {"custom_logit_processor", sglang, Effect::refused, "the server runs no code of a request"},
    {"custom_params", sglang, Effect::refused, "the server runs no code of a request"},
    {"vllm_xargs", vllm, Effect::refused, "the server runs no code of a request"},
    {"watermarking", vllm, Effect::refused, "tokens are sampled from the distribution of the model",
     "false"},
    {"repetition_detection", vllm, Effect::refused, "use repetition_penalty"},
    {"thinking_token_budget", vllm, Effect::refused, "use max_tokens"},
    {"reasoning_budget_tokens", llama, Effect::refused, "use max_tokens", "-1"},
    {"reasoning_control", llama, Effect::refused, "reasoning ends where the model ends it",
     "false"},
    {"reasoning_format", llama, Effect::refused, "the server has a --reasoning-parser", "\"auto\""},
    {"priority", vllm | sglang, Effect::refused, "sequences start in the turns of API keys", "0"},
    {"stream_interval", vllm, Effect::refused, "each token is an event", "1"},
    {"return_token_offsets", vllm, Effect::refused, "logprobs of completions have text_offset",
     "false"},
    {"return_mm_kwargs", vllm, Effect::refused, "answers are to texts", "false"},
    {"images_config", sglang, Effect::refused, "answers are to texts"},
    {"kv_transfer_params", vllm, Effect::refused,
     "prefill and decoding are not divided between servers"},
    {"ec_transfer_params", vllm, Effect::refused,
     "prefill and decoding are not divided between servers"},
    {"bootstrap_host", sglang, Effect::refused,
     "prefill and decoding are not divided between servers"},
    {"bootstrap_port", sglang, Effect::refused,
     "prefill and decoding are not divided between servers"},
    {"bootstrap_room", sglang, Effect::refused,
     "prefill and decoding are not divided between servers"},
    {"disagg_prefill_dp_rank", sglang, Effect::refused,
     "prefill and decoding are not divided between servers"},
    {"routed_dp_rank", sglang, Effect::refused, "there is one engine"},
    {"data_parallel_rank", sglang, Effect::refused, "there is one engine"},
    {"ngram_corpus_id", sglang, Effect::refused,
     "drafts come from the sequence, or from the model of --draft"},
    {"session_params", sglang, Effect::refused, "send the whole conversation"},
    {"lora_path", sglang, Effect::refused, "name the adapter as model"},
    {"lora", llama, Effect::refused, "name the adapter as model", "[]"},
    {"stop_regex", sglang, Effect::refused, "use stop, or a constraint"},
    {"no_stop_trim", sglang, Effect::refused, "use include_stop_str_in_output", "false"},
    {"return_hidden_states", sglang, Effect::refused,
     "troupe serve --runner pooling gives embeddings", "false"},
    {"return_routed_experts", sglang, Effect::refused, "the experts of tokens are not kept",
     "false"},
    {"return_cached_tokens_details", sglang, Effect::refused,
     "usage.prompt_tokens_details has cached_tokens", "false"},
    {"return_tokens", llama, Effect::refused, "use return_token_ids", "false"},
    {"return_progress", llama, Effect::refused, "streams begin with the first token", "false"},
    {"timings_per_token", llama, Effect::refused, "GET /metrics has times", "false"},
    {"verbose", llama, Effect::refused, "answers have no settings", "false"},
    {"response_fields", llama, Effect::refused, "answers have all fields", "[]"},
    {"n_probs", llama, Effect::refused, "use logprobs", "0"},
    {"post_sampling_probs", llama, Effect::refused, "log-probabilities are those of the model",
     "false"},
    {"min_keep", llama, Effect::refused, "the server has no such sampler", "0"},
    {"n_indent", llama, Effect::refused, "use a constraint", "0"},
    {"n_keep", llama, Effect::refused, "a context is never shifted", "0"},
    {"n_discard", llama, Effect::refused, "a context is never shifted", "0"},
    {"t_max_predict_ms", llama, Effect::refused, "use max_tokens", "-1"},
    {"top_n_sigma", llama, Effect::refused, "the server has no such sampler", "-1"},
    {"xtc_probability", llama, Effect::refused, "the server has no such sampler", "0"},
    {"dynatemp_range", llama, Effect::refused, "the server has no such sampler", "0"},
    {"mirostat", llama, Effect::refused, "the server has no such sampler", "0"},
    {"adaptive_target", llama, Effect::refused, "the server has no such sampler", "-1"},
    {"dry_multiplier", llama, Effect::refused, "the server has no such sampler", "0"},
    {"repeat_penalty", llama, Effect::refused, "use repetition_penalty, which is over all tokens",
     "1"},
    {"samplers", llama, Effect::refused, "the order of the filters is fixed"},
    {"grammar_lazy", llama, Effect::refused, "constraints hold from the first token", "false"},
    {"grammar_triggers", llama, Effect::refused, "constraints hold from the first token", "[]"},
    {"preserved_tokens", llama, Effect::refused, "texts are tokenized as the tokenizer does", "[]"},
    {"chat_format", llama, Effect::refused, "the template of the server is used; see --template"},
    {"chat_parser", llama, Effect::refused, "see --tool-call-parser and --reasoning-parser"},
    {"generation_prompt", llama, Effect::refused,
     "the template writes it; see add_generation_prompt"},
    {"parse_tool_calls", llama, Effect::refused, "set tool_choice to \"none\"", "true"},
};

/// Notes, which rows refer to, and the rows with those of SamplingParams.
struct SamplingRows {
  SamplingRows() : rows(std::begin(acting), std::end(acting)) {
    const engine::generate::SamplingParams params;
    each_common_param(
        params, [&](std::string_view name, const auto&, const Range& range, std::string_view text) {
          const RequestParam* param = request_param(name);
          const std::string allowed = range_text(range);
          notes.push_back(cat(text, param ? param->note : std::string_view(),
                              allowed.empty() ? "" : cat(" (", allowed, ")")));
          rows.push_back(
              {request_name(name), param ? param->peers : troupe, Effect::acts, notes.back()});
        });
  }
  std::deque<std::string> notes;
  std::vector<FieldRow> rows;
};

}  // namespace

std::span<const FieldRow> sampling_rows() {
  static const SamplingRows all;
  return all.rows;
}

std::span<const FieldRow> unsupported_rows() {
  return others;
}

}  // namespace troupe::launch::serve::api
