#include "engine/generate/logits_processors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "engine/constraints/token_table.h"

namespace troupe::engine::generate {

std::vector<double> probabilities(const LogitsRow& row) {
  double top = -std::numeric_limits<double>::infinity();
  for (const std::int32_t id : row.kept) top = std::max(top, row.score[id]);
  std::vector<double> p(row.kept.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(row.score[row.kept[i]] - top);
  for (double& x : p) x /= sum;
  return p;
}

namespace {

// ---- penalties and bans ----

using Tokens = std::span<const std::int32_t>;

void ban(LogitsRow& row, const std::set<std::int32_t>& ids) {
  if (ids.empty()) return;
  std::erase_if(row.kept, [&](std::int32_t id) { return ids.contains(id); });
}

void penalize_seen(LogitsRow& row, Tokens seen, double penalty) {
  if (penalty == 1) return;
  for (const std::int32_t id : std::set<std::int32_t>(seen.begin(), seen.end())) {
    double& z = row.score[id];
    z = z < 0 ? z * penalty : z / penalty;
  }
}

/// Bans the tokens that would complete an n-gram of `text` at the end of `tokens`.
void ban_repeats(LogitsRow& row, Tokens text, Tokens tokens, int size) {
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

void prompt_repetition(LogitsRow& row, const ProcessorContext& context) {
  penalize_seen(row, context.tokens.first(context.prompt_length),
                1 / context.params.token_rules.prompt_repetition_penalty);
}

void repetition(LogitsRow& row, const ProcessorContext& context) {
  penalize_seen(row, context.tokens, context.params.repetition_penalty);
}

void frequency_and_presence(LogitsRow& row, const ProcessorContext& context) {
  const auto& [frequency, presence] =
      std::pair(context.params.frequency_penalty, context.params.presence_penalty);
  if (frequency == 0 && presence == 0) return;
  std::map<std::int32_t, int> counts;
  for (const std::int32_t id : context.tokens.subspan(context.prompt_length)) ++counts[id];
  for (const auto& [id, count] : counts) row.score[id] -= frequency * count + presence;
}

void no_repeat_ngram(LogitsRow& row, const ProcessorContext& context) {
  ban_repeats(row, context.tokens, context.tokens, context.params.no_repeat_ngram);
}

void prompt_no_repeat_ngram(LogitsRow& row, const ProcessorContext& context) {
  ban_repeats(row, context.tokens.first(context.prompt_length), context.tokens,
              context.params.token_rules.prompt_no_repeat_ngram);
}

void min_new_tokens(LogitsRow& row, const ProcessorContext& context) {
  if (context.tokens.size() - context.prompt_length >=
      static_cast<std::size_t>(context.params.min_new_tokens))
    return;
  ban(row, {context.ends.begin(), context.ends.end()});
}

// ---- biased, banned, suppressed and forced tokens ----

/// Whether the next token may be the last of `ids`: its other tokens are the latest ones.
bool would_end(const std::vector<std::int32_t>& ids, const ProcessorContext& context) {
  const std::size_t before = ids.size() - 1;
  return before <= context.tokens.size() &&
         std::equal(ids.begin(), ids.end() - 1, context.tokens.last(before).begin());
}

/// Keeps exactly these tokens, with equal scores, even if they were banned, as in transformers.
void force(LogitsRow& row, const std::vector<std::int32_t>& ids) {
  row.kept = ids;
  std::sort(row.kept.begin(), row.kept.end());
  row.kept.erase(std::unique(row.kept.begin(), row.kept.end()), row.kept.end());
  for (const std::int32_t id : row.kept) row.score[id] = 0;
}

void sequence_bias(LogitsRow& row, const ProcessorContext& context) {
  for (const SequenceBias& each : context.params.token_rules.sequence_bias) {
    if (would_end(each.ids, context)) row.score[each.ids.back()] += each.bias;
  }
}

void bad_words(LogitsRow& row, const ProcessorContext& context) {
  std::set<std::int32_t> banned;
  for (const BadWord& word : context.params.token_rules.bad_words) {
    const auto& ids = word.ids;
    const bool end =
        ids.size() == 1 && std::ranges::find(context.ends, ids.back()) != context.ends.end();
    if (!end && would_end(ids, context)) banned.insert(ids.back());
  }
  ban(row, banned);
}

void forced_first(LogitsRow& row, const ProcessorContext& context) {
  if (context.tokens.size() == 1 && !context.params.token_rules.forced_first.empty())
    force(row, context.params.token_rules.forced_first);
}

void forced_last(LogitsRow& row, const ProcessorContext& context) {
  if (context.tokens.size() + 1 == context.limit && !context.params.token_rules.forced_last.empty())
    force(row, context.params.token_rules.forced_last);
}

void length_decay(LogitsRow& row, const ProcessorContext& context) {
  const TokenRules& rules = context.params.token_rules;
  const auto length = static_cast<double>(context.tokens.size() - context.prompt_length);
  if (rules.decay_factor == 1 || length <= rules.decay_start) return;
  const double growth = std::pow(rules.decay_factor, length - rules.decay_start) - 1;
  for (const std::int32_t id : std::set<std::int32_t>(context.ends.begin(), context.ends.end())) {
    row.score[id] += std::abs(row.score[id]) * growth;
  }
}

void suppress(LogitsRow& row, const ProcessorContext& context) {
  const auto& ids = context.params.token_rules.suppress_tokens;
  ban(row, {ids.begin(), ids.end()});
}

void begin_suppress(LogitsRow& row, const ProcessorContext& context) {
  const TokenRules& rules = context.params.token_rules;
  // A forced first token does not count as the beginning of the output.
  const bool forced = context.prompt_length == 1 && !rules.forced_first.empty();
  if (context.tokens.size() != context.prompt_length + (forced ? 1 : 0)) return;
  ban(row, {rules.begin_suppress_tokens.begin(), rules.begin_suppress_tokens.end()});
}

/// After forced tokens, which it may ban.
void constrain(LogitsRow& row, const ProcessorContext& context) {
  if (context.allowed == nullptr) return;
  std::erase_if(row.kept, [&](std::int32_t id) { return !context.allowed->has(id); });
}

// ---- filters: at least one token is always kept ----

/// Keeps the ids at the indices i of row.kept for which passes(i).
template <class Passes>
void keep_where(LogitsRow& row, Passes passes) {
  std::size_t to = 0;
  for (std::size_t i = 0; i < row.kept.size(); ++i) {
    if (passes(i)) row.kept[to++] = row.kept[i];
  }
  row.kept.resize(to);
}

/// Sorts indices by descending weight, stably, so that the order does not depend on the library.
void sort_descending(std::vector<std::size_t>& indices, const std::vector<double>& weight) {
  std::stable_sort(indices.begin(), indices.end(),
                   [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
}

/// Entropy in nats.
double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double x : p) sum -= x > 0 ? x * std::log(x) : 0;
  return sum;
}

/// The `count`-th largest weight, or the smallest where there are fewer.
double nth_largest(const std::vector<double>& weight, std::size_t count) {
  if (count <= 1) return *std::max_element(weight.begin(), weight.end());
  std::vector<double> sorted = weight;
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count, sorted.size()) - 1);
  std::nth_element(sorted.begin(), nth, sorted.end(), std::greater<>());
  return *nth;
}

/// Keeps tokens with at least this probability, and the `least` most likely ones.
void keep_above(LogitsRow& row, const std::vector<double>& p, double minimum, std::size_t least) {
  const double bound = std::min(minimum, nth_largest(p, least));
  keep_where(row, [&](std::size_t i) { return p[i] >= bound; });
}

void temperature(LogitsRow& row, const ProcessorContext& context) {
  if (context.params.temperature == 1) return;
  for (const std::int32_t id : row.kept) row.score[id] /= context.params.temperature;
}

void top_h(LogitsRow& row, const ProcessorContext& context) {
  if (context.params.top_h <= 0) return;
  constexpr std::size_t considered = 100;  // transformers' top_n
  std::vector<double> scores;
  scores.reserve(row.kept.size());
  for (const std::int32_t id : row.kept) scores.push_back(row.score[id]);
  std::vector<std::size_t> order(row.kept.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_descending(order, scores);
  order.resize(std::min(order.size(), considered));
  LogitsRow top{row.score, {}};
  for (const std::size_t index : order) top.kept.push_back(row.kept[index]);
  const std::vector<double> p = probabilities(top);
  const double wanted = context.params.top_h * entropy(p);
  std::size_t count = 0;  // the first always stays
  for (double sum = 0; count < p.size(); ++count) {
    sum += p[count] > 0 ? -p[count] * std::log(p[count]) : 0;
    if (sum > wanted && count > 0) break;
  }
  top.kept.resize(count);
  std::sort(top.kept.begin(), top.kept.end());
  row.kept = std::move(top.kept);
}

void top_k(LogitsRow& row, const ProcessorContext& context) {
  if (context.params.top_k == 0) return;
  const auto k = std::max(static_cast<std::size_t>(context.params.top_k), context.min_kept);
  if (k >= row.kept.size()) return;
  std::vector<double> scores;
  scores.reserve(row.kept.size());
  for (const std::int32_t id : row.kept) scores.push_back(row.score[id]);
  std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(k - 1),
                   scores.end(), std::greater<>());
  const double threshold = scores[k - 1];
  keep_where(row, [&](std::size_t i) { return row.score[row.kept[i]] >= threshold; });
}

void top_p(LogitsRow& row, const ProcessorContext& context) {
  if (context.params.top_p >= 1) return;
  const double droppable = 1 - context.params.top_p;
  const std::vector<double> p = probabilities(row);
  // Drops tokens from the least likely up while the dropped mass is at most 1 - top_p, but never
  // the most likely one, as transformers does. Tokens so rare that their total stays below that
  // mass need no sorting: in a large vocabulary, nearly all. Where several tokens must stay, they
  // may be among the rare ones.
  const double rare = context.min_kept > 1 ? 0 : 0.5 * droppable / static_cast<double>(p.size());
  std::vector<char> drop(p.size(), 0);
  std::vector<std::size_t> candidates;
  double mass = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] < rare) {
      drop[i] = 1;
      mass += p[i];
    } else {
      candidates.push_back(i);
    }
  }
  sort_descending(candidates, p);
  for (std::size_t i = candidates.size(); i-- > context.min_kept;) {
    mass += p[candidates[i]];
    if (mass > droppable) break;
    drop[candidates[i]] = 1;
  }
  keep_where(row, [&](std::size_t i) { return !drop[i]; });
}

