#include "launch/run/ledger.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/run/recorded_samples.h"

namespace troupe::launch::run {

using engine::ledger::Anchor, engine::ledger::Ledger, engine::ledger::LedgerCounts;

std::optional<Anchor> ledger_anchor(const Session& session) {
  if (!session.resumes_in_output()) return std::nullopt;
  const auto anchor = anchor_of(session.resume_from());
  if (!anchor) return std::nullopt;
  if (session.folder().contains(std::string(engine::ledger::database_name))) return anchor;
  log_warning(cat(session.config().output, ": expected ", engine::ledger::database_name,
                  " with the ", anchor->length, " rows that it had when checkpoint-",
                  session.done(),
                  " was saved, found none: a new ledger begins here, and `troupe "
                  "audit` cannot examine the steps before"));
  return std::nullopt;
}

std::unique_ptr<Ledger> open_ledger(const Session& session, const std::optional<Anchor>& anchor) {
  engine::ledger::LedgerOptions options;
  // A full disk is waited for within it.
  options.timeout += std::chrono::seconds(std::llround(session.config().recovery.disk_wait));
  return value_or_throw(Ledger::open(session.folder(), anchor, std::move(options)));
}

Json ledger_header(const config::RunConfig& config) {
  return Json::Object{{"algorithm", config.algorithm},
                      {"mode", name_of(config.async.mode)},
                      {"eta", config.async.on() ? config.async.eta : 0},
                      {"seed", config.train.seed},
                      {"external", config.rollout.source == config::SampleSource::service}};
}

std::function<algorithms::Metrics()> ledger_times(const algorithms::SampleLedger& ledger) {
  return [&ledger, before = LedgerCounts()]() mutable {
    const LedgerCounts now = ledger.counts();
    const LedgerCounts last = std::exchange(before, now);
    return algorithms::Metrics{{"ledger/rows", static_cast<double>(now.rows - last.rows)},
                               {"ledger/syncs", static_cast<double>(now.syncs - last.syncs)},
                               {"ledger/waits", static_cast<double>(now.waits - last.waits)},
                               {"ledger/waited", now.waited - last.waited}};
  };
}

}  // namespace troupe::launch::run
