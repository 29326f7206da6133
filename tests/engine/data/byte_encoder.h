// ByteEncoder: an encoder simple enough to be checked by eye, for the tests and the fuzz targets of
// the data library.
#pragma once

#include <optional>
#include <string>

#include "engine/data/layouts/messages.h"
#include "engine/data/layouts/text_encoder.h"

namespace troupe::engine::data {

/// A token a byte, but "ab" is one token, "<eos>" is one, and `add_special` puts a start token in
/// front.
class ByteEncoder : public TextEncoder {
 public:
  static constexpr std::int32_t start = 256, end = 257, ab = 258;
  enum class Template { none, plain, blocks, announces, rewrites };
  explicit ByteEncoder(Template chat = Template::plain) : chat_(chat) {}

  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special) const override {
    std::vector<std::int32_t> ids;
    if (add_special) ids.push_back(start);
    for (std::size_t i = 0; i < text.size();) {
      const auto rest = text.substr(i);
      const bool is_end = rest.starts_with("<eos>"), is_ab = rest.starts_with("ab");
      ids.push_back(is_end ? end : is_ab ? ab : static_cast<unsigned char>(text[i]));
      i += is_end ? 5 : is_ab ? 2 : 1;
    }
    return ids;
  }

  Result<RenderedChat> render_chat(const Json& messages, bool add_generation_prompt,
                                   const Json& tools) const override {
    if (chat_ == Template::announces) return announced(messages, add_generation_prompt);
    RenderedChat out;
    if (!tools.is_null()) out.text = "[tools]";
    for (std::size_t i = 0; i < messages.array().size(); ++i) {
      const auto& item = messages.array()[i];
      std::string content = item.find("content")->string();
      if (chat_ == Template::rewrites && is_assistant(item) && i + 1 < messages.array().size())
        content = "...";
      if (const auto* calls = item.find("tool_calls")) content += calls->dump();
      out.text += "<" + item.find("role")->string() + ">";
      const auto begin = out.text.size();
      out.text += content + "<eos>";
      if (chat_ == Template::blocks && is_assistant(item))
        out.assistant_spans.emplace_back(begin, out.text.size());
      out.text += "\n";
    }
    if (add_generation_prompt) out.text += "<assistant>";
    return out;
  }

  bool has_chat_template() const override { return chat_ != Template::none; }
  std::optional<std::int32_t> begin_token() const override { return start; }
  std::optional<std::int32_t> end_token() const override { return end; }
  std::int64_t vocabulary() const override { return 259; }

 private:
  // Renders as digit-completion does: contents one after the other, and a mark only where
  // generation begins.
  static Result<RenderedChat> announced(const Json& messages, bool add_generation_prompt) {
    RenderedChat out;
    for (const auto& item : messages.array()) out.text += item.find("content")->string();
    if (add_generation_prompt) out.text += "=";
    return out;
  }
  Template chat_;
};

/// The text that `ids` stand for, tokens of weight 0 in lower case brackets left out: what is
/// trained on.
inline std::string text_of_ids(const std::vector<std::int32_t>& ids,
                               const std::vector<float>* weights = nullptr) {
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (weights && (*weights)[i] == 0) continue;
    const auto id = ids[i];
    out += id == ByteEncoder::start ? "<s>"
           : id == ByteEncoder::end ? "<eos>"
           : id == ByteEncoder::ab  ? "ab"
                                    : std::string(1, static_cast<char>(id));
  }
  return out;
}

}  // namespace troupe::engine::data
