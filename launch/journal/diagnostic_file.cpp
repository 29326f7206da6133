#include "launch/journal/diagnostic_file.h"

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::launch::journal {

void warn_of_abandoned_file(const Error& why) {
  log_warning(cat(why.what,
                  "; the run continues without this file, which no result depends on, until it "
                  "is started again"));
}

DiagnosticFile::DiagnosticFile(const OutputFolder& folder, const std::string& name,
                               const Result<>& prepared) {
  auto file = prepared ? LineFile::open(folder, name) : fail(prepared);
  if (file)
    file_ = std::move(*file);
  else
    warn_of_abandoned_file(file.error());
}

void DiagnosticFile::append(std::string_view text) {
  if (!file_) return;
  if (const auto written = file_->append(text); !written) {
    warn_of_abandoned_file(written.error());
    file_.reset();
  }
}

}  // namespace troupe::launch::journal
