#include "launch/serve/api/fields/field_table.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::api {

namespace {

constexpr FieldRow pooled_fields[] = {
    {"model", openai | vllm | llama | sglang, Effect::acts, "the served name"},
    {"use_activation", vllm, Effect::acts,
     "probabilities instead of the outputs of a score head, true for /classify and scores; "
     "hidden states of length 1, true for embeddings"},
    {"truncate_prompt_tokens", vllm, Effect::acts,
     "keeps this number of tokens of a longer text; -1: as many as the context allows"},
    {"truncation_side", vllm, Effect::acts,
     "left: the last tokens are kept; right: the first ones; left"},
    {"add_special_tokens", vllm, Effect::acts,
     "texts get special tokens; true for texts, false for conversations"},
    {"user", openai | vllm | llama | sglang, Effect::without_effect, "nothing is stored"},
    {"request_id", vllm, Effect::without_effect, "answers have the id of the HTTP request"},
    {"rid", sglang, Effect::without_effect, "answers have the id of the HTTP request"},
    {"cache_salt", vllm, Effect::without_effect, "texts are computed without a cache"},
    {"extra_body", troupe, Effect::refused, "its members belong to the request itself"},
    {"priority", vllm | sglang, Effect::refused, "texts start in the turns of API keys", "0"},
    {"lora_path", sglang, Effect::refused, "adapters are served with generation only"},
    {"padding", vllm, Effect::refused, "texts are computed without padding", "\"do_not_pad\""},
    {"mm_processor_kwargs", vllm, Effect::refused, "answers are to texts"},
};

constexpr FieldRow activation_fields[] = {
    {"softmax", troupe, Effect::acts, "older name of use_activation"},
    {"activation", troupe, Effect::acts, "older name of use_activation"},
};

constexpr FieldRow texts_fields[] = {
    {"input", openai | vllm | llama | sglang, Effect::acts,
     "a text, a list of texts, a list of token ids or a list of such lists"},
    {"messages", vllm, Effect::acts, "a conversation, instead of `input`"},
    {"add_generation_prompt", vllm, Effect::acts,
     "the text ends with the beginning of an answer; false"},
    {"continue_final_message", vllm, Effect::acts, "the text ends within the last message; false"},
    {"chat_template_kwargs", vllm, Effect::acts, "variables for the template"},
    {"documents", troupe, Effect::acts, "for the template"},
    {"reasoning_effort", troupe, Effect::acts, "as in a chat request"},
    {"chat_template", vllm, Effect::refused, "the template of the server is used; see --template"},
    {"media_io_kwargs", vllm, Effect::refused, "answers are to texts"},
};

constexpr FieldRow bytes_fields[] = {
    {"encoding_format", openai | vllm | llama | sglang, Effect::acts,
     "`float`; `base64`: the bytes of the numbers as text; `bytes_only`: the answer is the bytes "
     "of "
     "all texts; `bytes`: with a header `metadata`, of at most 256 texts; float"},
    {"embed_dtype", vllm, Effect::acts,
     "of bytes: `float32`, `float16`, `bfloat16`, `fp8_e4m3` or `fp8_e5m2`; float32"},
    {"endianness", vllm, Effect::acts, "of bytes: `native`, `little` or `big`; native"},
    {"dimensions", openai | vllm | sglang, Effect::refused, "an embedding has all its dimensions"},
};

constexpr FieldRow task_fields[] = {
    {"task", vllm, Effect::acts,
     "embed, token_embed, classify or token_classify, where the model has it"},
};

constexpr FieldRow embedding_fields[] = {
    {"embed_overrides", sglang, Effect::refused, "embeddings are those of the tokens"},
    {"embed_override_token_id", sglang, Effect::refused, "embeddings are those of the tokens"},
};

constexpr FieldRow scored_fields[] = {
    {"documents", vllm | llama | sglang, Effect::acts, "a text or a list: the second of each pair"},
    {"chat_template_kwargs", vllm, Effect::refused,
     "the tokens of both texts are joined, without a template"},
    {"instruction", vllm, Effect::refused,
     "the tokens of both texts are joined, without a template"},
    {"max_tokens_per_query", vllm, Effect::refused, "use truncate_prompt_tokens", "0"},
    {"max_tokens_per_doc", vllm, Effect::refused, "use truncate_prompt_tokens", "0"},
};

constexpr FieldRow pairs_fields[] = {
    {"text_1", vllm, Effect::acts, "the first of each pair: a text or a list"},
    {"text_2", vllm, Effect::acts, "the second of each pair: a text or a list"},
    {"queries", vllm, Effect::acts, "the same as text_1"},
    {"items", vllm, Effect::acts, "the same as text_2"},
    {"data_1", vllm, Effect::acts, "the same as text_1"},
    {"data_2", vllm, Effect::acts, "the same as text_2"},
};

constexpr FieldRow ranked_fields[] = {
    {"query", vllm | llama | sglang, Effect::acts, "a text, with which each document is scored"},
    {"texts", llama, Effect::acts,
     "the same as documents; the answer is then a list of `index` and `score`, as that of "
     "text-embeddings-inference"},
    {"top_n", vllm | llama | sglang, Effect::acts, "the number of documents in the answer; 0: all"},
    {"return_documents", sglang, Effect::acts, "the answer repeats the documents; true"},
    {"return_text", llama, Effect::acts,
     "the same as return_documents; false where the request has texts"},
    {"instruct", sglang, Effect::refused,
     "the tokens of both texts are joined, without a template"},
};

/// A part of field_tables().
std::vector<EndpointFields> pooling_tables() {
  return {{"/pooling", {texts_fields, task_fields, pooled_fields, activation_fields, bytes_fields}},
          {"/classify", {texts_fields, pooled_fields, activation_fields}},
          {"/score", {pairs_fields, scored_fields, pooled_fields, activation_fields}},
          {"/rerank", {ranked_fields, scored_fields, pooled_fields, activation_fields}},
          {"/v1/embeddings", {texts_fields, pooled_fields, bytes_fields, embedding_fields}}};
}

}  // namespace

EndpointFields::EndpointFields(std::string path, std::vector<std::span<const FieldRow>> groups)
    : path_(std::move(path)) {
  for (const auto& group : groups)
    for (const FieldRow& row : group) {
      check(find(row.name) == nullptr, cat(path_, ": two rows of the field ", row.name));
      rows_.push_back(&row);
    }
}

const FieldRow* EndpointFields::find(std::string_view name) const {
  const auto found = std::ranges::find(rows_, name, [](const FieldRow* row) { return row->name; });
  return found == rows_.end() ? nullptr : *found;
}

bool is_absent_value(const FieldRow& row, const Json& value) {
  if (value.is_null()) return true;
  if (row.absent.empty()) return false;
  const Json absent = value_or_throw(parse_json(row.absent, row.name));
  if (absent.is_number() && value.is_number()) return absent.number() == value.number();
  return absent == value;
}

const std::vector<EndpointFields>& field_tables() {
  static const std::vector<EndpointFields> tables = [] {
    std::vector<EndpointFields> all = generation_tables();
    std::ranges::move(format_tables(), std::back_inserter(all));
    std::ranges::move(pooling_tables(), std::back_inserter(all));
    return all;
  }();
  return tables;
}

const EndpointFields& fields_of(std::string_view path) {
  const auto& tables = field_tables();
  const auto found = std::ranges::find(tables, path, &EndpointFields::path);
  check(found != tables.end(), cat("the endpoint ", path, " has no table of fields"));
  return *found;
}

}  // namespace troupe::launch::serve::api
