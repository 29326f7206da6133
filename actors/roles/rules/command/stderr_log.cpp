#include "actors/roles/rules/command/stderr_log.h"

#include <algorithm>

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::actors::rules {
namespace {

constexpr std::size_t max_line_bytes = 1024, max_tail_bytes = 300;

}  // namespace

void StderrLog::add(std::string_view text) {
  tail_ += text.substr(text.size() - std::min(text.size(), max_tail_bytes));
  if (tail_.size() > max_tail_bytes) tail_.erase(0, tail_.size() - max_tail_bytes);
  while (!text.empty() && left_ > 0) {
    const auto end = text.find('\n');
    const auto piece = text.substr(0, end);
    line_ += piece.substr(0, max_line_bytes - std::min(line_.size(), max_line_bytes));
    if (end == text.npos) return;
    log_line();
    text.remove_prefix(end + 1);
  }
}

void StderrLog::log_line() {
  if (!line_.empty()) log_info(cat(name_, ": ", line_));
  line_.clear();
  if (--left_ == 0) log_info(cat(name_, ": what else it writes on standard error is not logged"));
}

std::string StderrLog::last() const {
  const auto end = tail_.find_last_not_of(" \n\r\t");
  return end == tail_.npos ? "" : tail_.substr(0, end + 1);
}

}  // namespace troupe::actors::rules
