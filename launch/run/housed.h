// Housed<Role>: a role of one rank of a group, together with the device and the mesh that it works on.
#pragma once

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "engine/ops/device.h"
#include "engine/parallel/grid.h"
#include "launch/profile/run_profile.h"
#include "launch/run_config.h"

namespace troupe::launch {

/// Threads of each of `ranks` ranks that share this machine: `given` of the configuration, or an equal part of what there is.
inline int threads_a_rank(std::int64_t given, int ranks) {
  return given > 0 ? static_cast<int>(given) : std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, ranks));
}

/// The processors of one of `ranks` ranks that share this machine.
inline engine::ops::CpuOptions cpu_of(const RunConfig& config, int ranks) {
  return {.threads = threads_a_rank(config.train.threads, ranks), .pin_threads = config.train.pin_threads};
}

struct House {
  House(const engine::ops::CpuOptions& cpu, engine::parallel::Mesh given, RunProfile& profile)
      : device(watched(profile.rank(given.world().rank()), engine::ops::make_cpu_device(cpu))),
        mesh(std::make_unique<engine::parallel::Mesh>(profile.watched(std::move(given)))) {}
  std::unique_ptr<engine::ops::Device> device;
  std::unique_ptr<engine::parallel::Mesh> mesh;
};

/// Bases end in the reverse order of their beginning: the role before its house.
template <class Role>
struct Housed : House, Role {
  /// `make` takes the house and returns the role.
  template <class Make>
  Housed(House house, const Make& make) : House(std::move(house)), Role(make(static_cast<const House&>(*this))) {}
};

/// One on the heap, which is where its role points into it. `profile` outlives it.
template <class Role, class Make>
std::unique_ptr<Housed<Role>> housed(const engine::ops::CpuOptions& cpu, engine::parallel::Mesh mesh, RunProfile& profile,
                                     const Make& make) {
  return std::make_unique<Housed<Role>>(House(cpu, std::move(mesh), profile), make);
}

}  // namespace troupe::launch
