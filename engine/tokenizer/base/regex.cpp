#include "engine/tokenizer/base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <time.h>

#include <algorithm>
#include <array>
#include <optional>

#include "engine/base/errors/check.h"
#include "engine/base/text/character_classes.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/base/threads/cancellation.h"
#include "engine/tokenizer/base/oniguruma.h"
#include "engine/tokenizer/base/python_pattern.h"

namespace troupe::engine::tokenizer {
namespace {

// Limits on backtracking at each position: a search that exceeds the first limit is repeated with
// the next, at the cost of a budget for the whole text. So the time is bounded for every
// expression, and nearly linear in the text.
constexpr std::array<std::uint32_t, 5> step_limits = {500, 5'000, 50'000, 500'000, 5'000'000};
constexpr std::uint64_t step_budget = 20'000'000, step_budget_per_byte = 100;
constexpr std::uint32_t heap_limit = 64 << 10;  // KiB
constexpr std::size_t max_pattern_bytes = 64 << 10;
// A step may take long, so the processor time is bounded too, far above what a search needs that
// stays within the limits on backtracking. It is read once for each window of positions.
constexpr std::uint64_t base_nanoseconds = 1'000'000'000, nanoseconds_per_byte = 500;
constexpr std::size_t window_bytes = 2048;

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
};

namespace {

std::uint64_t time_for(std::size_t bytes) {
  return base_nanoseconds + nanoseconds_per_byte * bytes;
}

thread_local std::uint64_t* shared_time = nullptr;  // of the text whose parts are searched

std::uint64_t processor_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// The matches of one text, within budgets of steps and time for all of it.
class Search {
 public:
  Search(const pcre2_code* code, const std::array<ContextPtr, step_limits.size()>& contexts,
         std::string_view text)
      : code_(code),
        contexts_(contexts),
        text_(text),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        steps_(step_budget + step_budget_per_byte * text.size()) {
    check(data_ != nullptr, "pcre2: no memory");
    if (text.size() > window_bytes) {
      windowed_.reset(pcre2_match_context_copy(contexts[0].get()));
      check(windowed_ != nullptr, "pcre2: no memory");
    }
  }

  Search(const Search&) = delete;
  ~Search() {
    if (deadline_ > 0 && shared_time)
      *shared_time -= std::min(*shared_time, processor_nanoseconds() - began_at_);
  }

  const PCRE2_SIZE* bounds() const { return pcre2_get_ovector_pointer(data_.get()); }

  std::size_t groups() const { return pcre2_get_ovector_count(data_.get()); }

  // The first match from `at` on, which is not empty at `full_at`. Place by place once the lowest
  // limit was too low somewhere.
  int first_from(std::size_t at, std::size_t full_at = static_cast<std::size_t>(-1)) {
    full_at_ = full_at;
    int found = windowed_ ? match_in_windows(at) : match(at, 0, contexts_[0].get());
    if (found != PCRE2_ERROR_MATCHLIMIT || over_) return found;
    for (;; at += utf8_length(text_[at])) {
      std::uint64_t expected = 0;  // time of the next level
      for (std::size_t level = 0; level < step_limits.size() && found == PCRE2_ERROR_MATCHLIMIT;
           ++level) {
        if (level > 0 && (steps_ < step_limits[level] || late(expected))) return found;
        if (level > 0) steps_ -= step_limits[level];
        found = match(at, PCRE2_ANCHORED, contexts_[level].get());
        if (level > 0) expected = 10 * (processor_nanoseconds() - asked_at_);
      }
      if (found != PCRE2_ERROR_NOMATCH || at == text_.size()) return found;
      found = PCRE2_ERROR_MATCHLIMIT;
      if (++slow_places_ % 16 == 0 && late()) return found;
    }
  }

 private:
  // Whether what takes `more` time would end too late. The time counts from the first question.
  bool late(std::uint64_t more = 0) {
    asked_at_ = processor_nanoseconds();
    if (deadline_ == 0) {
      began_at_ = asked_at_;
      deadline_ = asked_at_ + (shared_time ? *shared_time : time_for(text_.size()));
    }
    over_ = asked_at_ + more > deadline_;
    return over_;
  }

