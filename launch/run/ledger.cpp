#include "launch/run/ledger.h"

#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/write_checkpoint.h"

namespace troupe::launch::run {

using engine::ledger::Anchor, engine::ledger::Ledger, engine::ledger::LedgerCounts;

std::optional<Anchor> ledger_anchor(const Session& session) {
  if (!session.resumes_in_output()) return std::nullopt;
  const std::string path = cat(session.resume_from(), "/", engine::checkpoint::journal_file);
  const auto journal = read_json(path);
  const Json* stored = journal ? journal->find("ledger") : nullptr;
  if (!stored) return std::nullopt;
  Anchor anchor;
  anchor.length = value_or_throw(get_integer(*stored, "length", path));
  anchor.head = value_or_throw(get_string(*stored, "head", path));
  if (session.folder().contains(std::string(engine::ledger::database_name))) return anchor;
  log_warning(cat(session.config().output, ": expected ", engine::ledger::database_name,
                  " with the ", anchor.length, " rows that it had when checkpoint-", session.done(),
                  " was saved, found none: a new ledger begins here, and `troupe "
                  "audit` cannot examine the steps before"));
  return std::nullopt;
}

std::unique_ptr<Ledger> open_ledger(const Session& session, const std::optional<Anchor>& anchor) {
  return value_or_throw(Ledger::open(session.folder(), anchor));
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
