#include "engine/base/thread_with_blocked_signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace troupe {

namespace {

/// Blocks all asynchronous signals of this thread, and of threads that it starts, until its end.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int synchronous : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP})
      sigdelset(&blocked, synchronous);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread thread_with_blocked_signals(const std::string& name, std::function<void()> work) {
  const BlockedSignals inherited;
  std::thread thread(std::move(work));
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace troupe
