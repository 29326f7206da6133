#include "actors/roles/rules/text_rules.h"

#include <algorithm>

#include "actors/roles/rules/math_scan.h"

namespace troupe::actors::rules {
namespace {

std::string canonical(std::string_view text, const ExactOptions& options) {
  if (options.strip) text = trimmed(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (options.collapse_spaces && is_space(c)) {
      if (i > 0 && is_space(text[i - 1])) continue;
      c = ' ';
    }
    if (options.ignore_case && 'A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    out += c;
  }
  return out;
}

std::string opening(std::string_view tag) {
  return "<" + std::string(tag) + ">";
}
std::string closing(std::string_view tag) {
  return "</" + std::string(tag) + ">";
}

}  // namespace

bool exact_match(std::string_view text, std::string_view answer, const ExactOptions& options) {
  return canonical(text, options) == canonical(answer, options);
}

bool has_format(std::string_view text, const std::vector<std::string>& tags) {
  const auto holds_a_tag = [&](std::string_view content) {
    return std::any_of(tags.begin(), tags.end(), [&](const auto& tag) {
      return content.find(opening(tag)) != content.npos ||
             content.find(closing(tag)) != content.npos;
    });
  };
  for (const auto& tag : tags) {
    text = trimmed(text);
    if (!take(text, opening(tag))) return false;
    const auto end = text.find(closing(tag));
    if (end == text.npos || holds_a_tag(text.substr(0, end))) return false;
    text.remove_prefix(end + closing(tag).size());
  }
  return trimmed(text).empty();
}

std::string_view inside_tag(std::string_view text, std::string_view tag) {
  const auto end = text.rfind(closing(tag));
  if (end == text.npos) return text;
  const auto begin = text.rfind(opening(tag), end);
  if (begin == text.npos) return text;
  return text.substr(begin + tag.size() + 2, end - begin - tag.size() - 2);
}

double length_penalty(double length, double shortest, double longest, double buffer) {
  if (length < shortest) return -1;
  if (longest <= 0 || length <= longest - buffer) return 0;
  return length >= longest ? -1 : -(length - (longest - buffer)) / buffer;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t count_words(std::string_view text) {
  std::size_t words = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    words += !is_space(text[i]) && (i == 0 || is_space(text[i - 1]));
  return words;
}

}  // namespace troupe::actors::rules
