// A child process that a test watches and signals.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace troupe::test {

class Child {
 public:
  /// `command` for /bin/bash, which becomes its first program; what it prints goes to the end of
  /// `log`.
  Child(const std::string& command, const std::string& log);
  Child(const Child&) = delete;
  /// Kills and reaps a child that still runs.
  ~Child();

  /// Looks again and again; true when the condition came true, false when the child ended before.
  bool until(const std::function<bool()>& condition);
  void signal(int number);
  /// Its end: an exit code, or minus the signal that it died of.
  int wait();

 private:
  bool ended();
  pid_t pid_ = 0;
  bool reaped_ = false;
  int status_ = 0;
};

}  // namespace troupe::test
