#include "benchmarks/support/disturbance.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::benchmarks {
namespace {

// Seconds that the threads of this process were ready to run and did not: the second number of
// schedstat, in nanoseconds (proc(5)).
double waited() {
  double sum = 0;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(thread.path() / "schedstat");
    if (double ran = 0, ready = 0; file >> ran >> ready) sum += 1e-9 * ready;
  }
  return sum;
}

// Ticks that the host gave to others while a processor of this machine wanted them: the eighth
// number of /proc/stat (proc(5)).
std::int64_t stolen() {
  std::ifstream file("/proc/stat");
  std::string word;
  std::int64_t ticks = 0;
  file >> word;
  for (int i = 0; i < 8; ++i)
    if (!(file >> ticks)) return 0;
  return ticks;
}

}  // namespace

Disturbance::Disturbance()
    : begin_(std::chrono::steady_clock::now()), waited_(waited()), stolen_(stolen()) {
}

bool Disturbance::any() const {
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  return stolen() != stolen_ || waited() - waited_ > 0.03 * passed + 1e-4;
}

}  // namespace troupe::benchmarks
