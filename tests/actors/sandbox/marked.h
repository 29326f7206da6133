// Observations outside the sandbox: processes, listeners and files.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/sandbox/limits.h"

namespace troupe::actors::sandbox {

/// Returns why this machine cannot isolate programs in this way, or "".
std::string denied(Isolation isolation);

/// Number of running processes of this machine with `mark` among their arguments.
int marked_processes(const std::string& mark);
std::vector<int> marked_ids(const std::string& mark);

/// The helper of this process (actors/sandbox/helper.h) that runs, or 0.
int helper_id();
/// Number of stopped processes of this name on this machine.
int stopped_processes(std::string_view name);

/// The reward program of the tests, hostile.cpp.
std::string hostile_program();

/// Polls `done` for some seconds, for effects that the kernel delays.
bool soon(const std::function<bool()>& done);

/// Listens on a port of 127.0.0.1 and on an abstract socket for its lifetime.
class Listener {
 public:
  Listener();
  Listener(const Listener&) = delete;
  ~Listener();
  std::string port() const;
  std::string name() const;

 private:
  int tcp_ = -1, local_ = -1;
};

/// Listens on a Unix socket in a folder of its own that everybody can enter.
class UnixListener {
 public:
  UnixListener();
  UnixListener(const UnixListener&) = delete;
  ~UnixListener();
  const std::string& folder() const { return folder_; }
  std::string path() const { return folder_ + "/socket"; }

 private:
  std::string folder_;
  int socket_ = -1;
};

/// A private file that stays open in children, and an environment variable.
class Secret {
 public:
  Secret();
  Secret(const Secret&) = delete;
  ~Secret();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_ = -1;
};

/// Redirects temporary files to a folder that the destructor removes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_, before_;
};

}  // namespace troupe::actors::sandbox
