// tokenizer.json and the small files beside it, read into a Tokenizer. Format: Hugging Face tokenizers, tokenizer/serialization.rs.
#include <filesystem>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace troupe::engine::tokenizer {

class TokenizerFile {
 public:
  explicit TokenizerFile(std::string path) : path_(std::move(path)), parts_(std::make_shared<Tokenizer::Parts>()) {}

  Result<Tokenizer> read() {
    auto file = read_json(path_);
    if (!file) return fail(file.error());
    if (!file->is_object()) return fail(Errc::bad_input, cat(path_, ": must be an object, found ", file->type_name()));
    if (auto done = read_stages(*file); !done) return fail(done.error());
    if (auto done = read_added(*file); !done) return fail(done.error());
    if (auto done = read_names(); !done) return fail(done.error());
    return Tokenizer(std::move(parts_));
  }

 private:
  std::string place(std::string_view member) const { return cat(path_, ": \"", member, "\""); }

  template <class T>
  static Result<> store(Result<T> made, T& into) {
    if (!made) return fail(made.error());
    into = std::move(*made);
    return {};
  }

  Result<> read_stages(const Json& file) {
    const Json* model = file.find("model");
    if (!model) return fail(Errc::bad_input, cat(path_, ": the key \"model\" is missing"));
    const Json* pre_tokenizer = file.find("pre_tokenizer");
    const bool raw_bytes = ends_with_byte_level(pre_tokenizer) && can_take_bytes(*model);
    Result<> done = store(make_model(*model, raw_bytes, place("model")), parts_->model);
    if (done) done = store(make_normalizer(file.find("normalizer"), place("normalizer")), parts_->normalizer);
    if (done) done = store(make_pre_tokenizer(pre_tokenizer, raw_bytes, place("pre_tokenizer")), parts_->pre_tokenizer);
    if (done) done = store(PostProcessor::from_json(file.find("post_processor"), place("post_processor")), parts_->post_processor);
    if (done) done = store(make_decoders(file.find("decoder"), place("decoder")), parts_->decoders);
    return done;
  }

  Result<> read_added(const Json& file) {
    const std::string where = place("added_tokens");
    auto tokens = read_added_tokens(file.find("added_tokens"), parts_->model->vocabulary(), where);
    if (!tokens) return fail(tokens.error());
    std::vector<TokenMatcher::Entry> raw, normalized;
    for (const AddedToken& token : *tokens) {
      if (parts_->model->vocabulary().find(token.content) < 0 && !parts_->added.add(token.content, token.id))
        return fail(Errc::bad_input, cat(where, ": ", quote(token.content), " stands twice"));
      const auto id = static_cast<std::size_t>(token.id);
      if (token.special && parts_->special.size() <= id) parts_->special.resize(id + 1);
      if (token.special) parts_->special[id] = true;
      std::string text = token.content;
      if (token.normalized && parts_->normalizer) parts_->normalizer->apply(text);
      if (token.special) parts_->special_texts.insert(token.content);
      if (text != token.content) parts_->shown.emplace(token.id, text);
      (token.normalized ? normalized : raw).push_back({std::move(text), token});
    }
    parts_->raw_matcher = TokenMatcher(std::move(raw));
    parts_->normalized_matcher = TokenMatcher(std::move(normalized));
    return {};
  }

  // The first of tokenizer_config.json and special_tokens_map.json that names a token has it.
  Result<> read_names() {
    const auto folder = std::filesystem::path(path_).parent_path();
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
      const std::string path = (folder / name).string();
      std::error_code ignored;
      if (!std::filesystem::exists(path, ignored)) continue;
      auto config = read_json(path);
      if (!config) return fail(config.error());
      read_name(*config, "bos_token", parts_->bos);
      read_name(*config, "eos_token", parts_->eos);
      read_name(*config, "pad_token", parts_->pad);
      read_name(*config, "unk_token", parts_->unk);
    }
    return {};
  }

  void read_name(const Json& config, std::string_view key, std::optional<NamedToken>& into) const {
    const Json* value = config.find(key);
    if (value && value->is_object()) value = value->find("content");
    if (into || !value || !value->is_string()) return;
    TokenId id = parts_->added.find(value->string());
    if (id < 0) id = parts_->model->vocabulary().find(value->string());
    into = NamedToken{value->string(), id < 0 ? std::nullopt : std::optional(id)};
  }

  std::string path_;
  std::shared_ptr<Tokenizer::Parts> parts_;
};

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  return TokenizerFile(folder ? (std::filesystem::path(path) / "tokenizer.json").string() : path).read();
}

}  // namespace troupe::engine::tokenizer
