// The files of a tokenizer, read into a Tokenizer: tokenizer.json (Hugging Face tokenizers,
// tokenizer/serialization.rs), a SentencePiece tokenizer.model, or the files of slow tokenizers;
// beside them what tokenizer_config.json and special_tokens_map.json say.
#include <algorithm>
#include <filesystem>

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/tokenizer/formats/config_tokens.h"
#include "engine/tokenizer/formats/slow_files.h"
#include "engine/tokenizer/models/sentence_piece.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace troupe::engine::tokenizer {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t largest_model = std::size_t{64} << 20;

bool present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

template <class T>
Result<> store(Result<T> made, T& into) {
  RETURN_IF_ERROR(made);
  into = std::move(*made);
  return {};
}

}  // namespace

class TokenizerFile {
 public:
  TokenizerFile(std::string folder, std::string path)
      : folder_(std::move(folder)),
        path_(std::move(path)),
        parts_(std::make_shared<Tokenizer::Parts>()) {}

  Result<Tokenizer> read() {
    Result<> done = read_config();
    if (done)
      done = path_.ends_with(".model") ? read_sentence_piece()
             : path_.empty()           ? read_slow()
                                       : read_json_file();
    if (done) done = add_tokens();
    if (done) done = read_flags();
    RETURN_IF_ERROR(done);
    Tokenizer tokenizer(parts_);
    if (const auto largest = parts_->post_processor.largest();
        largest >= 0 && static_cast<std::size_t>(largest) >= tokenizer.vocab_size())
      return fail(Errc::bad_input,
                  cat(place("post_processor"), ": it adds the token ", largest,
                      ", and the vocabulary has ", tokenizer.vocab_size(), " ids from 0 on"));
    return tokenizer;
  }

 private:
  std::string place(std::string_view member) const { return cat(path_, ": \"", member, "\""); }

  Result<> read_config() {
    for (const auto& [name, into] : {std::pair("tokenizer_config.json", &config_),
                                     std::pair("special_tokens_map.json", &map_)}) {
      const fs::path path = fs::path(folder_) / name;
      if (!present(path)) continue;
      RETURN_IF_ERROR(store(read_json(path.string()), *into));
    }
    return {};
  }

  Result<> read_json_file() {
    auto file = read_json(path_);
    RETURN_IF_ERROR(file);
    if (!file->is_object())
      return fail(Errc::bad_input, cat(path_, ": must be an object, found ", file->type_name()));
    RETURN_IF_ERROR(read_stages(*file));
    if (const Json* added = file->find("added_tokens")) added_ = *added;
    return {};
  }

  Result<> read_slow() {
    path_ = folder_;
    auto files = read_slow_files(folder_, config_);
    RETURN_IF_ERROR(files);
    names_ = std::move(files->names);
    return read_stages(files->tokenizer);
  }

  Result<> read_sentence_piece() {
    auto bytes = read_file(path_, largest_model);
    RETURN_IF_ERROR(bytes);
    const std::string name = tokenizer_class_of(config_);
    if (!name.empty() && !adds_bos(name) && name != "PreTrainedTokenizer" &&
        name != "TokenizersBackend")
      return fail(Errc::unsupported,
                  cat(path_, ": what the class ", quote(name),
                      " of tokenizer_config.json makes of a SentencePiece model "
                      "is not known to troupe; save a tokenizer.json with transformers"));
    auto model = SentencePiece::read(*bytes, flag_of(config_, "legacy", true), path_);
    RETURN_IF_ERROR(model);
    const auto roles = (*model)->roles();
    const auto name_role = [&](const char* key, TokenId id) {
      if (id >= 0) roles_.set(key, std::string((*model)->vocabulary().piece(id)));
    };
    name_role("unk_token", roles.unk), name_role("bos_token", roles.bos),
        name_role("eos_token", roles.eos), name_role("pad_token", roles.pad);
    for (std::size_t id = 0; id < (*model)->file().pieces.size(); ++id)
      if ((*model)->file().pieces[id].type == SentencePieceFile::Type::control)
        mark_special(static_cast<TokenId>(id));
    parts_->decoders = (*model)->decoders();
    parts_->model = std::move(*model);
    return {};
  }

  // The slow classes of Llama and its like put the start token before a text unless told otherwise.
  static bool adds_bos(std::string_view name) {
    constexpr std::string_view known[] = {
        "LlamaTokenizer",     "CodeLlamaTokenizer", "GemmaTokenizer",  "InternLMTokenizer",
        "InternLM2Tokenizer", "BaichuanTokenizer",  "MistralTokenizer"};
    return std::find(std::begin(known), std::end(known), name) != std::end(known);
  }

