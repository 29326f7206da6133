#include "engine/generate/beam_selection.h"

#include <algorithm>
#include <cmath>

#include "engine/base/random/random.h"

namespace troupe::engine::generate {

namespace {

bool is_better(const Continuation& a, const Continuation& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
}

bool is_drawn_before(const Continuation& a, const Continuation& b) {
  return a.priority != b.priority ? a.priority > b.priority : is_better(a, b);
}

template <class Order>
void keep_first(std::vector<Continuation>& all, std::size_t wanted, Order before) {
  const std::size_t count = std::min(wanted, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    before);
  all.resize(count);
}

/// The random stream of a beam at one position: plain sampling draws from (sample id, position).
std::uint64_t stream_of_beam(const BeamDraw& draw, std::size_t parent) {
  constexpr int beam_bits = 8;  // num_beams is at most 64
  return uniform_below(~0ULL, draw.seed, stream_of("beam search") + draw.sample_id,
                       draw.position << beam_bits | parent);
}

}  // namespace

void add_best(const LogitsRow& row, std::size_t parent, double score, std::size_t wanted,
              std::vector<Continuation>& to) {
  std::vector<Continuation> all;
  all.reserve(row.kept.size());
  for (const std::int32_t id : row.kept)
    all.push_back({parent, id, score + row.score[static_cast<std::size_t>(id)]});
  keep_best(all, wanted);
  to.insert(to.end(), all.begin(), all.end());
}

void keep_best(std::vector<Continuation>& all, std::size_t wanted) {
  keep_first(all, wanted, is_better);
}

void add_drawn(const LogitsRow& row, std::size_t parent, double score, std::size_t wanted,
               const BeamDraw& draw, std::vector<Continuation>& to) {
  const std::uint64_t stream = stream_of_beam(draw, parent);
  std::vector<Continuation> all;
  all.reserve(row.kept.size());
  for (const std::int32_t id : row.kept) {
    const double sum = score + row.score[static_cast<std::size_t>(id)],
                 u = uniform(draw.seed, stream, static_cast<std::uint64_t>(id));
    all.push_back({parent, id, sum, false, sum - std::log(-std::log(u))});
  }
  keep_drawn(all, wanted);
  to.insert(to.end(), all.begin(), all.end());
}

void keep_drawn(std::vector<Continuation>& all, std::size_t wanted) {
  keep_first(all, wanted, is_drawn_before);
}

std::size_t BeamSelection::wanted(std::size_t ends) const {
  return std::max<std::size_t>(2, 1 + ends) * static_cast<std::size_t>(beams_.count);
}

std::vector<Continuation> BeamSelection::continuing(std::span<const Continuation> best) const {
  std::vector<Continuation> running(best.begin(), best.end());
  for (Continuation& each : running) each.score += each.ends ? beam_ban : 0;
  std::stable_sort(running.begin(), running.end(),
                   [](const Continuation& a, const Continuation& b) { return a.score > b.score; });
  running.resize(std::min(running.size(), static_cast<std::size_t>(beams_.count)));
  return running;
}

bool BeamSelection::may_return(std::span<const Continuation> best, std::size_t index) const {
  return best[index].ends && index < static_cast<std::size_t>(beams_.count);
}

double BeamSelection::normalized_score(double sum, std::size_t length) const {
  return sum / std::pow(static_cast<double>(length), beams_.length_penalty);
}

void BeamSelection::end(Generation sequence, double sum) {
  sequence.score = normalized_score(sum, sequence.ids.size());
  if (sequence.score <= beam_ban) return;  // below transformers' initial placeholders
  const auto position =
      std::upper_bound(ended_.begin(), ended_.end(), sequence.score,
                       [](double score, const Generation& other) { return score > other.score; });
  ended_.insert(position, std::move(sequence));
  ended_.resize(std::min(ended_.size(), static_cast<std::size_t>(beams_.count)));
}

bool BeamSelection::may_improve(std::span<const Continuation> best,
                                std::span<const Continuation> running, std::size_t length) const {
  const bool full = ended_.size() == static_cast<std::size_t>(beams_.count);
  if (full && beams_.early_stopping == EarlyStopping::yes) return false;
  if (std::ranges::all_of(best, &Continuation::ends)) return false;
  // "never": a longer sequence may still be better if the length penalty rewards length; otherwise
  // the best beam is scored as if it ended now.
  const bool reward_length =
      beams_.early_stopping == EarlyStopping::never && beams_.length_penalty > 0;
  return normalized_score(running.front().score, reward_length ? max_tokens_ : length) >
         (full ? ended_.back().score : beam_ban);
}

std::vector<Generation> BeamSelection::take_returned() {
  ended_.resize(std::min(ended_.size(), static_cast<std::size_t>(beams_.returned)));
  return std::move(ended_);
}

}  // namespace troupe::engine::generate
