#include "engine/base/quiet_thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace troupe {

std::thread quiet_thread(const std::string& name, std::function<void()> work) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, own);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);  // which the thread inherits
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace troupe
