#include "engine/tokenizer/normalizers/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/growth.h"

namespace troupe::engine::tokenizer {
namespace {

/// Sorts each run of many combining marks by their combining class (Unicode 3.11, D108-D109), after
/// decomposing them, which does not change what `form` makes of the text. ICU sorts marks by
/// insertion, in quadratic time for a run; the marks of a sorted run stay where they are. Time
/// grows as n log n. `form` has the classes and the decompositions.
class MarkRuns {
 public:
  explicit MarkRuns(const icu::Normalizer2& form) : form_(form) {}
  void sort(std::string& text) const;

 private:
  bool is_mark(char32_t c) const;
  std::string sorted(std::string_view run) const;
  const icu::Normalizer2& form_;
};

// A run of this many bytes contains a position that is a multiple of the stride; a shorter one is
// left as it is.
constexpr std::size_t stride = 64, long_run = 2 * stride;
constexpr unsigned char first_mark_lead = 0xCC;  // of U+0300

std::size_t character_begin(std::string_view text, std::size_t at) {
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

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

/// Counts what is beyond the limit without keeping it: ICU does not stop.
class BoundedSink : public icu::ByteSink {
 public:
  BoundedSink(std::string& out, std::size_t limit) : out_(out), limit_(limit) {}
  void Append(const char* text, std::int32_t size) override {
    bytes += static_cast<std::size_t>(size);
    if (bytes <= limit_) out_.append(text, static_cast<std::size_t>(size));
  }
  std::size_t bytes = 0;

 private:
  std::string& out_;
  std::size_t limit_;
};

// Text that is already normalized is detected quickly and left alone.
class UnicodeNormalizer : public Normalizer {
 public:
  UnicodeNormalizer(const icu::Normalizer2* form, const icu::UnicodeSet& known, unsigned char inert)
      : form_(*form, known), runs_(form_), inert_(inert) {}

  bool apply(std::string& text, std::size_t limit) const override {
    if (std::all_of(text.begin(), text.end(),
                    [&](char c) { return static_cast<unsigned char>(c) < inert_; }))
      return false;
    runs_.sort(text);
    UErrorCode status = U_ZERO_ERROR;
    std::string out;
    out.reserve(text.size());
    BoundedSink sink(out, limit);
    form_.normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())),
                        sink, nullptr, status);
    check(U_SUCCESS(status), "ICU: normalization failed");
    check_growth(sink.bytes, limit, "normalizer");
    text = std::move(out);
    return false;
  }

 private:
  icu::FilteredNormalizer2 form_;  // of what ICU owns for ever
  MarkRuns runs_;
  unsigned char inert_;  // text of smaller bytes only is in the form
};

}  // namespace

std::unique_ptr<Normalizer> make_unicode_normalizer(std::string_view form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  unsigned char inert = 0x80;
  if (form == "NFC") {
    found = icu::Normalizer2::getNFCInstance(status);
    inert = 0xCC;  // below U+0300 nothing composes
  } else if (form == "NFD") {
    found = icu::Normalizer2::getNFDInstance(status);
  } else if (form == "NFKC") {
    found = icu::Normalizer2::getNFKCInstance(status);
  } else if (form == "NFKD") {
    found = icu::Normalizer2::getNFKDInstance(status);
  } else {
    return nullptr;
  }
  check(U_SUCCESS(status) && found, "ICU: its normalization data is missing");
  static const icu::UnicodeSet known = [] {  // the library's tables are those of Unicode 9
    UErrorCode failure = U_ZERO_ERROR;
    icu::UnicodeSet set(UNICODE_STRING_SIMPLE("[:age=9.0:]"), failure);
    check(U_SUCCESS(failure), "ICU: the ages of characters are missing");
    return icu::UnicodeSet(*set.freeze());
  }();
  return std::make_unique<UnicodeNormalizer>(found, known, inert);
}

}  // namespace troupe::engine::tokenizer
