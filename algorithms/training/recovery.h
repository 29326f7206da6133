// Recovery: the processes of rollouts that come and go while a run continues: which is present,
// which samples it has, and what became of those of one that was lost.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/generate.h"
#include "actors/roles/leases.h"
#include "actors/runtime/asker.h"
#include "actors/runtime/changes.h"
#include "actors/runtime/reply.h"
#include "actors/runtime/task.h"
#include "algorithms/training/weight_versions.h"

namespace troupe::algorithms {

/// Used on the control executor of the node that executes the algorithm. Each process that has the
/// place of a node is an incarnation of it, counted from 1.
class Recovery {
 public:
  struct Options {
    /// A sample is a function of its id and the weights: two results of one sample are equal.
    bool repeats = true;
    /// Called once with a sentence if they are not.
    std::function<void(const std::string&)> on_divergence;
  };
  explicit Recovery(Options options) : options_(std::move(options)) {}

  // Events.
  /// The process is lost; its samples are given away. Nothing happens if a later one has its place.
  void lost(const std::string& node, std::uint64_t incarnation);
  void joined(const std::string& node, std::uint64_t incarnation);
  /// The run ends: those that wait for a process or a sample throw Failure(why).
  void end(const Error& why);
  /// Samples that an incarnation which was lost has sent after all.
  void late(const std::vector<actors::protocol::Completion>& completions);

  /// The present incarnation, or the one that is expected.
  std::uint64_t incarnation(const std::string& node) const;
  bool present(const std::string& node) const;
  /// "rollout-0#2".
  std::string name(const std::string& node) const;
  std::uint64_t losses(const std::string& node) const { return incarnation(node) - 1; }
  /// Notified by each event, and by those who change what others wait for.
  actors::Changes& changes() { return changes_; }
  void notify();
  /// Sets a function that notify() calls as well; nullptr: none.
  void on_change(std::function<void()> changed) { on_change_ = std::move(changed); }
  /// Throws the failure of end().
  void check_open() const;

  // Leases.
  void lease(const std::string& node, const std::vector<actors::protocol::SampleRequest>& requests);
  /// These samples are accepted.
  void arrived(const std::string& node,
               const std::vector<actors::protocol::Completion>& completions);
  std::size_t leased(const std::string& node) const;

  /// Weights that all rollouts shall have (async.mode off), for those that join later.
  void use_weights(SharedWeights weights) { weights_ = std::move(weights); }
  const SharedWeights& weights() const { return weights_; }
  /// The version that the present incarnation has; nullopt: none.
  std::optional<std::uint64_t> version(const std::string& node) const;
  void has_version(const std::string& node, std::uint64_t version);

 private:
  struct Group {
    std::uint64_t incarnation = 1;
    bool present = true;
    std::optional<std::uint64_t> version;
  };
  struct Sampled {
    std::string holder, hash;
  };
  /// A sample that was given away: who had it, and the results that came.
  struct GivenAway {
    std::string from;
    std::optional<Sampled> accepted, late;
  };
  void compare(std::uint64_t sample_id, const GivenAway& sample);
  void remember(std::uint64_t sample_id, const std::string& from);

  Options options_;
  std::map<std::string, Group> groups_;
  actors::Changes changes_;
  std::function<void()> on_change_;
  std::optional<Error> ended_;
  actors::roles::Leases leases_;
  std::uint64_t leases_granted_ = 0;
  std::map<std::uint64_t, GivenAway> given_away_;
  std::deque<std::uint64_t> given_away_in_order_;
  SharedWeights weights_;
};

/// Runs `work`, asks of an incarnation of `node`. False if it failed because the process was lost;
/// throws any other failure. Without a recovery every failure is thrown.
actors::Task<bool> survives(Recovery* recovery, std::shared_ptr<actors::Asker> asker,
                            std::string node, std::uint64_t incarnation, actors::Task<void> work);

}  // namespace troupe::algorithms
