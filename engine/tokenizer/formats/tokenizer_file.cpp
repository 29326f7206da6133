#include "engine/tokenizer/formats/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/base/growth.h"
#include "engine/tokenizer/formats/config_tokens.h"
#include "engine/tokenizer/formats/slow_files.h"
#include "engine/tokenizer/formats/tiktoken_file.h"
#include "engine/tokenizer/models/sentence_piece.h"
#include "engine/tokenizer/pipeline/pipeline.h"

namespace troupe::engine::tokenizer {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 9> of_file{"version",        "truncation", "padding",
                                                  "added_tokens",   "normalizer", "pre_tokenizer",
                                                  "post_processor", "decoder",    "model"};

// Of models, normalizers, pre-tokenizers, post-processors and decoders together: a member that one
// of them has is known in all.
constexpr std::array<std::string_view, 53> of_components{
    "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
    "byte_fallback", "ignore_merges", "vocab", "merges", "unk_id", "max_input_chars_per_word",
    // normalizers
    "clean_text", "handle_chinese_chars", "strip_accents", "lowercase", "strip_left", "strip_right",
    "normalizers", "pattern", "content", "prepend", "precompiled_charsmap",
    // pre-tokenizers
    "add_prefix_space", "trim_offsets", "use_regex", "delimiter", "replacement", "prepend_scheme",
    "split", "str_rep", "pretokenizers", "behavior", "invert", "individual_digits", "length",
    // post-processors
    "sep", "cls", "single", "pair", "special_tokens", "processors",
    // decoders
    "suffix", "prefix", "cleanup", "pad_token", "word_delimiter_token", "decoders", "start", "stop",
    // added tokens
    "id", "single_word", "lstrip"};

// Lists of components.
bool is_list(std::string_view name) {
  return name == "normalizers" || name == "pretokenizers" || name == "processors" ||
         name == "decoders";
}

template <std::size_t n>
Result<> check_against(const Json& value, const std::array<std::string_view, n>& known,
                       const std::string& where) {
  if (!value.is_object()) return {};  // its reader reports that
  for (const auto& [name, member] : value.object())
    if (!member.is_null() && std::ranges::find(known, name) == known.end())
      return fail(Errc::unsupported,
                  cat(where, ": the member ", quote(name, 60),
                      " is not known and may change the ids; remove it if it has no effect"));
  return {};
}

Result<> check_component(const Json& component, const std::string& where) {
  RETURN_IF_ERROR(check_against(component, of_components, where));
  if (!component.is_object()) return {};
  for (const auto& [name, member] : component.object()) {
    if (!is_list(name) || !member.is_array()) continue;
    for (const Json& each : member.array()) RETURN_IF_ERROR(check_component(each, where));
  }
  return {};
}

/// Errc::unsupported, with the member's name, if a tokenizer.json has a member that is not null and
/// that no component of the tokenizers library 0.23 has. `where` starts the message.
Result<> check_known_members(const Json& file, const std::string& where) {
  RETURN_IF_ERROR(check_against(file, of_file, where));
  for (const char* name : {"normalizer", "pre_tokenizer", "post_processor", "decoder", "model"})
    if (const Json* component = file.find(name))
      RETURN_IF_ERROR(check_component(*component, cat(where, ": \"", name, "\"")));
  return {};
}

/// Errc::unsupported for settings of tokenizer_config.json that change ids and are not applied:
/// split_special_tokens, and sampling in sp_model_kwargs.
Result<> check_config_settings(const Json& config, const std::string& where) {
  const Json* split = config.find("split_special_tokens");
  if (split && *split == Json(true))
    return fail(Errc::unsupported,
                cat(where,
                    ": \"split_special_tokens\": true is not supported: special tokens in a "
                    "text are matched"));
  const Json* sampling = config.find("sp_model_kwargs");
  if (sampling && sampling->find("enable_sampling") &&
      *sampling->find("enable_sampling") == Json(true))
    return fail(Errc::unsupported,
                cat(where,
                    ": \"sp_model_kwargs\": enable_sampling is not supported: a text always "
                    "has the same ids"));
  return {};
}

constexpr std::size_t max_model_bytes = std::size_t{64} << 20;

bool path_exists(const fs::path& path) {
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

// Reads the files of one tokenizer into a Pipeline.
class TokenizerFile {
 public:
  TokenizerFile(std::string folder, std::string path, TokenizerIds ids)
      : folder_(std::move(folder)),
        path_(std::move(path)),
        ids_(ids),
        pipeline_(std::make_shared<Pipeline>()) {}

  Result<std::shared_ptr<const Pipeline>> read() {
    Result<> done = read_config();
    if (done) done = check_ids();
    if (done)
      done = is_tiktoken(path_, tokenizer_class_of(config_)) ? read_tiktoken_file()
             : path_.ends_with(".model")                     ? read_sentence_piece()
             : path_.empty()                                 ? read_slow()
                                                             : read_json_file();
    if (done) done = add_tokens();
    if (done && is_chatglm()) done = add_chatglm_tokens();
    if (done) done = read_flags();
    RETURN_IF_ERROR(done);
    const auto largest = pipeline_->post_processor.largest();
    if (largest >= 0 && static_cast<std::size_t>(largest) >= pipeline_->vocab_size())
      return fail(Errc::bad_input,
                  cat(member_path("post_processor"), ": it adds the token ", largest,
                      ", and the vocabulary has ", pipeline_->vocab_size(), " ids from 0 on"));
    return pipeline_;
  }

 private:
  std::string member_path(std::string_view member) const {
    return cat(path_, ": \"", member, "\"");
  }

  Result<> read_config() {
    for (const auto& [name, into] :
         {std::pair("tokenizer_config.json", &config_), std::pair("special_tokens_map.json", &map_),
          std::pair("config.json", &model_)}) {
      const fs::path path = fs::path(folder_) / name;
      if (!path_exists(path) || (into == &model_ && ids_ == TokenizerIds::file)) continue;
      RETURN_IF_ERROR(store(read_json(path.string()), *into));
    }
    return check_config_settings(config_, folder_ + "/tokenizer_config.json");
  }

  // transformers 5 also builds the class from a SentencePiece model; troupe does not.
  Result<> check_ids() const {
    if (ids_ == TokenizerIds::file || path_.ends_with(".json") ||
        !is_llama_tokenizer(Json(), config_, model_))
      return {};
    return fail(Errc::unsupported,
                cat(folder_,
                    ": the ids of transformers 5 need a tokenizer.json, and the folder "
                    "has none; save its tokenizer once with transformers 5"));
  }

  Result<> read_json_file() {
    auto file = read_json(path_);
    RETURN_IF_ERROR(file);
    if (!file->is_object())
      return fail(Errc::bad_input, cat(path_, ": must be an object, found ", file->type_name()));
    RETURN_IF_ERROR(check_known_members(*file, path_));
    if (ids_ == TokenizerIds::transformers5 && is_llama_tokenizer(*file, config_, model_))
      file = as_llama_tokenizer(std::move(*file), config_, path_);
    RETURN_IF_ERROR(file);
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

  Result<> read_tiktoken_file() {
    auto files = read_tiktoken(path_, config_);
    RETURN_IF_ERROR(files);
    names_ = std::move(files->names);
    if (const Json* added = files->tokenizer.find("added_tokens")) added_ = *added;
    return read_stages(files->tokenizer);
  }

  // The class of ChatGLM2 and ChatGLM3, whose vocabulary is a SentencePiece model.
  bool is_chatglm() const {
    return path_.ends_with(".model") && tokenizer_class_of(config_) == "ChatGLMTokenizer";
  }

  // The special tokens follow the vocabulary (tokenization_chatglm.py of ChatGLM3). They are not
  // matched in text, where "sop" is an ordinary word. Texts start with [gMASK] sop.
  Result<> add_chatglm_tokens() {
    auto next = static_cast<TokenId>(pipeline_->model->vocabulary().limit());
    for (const char* name : {"[MASK]", "[gMASK]", "[sMASK]", "sop", "eop", "<|system|>", "<|user|>",
                             "<|assistant|>", "<|observation|>"}) {
      const TokenId known = pipeline_->added.find(name);
      if (known >= 0 && known != next)
        return fail(Errc::bad_input,
                    cat(folder_, "/tokenizer_config.json: the token ", quote(name), " has the id ",
                        known, ", and the class ChatGLMTokenizer gives it ", next));
      if (known < 0 && !pipeline_->added.add(name, next))
        return fail(Errc::bad_input, cat(folder_, "/tokenizer_config.json: the id ", next,
                                         " belongs to ", quote(name)));
      mark_special(next++);
    }
    pipeline_->special_by_id = true;
    pipeline_->post_processor =
        PostProcessor({pipeline_->added.find("[gMASK]"), pipeline_->added.find("sop")}, {});
    return {};
  }

  Result<> read_sentence_piece() {
    auto bytes = read_file(path_, max_model_bytes);
    RETURN_IF_ERROR(bytes);
    const std::string name = tokenizer_class_of(config_);
    if (!name.empty() && !adds_bos(name) && name != "PreTrainedTokenizer" &&
        name != "TokenizersBackend" && !is_chatglm())
      return fail(Errc::unsupported,
                  cat(path_, ": the class ", quote(name),
                      " of tokenizer_config.json is not supported for a SentencePiece model; save "
                      "a tokenizer.json with transformers"));
    auto model = SentencePiece::read(*bytes, flag_of(config_, "legacy", true), path_);
    RETURN_IF_ERROR(model);
    const auto roles = (*model)->roles();
    const auto name_role = [&](const char* key, TokenId id) {
      if (id >= 0) roles_.set(key, std::string((*model)->vocabulary().piece(id)));
    };
    name_role("unk_token", roles.unk);
    name_role("bos_token", roles.bos);
    name_role("eos_token", roles.eos);
    name_role("pad_token", roles.pad);
    for (std::size_t id = 0; id < (*model)->file().pieces.size(); ++id)
      if ((*model)->file().pieces[id].type == SentencePieceFile::Type::control)
        mark_special(static_cast<TokenId>(id));
    pipeline_->decoders = (*model)->decoders();
    pipeline_->model = std::move(*model);
    return {};
  }

  // The slow classes of Llama and similar models add the BOS token by default.
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
    Result<> done = store(make_model(*model, raw_bytes, member_path("model")), pipeline_->model);
    if (done)
      done = store(make_normalizer(file.find("normalizer"), member_path("normalizer")),
                   pipeline_->normalizer);
    if (done)
      done = store(make_pre_tokenizer(pre_tokenizer, raw_bytes, member_path("pre_tokenizer")),
                   pipeline_->pre_tokenizer);
    if (done)
      done = store(
          PostProcessor::from_json(file.find("post_processor"), member_path("post_processor")),
          pipeline_->post_processor);
    if (done)
      done =
          store(make_decoders(file.find("decoder"), member_path("decoder")), pipeline_->decoders);
    return done;
  }

  Result<> add_tokens() {
    const std::string where = member_path("added_tokens");
    auto tokens = read_added_tokens(added_.is_null() ? nullptr : &added_,
                                    pipeline_->model->vocabulary(), where);
    RETURN_IF_ERROR(tokens);
    RETURN_IF_ERROR(
        add_config_tokens(*tokens, pipeline_->model->vocabulary(), folder_, config_, map_, names_));
    std::vector<TokenMatcher::Entry> raw, normalized;
    std::size_t bytes = 0;
    for (const AddedToken& token : *tokens) {
      if (pipeline_->model->vocabulary().find(token.content) < 0 &&
          !pipeline_->added.add(token.content, token.id))
        return fail(Errc::bad_input, cat(where, ": ", quote(token.content), " stands twice"));
      if (token.special) mark_special(token.id);
      pipeline_->special_by_id = config_.is_object() && !config_.object().empty();
      if (token.special) pipeline_->special_texts.insert(token.content);
      std::string text = token.content;
      if (token.normalized && pipeline_->normalizer)
        pipeline_->normalizer->apply(text, growth_limit(text.size()));
      if (bytes += text.size(); bytes > max_added_bytes)
        return fail(Errc::bad_input, cat(where, ": the added tokens are longer than ",
                                         max_added_bytes, " bytes together"));
      if (text != token.content) pipeline_->display_texts.emplace(token.id, text);
      (token.normalized ? normalized : raw).push_back({std::move(text), token});
    }
    pipeline_->raw_matcher = TokenMatcher(std::move(raw));
    pipeline_->normalized_matcher = TokenMatcher(std::move(normalized));
    return {};
  }

  void mark_special(TokenId id) {
    const auto index = static_cast<std::size_t>(id);
    if (pipeline_->special.size() <= index) pipeline_->special.resize(index + 1);
    pipeline_->special[index] = true;
  }

  // The first file that names a token wins. add_bos_token and add_eos_token, if given, replace the
  // post-processor, as in transformers.
  Result<> read_flags() {
    for (const Json* from : {&config_, &map_, &names_, &roles_}) {
      read_name(*from, "bos_token", pipeline_->bos);
      read_name(*from, "eos_token", pipeline_->eos);
      read_name(*from, "pad_token", pipeline_->pad);
      read_name(*from, "unk_token", pipeline_->unk);
    }
    const auto given = [&](const char* key) {
      const Json* value = config_.find(key);
      return value && value->is_bool();
    };
    const bool by_class = path_.ends_with(".model") && adds_bos(tokenizer_class_of(config_));
    if (!by_class && !given("add_bos_token") && !given("add_eos_token")) return {};
    std::vector<TokenId> before, after;
    Result<> done = append_if_set("add_bos_token", by_class, pipeline_->bos, before);
    if (done) done = append_if_set("add_eos_token", false, pipeline_->eos, after);
    if (done) pipeline_->post_processor = PostProcessor(std::move(before), std::move(after));
    return done;
  }

  Result<> append_if_set(const char* key, bool otherwise, const std::optional<NamedToken>& token,
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
    TokenId id = pipeline_->added.find(value->string());
    if (id < 0) id = pipeline_->model->vocabulary().find(value->string());
    into = NamedToken{value->string(), id < 0 ? std::nullopt : std::optional(id)};
  }

  static constexpr std::size_t max_added_bytes = std::size_t{1} << 21;
  std::string folder_, path_;  // path_ empty: slow files
  TokenizerIds ids_;
  Json config_, map_, model_;  // tokenizer_config.json, special_tokens_map.json, config.json
  Json names_,
      roles_;  // what a slow class names by itself; what a SentencePiece model calls its tokens
  Json added_;
  std::shared_ptr<Pipeline> pipeline_;
};

bool has_tokenizer_files(const std::string& folder) {
  return path_exists(fs::path(folder) / "tokenizer.json") ||
         path_exists(fs::path(folder) / "tokenizer.model") ||
         path_exists(fs::path(folder) / qwen_tiktoken) || has_slow_files(folder);
}

Result<std::shared_ptr<const Pipeline>> read_tokenizer(const std::string& path, TokenizerIds ids) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return TokenizerFile(fs::path(path).parent_path().string(), path, ids).read();
  for (const char* name : {"tokenizer.json", "tokenizer.model", qwen_tiktoken})
    if (path_exists(fs::path(path) / name))
      return TokenizerFile(path, (fs::path(path) / name).string(), ids).read();
  if (has_slow_files(path)) return TokenizerFile(path, "", ids).read();
  return fail(Errc::not_found,
              cat(path,
                  ": has no tokenizer: a tokenizer.json, a tokenizer.model, a "
                  "qwen.tiktoken, vocab.json with merges.txt, or vocab.txt is needed"));
}

}  // namespace troupe::engine::tokenizer
