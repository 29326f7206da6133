#include "engine/tokenizer/normalizers/normalizer.h"

#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/text/character_classes.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/byte_alphabet.h"
#include "engine/tokenizer/base/growth.h"
#include "engine/tokenizer/base/replacement.h"
#include "engine/tokenizer/normalizers/precompiled.h"
#include "engine/tokenizer/normalizers/unicode.h"

namespace troupe::engine::tokenizer {
namespace {

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> parts)
      : parts_(std::move(parts)) {}
  bool apply(std::string& text, std::size_t limit) const override {
    bool cut = false;
    for (const auto& part : parts_) {
      cut = part->apply(text, limit) || cut;
      check_growth(text.size(), limit, "normalizer");
    }
    return cut;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  explicit ReplaceNormalizer(Replacement replacement) : replacement_(std::move(replacement)) {}
  bool apply(std::string& text, std::size_t limit) const override {
    return replacement_.apply(text, limit, "normalizer");
  }

 private:
  Replacement replacement_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  bool apply(std::string& text, std::size_t limit) const override {
    if (text.empty()) return false;
    check_growth(text.size() + text_.size(), limit, "normalizer");
    text.insert(0, text_);
    return false;
  }

 private:
  std::string text_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  bool apply(std::string& text, std::size_t) const override {
    std::size_t begin = text.size(), end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      if (!is_whitespace(point.value)) {
        begin = std::min(begin, at);
        end = at + point.size;
      }
      at += point.size;
    }
    if (right_ && end < text.size()) text.resize(end);
    if (left_) text.erase(0, std::min(begin, text.size()));
    return left_ && begin > 0;
  }

 private:
  bool left_, right_;
};

/// Replaces each code point by the text that `map` appends.
class MapCharacters : public Normalizer {
 public:
  explicit MapCharacters(void (*map)(std::string&, char32_t)) : map_(map) {}
  bool apply(std::string& text, std::size_t) const override {
    std::string out;
    out.reserve(text.size());
    bool cut = false;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      map_(out, point.value);
      at += point.size;
      cut = cut || out.empty();
    }
    text = std::move(out);
    return cut;
  }

 private:
  void (*map_)(std::string&, char32_t);
};

void strip_accents(std::string& out, char32_t c) {
  if (!is_mark(c)) append_utf8(out, c);
}

// SentencePiece's nmt rules: removes control characters and replaces unusual spaces by spaces.
void nmt(std::string& out, char32_t c) {
  if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
      c == 0x9F)
    return;
  const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
  append_utf8(out, space ? U' ' : c);
}

class ByteLevelNormalizer : public Normalizer {
 public:
  bool apply(std::string& text, std::size_t) const override {
    std::string out;
    append_byte_characters(out, text);
    text = std::move(out);
    return false;
  }
};

/// BERT's definition of CJK ideographs: a few Unicode blocks.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

struct BertOptions {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};

/// BERT's text cleaning (Hugging Face tokenizers, normalizers/bert.rs).
class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(BertOptions options)
      : options_(options), nfd_(make_unicode_normalizer("NFD")) {}

  bool apply(std::string& text, std::size_t limit) const override {
    bool cut = map(text, [this](std::string& out, char32_t c) { prepare(out, c); });
    if (options_.strip_accents) {
      nfd_->apply(text, limit);
      cut = map(text,
                [](std::string& out, char32_t c) {
                  if (!is_nonspacing_mark(c)) append_utf8(out, c);
                }) ||
            cut;
    }
    if (options_.lowercase) map(text, append_lower);
    return cut;
  }

 private:
  // Appends the replacement of each code point; true if the first one was removed.
  template <class Append>
  static bool map(std::string& text, Append append) {
    std::string out;
    out.reserve(text.size());
    bool cut = false;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      append(out, point.value);
      at += point.size;
      cut = cut || out.empty();
    }
    text = std::move(out);
    return cut;
  }

  void prepare(std::string& out, char32_t c) const {
    if (options_.clean_text) {
      const bool line = c == '\t' || c == '\n' || c == '\r';
      if (c == 0 || c == 0xFFFD || (!line && is_control(c))) return;
      if (line || is_whitespace(c)) c = ' ';
    }
    const bool separate = options_.handle_chinese_chars && is_ideograph(c);
    if (separate) out += ' ';
    append_utf8(out, c);
    if (separate) out += ' ';
  }

  BertOptions options_;
  std::unique_ptr<Normalizer> nfd_;
};

