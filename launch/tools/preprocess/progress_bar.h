// PreprocessBar: the progress of `troupe preprocess` on stderr.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace troupe::launch::tools::preprocess {

/// What was done so far. Bytes are those of the input files.
struct PreprocessCounts {
  std::uint64_t bytes = 0;
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
};

class PreprocessBar {
 public:
  struct Options {
    bool terminal = false;          ///< one line that is redrawn; otherwise separate lines
    std::int64_t log_interval = 0;  ///< not a terminal: rows between lines; 0: none
    std::uint64_t bytes = 0;        ///< of all input files
    PreprocessCounts before = {};   ///< of the interrupted command that is continued
  };
  /// `now` returns seconds.
  PreprocessBar(std::FILE* out, Options options, std::function<double()> now);
  /// Shows the counts, at most five times a second.
  void show(const PreprocessCounts& counts);
  /// Shows the final counts.
  void finish(const PreprocessCounts& counts);
  /// "[####......] 40 % 1200 rows 34567 tokens 1.25 MB/s".
  std::string line(const PreprocessCounts& counts) const;

 private:
  std::FILE* out_;
  Options options_;
  std::function<double()> now_;
  double started_ = 0, shown_ = -1e300;
  std::int64_t shown_rows_ = 0;
};

}  // namespace troupe::launch::tools::preprocess
