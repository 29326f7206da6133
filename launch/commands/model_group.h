// ModelGroup: the processes of mpirun that share the model of `troupe generate`. Rank 0 runs the
// command; the others load their part of the model and follow its calls.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/group/group_channel.h"
#include "engine/generate/sampling_params.h"
#include "engine/parallel/grid.h"
#include "launch/commands/generate.h"

namespace troupe::launch::commands {

/// Completions that rank 0 asks all ranks for: the arguments of Sampler::generate().
struct GenerateCall {
  std::vector<std::int32_t> prompt;
  engine::generate::SamplingParams sampling;
  std::uint64_t first_sample = 0;
};
inline auto fields(GenerateCall& call) {
  return std::tie(call.prompt, call.sampling, call.first_sample);
}

class ModelGroup {
 public:
  /// Collective over all ranks of mpirun. Errc::usage where the grid has another number of ranks.
  /// `timeout`: seconds that a rank waits for another.
  static Result<std::unique_ptr<ModelGroup>> create(const engine::parallel::Grid& grid,
                                                    std::int64_t timeout);

  bool leads() const { return mesh_.is_root(); }
  int size() const { return channel_.size(); }
  const engine::parallel::Mesh& mesh() const { return mesh_; }

  /// Leader: starts the load of the model on all ranks, before its own part of it.
  void announce_load();
  /// Leader: starts a call on all ranks, before its own part of it.
  void announce(const GenerateCall& call);
  /// Runs this rank's part. Throws Failure on all ranks when any rank threw one.
  void run(std::string_view what, const std::function<void()>& work) {
    channel_.run_on_all_ranks(what, work);
  }
  /// Whether the leader's `stop` returns true, on every rank. Collective.
  bool stops(const std::function<bool()>& stop);
  /// Follower: loads the model and generates as the leader announces it, until the leader ends.
  void follow(const std::function<void()>& load,
              const std::function<void(const GenerateCall&)>& generate);
  /// Ends all ranks.
  void abort(const std::exception& error);

 private:
  explicit ModelGroup(engine::parallel::Mesh mesh);

  engine::parallel::Mesh mesh_;
  actors::group::GroupChannel channel_;
};

/// Runs `command` with the options: in this process or, with --tp, --pp or several ranks of
/// mpirun, on rank 0 of a group whose other ranks follow. Returns the exit code. Throws Failure.
int with_model_group(GenerateOptions options,
                     const std::function<int(const GenerateOptions&)>& command);

}  // namespace troupe::launch::commands
