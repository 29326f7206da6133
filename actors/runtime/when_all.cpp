#include "actors/runtime/when_all.h"

#include <exception>

#include "actors/runtime/detached.h"

namespace troupe::actors {

namespace {

Detached run_to_end(const Task<void>& task, std::exception_ptr& thrown, Gate::Holder inside) {
  const Gate::Holder until_here = std::move(inside);
  try {
    co_await task;
  } catch (...) {
    thrown = std::current_exception();
  }
}

}  // namespace

Task<void> when_all(std::vector<Task<void>> tasks) {
  Gate gate;
  std::vector<std::exception_ptr> thrown(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i)
    run_to_end(tasks[i], thrown[i], Gate::Holder(gate));
  co_await gate.close();
  for (const auto& exception : thrown)
    if (exception) std::rethrow_exception(exception);
}

}  // namespace troupe::actors
