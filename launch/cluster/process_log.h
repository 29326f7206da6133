// ChildLog: what a group of processes prints: whole lines into its file, its warnings and errors
// also to our log.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "launch/journal/metrics_file.h"

namespace troupe::launch {

/// One printed line, taken apart.
struct PrintedLine {
  int rank = -1;     ///< of a group of several, as mpirun's tag says it; -1: not known
  char level = ' ';  ///< 'I', 'W', 'E' of a line of our log; ' ' of anything else
  std::string text;  ///< without tag, time and level
};
/// "[1,0]<stderr>:12:30:01 W three rows were left out" is rank 0, 'W' and the rest.
PrintedLine printed_line(std::string_view line);

class ChildLog {
 public:
  /// Appends to `path`. Throws Failure (Errc::io).
  ChildLog(std::string node, const std::string& path);
  /// Any piece of what was printed; lines are put together here. A line longer than 64 KiB is
  /// broken.
  void add(std::string_view bytes);
  /// The end: what stands there without a newline is a line too.
  void finish();
  /// The last lines that say something, the oldest first, at most three.
  std::string last_words() const;
  const std::string& path() const { return path_; }

 private:
  void line(std::string_view text);
  std::string node_, path_, rest_;
  LineFile file_;
  bool ranks_ = false;  // it is a group of several
  std::deque<std::string> last_;
};

}  // namespace troupe::launch
