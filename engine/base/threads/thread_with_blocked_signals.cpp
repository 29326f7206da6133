#include "engine/base/threads/thread_with_blocked_signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "engine/base/threads/blocked_signals.h"

namespace troupe {

namespace {

sigset_t asynchronous_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int synchronous : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP})
    sigdelset(&set, synchronous);
  return set;
}

}  // namespace

std::thread thread_with_blocked_signals(const std::string& name, std::function<void()> work) {
  const BlockedSignals inherited(asynchronous_signals());
  std::thread thread(std::move(work));
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace troupe
