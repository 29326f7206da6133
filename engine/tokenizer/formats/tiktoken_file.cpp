#include "engine/tokenizer/formats/tiktoken_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/base/files/file.h"
#include "engine/base/text/base64.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/base/byte_alphabet.h"
#include "engine/tokenizer/base/vocabulary.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::size_t max_tiktoken_bytes = std::size_t{64} << 20;
constexpr std::size_t max_piece_bytes = 1024;
// The patterns of the two classes differ in the number of digits of a word.
constexpr std::string_view pattern_before =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
constexpr std::string_view pattern_after = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The tokens' bytes, by rank.
struct Ranks {
  std::vector<std::string> tokens;
  std::unordered_map<std::string, std::size_t> by_bytes;

  bool has_below(const std::string& bytes, std::size_t rank) const {
    const auto found = by_bytes.find(bytes);
    return found != by_bytes.end() && found->second < rank;
  }
};

Result<Ranks> read_ranks(const std::string& path) {
  auto text = read_file(path, max_tiktoken_bytes);
  RETURN_IF_ERROR(text);
  Ranks out;
  std::size_t line_number = 0;
  for (std::size_t from = 0; from < text->size();) {
    const std::size_t end = std::min(text->find('\n', from), text->size());
    std::string_view line = std::string_view(*text).substr(from, end - from);
    from = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto space = line.find(' ');
    const auto bytes = decode_base64(line.substr(0, space));
    const auto rank =
        space == line.npos ? std::nullopt : parse_number<std::size_t>(line.substr(space + 1));
    if (!bytes || bytes->empty() || rank != out.tokens.size())
      return fail(Errc::bad_input,
                  cat(path, ":", line_number, ": expected a token in base64, a space and the rank ",
                      out.tokens.size(), ", found ", quote(line, 60)));
    if (bytes->size() > max_piece_bytes || static_cast<std::int64_t>(*rank) >= max_tokens)
      return fail(Errc::bad_input,
                  cat(path, ":", line_number, ": a token has at most ", max_piece_bytes,
                      " bytes, and a file at most ", max_tokens, " tokens"));
    if (!out.by_bytes.emplace(*bytes, *rank).second)
      return fail(Errc::bad_input, cat(path, ":", line_number, ": the token stands twice"));
    out.tokens.push_back(*bytes);
  }
  for (int byte = 0; byte < 256; ++byte)
    if (!out.by_bytes.contains(std::string(1, static_cast<char>(byte))))
      return fail(Errc::bad_input, cat(path, ": has no token for the byte ", byte));
  return out;
}

std::string characters_of(std::string_view bytes) {
  std::string out;
  append_byte_characters(out, bytes);
  return out;
}

Json bpe_of(const Ranks& ranks) {
  Json::Object vocab;
  Json::Array merges;
  for (std::size_t rank = 0; rank < ranks.tokens.size(); ++rank) {
    const std::string& token = ranks.tokens[rank];
    vocab.emplace_back(characters_of(token), static_cast<std::int64_t>(rank));
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const std::string left = token.substr(0, cut), right = token.substr(cut);
      if (ranks.has_below(left, rank) && ranks.has_below(right, rank))
        merges.emplace_back(Json::Array{characters_of(left), characters_of(right)});
    }
  }
  return Json()
      .set("type", "BPE")
      .set("ignore_merges", true)  // tiktoken looks a whole word up first
      .set("vocab", std::move(vocab))
      .set("merges", std::move(merges));
}

Json bytes_as_characters() {
  return Json().set("type", "ByteLevel").set("add_prefix_space", false).set("use_regex", false);
}

Json splitter(std::string_view number) {
  Json split = Json()
                   .set("type", "Split")
                   .set("pattern", Json().set("Regex", cat(pattern_before, number, pattern_after)))
                   .set("behavior", "Isolated")
                   .set("invert", false);
  return Json()
      .set("type", "Sequence")
      .set("pretokenizers", Json::Array{split, bytes_as_characters()});
}

// Qwen's tokenization_qwen.py: three special tokens and 205 spare ones follow the vocabulary.
Json qwen_tokens(std::size_t first) {
  Json::Array out;
  const auto add = [&](const std::string& text) {
    out.emplace_back(Json(Json::Object{{"id", static_cast<std::int64_t>(first + out.size())},
                                       {"content", text},
                                       {"special", true},
                                       {"normalized", false}}));
  };
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) add(name);
  for (int i = 0; i < 205; ++i) add(cat("<|extra_", i, "|>"));
  return out;
}

// The id of a token in "added_tokens_decoder", or nothing.
std::optional<std::int64_t> added_id(const Json& config, std::string_view content) {
  const Json* added = config.find("added_tokens_decoder");
  if (!added || !added->is_object()) return std::nullopt;
  for (const auto& [key, token] : added->object()) {
    const Json* text = token.find("content");
    const auto id = parse_number<std::int64_t>(key);
    if (text && *text == Json(std::string(content)) && id) return id;
  }
  return std::nullopt;
}

Result<Json> glm4_post_processor(const std::string& path, const Json& config) {
  Json::Array single;
  Json ids;
  for (const char* name : {"[gMASK]", "<sop>"}) {
    const auto id = added_id(config, name);
    if (!id)
      return fail(Errc::bad_input,
                  cat(path, ": the class ChatGLM4Tokenizer starts texts with ", name,
                      ", which \"added_tokens_decoder\" of tokenizer_config.json does not have"));
    single.emplace_back(
        Json().set("SpecialToken", Json().set("id", std::string(name)).set("type_id", 0)));
    ids.set(name, Json()
                      .set("id", std::string(name))
                      .set("ids", Json::Array{*id})
                      .set("tokens", Json::Array{std::string(name)}));
  }
  single.emplace_back(Json().set("Sequence", Json().set("id", "A").set("type_id", 0)));
  return Json()
      .set("type", "TemplateProcessing")
      .set("single", std::move(single))
      .set("special_tokens", std::move(ids));
}

}  // namespace

bool is_tiktoken(const std::string& path, const std::string& tokenizer_class) {
  return path.ends_with(qwen_tiktoken) ||
         (path.ends_with(".model") && tokenizer_class == "ChatGLM4Tokenizer");
}

Result<SlowFiles> read_tiktoken(const std::string& path, const Json& config) {
  auto ranks = read_ranks(path);
  RETURN_IF_ERROR(ranks);
  SlowFiles out;
  out.tokenizer.set("decoder", bytes_as_characters());
  out.tokenizer.set("model", bpe_of(*ranks));
  if (path.ends_with(qwen_tiktoken)) {
    out.tokenizer.set("normalizer", Json().set("type", "NFC"));
    out.tokenizer.set("pre_tokenizer", splitter(R"(\p{N})"));
    out.tokenizer.set("added_tokens", qwen_tokens(ranks->tokens.size()));
    out.names = Json(Json::Object{{"eos_token", "<|endoftext|>"}, {"pad_token", "<|extra_0|>"}});
    return out;
  }
  auto processor = glm4_post_processor(path, config);
  RETURN_IF_ERROR(processor);
  out.tokenizer.set("post_processor", std::move(*processor));
  out.tokenizer.set("pre_tokenizer", splitter(R"(\p{N}{1,3})"));
  return out;
}

}  // namespace troupe::engine::tokenizer
