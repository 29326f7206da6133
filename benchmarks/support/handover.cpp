#include "benchmarks/support/handover.h"

#include <atomic>
#include <thread>
#include <vector>

#include "benchmarks/support/clock.h"
#include "engine/base/environment/processors.h"

namespace troupe::benchmarks {
namespace {

constexpr int batch = 50, batches = 100, stop = -1;

// Waits until `line` has one of two values. Yields after a while: the other thread may have no
// core.
int wait_for(const std::atomic<int>& line, int value) {
  for (int spin = 0;; ++spin) {
    const int found = line.load(std::memory_order_acquire);
    if (found == value || found == stop) return found;
    if (spin > 100'000) std::this_thread::yield();
  }
}

}  // namespace

std::optional<double> handover() {
  if (engine::usable_processors() < 2) return std::nullopt;
  alignas(64) std::atomic<int> line{0};
  std::vector<double> each;
  {
    const std::jthread there([&] {
      engine::pin_to_processor(1);
      while (wait_for(line, 1) != stop) line.store(0, std::memory_order_release);
    });
    const std::jthread here([&] {
      engine::pin_to_processor(0);
      double spent = 0;
      for (int i = 0; i < batches && spent < 0.1; ++i) {
        const double took = seconds([&] {
          for (int k = 0; k < batch; ++k) {
            line.store(1, std::memory_order_release);
            wait_for(line, 0);
          }
        });
        spent += took;
        each.push_back(took * 1e9 / (2 * batch));
      }
      line.store(stop, std::memory_order_release);
    });
  }
  return median(each);
}

}  // namespace troupe::benchmarks
