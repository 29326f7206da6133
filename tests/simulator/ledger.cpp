#include "tests/simulator/ledger.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::simulator {

void Ledger::violated(const std::string& text) {
  if (live_) violations_.push_back(text);
}

void Ledger::begin(std::int64_t trained) {
  live_ = true;
  trained_ = trained;
  recorded_ = trained * scenario_.minibatches;
  shown_of_ = -1;
  shown_.clear();
  of_this_batch_.clear();
  started_.clear();
  rewarded_.clear();
  restored_.clear();
  open_.clear();
  std::erase_if(published_, [&](const auto& each) { return each.first > trained; });
}

void Ledger::finish(std::int64_t batches) {
  if (trained_ != batches || !of_this_batch_.empty())
    violated(cat("the run ended after ", trained_, " of ", batches, " batches"));
}

void Ledger::take_over(std::uint64_t from, const protocol::Weights& to) {
  if (!live_) return;
  const auto published = published_.find(static_cast<std::int64_t>(to.version));
  if (to.version < from)
    violated(cat("a rollout went back from version ", from, " to ", to.version));
  if (published == published_.end())
    violated(cat("a rollout took over version ", to.version, ", which was not published"));
  else if (published->second != to.values->front())
    violated(cat("version ", to.version, " has other weights than were published"));
}

// The oldest version that may sample a batch; pinned: the only one.
std::int64_t Ledger::oldest_for(std::int64_t batch) const {
  return std::max<std::int64_t>(0, batch - eta());
}

void Ledger::check_start(std::int64_t batch, std::int64_t version) {
  if (batch < trained_) violated(cat("a sample of batch ", batch, " started after its training"));
  if (batch - trained_ > eta())
    violated(cat("a sample of batch ", batch, " started after ", trained_, " batches"));
  if (pinned() ? version != oldest_for(batch) : version < oldest_for(batch))
    violated(cat("a sample of batch ", batch, " started with version ", version));
}

void Ledger::start(std::uint64_t sample_id, std::uint64_t version) {
  if (!live_) return;
  const auto number = static_cast<std::int64_t>(version);
  if (held_out_sample(sample_id)) {
    if (number != trained_)
      violated(cat("version ", version, " was evaluated after ", trained_, " batches"));
    return;
  }
  const auto batch = expected_.sampled_for.find(sample_id);
  if (batch == expected_.sampled_for.end())
    return violated(cat("sample ", sample_id, " belongs to no batch"));
  if (!started_.insert(sample_id).second)
    violated(cat("sample ", sample_id, " was generated twice"));
  if (restored_.contains(sample_id))
    violated(cat("sample ", sample_id, " was generated again: the checkpoint has it"));
  check_start(batch->second, number);
  open_[batch->second].insert(sample_id);
  if (std::ssize(open_) > scenario_.batches_in_flight())
    violated(cat("samples of ", open_.size(), " batches are in flight"));
}

void Ledger::reward(std::uint64_t sample_id) {
  if (!live_ || held_out_sample(sample_id)) return;
  if (!started_.contains(sample_id) && !restored_.contains(sample_id))
    violated(cat("sample ", sample_id, " was rewarded before it was generated"));
  if (!rewarded_.insert(sample_id).second)
    violated(cat("sample ", sample_id, " was rewarded twice"));
  const auto batch = expected_.sampled_for.find(sample_id);
  if (batch == expected_.sampled_for.end()) return;
  auto& open = open_[batch->second];
  open.erase(sample_id);
  if (open.empty()) open_.erase(batch->second);
}

// Checks the version of a shown token against the weights that gave it its log-probability.
void Ledger::check_token(std::int64_t version, float logp) {
  staleness_ = std::max(staleness_, static_cast<double>(trained_ - version));
  const std::int64_t oldest = oldest_for(trained_);
  if (version < oldest || version > (pinned() ? oldest : trained_))
    violated(cat("batch ", trained_, " has a token of version ", version));
  const auto weights = published_.find(version);
  if (weights == published_.end() || logp != -weights->second)
    violated(cat("a token of batch ", trained_, " was not sampled by version ", version));
}

void Ledger::show(const algorithms::Sample& sample) {
  if (!live_) return;
  if (shown_of_ != trained_) staleness_ = 0;
  shown_of_ = trained_;
  std::size_t t = 0;
  for (const auto& [version, count] : sample.versions)
    for (std::uint32_t i = 0; i < count; ++i, ++t)
      check_token(static_cast<std::int64_t>(version), sample.logprobs.at(t));
  shown_[sample.sample_id] = sample.logprobs;
}

// What is trained is what was shown.
void Ledger::check_tokens(const engine::data::Experience& batch, std::size_t sample) {
  std::vector<float> logp;
  for (auto t = static_cast<std::size_t>(batch.offsets[sample]);
       t < static_cast<std::size_t>(batch.offsets[sample + 1]); ++t)
    if (batch.mask[t] != 0) logp.push_back(batch.old_logp.at(t));
  if (shown_[batch.sample_id[sample]] != logp)
    violated(cat("sample ", batch.sample_id[sample], " has other log-probabilities than it had"));
}

