#include "launch/tools/migration/shell/expand.h"

#include <cstdlib>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/scan.h"
#include "launch/tools/migration/shell/state.h"

namespace troupe::launch::tools::migration::shell {
namespace {

constexpr std::size_t max_words = 10'000;

struct Brace {
  std::size_t begin = 0, end = 0;  ///< of { and after }
  std::vector<std::string_view> parts;
};

/// {1..3} as its numbers; empty for other text.
std::vector<std::string> sequence(std::string_view inside) {
  std::vector<std::string> out;
  const auto dots = inside.find("..");
  if (dots == std::string_view::npos) return out;
  const auto low = whole_number(inside.substr(0, dots)),
             high = whole_number(inside.substr(dots + 2));
  if (!low || !high) return out;
  if (*low < -1'000'000 || *low > 1'000'000 || *high < -1'000'000 || *high > 1'000'000 ||
      std::abs(*high - *low) >= static_cast<std::int64_t>(max_words))
    throw Failure({Errc::usage, cat("expected at most ", max_words, " words of {", inside,
                                    "}; write them out")});
  for (std::int64_t i = *low;; i += *low <= *high ? 1 : -1) {
    out.push_back(std::to_string(i));
    if (i == *high) return out;
  }
}

/// The parts of the brace at `begin`; no part if it stands for itself.
Brace brace_at(std::string_view raw, std::size_t begin) {
  Brace out{begin, begin, {}};
  int depth = 0;
  std::size_t part = begin + 1;
  for (std::size_t at = begin + 1; at < raw.size(); at = end_of_part(raw, at)) {
    if (raw[at] == '{') ++depth;
    if (raw[at] == ',' && depth == 0) {
      out.parts.push_back(raw.substr(part, at - part));
      part = at + 1;
    }
    if (raw[at] != '}' || depth-- > 0) continue;
    out.parts.push_back(raw.substr(part, at - part));
    out.end = at + 1;
    return out;
  }
  out.parts.clear();
  return out;
}

void expand(const std::string& raw, int depth, std::vector<std::string>& out, Budget& budget) {
  if (depth > max_depth) too_deep(raw);
  budget.work(raw.size());
  for (std::size_t at = 0; at < raw.size(); at = end_of_part(raw, at)) {
    if (raw[at] != '{') continue;
    const Brace brace = brace_at(raw, at);
    std::vector<std::string> parts;
    if (brace.parts.size() > 1)
      parts.assign(brace.parts.begin(), brace.parts.end());
    else if (brace.parts.size() == 1)
      parts = sequence(brace.parts[0]);
    if (parts.empty()) continue;
    for (const std::string& part : parts)
      expand(cat(raw.substr(0, at), part, raw.substr(brace.end)), depth + 1, out, budget);
    return;
  }
  if (out.size() >= max_words)
    throw Failure({Errc::usage, cat("expected at most ", max_words, " words of ", quote(raw, 60),
                                    "; write them out")});
  out.push_back(raw);
}

}  // namespace

std::vector<std::string> braces(const std::string& raw, Budget& budget) {
  if (raw.find('{') == std::string::npos) return {raw};
  std::vector<std::string> out;
  expand(raw, 0, out, budget);
  return out;
}

}  // namespace troupe::launch::tools::migration::shell
