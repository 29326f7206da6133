#include "launch/evaluation/mindspeed/source_strings.h"

#include <algorithm>
#include <optional>

#include "engine/base/text/text.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view source) : in_(source) {}

  /// The strings up to `close`; nullopt if something else follows.
  std::optional<std::vector<SourceString>> run(char close) {
    std::vector<SourceString> out;
    bool joins = false;
    for (;;) {
      skip_space();
      if (at_ >= in_.size()) return std::nullopt;
      const char c = in_[at_];
      if (c == close) return out;
      if (c == ',' || c == ':') {
        joins = false;
        ++at_;
        continue;
      }
      auto next = literal();
      if (!next) return std::nullopt;
      if (joins) {
        out.back().text += next->text;
        out.back().formatted = out.back().formatted || next->formatted;
      } else {
        out.push_back(std::move(*next));
      }
      joins = true;
    }
  }

 private:
  void skip_space() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '#')
        at_ = std::min(in_.find('\n', at_), in_.size());
      else if (c == ' ' || c == '\\' || (c >= '\t' && c <= '\r'))
        ++at_;
      else
        return;
    }
  }

  std::optional<SourceString> literal() {
    SourceString out;
    bool raw = false;
    for (; at_ < in_.size() && std::string_view("frFR").find(in_[at_]) != std::string_view::npos;
         ++at_) {
      out.formatted = out.formatted || in_[at_] == 'f' || in_[at_] == 'F';
      raw = raw || in_[at_] == 'r' || in_[at_] == 'R';
    }
    if (at_ >= in_.size() || (in_[at_] != '\'' && in_[at_] != '"')) return std::nullopt;
    const char quote = in_[at_++];
    while (at_ < in_.size() && in_[at_] != quote && in_[at_] != '\n') {
      if (in_[at_] == '\\')
        escape(raw, out.text);
      else
        out.text += in_[at_++];
    }
    if (at_ >= in_.size() || in_[at_] != quote) return std::nullopt;
    ++at_;
    return out;
  }

  /// An unknown escape stays as it is: patterns have \s and \( in strings that are not raw.
  void escape(bool raw, std::string& out) {
    const char c = at_ + 1 < in_.size() ? in_[at_ + 1] : '\\';
    constexpr std::string_view names = "nt\\'\"", values = "\n\t\\'\"";
    const std::size_t known = names.find(c);
    if (!raw && known != std::string_view::npos)
      out += values[known];
    else
      out += {'\\', c};
    at_ = std::min(at_ + 2, in_.size());
  }

  std::string_view in_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<SourceString>> source_strings(std::string_view source, std::string_view head,
                                                 const std::string& file) {
  const std::size_t found = source.find(head);
  if (found == std::string_view::npos || head.empty())
    return fail(Errc::bad_input, cat(file, ": expected ", quote(std::string(head)),
                                     ", which begins what MindSpeed-LLM has there"));
  const char open = head.back();
  const char close = open == '[' ? ']' : open == '{' ? '}' : ')';
  auto out = Reader(source.substr(found + head.size())).run(close);
  if (!out) return fail(Errc::bad_input, cat(file, ": ", head, ": expected strings up to ", close));
  return std::move(*out);
}

std::string with_options(const SourceString& text, std::string_view options) {
  if (!text.formatted) return text.text;
  constexpr std::string_view field = "{options}";
  std::string out;
  for (std::size_t at = 0; at < text.text.size();) {
    const std::string_view rest = std::string_view(text.text).substr(at);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      out += rest[0];
      at += 2;
    } else if (rest.starts_with(field)) {
      out += options;
      at += field.size();
    } else {
      out += text.text[at++];
    }
  }
  return out;
}

}  // namespace troupe::launch::evaluation::mindspeed
