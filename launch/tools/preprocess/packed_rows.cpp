#include "launch/tools/preprocess/packed_rows.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/data/layouts/messages.h"
#include "engine/data/layouts/steps.h"
#include "engine/models/spec.h"

namespace troupe::launch::tools::preprocess {
namespace {

namespace data = engine::data;
using Ids = std::vector<std::int32_t>;
using data::Purpose;

constexpr std::int32_t not_trained_label = -100;

Ids labels_of(const data::SftExample& example) {
  Ids out;
  for (std::size_t i = 0; i < example.ids.size(); ++i)
    out.push_back(example.weights[i] != 0 ? example.ids[i] : not_trained_label);
  return out;
}

TokenDocument document_of(Ids ids) {
  return {std::move(ids)};
}

// The text of an answer: a string, or a number as it is written.
Result<std::string> answer_text(const Json& value, std::string_view name) {
  if (value.is_string()) return value.string();
  if (value.is_number() || value.is_bool()) return value.dump();
  return fail(Errc::bad_input, cat("expected text under ", quote(name), ", found ",
                                   value.is_null() ? "nothing" : value.type_name()));
}

// The last message of a conversation, if it is the assistant's; null: none.
Json last_answer(const data::Columns& columns) {
  const Json* list = columns.first({"messages", "conversations"});
  if (!list) return {};
  const auto messages = data::to_messages(*list, columns.tags());
  if (!messages || messages->array().empty() || !data::is_assistant(messages->array().back()))
    return {};
  const Json* content = messages->array().back().find("content");
  return content ? *content : Json();
}

}  // namespace

Result<std::unique_ptr<PackedRows>> PackedRows::create(Options options) {
  std::unique_ptr<PackedRows> out(new PackedRows(std::move(options)));
  const Options& own = out->options_;
  RETURN_IF_ERROR(out->check_options());
  auto map = column_map(*own.handler, own.map_keys);
  RETURN_IF_ERROR(map);
  out->map_ = std::move(*map);
  const auto tokenizer = engine::tokenizer::Tokenizer::load(own.tokenizer);
  RETURN_IF_ERROR(tokenizer);
  engine::models::DecoderSpec spec;
  spec.vocabulary = static_cast<std::int64_t>(tokenizer->vocab_size());
  auto model = run::TextModel::load(own.tokenizer, own.prompt_type, spec);
  RETURN_IF_ERROR(model);
  out->model_ = std::move(*model);
  out->layout_ = {.purpose = own.handler->purpose,
                  .layout = own.handler->layout,
                  .columns = out->map_.columns,
                  .tags = out->map_.tags,
                  .chat_template = out->model_->has_chat_template(),
                  .vocabulary = spec.vocabulary};
  if (own.handler->purpose == Purpose::steps) {
    auto tokens = data::find_step_tokens(own.placeholder, own.reward_tokens, *out->model_);
    RETURN_IF_ERROR(tokens);
    out->encode_.steps.tokens = std::move(*tokens);
  }
  RETURN_IF_ERROR(out->name_outputs());
  return out;
}

Result<> PackedRows::check_options() const {
  const Handler& handler = *options_.handler;
  if (!options_.additional_keys.empty() && !handler.answers)
    return fail(Errc::usage, cat("--dataset-additional-keys: ", handler.name, " writes none; the ",
                                 "handlers R1... and Math17k... do"));
  if (!options_.reward_tokens.empty() && handler.purpose != Purpose::steps)
    return fail(Errc::usage, cat("--reward-tokens: ", handler.name, " has no process rewards"));
  return {};
}

Result<> PackedRows::name_outputs() {
  std::vector<std::string> keys = {"input_ids", "attention_mask"};
  const Purpose purpose = options_.handler->purpose;
  if (purpose == Purpose::pairs)
    keys = {"chosen_input_ids", "chosen_labels", "rejected_input_ids", "rejected_labels"};
  if (purpose == Purpose::sft || purpose == Purpose::steps) keys.push_back("labels");
  for (const std::string& key : options_.additional_keys) {
    if (std::ranges::find(keys, key) != keys.end() || key.empty() ||
        key.find('/') != std::string::npos)
      return fail(Errc::usage, cat("--dataset-additional-keys: ", quote(key),
                                   ": expected another name that can be part of a file's name"));
    keys.push_back(key);
  }
  for (const std::string& key : keys) outputs_.push_back("packed_" + key);
  return {};
}

Result<std::vector<TokenDocument>> PackedRows::encode(const data::Row& row) const {
  try {
    auto documents = encode_row(row);
    if (!documents && !documents.error().what.starts_with(row.where()))
      return fail(documents.error().code, cat(row.where(), ": ", documents.error().what));
    if (!documents) return documents;
    const auto limit = static_cast<std::size_t>(options_.sequence_length);
    const bool longer = limit > 0 && std::ranges::any_of(*documents, [&](const auto& document) {
                          return document.front().size() >= limit;
                        });
    if (longer) documents->clear();
    left_out_ += documents->empty();
    return documents;
  } catch (const Failure& failure) {
    return fail(failure.error().code, cat(row.where(), ": ", failure.error().what));
  }
}

Result<std::vector<TokenDocument>> PackedRows::encode_row(const data::Row& row) const {
  data::LayoutOptions layout = layout_;
  if (layout.layout == data::Layout::automatic) {
    const auto found = data::detect_layout(row, layout);
    RETURN_IF_ERROR(found);
    layout.layout = *found;
  }
  const auto sample = data::to_sample(row, layout);
  RETURN_IF_ERROR(sample);
  switch (layout.purpose) {
    case Purpose::pairs:
      return pair(*sample);
    case Purpose::steps:
      return process_rewards(*sample);
    case Purpose::prompts:
      return prompt(*sample, row);
    default:
      return instruction(*sample);
  }
}

Result<std::vector<TokenDocument>> PackedRows::instruction(const data::Sample& sample) const {
  const auto example = data::encode_sft(sample, *model_, encode_);
  RETURN_IF_ERROR(example);
  std::vector<TokenDocument> out;
  if (!*example) return out;
  out.push_back(document_of((*example)->ids));
  out.push_back(document_of(Ids((*example)->ids.size(), 1)));
  out.push_back(document_of(labels_of(**example)));
  return out;
}

Result<std::vector<TokenDocument>> PackedRows::pair(const data::Sample& sample) const {
  const auto example = data::encode_pair(sample, *model_, encode_);
  RETURN_IF_ERROR(example);
  std::vector<TokenDocument> out;
  if (!*example) return out;
  for (const data::SftExample* side : {&(*example)->chosen, &(*example)->rejected}) {
    out.push_back(document_of(side->ids));
    out.push_back(document_of(labels_of(*side)));
  }
  return out;
}

Result<std::vector<TokenDocument>> PackedRows::process_rewards(const data::Sample& sample) const {
  const auto example = data::encode_steps(sample, *model_, encode_);
  RETURN_IF_ERROR(example);
  std::vector<TokenDocument> out;
  if (!*example) return out;
  Ids labels;
  for (const std::int32_t reward : (*example)->classes)
    labels.push_back(reward < 0
                         ? not_trained_label
                         : encode_.steps.tokens->reward_ids[static_cast<std::size_t>(reward)]);
  out.push_back(document_of((*example)->ids));
  out.push_back(document_of(Ids((*example)->ids.size(), 1)));
  out.push_back(document_of(std::move(labels)));
  return out;
}

Result<std::vector<TokenDocument>> PackedRows::prompt(const data::Sample& sample,
                                                      const data::Row& row) const {
  const auto example = data::encode_prompt(sample, *model_, encode_);
  RETURN_IF_ERROR(example);
  std::vector<TokenDocument> out;
  if (!*example) return out;
  out.push_back(document_of((*example)->ids));
  out.push_back(document_of(Ids((*example)->ids.size(), 1)));
  Json answer = sample.answer;
  if (answer.is_null())
    answer = last_answer(data::Columns(row.value, layout_.columns, layout_.tags));
  for (const std::string& key : options_.additional_keys) {
    const Json* column = row.value.find(key);
    const auto text = answer_text(key == "labels" ? answer : (column ? *column : Json()), key);
    RETURN_IF_ERROR(text);
    auto ids = model_->encode(*text, false);
    RETURN_IF_ERROR(ids);
    out.push_back(document_of(std::move(*ids)));
  }
  return out;
}

}  // namespace troupe::launch::tools::preprocess
