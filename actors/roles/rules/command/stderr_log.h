// StderrLog: a program's standard error. Logs the first lines and keeps the last ones for error
// messages.
#pragma once

#include <string>
#include <string_view>

namespace troupe::actors::rules {

class StderrLog {
 public:
  /// `name` precedes each logged line. At most `lines` lines of 1 KiB are ever logged.
  explicit StderrLog(std::string name, int lines = 50) : name_(std::move(name)), left_(lines) {}

  void add(std::string_view text);
  /// Returns the end of the output since begin(), at most about 300 bytes.
  std::string last() const;
  /// Starts the output of a new process.
  void begin() {
    tail_.clear();
    line_.clear();
  }

 private:
  void log_line();

  std::string name_, line_, tail_;
  int left_;
};

}  // namespace troupe::actors::rules
