// ByteProgress: the progress line of a command that works on bytes of files.
#pragma once

#include <cstdint>
#include <string>

#include "launch/terminal/progress_line.h"

namespace troupe::launch::terminal {

/// "[####......] 40 % 1200 rows 34567 tokens 1.25 MB/s ETA 0:12".
class ByteProgress {
 public:
  /// `total` bytes in all; `before` of them were done by an earlier command. `now` as ProgressLine.
  ByteProgress(std::FILE* out, ProgressLine::Options options, std::uint64_t total,
               std::uint64_t before, std::function<double()> now);
  ByteProgress(const ByteProgress&) = delete;

  /// `counts`: "1200 rows 34567 tokens". `due`, and what it returns: as ProgressLine::show().
  bool show(std::uint64_t done, std::string counts, bool due);
  /// Leaves the final line.
  void finish(std::uint64_t done, std::string counts, bool due);
  void hide() { line_.hide(); }
  std::string line() const { return line_.line(); }

 private:
  std::vector<ProgressField> fields(int bar) const;
  void set(std::uint64_t done, std::string counts);

  std::function<double()> now_;
  double started_, total_, before_, done_;
  std::string counts_;
  ProgressLine line_;
};

}  // namespace troupe::launch::terminal
