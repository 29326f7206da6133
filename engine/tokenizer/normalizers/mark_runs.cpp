#include "engine/tokenizer/normalizers/mark_runs.h"

#include <algorithm>
#include <vector>

#include "engine/base/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

// A run of this many bytes contains a position that is a multiple of the stride; a shorter one is
// left as it is.
constexpr std::size_t stride = 64, long_run = 2 * stride;
constexpr unsigned char first_mark_lead = 0xCC;  // of U+0300

std::size_t character_begin(std::string_view text, std::size_t at) {
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

// A mark, or a character that decomposes into marks alone.
bool MarkRuns::is_mark(char32_t c) const {
  if (c < 0x300) return false;
  const auto value = static_cast<UChar32>(c);
  if (form_.getCombiningClass(value) != 0) return true;
  icu::UnicodeString parts;
  if (!form_.getDecomposition(value, parts)) return false;
  for (std::int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1))
    if (form_.getCombiningClass(parts.char32At(i)) == 0) return false;
  return true;
}

std::string MarkRuns::sorted(std::string_view run) const {
  std::vector<std::pair<std::uint8_t, char32_t>> marks;
  marks.reserve(run.size() / 2);
  const auto add = [&](UChar32 c) {
    marks.emplace_back(form_.getCombiningClass(c), static_cast<char32_t>(c));
  };
  icu::UnicodeString parts;
  for (std::size_t at = 0; at < run.size(); at += utf8_length(run[at])) {
    const auto c = static_cast<UChar32>(code_point_at(run, at).value);
    if (!form_.getDecomposition(c, parts)) {
      add(c);
      continue;
    }
    for (std::int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1))
      add(parts.char32At(i));
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  out.reserve(run.size());
  for (const auto& mark : marks) append_utf8(out, mark.second);
  return out;
}

void MarkRuns::sort(std::string& text) const {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t sample = 0; sample < text.size(); sample += stride) {
    if (static_cast<unsigned char>(text[sample]) < 0x80) continue;
    std::size_t begin = character_begin(text, sample), end = begin;
    if (static_cast<unsigned char>(text[begin]) < first_mark_lead) continue;
    while (end < text.size() && is_mark(code_point_at(text, end).value))
      end += utf8_length(text[end]);
    if (end == begin) continue;
    while (begin > copied) {
      const std::size_t before = character_begin(text, begin - 1);
      if (!is_mark(code_point_at(text, before).value)) break;
      begin = before;
    }
    sample = end / stride * stride;  // what follows this run begins at `end` or later
    if (end - begin < long_run) continue;
    out.append(text, copied, begin - copied);
    out.append(sorted(std::string_view(text).substr(begin, end - begin)));
    copied = end;
  }
  if (copied == 0) return;
  text = out.append(text, copied);
}

}  // namespace troupe::engine::tokenizer
