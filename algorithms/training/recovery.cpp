#include "algorithms/training/recovery.h"

#include <utility>

#include "algorithms/training/sample_ledger.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/running_checksum.h"

namespace troupe::algorithms {
namespace {

namespace protocol = actors::protocol;

/// Samples that were given away, of which results are compared.
constexpr std::size_t remembered_samples = 1 << 16;

std::string hash_of(const protocol::Completion& completion) {
  engine::checkpoint::RunningChecksum sum;
  sum.add(payload_of(completion));
  return sum.xxh3_128();
}

std::string incarnation_name(const std::string& node, std::uint64_t incarnation) {
  return cat(node, "#", incarnation);
}

}  // namespace

void Recovery::lost(const std::string& node, std::uint64_t incarnation) {
  Group& group = groups_[node];
  if (group.incarnation != incarnation) return;
  const std::string holder = name(node);
  const auto ids = leases_.revoke(holder);
  for (const std::uint64_t id : ids) remember(id, holder);
  if (!ids.empty())
    log_info(cat(holder, ": its ", ids.size(), ids.size() == 1 ? " sample is" : " samples are",
                 " given to others"));
  group = {incarnation + 1, false, std::nullopt};
  notify();
}

void Recovery::joined(const std::string& node, std::uint64_t incarnation) {
  Group& group = groups_[node];
  if (group.incarnation != incarnation) return;
  group.present = true;
  notify();
}

void Recovery::end(const Error& why) {
  if (!ended_) ended_ = why;
  notify();
}

std::uint64_t Recovery::incarnation(const std::string& node) const {
  const auto found = groups_.find(node);
  return found == groups_.end() ? 1 : found->second.incarnation;
}

bool Recovery::present(const std::string& node) const {
  const auto found = groups_.find(node);
  return found == groups_.end() || found->second.present;
}

std::string Recovery::name(const std::string& node) const {
  return incarnation_name(node, incarnation(node));
}

void Recovery::notify() {
  changes_.notify();
  if (on_change_) on_change_();
}

void Recovery::check_open() const {
  if (ended_) throw Failure(*ended_);
}

void Recovery::lease(const std::string& node,
                     const std::vector<protocol::SampleRequest>& requests) {
  const std::string token = cat(++leases_granted_);
  for (const auto& request : requests)
    leases_.grant(request.sample_id, {name(node), token, actors::roles::Leases::forever});
}

void Recovery::arrived(const std::string& node,
                       const std::vector<protocol::Completion>& completions) {
  for (const auto& completion : completions) {
    leases_.end(completion.sample_id);
    const auto found = given_away_.find(completion.sample_id);
    if (found == given_away_.end()) continue;
    found->second.accepted = Sampled{name(node), hash_of(completion)};
    compare(completion.sample_id, found->second);
  }
}

void Recovery::late(const std::vector<protocol::Completion>& completions) {
  for (const auto& completion : completions) {
    const auto found = given_away_.find(completion.sample_id);
    if (found == given_away_.end()) continue;
    found->second.late = Sampled{found->second.from, hash_of(completion)};
    compare(completion.sample_id, found->second);
  }
}

std::size_t Recovery::leased(const std::string& node) const {
  return leases_.count(name(node), std::chrono::steady_clock::now());
}

std::optional<std::uint64_t> Recovery::version(const std::string& node) const {
  const auto found = groups_.find(node);
  return found == groups_.end() ? std::nullopt : found->second.version;
}

void Recovery::has_version(const std::string& node, std::uint64_t version) {
  groups_[node].version = version;
}

void Recovery::remember(std::uint64_t sample_id, const std::string& from) {
  if (!options_.repeats) return;
  if (!given_away_.contains(sample_id)) given_away_in_order_.push_back(sample_id);
  given_away_[sample_id] = {from, std::nullopt, std::nullopt};
  if (given_away_in_order_.size() <= remembered_samples) return;
  given_away_.erase(given_away_in_order_.front());
  given_away_in_order_.pop_front();
}

void Recovery::compare(std::uint64_t sample_id, const GivenAway& sample) {
  if (!sample.accepted || !sample.late) return;
  if (sample.accepted->hash == sample.late->hash) {
    log_debug(cat("sample ", sample_id, " of ", sample.late->holder,
                  " arrived late and equals that of ", sample.accepted->holder));
    return;
  }
  if (!options_.on_divergence) return;
  options_.on_divergence(
      cat("sample ", sample_id, " has two results: ", sample.accepted->holder,
          " returned one with the hash ", sample.accepted->hash, ", and ", sample.late->holder,
          ", which was taken for lost, one with the hash ", sample.late->hash,
          ". A sample is a function of its id and the weights, so one of the processes or its "
          "machine computes wrongly"));
}

actors::Task<bool> survives(Recovery* recovery, std::shared_ptr<actors::Asker> asker,
                            std::string node, std::uint64_t incarnation, actors::Task<void> work) {
  std::optional<Error> failed;
  try {
    co_await work;
    co_return true;
  } catch (const Failure& failure) {
    if (!recovery || failure.error().code != Errc::closed) throw;
    failed = failure.error();
  }
  // The event of the loss is behind the job in which its first error was seen.
  actors::Reply<void> behind(asker->after(std::chrono::milliseconds(1)));
  co_await behind.get();
  recovery->check_open();
  if (recovery->incarnation(node) == incarnation) throw Failure(*failed);
  co_return false;
}

}  // namespace troupe::algorithms
