// Child: a process that a test watches and signals.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace troupe::test {

class Child {
 public:
  /// Runs `command` with /bin/bash, which executes its first program. Appends the output to `log`.
  Child(const std::string& command, const std::string& log);
  Child(const Child&) = delete;
  /// Kills and reaps the child if it still runs.
  ~Child();

  /// Polls the condition; returns false if the child exits before it is true.
  bool until(const std::function<bool()>& condition);
  void signal(int number);
  pid_t pid() const { return pid_; }
  /// Waits for the exit code, or minus the number of the signal that killed the child.
  int wait();

 private:
  bool ended();
  pid_t pid_ = 0;
  bool reaped_ = false;
  int status_ = 0;
};

}  // namespace troupe::test
