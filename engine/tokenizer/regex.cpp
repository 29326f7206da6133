#include "engine/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/tokenizer/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::uint32_t match_limit = 20'000'000;
constexpr std::size_t longest_pattern = 64 << 10;

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
  ContextPtr context;
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern, std::string_view where) {
  if (pattern.size() > longest_pattern)
    return fail(Errc::bad_input,
                cat(where, ": a regular expression of ", pattern.size(), " bytes; at most ", longest_pattern, " are read"));
  auto translated = translate_oniguruma(pattern, where);
  if (!translated) return fail(translated.error());
  const CompilePtr options(pcre2_compile_context_create(nullptr));
  check(options != nullptr, "pcre2: no memory");
  pcre2_set_newline(options.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(options.get(), 100);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Oniguruma's ^ and $ are those of lines.
  constexpr std::uint32_t flags = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  CodePtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(), flags, &error, &offset, options.get()));
  if (!code) return fail(Errc::bad_input, cat(where, ": the regular expression ", quote(pattern), " cannot be read: ", message_of(error)));
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
  ContextPtr context(pcre2_match_context_create(nullptr));
  check(context != nullptr, "pcre2: no memory");
  pcre2_set_match_limit(context.get(), match_limit);
  return Regex(std::make_unique<Code>(Code{std::move(code), std::move(context)}));
}

void Regex::find_all(std::string_view text, std::vector<Range>& out) const {
  const MatchPtr match(pcre2_match_data_create(1, nullptr));
  check(match != nullptr, "pcre2: no memory");
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t at = 0, last_end = none;
  while (at <= text.size()) {
    const auto search = [&](std::uint32_t options) {
      return pcre2_match(code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, PCRE2_NO_UTF_CHECK | options,
                         match.get(), code_->context.get());
    };
    int found = search(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = search(PCRE2_NO_JIT);  // the interpreter keeps its stack on the heap
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0) throw Failure({Errc::bad_input, cat("the tokenizer's regular expression gives up on this text: ", message_of(found))});
    const Range range{bounds[0], std::max(bounds[0], bounds[1])};
    if (range.begin == range.end && range.end == last_end) {  // an empty match right after the last one: step over a character
      at += at < text.size() ? utf8_length(text[at]) : 1;
      continue;
    }
    out.push_back(range);
    at = last_end = range.end;
  }
}

}  // namespace troupe::engine::tokenizer
