#include "engine/base/threads/work_budget.h"

namespace troupe {
namespace {

thread_local const WorkBudget* current = nullptr;

}  // namespace

Result<> WorkBudget::check() const {
  if (cancelled()) return fail(Errc::cancelled, "cancelled: nobody waits for the result");
  if (deadline_ != Clock::time_point::max() && Clock::now() >= deadline_)
    return fail(Errc::timeout, "the request took longer to read than its deadline allows");
  return {};
}

const WorkBudget* WorkBudget::of_this_thread() noexcept {
  return current;
}

WorkBudget::Scope::Scope(const WorkBudget& budget) noexcept : before_(current) {
  current = &budget;
}

WorkBudget::Scope::~Scope() {
  current = before_;
}

}  // namespace troupe