using MadeNormalizer = Result<std::unique_ptr<Normalizer>>;

MadeNormalizer make_bert_normalizer(const Json& options, std::string_view where) {
  BertOptions chosen{};
  const std::pair<const char*, bool BertOptions::*> needed[] = {
      {"clean_text", &BertOptions::clean_text},
      {"handle_chinese_chars", &BertOptions::handle_chinese_chars},
      {"lowercase", &BertOptions::lowercase}};
  for (const auto& [key, member] : needed) {
    auto value = get_bool(options, key, where);
    RETURN_IF_ERROR(value);
    chosen.*member = *value;
  }
  chosen.strip_accents = chosen.lowercase;
  if (const Json* strip = options.find("strip_accents"); strip && !strip->is_null()) {
    if (!strip->is_bool())
      return fail(Errc::bad_input,
                  cat(where, ": \"strip_accents\" must be true, false or null, found ",
                      quote(strip->dump(), 40)));
    chosen.strip_accents = strip->boolean();
  }
  return std::make_unique<BertNormalizer>(chosen);
}

MadeNormalizer make_normalizer_sequence(const Json& normalizer, std::string_view where) {
  const Json* list = normalizer.find("normalizers");
  if (!list || !list->is_array())
    return fail(Errc::bad_input, cat(where, ": \"normalizers\" must be an array"));
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (const Json& item : list->array()) {
    auto part = make_normalizer(&item, where);
    if (!part) return part;
    if (*part) parts.push_back(std::move(*part));
  }
  return std::make_unique<SequenceNormalizer>(std::move(parts));
}

bool flag(const Json& object, std::string_view key, bool otherwise) {
  const Json* value = object.find(key);
  return value && value->is_bool() ? value->boolean() : otherwise;
}

}  // namespace

MadeNormalizer make_normalizer(const Json* normalizer, std::string_view where) {
  if (!normalizer || normalizer->is_null()) return nullptr;
  auto type = get_string(*normalizer, "type", where);
  RETURN_IF_ERROR(type);
  if (*type == "Sequence") return make_normalizer_sequence(*normalizer, where);
  if (*type == "Replace") {
    auto replacement = Replacement::from_json(*normalizer, where);
    RETURN_IF_ERROR(replacement);
    return std::make_unique<ReplaceNormalizer>(std::move(*replacement));
  }
  if (*type == "Prepend") {
    auto text = get_string(*normalizer, "prepend", where);
    RETURN_IF_ERROR(text);
    return std::make_unique<Prepend>(std::move(*text));
  }
  if (*type == "Strip")
    return std::make_unique<Strip>(flag(*normalizer, "strip_left", true),
                                   flag(*normalizer, "strip_right", true));
  if (*type == "Lowercase") return std::make_unique<MapCharacters>(append_lower);
  if (*type == "StripAccents") return std::make_unique<MapCharacters>(strip_accents);
  if (*type == "Nmt") return std::make_unique<MapCharacters>(nmt);
  if (*type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (*type == "BertNormalizer") return make_bert_normalizer(*normalizer, where);
  if (*type == "Precompiled") return make_precompiled(*normalizer, where);
  if (auto unicode = make_unicode_normalizer(*type)) return unicode;
  return fail(Errc::unsupported, cat(where, ": the normalizer ", quote(*type),
                                     " is not supported; Sequence, Replace, Prepend, Strip, "
                                     "Lowercase, StripAccents, Nmt, ByteLevel, "
                                     "BertNormalizer, Precompiled, NFC, NFD, NFKC and NFKD are"));
}

}  // namespace troupe::engine::tokenizer
