#include "launch/cluster/replacement.h"

#include <utility>

#include "actors/protocol/generate.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::cluster {
namespace {

namespace protocol = actors::protocol;
using recipes::Role;

bool is_replaced(const config::RunConfig& config, Role role) {
  switch (role) {
    case Role::rollout:
      return config.rollout.parity_sample == 0;
    case Role::verifier:
    case Role::reward:
      return true;
    case Role::reference:
      return !recipes::roles_of(config).reference_follows;
    case Role::policy:
    case Role::critic:
      return false;
  }
  return false;
}

algorithms::Recovery::Options options_of(const config::RunConfig& config,
                                         std::function<void(const std::string&)> on_divergence) {
  const bool repeats =
      !config.async.free() && config.rollout.source == config::SampleSource::engine;
  return {.repeats = repeats, .on_divergence = std::move(on_divergence)};
}

}  // namespace

std::set<std::string> replaced_nodes(const config::RunConfig& config,
                                     const std::vector<NodeSpec>& nodes) {
  std::set<std::string> names;
  if (!config.recovery.replaces()) return names;
  for (const NodeSpec& node : nodes)
    if (is_replaced(config, node.role)) names.insert(node.name);
  return names;
}

Replacement::Replacement(const config::RunConfig& config, const std::vector<NodeSpec>& nodes)
    : config_(config.recovery),
      budget_(static_cast<std::size_t>(config_.restarts), std::chrono::seconds(config_.window)) {
  const auto names = replaced_nodes(config, nodes);
  bool rollouts = false;
  for (const NodeSpec& node : nodes) {
    if (!names.contains(node.name)) continue;
    roles_.emplace(node.name, node.role);
    rollouts |= node.role == Role::rollout;
  }
  if (!rollouts) return;
  recovery_.emplace(options_of(config, [this](const std::string& found) {
    {
      const std::lock_guard lock(mutex_);
      if (divergence_.empty()) divergence_ = found;
    }
    if (on_divergence_) on_divergence_();
  }));
}

std::set<std::string> Replacement::stateless() const {
  std::set<std::string> names;
  for (const auto& [name, role] : roles_)
    if (role != Role::rollout) names.insert(name);
  return names;
}

bool Replacement::admits(ExitedProcess& lost) {
  const auto role = roles_.find(lost.node);
  if (role == roles_.end() || lost.timed_out) return false;
  if (budget_.take(role->second, std::chrono::steady_clock::now())) {
    const std::lock_guard lock(mutex_);
    ++restarts_[lost.node];
    return true;
  }
  lost.ends_with = run::exit_restarts;
  lost.advice = cat("The role ", to_string(role->second), " lost more than ", config_.restarts,
                    " processes within ", config_.window,
                    " s (recovery.restarts, recovery.window), so no other takes its place; see ",
                    lost.log, ".");
  return false;
}

void Replacement::joined(const std::string& node, std::uint64_t incarnation) {
  if (incarnation > 1) log_info(cat(node, ": incarnation ", incarnation, " has joined"));
  if (recovery_) recovery_->joined(node, incarnation);
}

void Replacement::lost(const std::string& node, std::uint64_t incarnation) {
  if (recovery_) recovery_->lost(node, incarnation);
}

void Replacement::end() {
  if (recovery_) recovery_->end({Errc::cancelled, "the run was interrupted"});
}

void Replacement::late(transports::Frame frame) {
  if (!recovery_ || frame.type != protocol::Generate::name || frame.kind != transports::Kind::reply)
    return;
  auto completions = frame.body.try_take<protocol::Generate::Reply>();
  if (completions) recovery_->late(*completions);
}

std::int64_t Replacement::restarts(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const auto found = restarts_.find(node);
  return found == restarts_.end() ? 0 : found->second;
}

std::string Replacement::divergence() const {
  const std::lock_guard lock(mutex_);
  return divergence_;
}

}  // namespace troupe::launch::cluster