void min_p(LogitsRow& row, const ProcessorContext& context) {
  if (context.params.min_p <= 0) return;
  const std::vector<double> p = probabilities(row);
  keep_above(row, p, context.params.min_p * *std::max_element(p.begin(), p.end()),
             context.min_kept);
}

void typical(LogitsRow& row, const ProcessorContext& context) {
  if (context.params.typical_p >= 1) return;
  const std::vector<double> p = probabilities(row);
  const double surprise = entropy(p);
  std::vector<double> closeness(
      p.size());  // larger where a token's surprisal is nearer to the entropy
  for (std::size_t i = 0; i < p.size(); ++i) closeness[i] = -std::abs(-std::log(p[i]) - surprise);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_descending(order, closeness);
  std::size_t last = 0;  // the token with which the mass reaches typical_p
  for (double mass = p[order[0]]; mass < context.params.typical_p && last + 1 < order.size();
       mass += p[order[last]])
    ++last;
  last = std::max(last, std::min(context.min_kept, order.size()) - 1);
  const double threshold = closeness[order[last]];
  keep_where(row, [&](std::size_t i) { return closeness[i] >= threshold; });
}

void epsilon(LogitsRow& row, const ProcessorContext& context) {
  if (context.params.epsilon_cutoff > 0)
    keep_above(row, probabilities(row), context.params.epsilon_cutoff, context.min_kept);
}

void eta(LogitsRow& row, const ProcessorContext& context) {
  const double cutoff = context.params.eta_cutoff;
  if (cutoff <= 0) return;
  const std::vector<double> p = probabilities(row);
  keep_above(row, p, std::min(cutoff, std::sqrt(cutoff) * std::exp(-entropy(p))), context.min_kept);
}

}  // namespace

std::span<const LogitsProcessor> penalties() {
  static constexpr std::array<LogitsProcessor, 14> chain = {sequence_bias,   prompt_repetition,
                                                            repetition,      frequency_and_presence,
                                                            no_repeat_ngram, prompt_no_repeat_ngram,
                                                            bad_words,       min_new_tokens,
                                                            forced_first,    forced_last,
                                                            length_decay,    suppress,
                                                            begin_suppress,  constrain};
  return chain;
}

std::span<const LogitsProcessor> filters() {
  static constexpr std::array<LogitsProcessor, 8> chain = {temperature, top_h,   top_k,   top_p,
                                                           min_p,       typical, epsilon, eta};
  return chain;
}

}  // namespace troupe::engine::generate
