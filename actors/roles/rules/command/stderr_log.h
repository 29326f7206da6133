// What a program says on its standard error: the first lines into the log, the last ones kept for
// when it fails.
#pragma once

#include <string>
#include <string_view>

namespace troupe::actors::rules {

class Words {
 public:
  /// `name` stands before each logged line. Of all that is ever added, `lines` lines of 1 KiB at
  /// most are logged.
  explicit Words(std::string name, int lines = 50) : name_(std::move(name)), left_(lines) {}

  void add(std::string_view text);
  /// The last lines since begin(), cut to about 300 bytes, for a message; "" when there were none.
  std::string last() const;
  /// A new process speaks.
  void begin() { tail_.clear(), line_.clear(); }

 private:
  void log_line();

  std::string name_, line_, tail_;
  int left_;
};

}  // namespace troupe::actors::rules
