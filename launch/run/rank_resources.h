// RankResources: the device and the mesh of one rank of a group; RoleOnRank: a role's actor
// together with them.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/environment/processors.h"
#include "engine/ops/device.h"
#include "engine/ops/devices/make_device.h"
#include "engine/parallel/grid.h"
#include "launch/config/run_config.h"
#include "launch/profile/run_profile.h"

namespace troupe::launch::run {

/// Processors per rank when `ranks` ranks share those of this process, or `processors` of them; at
/// least 1.
inline int part_of_process(int ranks, int processors = engine::usable_processors()) {
  return std::max(1, processors / std::max(1, ranks));
}
/// Processors per process when `processes` processes share the machine: an equal part, or fewer if
/// this process is bound to fewer (mpirun --bind-to).
inline int part_of_machine(int processes) {
  return std::min(engine::usable_processors(),
                  std::max(1, engine::all_processors() / std::max(1, processes)));
}

/// Of `processors` processors, those that rollout.threads leaves to the other roles of a process;
/// at least 1.
inline int part_of_trainer(const config::RunConfig& config,
                           int processors = engine::usable_processors()) {
  return std::max(1, processors - config.rollout.threads);
}

/// train.threads threads per rank, or `threads` if that is 0.
inline engine::ops::DeviceOptions cpu_of(const config::RunConfig& config, int threads) {
  return {.threads = config.train.threads > 0 ? config.train.threads : threads,
          .pin_threads = config.train.pin_threads};
}

/// Whether the rollouts in the process of the policy have an executor and a device of their own.
inline bool rollouts_have_threads(const config::RunConfig& config) {
  return config.rollout.threads > 0;
}
/// The part of rollout.threads that each of `ranks` ranks in a process has.
inline engine::ops::DeviceOptions cpu_of_rollouts(const config::RunConfig& config, int ranks = 1) {
  return {.threads = std::max(1, config.rollout.threads / ranks)};
}
/// Placement::chunks_per_rollout() of a process with all roles: several where the rollouts work
/// beside the others.
inline std::size_t chunks_in_process(const config::RunConfig& config) {
  return rollouts_have_threads(config) ? 4 : 1;
}

/// The device of a rank. `profile`: null if it records another thread.
inline std::unique_ptr<engine::ops::Device> device_of_rank(const engine::ops::DeviceOptions& cpu,
                                                           int rank, profile::RunProfile* profile) {
  return profile::watched(profile ? profile->rank(rank) : nullptr, engine::ops::make_device(cpu));
}

struct RankResources {
  /// A rank with a device of its own. `profile`: null on all ranks if it records another thread.
  RankResources(const engine::ops::DeviceOptions& cpu, engine::parallel::Mesh given,
                profile::RunProfile* profile)
      : device(device_of_rank(cpu, given.world().rank(), profile)),
        mesh(watched_mesh(std::move(given), profile)) {}
  /// `of_roles`: the device of several roles, which take turns.
  RankResources(std::shared_ptr<engine::ops::Device> of_roles, engine::parallel::Mesh given,
                profile::RunProfile* profile)
      : device(std::move(of_roles)), mesh(watched_mesh(std::move(given), profile)) {}
  std::shared_ptr<engine::ops::Device> device;
  std::unique_ptr<engine::parallel::Mesh> mesh;

 private:
  static std::unique_ptr<engine::parallel::Mesh> watched_mesh(engine::parallel::Mesh given,
                                                              profile::RunProfile* profile) {
    return std::make_unique<engine::parallel::Mesh>(profile ? profile->watched(std::move(given))
                                                            : std::move(given));
  }
};

/// Base classes are destroyed in reverse order: the actor before its resources.
template <class Actor>
struct RoleOnRank : RankResources, Actor {
  /// `make` takes the resources and returns the actor.
  template <class Make>
  RoleOnRank(RankResources resources, const Make& make)
      : RankResources(std::move(resources)),
        Actor(make(static_cast<const RankResources&>(*this))) {}
};

/// Allocates the object, whose actor points to its resources. Their profile outlives it.
template <class Actor, class Make>
std::unique_ptr<RoleOnRank<Actor>> make_role_on_rank(RankResources resources, const Make& make) {
  return std::make_unique<RoleOnRank<Actor>>(std::move(resources), make);
}

}  // namespace troupe::launch::run
