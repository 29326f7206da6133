#include "launch/run/text_model.h"

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/prompt_types.h"
#include "launch/config/run_config.h"

namespace troupe::launch::run {
namespace tokenizer = engine::tokenizer;

namespace {

// Converts spans of code points, which the template engine uses as Python does, to bytes.
std::vector<std::pair<std::size_t, std::size_t>> byte_spans(
    const std::string& text, const std::vector<std::pair<std::size_t, std::size_t>>& spans) {
  std::vector<std::size_t> starts;
  if (spans.empty()) return {};
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) starts.push_back(i);
  starts.push_back(text.size());
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (const auto& [begin, end] : spans) out.emplace_back(starts.at(begin), starts.at(end));
  return out;
}

}  // namespace

Result<std::shared_ptr<TextModel>> TextModel::load(const std::string& folder,
                                                   const std::string& template_file,
                                                   const engine::models::DecoderSpec& spec,
                                                   tokenizer::TokenizerIds ids) {
  auto model = std::make_shared<TextModel>();
  model->folder_ = folder;
  model->vocabulary_ = spec.vocabulary;
  if (tokenizer::Tokenizer::is_in(folder)) {
    auto loaded = tokenizer::Tokenizer::load(folder, ids);
    RETURN_IF_ERROR(loaded);
    if (static_cast<std::int64_t>(loaded->vocab_size()) > spec.vocabulary)
      log_warning(cat(folder, ": the tokenizer has ", loaded->vocab_size(), " tokens, the model ",
                      spec.vocabulary, "; rows with other tokens are rejected"));
    model->tokenizer_ = std::move(*loaded);
    model->begin_ = model->tokenizer_->bos_id();
    model->end_ = model->tokenizer_->eos_id();
    model->tokens_ = tokenizer::template_tokens(folder);
    // The tokenizer also knows the tokens that its class has by default.
    for (const auto& [name, token] : {std::pair("bos_token", model->tokenizer_->bos()),
                                      std::pair("eos_token", model->tokenizer_->eos())})
      if (token) model->tokens_.insert_or_assign(name, token->text);
  }
  if (!model->end_ && !spec.eos_ids.empty()) model->end_ = spec.eos_ids.front();
  auto found = template_file.empty() ? tokenizer::ChatTemplate::load(folder)
                                     : tokenizer::load_file_or_prompt_type(template_file);
  if (found) {
    model->template_ = std::move(*found);
  } else if (found.error().code != Errc::not_found || !template_file.empty()) {
    return fail(found);
  }
  return model;
}

Result<std::shared_ptr<TextModel>> TextModel::load(const config::RunConfig& config,
                                                   const engine::models::DecoderSpec& spec) {
  return load(config.model, config.chat_template, spec, config.tokenizer_ids);
}

Result<std::vector<std::int32_t>> TextModel::encode(std::string_view text, bool add_special) const {
  if (!tokenizer_)
    return fail(
        Errc::not_found,
        cat(folder_, " has no tokenizer, but the data is text: add one, or use rows of token ids"));
  return tokenizer_->encode(text, add_special);
}

Result<engine::data::RenderedChat> TextModel::render_chat(const Json& messages,
                                                          bool add_generation_prompt,
                                                          const Json& tools) const {
  if (!template_)
    return fail(Errc::not_found, cat(folder_,
                                     " has no chat template, but the rows are dialogues: set "
                                     "chat_template to a template file or to the name of a prompt "
                                     "type (chatml, qwen, llama3, ...)"));
  tokenizer::RenderInput input;
  input.messages = messages;
  input.tools = tools;
  input.add_generation_prompt = add_generation_prompt;
  input.tokens = tokens_;
  const auto rendered = template_->render(input);
  RETURN_IF_ERROR(rendered);
  return engine::data::RenderedChat{rendered->text,
                                    byte_spans(rendered->text, rendered->assistant_spans)};
}

std::string TextModel::decode(std::span<const std::int32_t> ids) const {
  return tokenizer_ ? tokenizer_->decode(ids, true) : std::string();
}

std::vector<std::pair<std::string, bool>> TextModel::pieces(
    std::span<const std::int32_t> ids, std::span<const std::uint8_t> sampled) const {
  std::vector<std::pair<std::string, bool>> out;
  if (!tokenizer_ || sampled.size() != ids.size()) return out;
  bool mark = true;
  const auto append = [&](const std::string& text) {
    if (text.empty()) return;
    if (out.empty() || out.back().second != mark) out.emplace_back("", mark);
    out.back().first += text;
  };
  tokenizer::StreamDecoder decoder(*tokenizer_, true);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    mark = sampled[t] != 0;
    append(decoder.push(ids[t]));
  }
  append(decoder.finish());
  return out;
}

std::string TextModel::decode_all(std::span<const std::int32_t> ids) const {
  return tokenizer_ ? tokenizer_->decode(ids, false) : std::string();
}

}  // namespace troupe::launch::run
