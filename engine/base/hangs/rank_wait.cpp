#include "engine/base/hangs/rank_wait.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"

namespace troupe::progress {
namespace {

std::atomic<std::int64_t> warn_after_ms{20'000};

void warn_and_add(const std::string& key, const std::string& hang) {
  log_warning(hang);
  add_hang(key, hang);
}

void remove_and_log(const std::string& key, const std::string& what) {
  if (remove_hang(key)) log_info(what);
}

}  // namespace

WaitReports wait_reports() {
  return {total_pieces, begin_wait, end_wait, warn_and_add, remove_and_log};
}

std::chrono::milliseconds warn_after() {
  return std::chrono::milliseconds(warn_after_ms.load());
}

void take_warn_after_from_environment() {
  const char* text = std::getenv("TROUPE_TEST_WARN_AFTER_MS");
  if (text == nullptr) return;
  if (const auto value = parse_number<std::int64_t>(text).value_or(0); value > 0)
    warn_after_ms = value;
}

std::string RankWait::over() const {
  return cat("rank ", rank_, advances_words, " in '", what_, "'");
}

RankWait::~RankWait() {
  if (!began_) return;
  reports_.end_wait();
  if (warned_) reports_.remove_hang(key_, over());
}

std::chrono::milliseconds RankWait::look(const std::string& ranks, std::uint64_t progress,
                                         Time now) {
  constexpr std::chrono::seconds after_their_own{2};
  if (!began_) reports_.begin_wait();
  began_ = true;
  next_ = now + period;
  const auto length = stillness_.look(progress, now);
  if (length < warn_after_ + after_their_own) {
    if (warned_) reports_.remove_hang(key_, over());
    warned_ = false;
    return length;
  }
  if (warned_) return length;
  warned_ = true;
  key_ = cat("wait ", ::syscall(SYS_gettid));
  const bool one = !ranks.starts_with("ranks ");
  reports_.add_hang(
      key_, cat(ranks, one ? " has" : " have", hang_words, length.count() / 1000, " s; rank ",
                rank_, " waits for ", one ? "it" : "them", " in '", what_, "'"));
  return length;
}

}  // namespace troupe::progress
