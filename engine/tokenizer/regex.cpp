#include "engine/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <optional>

#include "engine/base/character_classes.h"
#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/oniguruma.h"

namespace troupe::engine::tokenizer {
namespace {

// Limits on backtracking at each position: a search that exceeds the first limit is repeated with
// the next, at the cost of a budget for the whole text. So the time is bounded for every
// expression, and nearly linear in the text.
constexpr std::array<std::uint32_t, 5> step_limits = {500, 5'000, 50'000, 500'000, 5'000'000};
constexpr std::uint64_t step_budget = 20'000'000, step_budget_per_byte = 100;
constexpr std::uint32_t heap_limit = 64 << 10;  // KiB
constexpr std::size_t max_pattern_bytes = 64 << 10;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using CodePtr = std::unique_ptr<pcre2_code, Freed<pcre2_code_free>>;
using MatchPtr = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using ContextPtr = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using CompilePtr = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>>;

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Code {
  CodePtr code;
  std::array<ContextPtr, step_limits.size()> contexts;  // one a limit

  int match(std::string_view text, std::size_t at, std::uint32_t options, std::size_t level,
            pcre2_match_data* match) const {
    const auto run = [&](std::uint32_t how) {
      return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                         PCRE2_NO_UTF_CHECK | how, match, contexts[level].get());
    };
    const int found = run(options);
    return found == PCRE2_ERROR_JIT_STACKLIMIT
               ? run(options | PCRE2_NO_JIT)
               : found;  // the interpreter keeps its stack on the heap
  }

  // The first match from `at` on. Place by place once the lowest limit was too low somewhere.
  int search(std::string_view text, std::size_t at, pcre2_match_data* data,
             std::uint64_t& budget) const {
    int found = match(text, at, 0, 0, data);
    if (found != PCRE2_ERROR_MATCHLIMIT) return found;
    for (;; at += utf8_length(text[at])) {
      for (std::size_t level = 0; level < step_limits.size() && found == PCRE2_ERROR_MATCHLIMIT;
           ++level) {
        if (level > 0 && budget < step_limits[level]) return found;
        if (level > 0) budget -= step_limits[level];
        found = match(text, at, PCRE2_ANCHORED, level, data);
      }
      if (found != PCRE2_ERROR_NOMATCH || at == text.size()) return found;
      found = PCRE2_ERROR_MATCHLIMIT;
    }
  }
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {
}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern, std::string_view where) {
  if (pattern.size() > max_pattern_bytes)
    return fail(Errc::bad_input, cat(where, ": a regular expression of ", pattern.size(),
                                     " bytes; at most ", max_pattern_bytes, " are read"));
  auto translated = translate_oniguruma(pattern, where);
  RETURN_IF_ERROR(translated);
  const CompilePtr options(pcre2_compile_context_create(nullptr));
  check(options != nullptr, "pcre2: no memory");
  pcre2_set_newline(options.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(options.get(), 100);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Oniguruma's ^ and $ are those of lines.
  constexpr std::uint32_t flags = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  CodePtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                             flags, &error, &offset, options.get()));
  if (!code)
    return fail(Errc::bad_input, cat(where, ": the regular expression ", quote(pattern),
                                     " cannot be read: ", message_of(error)));
  pcre2_jit_compile(code.get(),
                    PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
  auto made = std::make_unique<Code>();
  made->code = std::move(code);
  for (std::size_t level = 0; level < step_limits.size(); ++level) {
    made->contexts[level].reset(pcre2_match_context_create(nullptr));
    check(made->contexts[level] != nullptr, "pcre2: no memory");
    pcre2_set_match_limit(made->contexts[level].get(), step_limits[level]);
    pcre2_set_heap_limit(made->contexts[level].get(), heap_limit);
  }
  return Regex(std::move(made));
}

namespace {

// The text with characters in place of those that are younger than PCRE2's tables, byte for byte;
// or nothing when there are none.
std::optional<std::string> with_older_characters(std::string_view text) {
  std::optional<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0xE0) {
      ++at;
      continue;
    }
    const CodePoint point = code_point_at(text, at);
    if (const char32_t older = older_equivalent(point.value); older != point.value) {
      if (!out) out = std::string(text);
      std::string bytes;
      append_utf8(bytes, older);
      out->replace(at, point.size, bytes);
    }
    at += point.size;
  }
  return out;
}

}  // namespace

void Regex::find_all(std::string_view text, std::vector<Range>& out) const {
  const std::optional<std::string> older = with_older_characters(text);
  if (older) text = *older;
  const MatchPtr match(pcre2_match_data_create(1, nullptr));
  check(match != nullptr, "pcre2: no memory");
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::uint64_t budget = step_budget + step_budget_per_byte * text.size();
  std::size_t at = 0, last_end = none;
  while (at <= text.size()) {
    const int found = code_->search(text, at, match.get(), budget);
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0)
      throw Failure(
          {Errc::bad_input,
           cat("the tokenizer's regular expression gives up on this text: ", message_of(found))});
    const Range range{bounds[0], std::max(bounds[0], bounds[1])};
    if (range.begin == range.end &&
        range.end == last_end) {  // an empty match right after the last one: step over a character
      at += at < text.size() ? utf8_length(text[at]) : 1;
      continue;
    }
    out.push_back(range);
    at = last_end = range.end;
  }
}

}  // namespace troupe::engine::tokenizer
