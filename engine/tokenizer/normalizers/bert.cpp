#include "engine/tokenizer/normalizers/bert.h"

#include "engine/base/character_classes.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/normalizers/unicode.h"

namespace troupe::engine::tokenizer {
namespace {

/// BERT's definition of CJK ideographs: a few Unicode blocks.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

struct Options {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(Options options)
      : options_(options), nfd_(make_unicode_normalizer("NFD")) {}

  bool apply(std::string& text) const override {
    bool cut = map(text, [this](std::string& out, char32_t c) { prepare(out, c); });
    if (options_.strip_accents) {
      nfd_->apply(text);
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

  Options options_;
  std::unique_ptr<Normalizer> nfd_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> make_bert_normalizer(const Json& options,
                                                         std::string_view where) {
  Options chosen{};
  const std::pair<const char*, bool Options::*> needed[] = {
      {"clean_text", &Options::clean_text},
      {"handle_chinese_chars", &Options::handle_chinese_chars},
      {"lowercase", &Options::lowercase}};
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

}  // namespace troupe::engine::tokenizer
