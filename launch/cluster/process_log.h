// ProcessLog: the output of a group of processes: writes whole lines to its log file, lines of
// troupe's log with the date, and repeats warnings and errors in the controller's log. The rate of
// lines and bytes and the size of the file are limited.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "engine/base/log/log_file.h"
#include "launch/cluster/output_limit.h"

namespace troupe::launch::cluster {

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
  /// Appends to FOLDER/NODE.log, which is a LogFile. Throws Failure (Errc::io).
  ProcessLog(std::string node, const OutputFolder& folder, OutputRate rate = {});
  /// Takes any chunk of the output and assembles lines. Splits lines longer than 64 KiB.
  void add(std::string_view bytes);
  /// Takes the end of the output: what follows the last newline is a line. If some of the last
  /// 64 KiB were dropped, they are written now.
  void finish();
  /// The last non-empty lines, oldest first, at most three.
  std::string last_output() const;
  const std::string& path() const { return path_; }

 private:
  void line(std::string_view text);
  void write(const PrintedLine& printed);
  void write_notice();
  void note_hang(const PrintedLine& printed) const;
  std::string node_, path_, rest_;
  LogFile file_;
  OutputLimit limit_;
  bool warned_ = false;  // that output is dropped
  bool ranks_ = false;   // a group of several ranks
  std::deque<std::string> last_;
};

}  // namespace troupe::launch::cluster
