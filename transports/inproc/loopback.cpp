#include "transports/inproc/loopback.h"

#include <mutex>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::transports {

std::uint64_t Loopback::attach(const std::string& node, Receiver receive) {
  const std::unique_lock lock(mutex_);
  const bool added = receivers_.emplace(node, std::move(receive)).second;
  check(added, "two nodes of one transport have the same name");
  return ++incarnations_;
}

void Loopback::detach(const std::string& node) {
  const std::unique_lock lock(mutex_);
  receivers_.erase(node);
}

Result<> Loopback::send(Frame frame) {
  const std::shared_lock lock(mutex_);
  const auto receiver = receivers_.find(frame.to.node);
  if (receiver == receivers_.end())
    return fail(Errc::closed,
                cat("node '", frame.to.node, "' is not in this process or has stopped"));
  receiver->second(std::move(frame));
  return {};
}

}  // namespace troupe::transports
