// Benchmark of the collectives of one host: threads of this process, or the processes of mpirun.
//   collectives [RANKS]              threads (4)
//   mpirun -n 4 collectives          processes
// Prints GB/s of each operation: the bytes that a rank sends, by the time of the slowest rank.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/parallel/all_reduce.h"
#include "engine/parallel/thread_group.h"
#include "transports/mpi/mpi_world.h"

namespace {

using namespace troupe;
using engine::parallel::Communicator;

constexpr int rounds = 5;

struct Operation {
  const char* name;
  double
      factor;  ///< bytes that a rank sends, of the bytes of the buffer, times ranks / (ranks - 1)
  std::function<void()> run;
};

std::vector<Operation> operations(Communicator& group, std::vector<float>& values,
                                  std::vector<std::size_t>& counts) {
  const auto mine = [&] {
    return std::span(values).subspan(counts[0] * static_cast<std::size_t>(group.rank()),
                                     counts[static_cast<std::size_t>(group.rank())]);
  };
  return {{"all_reduce", 2,
           [&] { engine::parallel::all_reduce_sum(group, std::span(values), "a sum"); }},
          {"reduce_scatter", 1,
           [&group, &values, &counts, mine] {
             group.start_reduce_scatter(values, counts, mine(), "a reduce-scatter").wait();
           }},
          {"all_gather", 1, [&group, &values, &counts, mine] {
             std::vector<std::size_t> bytes;
             for (const auto count : counts) bytes.push_back(4 * count);
             group
                 .start_all_gather(std::as_bytes(mine()), std::as_writable_bytes(std::span(values)),
                                   bytes, "a gathering")
                 .wait();
           }}};
}

/// Best time of the rounds, each as long as its slowest rank.
double seconds_of(Communicator& group, const std::function<void()>& run) {
  float best = 1e9f;
  for (int i = 0; i < rounds; ++i) {
    engine::parallel::barrier(group, "the start");
    const auto begin = std::chrono::steady_clock::now();
    run();
    float took = std::chrono::duration<float>(std::chrono::steady_clock::now() - begin).count();
    engine::parallel::all_reduce_max(group, std::span(&took, 1), "the time");
    best = std::min(best, took);
  }
  return double{best};
}

void measure(Communicator& group, const char* kind) {
  Json last(Json::Object{{"benchmark", "collectives"}, {"ranks", group.size()}, {"kind", kind}});
  const auto ranks = static_cast<std::size_t>(group.size());
  for (const std::size_t megabytes : {std::size_t{1}, std::size_t{4}, std::size_t{64}}) {
    std::vector<std::size_t> counts(ranks, (megabytes << 18) / ranks);
    std::vector<float> values(counts[0] * ranks, 1.0f);
    for (const auto& operation : operations(group, values, counts)) {
      const double took = seconds_of(group, operation.run);
      const double sent = operation.factor * 4 * static_cast<double>(values.size()) *
                          static_cast<double>(ranks - 1) / static_cast<double>(ranks);
      if (group.rank() != 0) continue;
      std::printf("%s, %d ranks, %zu MiB, %s: %s ms, %s GB/s\n", kind, group.size(), megabytes,
                  operation.name, to_text(1e3 * took, 2).c_str(),
                  to_text(1e-9 * sent / took, 2).c_str());
      last.set(cat(operation.name, '_', megabytes, "_mib"), 1e-9 * sent / took);
    }
  }
  if (group.rank() == 0) std::printf("%s\n", last.dump().c_str());
}

}  // namespace

int main(int count, char** words) {
  if (transports::mpi::under_mpirun()) {
    const auto world = value_or_throw(transports::mpi::mpi_world());
    measure(*world, "mpi");
    return 0;
  }
  const int ranks = count > 1 ? std::max(1, std::atoi(words[1])) : 4;
  engine::parallel::ThreadGroup group(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([own = std::shared_ptr(group.rank(r))] { measure(*own, "threads"); });
  for (auto& thread : threads) thread.join();
}
