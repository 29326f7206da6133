#include "launch/serve/live/sample_exchange.h"
#include "engine/base/progress.h"

#include <algorithm>

namespace troupe::launch::live {

using Clock = std::chrono::steady_clock;
using actors::protocol::Completion;
using actors::protocol::SampleRequest;

namespace {

/// Accepted ids that are remembered, so that a sample that is sent again is called a duplicate.
constexpr std::size_t remembered_ids = 1 << 16;

/// The oldest version of the tokens that the policy sampled.
std::uint64_t oldest_version(const Completion& completion) {
  std::uint64_t oldest = UINT64_MAX;
  std::size_t token = 0;
  for (const auto& run : completion.versions) {
    for (std::uint32_t i = 0; i < run.count; ++i, ++token)
      if (completion.sampled.empty() || completion.sampled[token] != 0)
        oldest = std::min(oldest, run.version);
  }
  return oldest;
}

}  // namespace

void SampleExchange::offer(const std::vector<SampleRequest>& requests, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  std::map<std::uint64_t, Offer> wanted;
  for (const SampleRequest& request : requests) {
    const auto before = offers_.find(request.sample_id);
    if (before != offers_.end())
      wanted.insert(offers_.extract(before));
    else
      wanted.emplace(request.sample_id, Offer{request, version});
  }
  offers_ = std::move(wanted);
  std::erase_if(complete_, [&](const auto& each) { return !offers_.contains(each.first); });
}

std::vector<Completion> SampleExchange::take(std::chrono::milliseconds at_most) {
  const progress::Wait watched;  // clients may take as long as they want
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, at_most, [&] { return !complete_.empty(); });
  std::vector<Completion> out;
  for (auto& [id, completion] : complete_) {
    out.push_back(std::move(completion));
    offers_.erase(id);
  }
  complete_.clear();
  return out;
}

std::vector<LeasedGroup> SampleExchange::lease(std::size_t groups) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  std::vector<LeasedGroup> out;
  for (auto& [id, offer] : offers_) {
    if (offer.leased_until > now || complete_.contains(id)) continue;
    const std::uint64_t group = id / group_;
    if (out.empty() || out.back().group != group) {
      if (out.size() == groups) break;
      out.push_back({group, {}, offer.request.prompt, offer.request.answer});
    }
    out.back().sample_ids.push_back(id);
    offer.leased_until = now + lease_time_;
  }
  return out;
}

Arrival SampleExchange::accept(Completion completion) {
  const std::uint64_t id = completion.sample_id;
  {
    const std::lock_guard lock(mutex_);
    if (accepted_.contains(id)) return Arrival::duplicate;
    const auto found = offers_.find(id);
    // Without ids it was not offered when its prompt was looked up.
    if (found == offers_.end() || completion.ids.empty()) return Arrival::not_offered;
    if (oldest_version(completion) < found->second.oldest) return Arrival::too_old;
    complete_.emplace(id, std::move(completion));
    accepted_.insert(id);
    accepted_in_order_.push_back(id);
    if (accepted_in_order_.size() > remembered_ids) {
      accepted_.erase(accepted_in_order_.front());
      accepted_in_order_.pop_front();
    }
  }
  arrived_.notify_all();
  return Arrival::accepted;
}

std::optional<Offer> SampleExchange::find(std::uint64_t sample_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = offers_.find(sample_id);
  if (found == offers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace troupe::launch::live
