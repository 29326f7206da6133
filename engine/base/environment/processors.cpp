#include "engine/base/environment/processors.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace troupe::engine {
namespace {

cpu_set_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? set : cpu_set_t{};
}

}  // namespace

int usable_processors() {
  const cpu_set_t all = processors();
  return std::max(1, CPU_COUNT(&all));
}

void pin_to_processor(int index) {
  const cpu_set_t all = processors();
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &all) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

int all_processors() {
  return std::max(usable_processors(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace troupe::engine
