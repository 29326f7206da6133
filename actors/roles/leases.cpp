#include "actors/roles/leases.h"

#include <algorithm>

namespace troupe::actors::roles {

std::vector<std::uint64_t> Leases::revoke(const std::string& holder) {
  std::vector<std::uint64_t> ids;
  std::erase_if(leases_, [&](const auto& each) {
    const bool revoked = each.second.holder == holder;
    if (revoked) ids.push_back(each.first);
    return revoked;
  });
  return ids;
}

const Lease* Leases::find(std::uint64_t sample_id) const {
  const auto found = leases_.find(sample_id);
  return found == leases_.end() ? nullptr : &found->second;
}

bool Leases::held(std::uint64_t sample_id, Time now) const {
  const Lease* lease = find(sample_id);
  return lease && lease->until > now;
}

bool Leases::held_by(std::uint64_t sample_id, const std::string& holder, const std::string& token,
                     Time now) const {
  const Lease* lease = find(sample_id);
  return lease && lease->until > now && lease->holder == holder &&
         equal_secrets(lease->token, token);
}

std::size_t Leases::count(const std::string& holder, Time now) const {
  return static_cast<std::size_t>(std::ranges::count_if(leases_, [&](const auto& each) {
    return each.second.holder == holder && each.second.until > now;
  }));
}

}  // namespace troupe::actors::roles
