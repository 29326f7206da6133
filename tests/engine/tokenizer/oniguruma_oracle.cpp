#include "tests/engine/tokenizer/oniguruma_oracle.h"

#define ONIG_ESCAPE_UCHAR_COLLISION
#include <oniguruma.h>

#include <optional>

#include "engine/base/text/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

const OnigUChar* begin_of(const std::string& text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}
const OnigUChar* end_of(const std::string& text) {
  return begin_of(text) + text.size();
}

struct FreeRegion {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};

}  // namespace

Oniguruma::Oniguruma(const std::string& pattern) {
  static const bool ready = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1) == ONIG_NORMAL;
  }();
  OnigErrorInfo error;
  regex_t* made = nullptr;
  if (ready && onig_new(&made, begin_of(pattern), end_of(pattern), ONIG_OPTION_NONE,
                        ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &error) == ONIG_NORMAL)
    regex_ =
        std::shared_ptr<void>(made, [](void* regex) { onig_free(static_cast<regex_t*>(regex)); });
}

std::vector<Range> Oniguruma::find_all(const std::string& text) const {
  std::vector<Range> out;
  std::optional<std::size_t> last;
  const std::unique_ptr<OnigRegion, FreeRegion> region(onig_region_new());
  for (std::size_t at = 0; at <= text.size();) {
    const int found =
        onig_search(static_cast<regex_t*>(regex_.get()), begin_of(text), end_of(text),
                    begin_of(text) + at, end_of(text), region.get(), ONIG_OPTION_NONE);
    if (found < 0) break;
    const Range range{static_cast<std::size_t>(region->beg[0]),
                      static_cast<std::size_t>(region->end[0])};
    if (range.begin == range.end && last == range.end) {
      at += at < text.size() ? utf8_length(text[at]) : 1;
      continue;
    }
    out.push_back(range);
    last = at = range.end;
  }
  return out;
}

}  // namespace troupe::engine::tokenizer
