#include "engine/base/thread_with_blocked_signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace troupe {

std::thread thread_with_blocked_signals(const std::string& name, std::function<void()> work) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int synchronous : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP})
    sigdelset(&blocked, synchronous);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);  // inherited by the thread
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace troupe
