// The word rules of the sampling chain: tokens and words made likelier, banned or forced.
#include <algorithm>
#include <cmath>

#include "engine/generate/rules.h"

namespace troupe::engine::generate::rules {

namespace {

/// The last of `word` would complete it now.
bool would_end(const std::vector<std::int32_t>& word, const Context& context) {
  const std::size_t before = word.size() - 1;
  return before <= context.tokens.size() &&
         std::equal(word.begin(), word.end() - 1, context.tokens.last(before).begin());
}

/// One of these, each as likely as the others; what was banned before may come back, as in
/// transformers.
void force(Row& row, const std::vector<std::int32_t>& ids) {
  row.kept = ids;
  std::sort(row.kept.begin(), row.kept.end());
  row.kept.erase(std::unique(row.kept.begin(), row.kept.end()), row.kept.end());
  for (const std::int32_t id : row.kept) row.score[id] = 0;
}

}  // namespace

void sequence_bias(Row& row, const Context& context) {
  for (const WordBias& each : context.params.words.sequence_bias) {
    if (would_end(each.ids, context)) row.score[each.ids.back()] += each.bias;
  }
}

void bad_words(Row& row, const Context& context) {
  std::set<std::int32_t> banned;
  for (const auto& word : context.params.words.bad_words) {
    const bool end =
        word.size() == 1 && std::ranges::find(context.ends, word.back()) != context.ends.end();
    if (!end && would_end(word, context)) banned.insert(word.back());
  }
  ban(row, banned);
}

void forced_first(Row& row, const Context& context) {
  if (context.tokens.size() == 1 && !context.params.words.forced_first.empty())
    force(row, context.params.words.forced_first);
}

void forced_last(Row& row, const Context& context) {
  if (context.tokens.size() + 1 == context.limit && !context.params.words.forced_last.empty())
    force(row, context.params.words.forced_last);
}

void length_decay(Row& row, const Context& context) {
  const WordRules& words = context.params.words;
  const auto length = static_cast<double>(context.tokens.size() - context.prompt_length);
  if (words.decay_factor == 1 || length <= words.decay_start) return;
  const double growth = std::pow(words.decay_factor, length - words.decay_start) - 1;
  for (const std::int32_t id : std::set<std::int32_t>(context.ends.begin(), context.ends.end())) {
    row.score[id] += std::abs(row.score[id]) * growth;
  }
}

void suppress(Row& row, const Context& context) {
  const auto& ids = context.params.words.suppress_tokens;
  ban(row, {ids.begin(), ids.end()});
}

void begin_suppress(Row& row, const Context& context) {
  const WordRules& words = context.params.words;
  // A forced first token is not what an output begins with: the one after it is.
  const bool forced = context.prompt_length == 1 && !words.forced_first.empty();
  if (context.tokens.size() != context.prompt_length + (forced ? 1 : 0)) return;
  ban(row, {words.begin_suppress_tokens.begin(), words.begin_suppress_tokens.end()});
}

}  // namespace troupe::engine::generate::rules
