// DiagnosticFile: a file that describes a run and that no resumed run needs. A run does not end
// because it cannot be written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/journal/metrics_file.h"

namespace troupe::launch::journal {

class DiagnosticFile {
 public:
  /// Appends to FOLDER/NAME. `prepared`: the result of what precedes, such as truncating the file.
  /// An error of either is logged as a warning, and append() does nothing.
  DiagnosticFile(const OutputFolder& folder, const std::string& name, const Result<>& prepared);
  /// Appends `text`, which ends with a newline. After the first error, which is logged as a
  /// warning, the file is closed and later texts are dropped.
  void append(std::string_view text);
  bool is_open() const { return file_.has_value(); }

 private:
  std::optional<LineFile> file_;
};

/// The warning of a file that is given up.
void warn_of_abandoned_file(const Error& why);

}  // namespace troupe::launch::journal
