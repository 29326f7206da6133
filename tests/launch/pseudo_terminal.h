// A program in a pseudo-terminal: what a user types and sees.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace troupe::launch {

class PseudoTerminal {
 public:
  /// Starts the built program with these arguments, in a terminal of 80 columns; `environment` is
  /// added to this process's.
  PseudoTerminal(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment);
  /// Kills the program if it still runs.
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;

  void type(const std::string& keys) const;
  /// Waits until the program has printed `text` after the text that was waited for before; fails
  /// the test if it ends or a minute passes first.
  void wait_for(const std::string& text);
  /// Waits for the end of the program; returns its exit code, or -1 after a signal.
  int wait_for_exit();
  const std::string& printed() const { return printed_; }

 private:
  bool read_more();

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string printed_;
  std::size_t seen_ = 0;
};

}  // namespace troupe::launch
