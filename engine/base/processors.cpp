#include "engine/base/processors.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace troupe::engine {

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int all_processors() { return std::max(usable_processors(), static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace troupe::engine