void Ledger::check_samples(const engine::data::Experience& batch) {
  const auto& expected = expected_.ids.at(static_cast<std::size_t>(trained_));
  for (std::size_t n = 0; n < batch.sample_id.size(); ++n) {
    const std::uint64_t id = batch.sample_id[n];
    const std::size_t place = of_this_batch_.size();
    if (place >= expected.size() || expected[place] != id)
      violated(cat("batch ", trained_, " has sample ", id, " at place ", place));
    if (!rewarded_.contains(id)) violated(cat("sample ", id, " was trained without its reward"));
    if (static_cast<double>(batch.reward.at(n)) != reward_of(id))
      violated(cat("sample ", id, " has the reward ", batch.reward[n]));
    const auto prompt = expected_.prompts.find(id);
    const auto first = static_cast<std::size_t>(batch.offsets[n]);
    if (prompt == expected_.prompts.end() || batch.tokens[first] != prompt->second)
      violated(cat("sample ", id, " has another prompt"));
    of_this_batch_.push_back(id);
    check_tokens(batch, n);
  }
}

void Ledger::train(const engine::data::Experience& batch) {
  if (!live_) return;
  if (std::cmp_greater_equal(trained_, expected_.ids.size()))
    return violated(cat("batch ", trained_, " was trained after the last one"));
  check_samples(batch);
  if (of_this_batch_.size() < expected_.ids[static_cast<std::size_t>(trained_)].size()) return;
  of_this_batch_.clear();
  ++trained_;
}

void Ledger::publish(const protocol::Weights& weights) {
  if (!live_) return;
  const auto version = static_cast<std::int64_t>(weights.version);
  if (version != trained_ || !of_this_batch_.empty())
    violated(cat("version ", version, " was published after ", trained_, " batches"));
  published_[version] = weights.values->front();
}

void Ledger::save(std::int64_t step, const protocol::RunState& state) {
  if (!live_) return;
  if (state.batches != trained_ || step != trained_ * scenario_.minibatches)
    violated(cat("the checkpoint of step ", step, " has ", state.batches, " batches"));
  if (trained_ > 0 &&
      state.data.dump() != expected_.data.at(static_cast<std::size_t>(trained_) - 1))
    violated(cat("the checkpoint of step ", step, " continues at other prompts"));
  if (state.finished != kept_)
    violated(cat("the checkpoint of step ", step, " counts ", state.finished,
                 " finished samples and has ", kept_));
  std::vector<std::uint64_t> versions;
  if (pinned())
    for (std::int64_t version = oldest_for(trained_); version < trained_; ++version)
      versions.push_back(static_cast<std::uint64_t>(version));
  if (state.versions != versions)
    violated(cat("the checkpoint of step ", step, " has ", state.versions.size(),
                 " older versions instead of ", versions.size()));
}

// A sample that was rewarded had reached the algorithm before.
void Ledger::keep(const std::vector<algorithms::FinishedSample>& samples) {
  kept_ = samples.size();
  if (pinned()) return;
  std::set<std::uint64_t> kept;
  for (const auto& sample : samples) {
    kept.insert(sample.completion.sample_id);
    if (sample.batch < trained_)
      violated(cat("a checkpoint has a sample of batch ", sample.batch, ", which is trained"));
  }
  for (const std::uint64_t id : rewarded_)
    if (expected_.sampled_for.at(id) >= trained_ && !kept.contains(id))
      violated(cat("sample ", id, " is finished, but not in the checkpoint"));
}

void Ledger::restore(const std::vector<algorithms::FinishedSample>& samples) {
  for (const auto& sample : samples) restored_.insert(sample.completion.sample_id);
}

void Ledger::record(std::int64_t step, const algorithms::Metrics& metrics) {
  if (!live_ || step == 0) return;
  if (step != ++recorded_) violated(cat("step ", step, " was recorded instead of ", recorded_));
  const double* staleness = algorithms::find_metric(metrics, "staleness/max");
  if (!staleness || *staleness > static_cast<double>(eta()))
    violated(cat("step ", step, " has no staleness of at most ", eta()));
  else if (*staleness != staleness_)
    violated(cat("step ", step, " has the staleness ", *staleness, ", not ", staleness_));
}

void Ledger::overlap(const algorithms::Overlap& now) {
  if (!live_) return;
  if (now.queue < 0 || now.queue > eta() + 1) violated(cat(now.queue, " batches are complete"));
  if (now.in_flight < 0 || now.in_flight > scenario_.batches_in_flight() * scenario_.samples())
    violated(cat(now.in_flight, " samples are in flight"));
  if (now.queue * scenario_.samples() + now.in_flight > (eta() + 1) * scenario_.samples())
    violated(cat(now.queue, " batches are complete and ", now.in_flight, " samples in flight"));
  if (now.idle_rollouts < 0 || now.idle_rollouts > now.rollouts)
    violated(cat(now.idle_rollouts, " rollouts are idle"));
}

}  // namespace troupe::simulator
