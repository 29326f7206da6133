#include "launch/serve/api/output_text.h"

#include <algorithm>

namespace troupe::launch::serve::api {

namespace {

// A token's text depends on few tokens before it: spaces between words, parts of a character.
constexpr std::size_t context_tokens = 32;

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

}  // namespace

TextAfterPrompt::TextAfterPrompt(const engine::tokenizer::Tokenizer& tokenizer,
                                 std::span<const std::int32_t> prompt, bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special) {
  const auto tail = prompt.last(std::min(prompt.size(), context_tokens));
  context_.assign(tail.begin(), tail.end());
  before_ = tokenizer_.decode(context_, skip_special_);
  // A prompt that ends inside a character has no text of its own to continue.
  if (before_.ends_with(replacement_character)) {
    context_.clear();
    before_.clear();
  }
}

std::string TextAfterPrompt::operator()(std::span<const std::int32_t> ids) const {
  std::vector<std::int32_t> all = context_;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::string whole = tokenizer_.decode(all, skip_special_);
  return whole.starts_with(before_) ? whole.substr(before_.size())
                                    : tokenizer_.decode(ids, skip_special_);
}

OutputText::OutputText(const engine::tokenizer::Tokenizer& tokenizer, const TextAfterPrompt& decode,
                       bool skip_special, const std::vector<std::string>& stops,
                       std::int32_t at_least)
    : stream_(tokenizer, skip_special),
      stops_(&stops),
      skip_(decode.context_bytes()),
      at_least_(at_least) {
  for (const std::int32_t id : decode.context()) skip_ -= std::min(skip_, stream_.push(id).size());
}

std::string OutputText::push(std::int32_t token) {
  std::string piece = stream_.push(token);
  const std::size_t old = std::min(skip_, piece.size());
  skip_ -= old;
  text_ += piece.substr(old);
  if (++tokens_ <= at_least_) settled_ = text_.size();
  const std::size_t safe = safe_size();
  std::string out = text_.substr(sent_, safe - sent_);
  sent_ = safe;
  return out;
}

/// Where a stop string begins, or may begin once more text arrives.
std::size_t OutputText::safe_size() const {
  std::size_t safe = text_.size();
  for (const std::string& stop : *stops_) {
    const std::size_t first = settled_ < stop.size() ? 0 : settled_ - stop.size() + 1;
    if (const auto at = text_.find(stop, std::max(sent_, first)); at != std::string::npos)
      safe = std::min(safe, at);
    const std::size_t longest = std::min(stop.size() - 1, text_.size() - sent_);
    for (std::size_t part = longest; part > 0; --part) {
      if (!text_.ends_with(std::string_view(stop).substr(0, part))) continue;
      safe = std::min(safe, text_.size() - part);
      break;
    }
  }
  return safe;
}

std::string OutputText::finish(const std::string& whole) const {
  return whole.size() > sent_ ? whole.substr(sent_) : "";
}

}  // namespace troupe::launch::serve::api
