// RankGroup: the processes of mpirun that share the model of `troupe generate`, `chat` or `serve`.
// Rank 0 runs the command; the others load their part of the model and follow its engine.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "actors/group/engine_follower.h"
#include "actors/group/group_channel.h"
#include "engine/parallel/grid.h"
#include "launch/commands/generate.h"

namespace troupe::launch::commands {

class RankGroup {
 public:
  /// Collective over all ranks of mpirun. Throws Failure: Errc::usage where the grid has another
  /// number of ranks. `timeout`: seconds that a rank waits for another.
  RankGroup(const engine::parallel::Grid& grid, std::int64_t timeout);

  const engine::parallel::Mesh& mesh() const { return mesh_; }
  const std::shared_ptr<actors::group::GroupChannel>& channel() const { return channel_; }
  /// A follower: makes the leader's calls until it has ended. A failure ends all ranks.
  void follow(engine::serving::Engine& engine, actors::group::EngineParts parts) const;
  /// Ends all ranks.
  void abort(const std::exception& error) const;

 private:
  engine::parallel::Mesh mesh_;
  std::shared_ptr<actors::group::GroupChannel> channel_;
};

/// Runs `command` with the options: in this process or, with --tp, --pp or several ranks of
/// mpirun, on rank 0 of a group whose other ranks follow. Returns the exit code. Throws Failure.
int with_rank_group(GenerateOptions options,
                    const std::function<int(const GenerateOptions&)>& command);

}  // namespace troupe::launch::commands
