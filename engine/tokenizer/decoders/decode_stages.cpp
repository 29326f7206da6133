#include "engine/tokenizer/decoders/decode_stages.h"

#include <utility>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/byte_alphabet.h"

namespace troupe::engine::tokenizer {
namespace {

std::string replace_text(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool found = !what.empty() && text.substr(at).starts_with(what);
    if (found)
      out.append(with);
    else
      out.push_back(text[at]);
    at += found ? what.size() : 1;
  }
  return out;
}

// The library's clean-up of English text after WordPiece and CTC.
std::string clean_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, with] : rules) text = replace_text(text, what, with);
  return text;
}

int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// The byte of <0xE4>, or -1.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace

void WholeTokenStage::push(std::string_view text, bool begins, bool ends) {
  if (begins && ends) return token(text);
  gathered_.append(text);
  if (ends) token(std::exchange(gathered_, {}));
}

void ReplaceStage::token(std::string_view text) {
  std::string out(text);
  replacement_.apply(out, *limit, "decoder");
  emit(out);
}

void ByteFallbackStage::token(std::string_view text) {
  if (const int byte = byte_of(text); byte >= 0)
    return bytes_.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  flush();
  emit(text);
}
void ByteFallbackStage::flush() {
  const std::string bytes = std::exchange(bytes_, {});
  if (bytes.empty()) return;
  if (valid_utf8(bytes)) return emit(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) emit("\xEF\xBF\xBD");
}
void ByteFallbackStage::finish() {
  flush();
  next->finish();
}

void FuseStage::push(std::string_view text, bool, bool) {
  next->push(text, !std::exchange(begun_, true), false);
}
void FuseStage::finish() {
  next->push("", !std::exchange(begun_, true), true);
  next->finish();
}

void StripStage::push(std::string_view text, bool begins, bool ends) {
  if (begins) {
    left_ = start_;
    held_ = 0;
  }
  while (left_ > 0 && !text.empty()) {
    if (!text.starts_with(content_))
      left_ = 0;
    else {
      text.remove_prefix(content_.size());
      --left_;
    }
  }
  std::string out;
  for (; held_ > 0 && !text.empty(); --held_)
    out += content_;  // more follows, so these were not the end... unless the rest is held again
  out.append(text);
  for (; held_ < stop_ && out.ends_with(content_) && !out.empty(); ++held_)
    out.resize(out.size() - content_.size());
  if (ends) held_ = 0;
  if (!out.empty() || begins || ends) next->push(out, begins, ends);
}

void MetaspaceStage::token(std::string_view text) {
  emit(replace_text(text, sign_, std::exchange(drop_, false) ? "" : " "));
}

void ByteLevelStage::token(std::string_view text) {
  if (!append_bytes_of(bytes_, text)) bytes_.append(text);
  const std::size_t complete = complete_utf8_prefix(bytes_);
  if (complete == 0) return;
  next->push(repair_utf8(std::string_view(bytes_).substr(0, complete)),
             !std::exchange(begun_, true), false);
  bytes_.erase(0, complete);
}
void ByteLevelStage::finish() {
  next->push(repair_utf8(bytes_), !std::exchange(begun_, true), true);
  bytes_.clear();
  next->finish();
}

void WordEndStage::token(std::string_view text) {
  flush(" ");
  last_ = text;
  any_ = true;
}
void WordEndStage::flush(std::string_view replacement) {
  if (std::exchange(any_, false)) emit(replace_text(last_, suffix_, replacement));
}
void WordEndStage::finish() {
  flush("");
  next->finish();
}

void WordPieceStage::token(std::string_view text) {
  std::string out;
  if (std::exchange(any_, true))
    text.starts_with(prefix_) ? text.remove_prefix(prefix_.size()) : out.push_back(' ');
  out.append(text);
  emit(cleanup_ ? clean_up(std::move(out)) : out);
}

void CtcStage::token(std::string_view text) {
  if (std::exchange(any_, true) && last_ == text) return;
  last_ = text;
  std::string out = replace_text(text, pad_, "");
  if (cleanup_) out = replace_text(clean_up(std::move(out)), delimiter_, " ");
  if (!out.empty()) emit(out);
}

void SpacedStage::token(std::string_view text) {
  if (std::exchange(any_, true)) emit(" ");
  emit(text);
}

}  // namespace troupe::engine::tokenizer
