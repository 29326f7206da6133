#include "engine/tokenizer/normalizers/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

#include <algorithm>

#include "engine/base/check.h"
#include "engine/tokenizer/base/growth.h"
#include "engine/tokenizer/normalizers/mark_runs.h"

namespace troupe::engine::tokenizer {
namespace {

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