  int match_in_windows(std::size_t at) {
    for (;;) {
      if (at >= checked_until_) {
        checked_until_ = at + window_bytes;
        throw_if_cancelled();
        if (late()) return PCRE2_ERROR_MATCHLIMIT;
      }
      pcre2_set_offset_limit(windowed_.get(), checked_until_);
      const int found = match(at, 0, windowed_.get());
      if (found != PCRE2_ERROR_NOMATCH || checked_until_ >= text_.size()) return found;
      at = checked_until_;
      while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80) ++at;
    }
  }

  int match(std::size_t at, std::uint32_t options, pcre2_match_context* context) {
    const auto run = [&](std::uint32_t how) {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), at,
                         PCRE2_NO_UTF_CHECK | how | (at == full_at_ ? PCRE2_NOTEMPTY_ATSTART : 0),
                         data_.get(), context);
    };
    const int found = run(options);
    return found == PCRE2_ERROR_JIT_STACKLIMIT
               ? run(options | PCRE2_NO_JIT)
               : found;  // the interpreter keeps its stack on the heap
  }

  const pcre2_code* code_;
  const std::array<ContextPtr, step_limits.size()>& contexts_;
  std::string_view text_;
  MatchPtr data_;
  ContextPtr windowed_;
  std::uint64_t steps_, deadline_ = 0, began_at_ = 0, asked_at_ = 0;
  std::size_t checked_until_ = 0, slow_places_ = 0, full_at_ = 0;
  bool over_ = false;
};

}  // namespace

SearchTime::SearchTime(std::size_t bytes) : left_(time_for(bytes)), outer_(shared_time) {
  shared_time = &left_;
}
SearchTime::~SearchTime() {
  shared_time = outer_;
}

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {
}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern, std::string_view where, RegexSyntax syntax) {
  if (pattern.size() > max_pattern_bytes)
    return fail(Errc::bad_input, cat(where, ": a regular expression of ", pattern.size(),
                                     " bytes; at most ", max_pattern_bytes, " are read"));
  const bool python = syntax == RegexSyntax::python;
  auto translated = python ? translate_python(pattern, where) : translate_oniguruma(pattern, where);
  RETURN_IF_ERROR(translated);
  const CompilePtr options(pcre2_compile_context_create(nullptr));
  check(options != nullptr, "pcre2: no memory");
  pcre2_set_newline(options.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(options.get(), 100);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Oniguruma's ^ and $ are those of lines.
  const std::uint32_t flags = PCRE2_UTF | PCRE2_UCP | (python ? 0 : PCRE2_MULTILINE) |
                              PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
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
  Search search(code_->code.get(), code_->contexts, text);
  const PCRE2_SIZE* bounds = search.bounds();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t at = 0, last_end = none;
  while (at <= text.size()) {
    const int found = search.first_from(at);
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

Result<std::vector<std::vector<Range>>> Regex::find_groups(std::string_view text) const {
  const std::optional<std::string> older = with_older_characters(text);
  if (older) text = *older;
  Search search(code_->code.get(), code_->contexts, text);
  const PCRE2_SIZE* bounds = search.bounds();
  std::vector<std::vector<Range>> out;
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  for (std::size_t at = 0, empty_at = none; at <= text.size();) {
    const int found = search.first_from(at, empty_at);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return fail(Errc::bad_input,
                  cat("the regular expression gives up on this text: ", message_of(found)));
    std::vector<Range>& match = out.emplace_back(search.groups());
    for (std::size_t g = 0; g < std::min(match.size(), static_cast<std::size_t>(found)); ++g)
      if (bounds[2 * g] != PCRE2_UNSET)
        match[g] = {bounds[2 * g], std::max(bounds[2 * g], bounds[2 * g + 1])};
    at = match[0].end;
    empty_at = match[0].begin == match[0].end ? at : none;
  }
  return out;
}

}  // namespace troupe::engine::tokenizer
