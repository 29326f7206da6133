// What the tests of contained programs look for outside of them.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "actors/sandbox/limits.h"

namespace troupe::actors::sandbox {

/// Why this machine cannot contain programs in this way, or "".
std::string denied(Isolation isolation);

/// Processes of this machine that have `mark` among their arguments and have not ended.
int marked_processes(const std::string& mark);

/// Whether `done` comes true within some seconds: for what the kernel does in its own time.
bool soon(const std::function<bool()>& done);

/// Listens on a port of 127.0.0.1 and on a local name, as long as it lives.
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

/// A private file that stays open for children, and a word in the environment.
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

/// As long as it lives, temporary files are made in a folder that goes with it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

 private:
  std::string path_, before_;
};

}  // namespace troupe::actors::sandbox
