#include "launch/serve/ranks/rank_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/files/descriptor.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::launch::serve::ranks {

namespace {

struct WatchedRank {
  int rank = 0;
  std::string process;  ///< its number
  Descriptor exited;    ///< a pidfd
};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// The ranks after the first that are on this host.
std::vector<WatchedRank> ranks_of_this_host(engine::parallel::Communicator& world) {
  const auto processes = engine::parallel::gather_strings(world, cat(getpid(), " ", host_name()),
                                                          "the processes of the ranks");
  std::vector<WatchedRank> found;
  for (int rank = 1; rank < world.size(); ++rank) {
    const std::string& text = processes[static_cast<std::size_t>(rank)];
    const std::string process = text.substr(0, text.find(' '));
    if (text.substr(process.size() + 1) != host_name()) continue;
    pid_t number = 0;
    std::from_chars(process.data(), process.data() + process.size(), number);
    Descriptor exited(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
    // Without a pidfd (another namespace of processes) the watch of mpirun remains.
    if (exited.open()) found.push_back({rank, process, std::move(exited)});
  }
  return found;
}

}  // namespace

RankWatch::RankWatch(engine::parallel::Communicator& world) {
  auto watched = std::make_shared<std::vector<WatchedRank>>(ranks_of_this_host(world));
  if (world.rank() != 0) return;
  thread_ = thread_with_blocked_signals("ranks", [this, watched, &world] {
    std::vector<actors::WatchedDescriptor> descriptors;
    for (const WatchedRank& each : *watched) descriptors.push_back({.fd = each.exited.get()});
    while (!stopping_) {
      const std::vector<bool> ready = events_.wait(descriptors);
      for (std::size_t i = 0; i < ready.size() && !stopping_; ++i)
        if (ready[i])
          return world.abort(cat("rank ", (*watched)[i].rank, " of ", world.size(), " (process ",
                                 (*watched)[i].process,
                                 ") has ended, without which the server "
                                 "cannot continue; its messages say why"));
    }
  });
}

RankWatch::~RankWatch() {
  stopping_ = true;
  events_.wake();
  if (thread_.joinable()) thread_.join();
}

}  // namespace troupe::launch::serve::ranks
