#include "launch/audit/audit.h"

#include <cstdio>
#include <set>

#include "engine/base/json/json.h"
#include "launch/audit/checkpoints.h"
#include "launch/audit/events.h"
#include "launch/audit/history.h"
#include "launch/audit/payloads.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::audit {
namespace {

Result<> examine_events(const std::string& run, Findings& findings) {
  auto events = Events::open(run);
  RETURN_IF_ERROR(events);
  const auto checkpoints = read_checkpoints(run, findings);
  std::set<std::int64_t> anchors;
  for (const auto& each : checkpoints) anchors.insert(each.length);
  const auto chain = follow_chain(*events, anchors, findings);
  RETURN_IF_ERROR(chain);
  History history(*chain, findings);
  Payloads payloads(run, findings);
  RETURN_IF_ERROR(events->for_each([&](const Event& event) {
    history.visit(event);
    payloads.note(event);
  }));
  history.finish();
  RETURN_IF_ERROR(events->for_each([&](const Event& event) { payloads.examine(event); }));
  compare_checkpoints(checkpoints, *chain, history, findings);
  compare_samples(run, history, findings);
  return {};
}

}  // namespace

Result<Findings> examine(const std::string& run) {
  Findings findings;
  const auto examined = examine_events(run, findings);
  if (!examined && examined.error().code != Errc::corrupt) return fail(examined);
  if (!examined) findings.add(Damage::chain, examined.error().what);
  return findings;
}

int audit(const AuditOptions& options) {
  const Findings findings = value_or_throw(examine(options.run));
  const std::string text =
      options.json ? findings.to_json(options.run).dump() + "\n" : findings.to_text(options.run);
  std::fputs(text.c_str(), stdout);
  return findings.clean() ? 0 : run::exit_code(Errc::corrupt);
}

}  // namespace troupe::launch::audit
