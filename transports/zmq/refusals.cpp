#include "transports/zmq/refusals.h"

#include <numeric>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::transports {
namespace {

// Bounds memory and log against a peer that keeps changing its key.
constexpr std::size_t max_logged = 1024;

}  // namespace

void Refusals::add(Refusal kind, const std::string& peer, std::string_view sentence) {
  const std::size_t index = static_cast<std::size_t>(kind);
  ++counts_[index];
  {
    const std::lock_guard lock(mutex_);
    if (logged_.size() >= max_logged || !logged_.emplace(kind, peer).second) return;
  }
  log_warning(cat("refused (", names_of(kind)[index], ") from ", quote(peer), ": ", sentence,
                  "; further ones are only counted"));
}

std::uint64_t Refusals::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& count) { return sum + count; });
}

}  // namespace troupe::transports
