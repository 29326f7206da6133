// The penalties and bans of the sampling chain: what the tokens so far do to the next one.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/generate/rules.h"

namespace troupe::engine::generate {

namespace rules {

namespace {

void ban(Row& row, const std::set<std::int32_t>& ids) {
  if (ids.empty()) return;
  std::erase_if(row.kept, [&](std::int32_t id) { return ids.contains(id); });
}

}  // namespace

void repetition(Row& row, const Context& context) {
  const double penalty = context.params.repetition_penalty;
  if (penalty == 1) return;
  for (const std::int32_t id : std::set<std::int32_t>(context.tokens.begin(), context.tokens.end())) {
    double& z = row.score[id];
    z = z < 0 ? z * penalty : z / penalty;
  }
}

void frequency_and_presence(Row& row, const Context& context) {
  const auto& [frequency, presence] = std::pair(context.params.frequency_penalty, context.params.presence_penalty);
  if (frequency == 0 && presence == 0) return;
  std::map<std::int32_t, int> counts;
  for (const std::int32_t id : context.tokens.subspan(context.prompt_length)) ++counts[id];
  for (const auto& [id, count] : counts) row.score[id] -= frequency * count + presence;
}

void no_repeat_ngram(Row& row, const Context& context) {
  const auto n = static_cast<std::size_t>(context.params.no_repeat_ngram);
  const auto& tokens = context.tokens;
  if (n == 0 || tokens.size() + 1 < n) return;
  const auto tail = tokens.last(n - 1);  // with which token would this be an n-gram that already stands in the sequence?
  std::set<std::int32_t> banned;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    if (std::equal(tail.begin(), tail.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i))) banned.insert(tokens[i + n - 1]);
  }
  ban(row, banned);
}

void min_new_tokens(Row& row, const Context& context) {
  if (context.tokens.size() - context.prompt_length >= static_cast<std::size_t>(context.params.min_new_tokens)) return;
  ban(row, {context.ends.begin(), context.ends.end()});
}

}  // namespace rules

std::span<const Step> penalties() {
  static constexpr std::array<Step, 4> chain = {rules::repetition, rules::frequency_and_presence, rules::no_repeat_ngram,
                                                rules::min_new_tokens};
  return chain;
}

}  // namespace troupe::engine::generate
