#include "launch/commands/explain/token_runs.h"

#include <algorithm>
#include <string_view>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe::launch::commands {

namespace {

// Token ids as text if there is no tokenizer.
std::string ids_text(std::span<const std::int32_t> ids) {
  std::string out;
  for (const auto id : ids) out += cat(id, ' ');
  return out;
}

}  // namespace

std::vector<TokenRun> token_runs(std::span<const std::int32_t> ids, std::span<const float> weights,
                                 const TokenText& text) {
  std::vector<TokenRun> out;
  std::string before;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t next = i + 1;
    while (next < ids.size() && weights[next] == weights[i]) ++next;
    const auto all = repair_utf8(text ? text(ids.first(next)) : ids_text(ids.first(next)));
    const auto common = static_cast<std::size_t>(
        std::mismatch(all.begin(), all.end(), before.begin(), before.end()).first - all.begin());
    const auto known = complete_utf8_prefix(std::string_view(all).substr(0, common));
    out.push_back({ids.subspan(i, next - i), all.substr(known), weights[i]});
    before = all;
    i = next;
  }
  return out;
}

}  // namespace troupe::launch::commands
