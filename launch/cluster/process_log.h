// ProcessLog: the output of a group of processes: writes whole lines to its log file, lines of
// troupe's log with the date, and repeats warnings and errors in the controller's log.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "launch/journal/metrics_file.h"

namespace troupe::launch {

/// One printed line, parsed.
struct PrintedLine {
  int rank = -1;     ///< from mpirun's tag, in a group of several ranks; -1: unknown
  char level = ' ';  ///< 'I', 'W' or 'E' for a line of troupe's log; ' ' for any other
  std::string text;  ///< without tag, time and level
};
/// "[1,0]<stderr>:12:30:01 W three rows were left out" is rank 0, 'W' and the rest.
PrintedLine printed_line(std::string_view line);

class ProcessLog {
 public:
  /// Appends to FOLDER/NODE.log. Throws Failure (Errc::io).
  ProcessLog(std::string node, const OutputFolder& folder);
  /// Takes any chunk of the output and assembles lines. Splits lines longer than 64 KiB.
  void add(std::string_view bytes);
  /// Takes the end of the output: what follows the last newline is a line.
  void finish();
  /// The last non-empty lines, oldest first, at most three.
  std::string last_output() const;
  const std::string& path() const { return path_; }

 private:
  void line(std::string_view text);
  std::string node_, path_, rest_;
  LineFile file_;
  bool ranks_ = false;  // a group of several ranks
  std::deque<std::string> last_;
};

}  // namespace troupe::launch
