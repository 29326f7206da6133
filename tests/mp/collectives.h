// One script of collectives with seeded data: run by threads or by processes, every rank ends with
// the same bytes.
#pragma once

#include <cmath>
#include <cstring>
#include <string>

#include "engine/base/random/random.h"
#include "engine/parallel/all_reduce.h"
#include "engine/parallel/grid.h"

namespace troupe::test {

template <class T>
std::vector<T> seeded(int rank, std::uint64_t seed, std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<T>((uniform(seed, rank, i) - 0.5) *
                               std::pow(10.0, static_cast<double>((i + rank) % 7)));
  return values;
}

/// Returns the bytes that this rank received. Collective.
inline std::string run_collectives(engine::parallel::Communicator& group) {
  namespace parallel = engine::parallel;
  std::string got;
  const int rank = group.rank(), ranks = group.size();
  const auto keep = [&](const auto& values) {
    got.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  for (const std::size_t n : {0, 1, 3, 1000, 4097, 100003}) {
    for (int root = 0; root < ranks; ++root) {
      auto values = seeded<float>(rank, 1, n);
      root % 2 ? group.broadcast(std::as_writable_bytes(std::span(values)), root, "a broadcast")
               : group.broadcast_idle(std::as_writable_bytes(std::span(values)), root,
                                      "an idle broadcast");
      keep(values);
    }
    const auto mine = seeded<float>(rank, 2, n), blocks = seeded<float>(rank, 3, n * ranks);
    std::vector<float> all(n * ranks), theirs(n * ranks);
    group.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                     "a gathering");
    keep(all);
    group.all_to_all(std::as_bytes(std::span(blocks)), std::as_writable_bytes(std::span(theirs)),
                     "an exchange");
    keep(theirs);
    auto values = seeded<float>(rank, 4, n);
    parallel::all_reduce_sum(group, std::span(values), "a sum");
    keep(values);
    auto wide = seeded<double>(rank, 5, n);
    parallel::all_reduce_sum(group, std::span(wide), "a wide sum");
    keep(wide);
    values = seeded<float>(rank, 6, n);
    parallel::all_reduce_max(group, values, "a maximum");
    keep(values);
    keep(parallel::gather_floats(group, seeded<float>(rank, 7, n * (rank + 1) / ranks),
                                 "uneven floats"));
  }
  for (const auto& text :
       parallel::gather_strings(group, std::string(17 * rank, 'x'), "uneven strings"))
    got += text + ";";
  return got;
}

/// Runs the script in the world, in reversed pairs of it, and in the rows and columns of a grid.
inline std::string run_script(engine::parallel::Communicator& world) {
  std::string got = run_collectives(world);
  const auto pair = world.split(world.rank() / 2, -world.rank());
  got += run_collectives(*pair);
  const auto mesh = value_or_throw(engine::parallel::Mesh::create(
      world.split(0, world.rank()), {.dp = world.size() / 2, .tp = 2}));
  return got + run_collectives(mesh.tp()) + run_collectives(mesh.dp());
}

}  // namespace troupe::test
