#include "launch/serve/live/sample_exchange.h"
#include "engine/base/threads/progress.h"

#include <algorithm>

#include "engine/base/random/secret.h"

namespace troupe::launch::serve::live {

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
      wanted.emplace(request.sample_id, Offer{.request = request, .oldest = version});
  }
  for (const auto& [id, unwanted] : offers_) leases_.end(id);
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
    leases_.end(id);
  }
  complete_.clear();
  return out;
}

std::size_t SampleExchange::allowed(const std::string& client, Clock::time_point now) const {
  if (terms_.max_leases == 0 && terms_.clients <= 1) return offers_.size();
  std::set<std::uint64_t> offered, held;
  for (const auto& [id, offer] : offers_) {
    if (complete_.contains(id)) continue;
    offered.insert(group_of(id));
    const auto* lease = leases_.find(id);
    if (lease && lease->holder == client && lease->until > now) held.insert(group_of(id));
  }
  const std::size_t share = (offered.size() + terms_.clients - 1) / terms_.clients;
  const std::size_t most = terms_.max_leases > 0 ? terms_.max_leases : share;
  return most - std::min(most, held.size());
}

std::vector<LeasedGroup> SampleExchange::lease(std::size_t groups, const std::string& client) {
  const std::lock_guard lock(mutex_);
  const auto now = terms_.now();
  const std::size_t most = std::min(groups, allowed(client, now));
  std::vector<LeasedGroup> out;
  for (auto& [id, offer] : offers_) {
    if (leases_.held(id, now) || complete_.contains(id)) continue;
    const auto* before = leases_.find(id);
    const bool expired = terms_.clients > 1 && before && before->holder == client;
    if (expired && before->until + terms_.lease_time > now) continue;
    const std::uint64_t group = group_of(id);
    if (out.empty() || out.back().group != group) {
      if (out.size() == most) break;
      out.push_back({group, {}, {}, offer.request.prompt, offer.request.answer});
    }
    const std::string token = random_token();
    leases_.grant(id, {client, token, now + terms_.lease_time});
    out.back().sample_ids.push_back(id);
    out.back().leases.push_back(token);
  }
  return out;
}

Arrival SampleExchange::check_locked(const Claim& claim) const {
  if (accepted_.contains(claim.sample_id)) return Arrival::duplicate;
  if (!offers_.contains(claim.sample_id)) return Arrival::not_offered;
  const bool leased = leases_.held_by(claim.sample_id, claim.client, claim.lease, terms_.now());
  return leased ? Arrival::accepted : Arrival::not_leased;
}

Arrival SampleExchange::check(const Claim& claim) const {
  const std::lock_guard lock(mutex_);
  return check_locked(claim);
}

Arrival SampleExchange::accept(Completion completion, const Claim& claim) {
  const std::uint64_t id = completion.sample_id;
  {
    const std::lock_guard lock(mutex_);
    const Arrival found = check_locked(claim);
    if (found != Arrival::accepted) return found;
    if (oldest_version(completion) < offers_.at(id).oldest) return Arrival::too_old;
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
  Offer offer = found->second;
  if (const auto* lease = leases_.find(sample_id)) offer.lease = lease->token;
  return offer;
}

}  // namespace troupe::launch::serve::live
