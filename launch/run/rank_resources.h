// Housed<Role>: a role of one rank of a group, together with the device and the mesh that it works
// on.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/processors.h"
#include "engine/ops/device.h"
#include "engine/parallel/grid.h"
#include "launch/config/run_config.h"
#include "launch/profile/run_profile.h"

namespace troupe::launch {

/// Of the processors that this process may use, the part of one of so many ranks that share them.
inline int part_of_process(int ranks) {
  return std::max(1, engine::usable_processors() / std::max(1, ranks));
}
/// The part of this process where so many run on the machine: an equal one, unless it is bound to
/// fewer (mpirun --bind-to).
inline int part_of_machine(int processes) {
  return std::min(engine::usable_processors(),
                  std::max(1, engine::all_processors() / std::max(1, processes)));
}

/// The threads that the configuration gives a rank, else so many.
inline engine::ops::CpuOptions cpu_of(const RunConfig& config, int threads) {
  return {.threads = config.train.threads > 0 ? static_cast<int>(config.train.threads) : threads,
          .pin_threads = config.train.pin_threads};
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
  Housed(House house, const Make& make)
      : House(std::move(house)), Role(make(static_cast<const House&>(*this))) {}
};

/// One on the heap, which is where its role points into it. `profile` outlives it.
template <class Role, class Make>
std::unique_ptr<Housed<Role>> housed(const engine::ops::CpuOptions& cpu,
                                     engine::parallel::Mesh mesh, RunProfile& profile,
                                     const Make& make) {
  return std::make_unique<Housed<Role>>(House(cpu, std::move(mesh), profile), make);
}

}  // namespace troupe::launch
