#include "engine/tokenizer/formats/slow_files.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/base/vocabulary.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{256} << 20;
constexpr const char* qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

bool exists(const std::string& folder, const char* name) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(folder) / name, ignored);
}

Json typed(const char* type) {
  return Json().set("type", type);
}

// The tokenizer class that transformers' AutoTokenizer selects for a model whose tokenizer names
// none.
std::string class_of_model(const std::string& folder) {
  if (!exists(folder, "config.json")) return {};
  const auto config = read_json(folder + "/config.json");
  const Json* type = config ? config->find("model_type") : nullptr;
  const std::string name = type && type->is_string() ? type->string() : "";
  constexpr std::string_view like_gpt2[] = {"gpt2", "gpt_neo", "gptj",      "opt",
                                            "phi",  "codegen", "starcoder2"};
  if (std::find(std::begin(like_gpt2), std::end(like_gpt2), name) != std::end(like_gpt2))
    return "GPT2Tokenizer";
  if (name.starts_with("qwen2") || name.starts_with("qwen3")) return "Qwen2Tokenizer";
  if (name == "gpt_neox") return "GPTNeoXTokenizer";
  if (name == "bert") return "BertTokenizer";
  return {};
}

Result<std::vector<std::string>> read_lines(const std::string& path) {
  auto text = read_file(path, max_file_bytes);
  RETURN_IF_ERROR(text);
  if (std::size_t bad = 0; !valid_utf8(*text, &bad))
    return fail(Errc::bad_input, cat(path, ": not UTF-8 at byte ", bad));
  std::vector<std::string> out;
  for (std::size_t from = 0; from < text->size();) {
    const std::size_t end = std::min(text->find('\n', from), text->size());
    std::string_view line = std::string_view(*text).substr(from, end - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.emplace_back(line);
    from = end + 1;
  }
  return out;
}

Result<Json> read_merges(const std::string& path) {
  auto lines = read_lines(path);
  RETURN_IF_ERROR(lines);
  Json::Array merges;
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const std::string& line = (*lines)[i];
    if (line.empty() || (i == 0 && line.starts_with("#version"))) continue;
    const auto space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      return fail(Errc::bad_input,
                  cat(path, ":", i + 1, ": must be two pieces with one space between them, found ",
                      quote(line)));
    merges.emplace_back(Json::Array{line.substr(0, space), line.substr(space + 1)});
  }
  return Json(std::move(merges));
}

Json byte_level(bool add_prefix_space, bool use_regex) {
  return typed("ByteLevel")
      .set("add_prefix_space", add_prefix_space)
      .set("trim_offsets", true)
      .set("use_regex", use_regex);
}

Json name_all(std::initializer_list<const char*> roles, const char* token) {
  Json out;
  for (const char* role : roles) out.set(role, token);
  return out;
}

Result<SlowFiles> read_bpe(const std::string& folder, const std::string& name, const Json& config) {
  auto vocab = read_json(folder + "/vocab.json");
  RETURN_IF_ERROR(vocab);
  auto merges = read_merges(folder + "/merges.txt");
  RETURN_IF_ERROR(merges);
  SlowFiles out;
  const bool prefix = flag_of(config, "add_prefix_space", false);
  const bool qwen = name == "Qwen2Tokenizer";
  if (qwen || name == "GPTNeoXTokenizer") out.tokenizer.set("normalizer", typed("NFC"));
  if (qwen) {
    Json split = typed("Split")
                     .set("pattern", Json().set("Regex", qwen2_pattern))
                     .set("behavior", "Isolated")
                     .set("invert", false);
    out.tokenizer.set(
        "pre_tokenizer",
        typed("Sequence").set("pretokenizers", Json::Array{split, byte_level(prefix, false)}));
    out.names = name_all({"eos_token", "pad_token", "unk_token"}, "<|endoftext|>");
  } else {
    out.tokenizer.set("pre_tokenizer", byte_level(prefix, true));
    out.names = name_all({"bos_token", "eos_token", "unk_token"}, "<|endoftext|>");
  }
  out.tokenizer.set("decoder", byte_level(prefix, true));
  out.tokenizer.set("model",
                    typed("BPE").set("vocab", std::move(*vocab)).set("merges", std::move(*merges)));
  return out;
}

Json bert_special_tokens() {
  return Json(Json::Object{{"unk_token", "[UNK]"},
                           {"sep_token", "[SEP]"},
                           {"pad_token", "[PAD]"},
                           {"cls_token", "[CLS]"},
                           {"mask_token", "[MASK]"}});
}