  Result<> read_stages(const Json& file) {
    const Json* model = file.find("model");
    if (!model) return fail(Errc::bad_input, cat(path_, ": the key \"model\" is missing"));
    const Json* pre_tokenizer = file.find("pre_tokenizer");
    const bool raw_bytes = ends_with_byte_level(pre_tokenizer) && can_take_bytes(*model);
    Result<> done = store(make_model(*model, raw_bytes, place("model")), parts_->model);
    if (done)
      done =
          store(make_normalizer(file.find("normalizer"), place("normalizer")), parts_->normalizer);
    if (done)
      done = store(make_pre_tokenizer(pre_tokenizer, raw_bytes, place("pre_tokenizer")),
                   parts_->pre_tokenizer);
    if (done)
      done = store(PostProcessor::from_json(file.find("post_processor"), place("post_processor")),
                   parts_->post_processor);
    if (done) done = store(make_decoders(file.find("decoder"), place("decoder")), parts_->decoders);
    return done;
  }

  Result<> add_tokens() {
    const std::string where = place("added_tokens");
    auto tokens =
        read_added_tokens(added_.is_null() ? nullptr : &added_, parts_->model->vocabulary(), where);
    RETURN_IF_ERROR(tokens);
    RETURN_IF_ERROR(
        add_config_tokens(*tokens, parts_->model->vocabulary(), folder_, config_, map_, names_));
    std::vector<TokenMatcher::Entry> raw, normalized;
    std::size_t bytes = 0;
    for (const AddedToken& token : *tokens) {
      if (parts_->model->vocabulary().find(token.content) < 0 &&
          !parts_->added.add(token.content, token.id))
        return fail(Errc::bad_input, cat(where, ": ", quote(token.content), " stands twice"));
      if (token.special) mark_special(token.id);
      if (token.special) parts_->special_texts.insert(token.content);
      std::string text = token.content;
      if (token.normalized && parts_->normalizer) parts_->normalizer->apply(text);
      if (bytes += text.size(); bytes > longest_added)
        return fail(Errc::bad_input, cat(where, ": the added tokens are longer than ",
                                         longest_added, " bytes together"));
      if (text != token.content) parts_->shown.emplace(token.id, text);
      (token.normalized ? normalized : raw).push_back({std::move(text), token});
    }
    parts_->raw_matcher = TokenMatcher(std::move(raw));
    parts_->normalized_matcher = TokenMatcher(std::move(normalized));
    return {};
  }

  void mark_special(TokenId id) {
    const auto index = static_cast<std::size_t>(id);
    if (parts_->special.size() <= index) parts_->special.resize(index + 1);
    parts_->special[index] = true;
  }

  // Of those who name a token the first has it. add_bos_token and add_eos_token, where they are
  // given, decide instead of the post-processor, as in transformers.
  Result<> read_flags() {
    for (const Json* from : {&config_, &map_, &names_, &roles_}) {
      read_name(*from, "bos_token", parts_->bos);
      read_name(*from, "eos_token", parts_->eos);
      read_name(*from, "pad_token", parts_->pad);
      read_name(*from, "unk_token", parts_->unk);
    }
    const auto given = [&](const char* key) {
      const Json* value = config_.find(key);
      return value && value->is_bool();
    };
    const bool by_class = path_.ends_with(".model") && adds_bos(tokenizer_class_of(config_));
    if (!by_class && !given("add_bos_token") && !given("add_eos_token")) return {};
    std::vector<TokenId> before, after;
    Result<> done = around("add_bos_token", by_class, parts_->bos, before);
    if (done) done = around("add_eos_token", false, parts_->eos, after);
    if (done) parts_->post_processor = PostProcessor(std::move(before), std::move(after));
    return done;
  }

  Result<> around(const char* key, bool otherwise, const std::optional<NamedToken>& token,
                  std::vector<TokenId>& into) const {
    if (!flag_of(config_, key, otherwise) || !token) return {};
    if (!token->id)
      return fail(Errc::bad_input,
                  cat(folder_, "/tokenizer_config.json: \"", key, "\" is on, and its token ",
                      quote(token->text), " is not in the vocabulary"));
    into.push_back(*token->id);
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

  static constexpr std::size_t longest_added = std::size_t{1} << 21;
  std::string folder_, path_;  // path_ empty: slow files
  Json config_, map_;          // tokenizer_config.json, special_tokens_map.json
  Json names_,
      roles_;  // what a slow class names by itself; what a SentencePiece model calls its tokens
  Json added_;
  std::shared_ptr<Tokenizer::Parts> parts_;
};

bool Tokenizer::is_in(const std::string& folder) {
  return present(fs::path(folder) / "tokenizer.json") ||
         present(fs::path(folder) / "tokenizer.model") || has_slow_files(folder);
}

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return TokenizerFile(fs::path(path).parent_path().string(), path).read();
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (present(fs::path(path) / name))
      return TokenizerFile(path, (fs::path(path) / name).string()).read();
  if (has_slow_files(path)) return TokenizerFile(path, "").read();
  return fail(Errc::not_found, cat(path,
                                   ": has no tokenizer: a tokenizer.json, a tokenizer.model, "
                                   "vocab.json with merges.txt, or vocab.txt is needed"));
}

}  // namespace troupe::engine::tokenizer
