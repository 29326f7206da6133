#include "launch/tools/migration/shell/pattern.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::launch::tools::migration::shell {
namespace {

/// The position after the bracket expression at `at`; `at` if it is not closed.
std::size_t end_of_set(std::string_view pattern, std::size_t at) {
  std::size_t end = at + 1;
  if (end < pattern.size() && (pattern[end] == '!' || pattern[end] == '^')) ++end;
  if (end < pattern.size() && pattern[end] == ']') ++end;
  while (end < pattern.size() && pattern[end] != ']') {
    if (pattern.substr(end, 2) == "[:") {
      const auto close = pattern.find(":]", end);
      if (close != std::string_view::npos) end = close + 1;
    }
    end += pattern[end] == '\\' ? 2 : 1;
  }
  return end < pattern.size() ? end + 1 : at;
}

bool in_class(std::string_view name, char c) {
  const auto u = static_cast<unsigned char>(c);
  if (name == "digit") return std::isdigit(u);
  if (name == "alpha") return std::isalpha(u);
  if (name == "alnum") return std::isalnum(u);
  if (name == "space") return std::isspace(u);
  if (name == "upper") return std::isupper(u);
  if (name == "lower") return std::islower(u);
  return name == "punct" && std::ispunct(u);
}

bool in_set(std::string_view set, char c) {
  const bool negated = !set.empty() && (set[0] == '!' || set[0] == '^');
  if (negated) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set.substr(i, 2) == "[:") {
      const auto close = set.find(":]", i);
      if (close != std::string_view::npos) {
        found = found || in_class(set.substr(i + 2, close - i - 2), c);
        i = close + 1;
        continue;
      }
    }
    if (set[i] == '\\' && i + 1 < set.size()) ++i;
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != negated;
}

/// One element of a pattern, which is not a star: its length, or 0 if it does not mean `c`.
std::size_t element(std::string_view pattern, std::size_t at, char c) {
  if (pattern[at] == '?') return 1;
  if (pattern[at] == '[')
    if (const auto end = end_of_set(pattern, at); end > at)
      return in_set(pattern.substr(at + 1, end - at - 2), c) ? end - at : 0;
  const bool escaped = pattern[at] == '\\' && at + 1 < pattern.size();
  return pattern[at + (escaped ? 1 : 0)] == c ? (escaped ? 2 : 1) : 0;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text, Budget& budget) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, tried = 0, work = 1;
  while (t < text.size()) {
    if (++work > 4096) budget.work(std::exchange(work, 1));
    const std::size_t length =
        p < pattern.size() && pattern[p] != '*' ? element(pattern, p, text[t]) : 0;
    if (length > 0) {
      p += length;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++tried;
    } else {
      budget.work(work);
      return false;
    }
  }
  budget.work(work);
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string without_prefix(std::string_view text, std::string_view pattern, bool longest,
                           Budget& budget) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? text.size() - i : i;
    if (matches(pattern, text.substr(0, length), budget)) return std::string(text.substr(length));
  }
  return std::string(text);
}

std::string without_suffix(std::string_view text, std::string_view pattern, bool longest,
                           Budget& budget) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t begin = longest ? i : text.size() - i;
    if (matches(pattern, text.substr(begin), budget)) return std::string(text.substr(0, begin));
  }
  return std::string(text);
}

std::string replaced(std::string_view text, std::string_view pattern, std::string_view by, bool all,
                     char place, Budget& budget) {
  if (pattern.empty())
    return cat(place == '#' ? by : "", text, place == '%' ? by : std::string_view());
  std::string out;
  std::size_t at = 0;
  const auto length_at = [&](std::size_t begin) -> std::optional<std::size_t> {
    for (std::size_t end = text.size() + 1; end-- > begin;)
      if ((place != '%' || end == text.size()) &&
          matches(pattern, text.substr(begin, end - begin), budget))
        return end - begin;
    return std::nullopt;
  };
  while (at <= text.size()) {
    const auto length = place == '#' && at > 0 ? std::nullopt : length_at(at);
    if (length && *length > 0) {
      out += by;
      budget.work(by.size());
      if (out.size() > max_bytes) too_large("a word", max_bytes);
      at += *length;
      if (!all) break;
    } else if (at < text.size()) {
      out += text[at++];
    } else {
      break;
    }
  }
  return out.append(text.substr(std::min(at, text.size())));
}

}  // namespace troupe::launch::tools::migration::shell