Json bert_normalizer(const Json& config) {
  const Json* accents = config.find("strip_accents");
  return typed("BertNormalizer")
      .set("clean_text", true)
      .set("handle_chinese_chars", flag_of(config, "tokenize_chinese_chars", true))
      .set("strip_accents", accents ? *accents : Json())
      .set("lowercase", flag_of(config, "do_lower_case", true));
}

Result<SlowFiles> read_word_piece(const std::string& folder, const Json& config) {
  const std::string path = folder + "/vocab.txt";
  auto lines = read_lines(path);
  RETURN_IF_ERROR(lines);
  if (static_cast<std::int64_t>(lines->size()) > max_tokens)
    return fail(Errc::bad_input,
                cat(path, ": ", lines->size(), " pieces; at most ", max_tokens, " are read"));
  Json::Object vocab;
  for (std::size_t i = 0; i < lines->size(); ++i)
    vocab.emplace_back(std::move((*lines)[i]), static_cast<std::int64_t>(i));
  SlowFiles out;
  out.names = bert_special_tokens();
  out.tokenizer.set("normalizer", bert_normalizer(config));
  out.tokenizer.set("pre_tokenizer", typed("BertPreTokenizer"));
  out.tokenizer.set("decoder", typed("WordPiece").set("prefix", "##").set("cleanup", true));
  const auto token = [&](const char* role) {
    const Json* named = config.find(role);
    if (named && named->is_object()) named = named->find("content");
    const std::string text =
        named && named->is_string() ? named->string() : out.names.find(role)->string();
    const auto found = std::find_if(vocab.begin(), vocab.end(),
                                    [&](const auto& entry) { return entry.first == text; });
    return std::pair(text, found == vocab.end() ? Json() : found->second);
  };
  const auto sep = token("sep_token"), cls = token("cls_token");
  if (sep.second.is_null() || cls.second.is_null())
    return fail(Errc::bad_input, cat(path, ": BERT's tokenizer needs the tokens ", quote(cls.first),
                                     " and ", quote(sep.first)));
  out.tokenizer.set("post_processor", typed("BertProcessing")
                                          .set("sep", Json::Array{sep.first, sep.second})
                                          .set("cls", Json::Array{cls.first, cls.second}));
  out.tokenizer.set("model", typed("WordPiece")
                                 .set("vocab", std::move(vocab))
                                 .set("unk_token", token("unk_token").first)
                                 .set("continuing_subword_prefix", "##")
                                 .set("max_input_chars_per_word", 100));
  return out;
}

}  // namespace

bool flag_of(const Json& object, std::string_view key, bool otherwise) {
  const Json* value = object.find(key);
  return value && value->is_bool() ? value->boolean() : otherwise;
}

std::string tokenizer_class_of(const Json& config) {
  const Json* name = config.find("tokenizer_class");
  std::string out = name && name->is_string() ? name->string() : "";
  if (out.ends_with("Fast")) out.resize(out.size() - 4);
  return out;
}

bool has_slow_files(const std::string& folder) {
  return (exists(folder, "vocab.json") && exists(folder, "merges.txt")) ||
         exists(folder, "vocab.txt");
}

Result<SlowFiles> read_slow_files(const std::string& folder, const Json& config) {
  const bool word_piece = !exists(folder, "vocab.json");
  std::string name = tokenizer_class_of(config);
  if (name.empty()) name = class_of_model(folder);
  if (word_piece && name == "BertTokenizer") return read_word_piece(folder, config);
  constexpr std::string_view known[] = {"GPT2Tokenizer", "CodeGenTokenizer", "Qwen2Tokenizer",
                                        "GPTNeoXTokenizer"};
  if (!word_piece && std::find(std::begin(known), std::end(known), name) != std::end(known))
    return read_bpe(folder, name, config);
  return fail(Errc::unsupported,
              cat(folder, ": has ", word_piece ? "vocab.txt" : "vocab.json and merges.txt",
                  ", and the class ", quote(name),
                  " that says how they are used is not one that troupe knows: GPT2Tokenizer, "
                  "CodeGenTokenizer, Qwen2Tokenizer, "
                  "GPTNeoXTokenizer (vocab.json and merges.txt), BertTokenizer (vocab.txt); save a "
                  "tokenizer.json with transformers"));
}

}  // namespace troupe::engine::tokenizer
