// The penalties and bans of the sampling chain: what the tokens so far do to the next one.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/generate/rules.h"

namespace troupe::engine::generate {

namespace rules {

namespace {

using Tokens = std::span<const std::int32_t>;

void penalise_seen(Row& row, Tokens seen, double penalty) {
  if (penalty == 1) return;
  for (const std::int32_t id : std::set<std::int32_t>(seen.begin(), seen.end())) {
    double& z = row.score[id];
    z = z < 0 ? z * penalty : z / penalty;
  }
}

/// With which token would the end of `tokens` be an n-gram that already stands in `text`?
void ban_repeats(Row& row, Tokens text, Tokens tokens, int size) {
  const auto n = static_cast<std::size_t>(size);
  if (n == 0 || tokens.size() + 1 < n) return;
  const auto tail = tokens.last(n - 1);
  std::set<std::int32_t> banned;
  for (std::size_t i = 0; i + n <= text.size(); ++i) {
    if (std::equal(tail.begin(), tail.end(), text.begin() + static_cast<std::ptrdiff_t>(i)))
      banned.insert(text[i + n - 1]);
  }
  ban(row, banned);
}

}  // namespace

void ban(Row& row, const std::set<std::int32_t>& ids) {
  if (ids.empty()) return;
  std::erase_if(row.kept, [&](std::int32_t id) { return ids.contains(id); });
}

void prompt_repetition(Row& row, const Context& context) {
  penalise_seen(row, context.tokens.first(context.prompt_length),
                1 / context.params.words.prompt_repetition_penalty);
}

void repetition(Row& row, const Context& context) {
  penalise_seen(row, context.tokens, context.params.repetition_penalty);
}

void frequency_and_presence(Row& row, const Context& context) {
  const auto& [frequency, presence] =
      std::pair(context.params.frequency_penalty, context.params.presence_penalty);
  if (frequency == 0 && presence == 0) return;
  std::map<std::int32_t, int> counts;
  for (const std::int32_t id : context.tokens.subspan(context.prompt_length)) ++counts[id];
  for (const auto& [id, count] : counts) row.score[id] -= frequency * count + presence;
}

void no_repeat_ngram(Row& row, const Context& context) {
  ban_repeats(row, context.tokens, context.tokens, context.params.no_repeat_ngram);
}

void prompt_no_repeat_ngram(Row& row, const Context& context) {
  ban_repeats(row, context.tokens.first(context.prompt_length), context.tokens,
              context.params.words.prompt_no_repeat_ngram);
}

void min_new_tokens(Row& row, const Context& context) {
  if (context.tokens.size() - context.prompt_length >=
      static_cast<std::size_t>(context.params.min_new_tokens))
    return;
  ban(row, {context.ends.begin(), context.ends.end()});
}

}  // namespace rules

std::span<const Step> penalties() {
  static constexpr std::array<Step, 13> chain = {
      rules::sequence_bias,   rules::prompt_repetition,
      rules::repetition,      rules::frequency_and_presence,
      rules::no_repeat_ngram, rules::prompt_no_repeat_ngram,
      rules::bad_words,       rules::min_new_tokens,
      rules::forced_first,    rules::forced_last,
      rules::length_decay,    rules::suppress,
      rules::begin_suppress};
  return chain;
}

}  // namespace troupe::engine::generate
