#include "launch/profile/step_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#include "engine/base/files/environment_error.h"
#include "engine/base/text/text.h"

namespace troupe::launch::profile {

struct StepBoard::Page {
  std::atomic<std::int64_t> step;
  std::int64_t origin;
};

std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<StepBoard> StepBoard::map(const std::string& path, int flags) {
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
  const bool fresh = (flags & O_CREAT) != 0;
  const int file = ::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                cat(path, ": cannot open: ", reason_of(errno)));
  struct stat found {};
  const bool sized =
      fresh ? ::ftruncate(file, sizeof(Page)) == 0
            : ::fstat(file, &found) == 0 && found.st_size == static_cast<off_t>(sizeof(Page));
  void* page = sized ? ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
  ::close(file);
  if (page == MAP_FAILED) return fail(Errc::io, cat(path, ": cannot map the step board"));
  return StepBoard(static_cast<Page*>(page), fresh ? path : "");
}

Result<StepBoard> StepBoard::create(const std::string& path) {
  ::unlink(path.c_str());  // left by a killed run; other processes keep their mapping
  auto board = map(path, O_RDWR | O_CREAT | O_EXCL);
  if (board) board->page_->origin = steady_nanoseconds();
  return board;
}

Result<StepBoard> StepBoard::open(const std::string& path) {
  return map(path, O_RDWR);
}

StepBoard::StepBoard(StepBoard&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), owned_(std::exchange(other.owned_, {})) {
}

StepBoard::~StepBoard() {
  if (page_) ::munmap(page_, sizeof(Page));
  if (!owned_.empty()) ::unlink(owned_.c_str());
}

std::int64_t StepBoard::step() const {
  return page_->step.load(std::memory_order_relaxed);
}
void StepBoard::publish(std::int64_t step) {
  page_->step.store(step, std::memory_order_relaxed);
}
std::int64_t StepBoard::origin() const {
  return page_->origin;
}

}  // namespace troupe::launch::profile
