#include "launch/audit/events.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "engine/base/json/json.h"
#include "engine/base/random/sha256.h"
#include "engine/base/text/text.h"

namespace troupe::launch::audit {
namespace {

constexpr std::int64_t known_format = 2;

std::optional<std::int64_t> optional_integer(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(row.integer(column));
}

Event event_of(const Statement& row) {
  return {.sequence = row.integer(0),
          .kind = row.text(1),
          .samples = row.text(2),
          .batch = optional_integer(row, 3),
          .step = optional_integer(row, 4),
          .hash = row.text(5),
          .detail = row.text(6),
          .segment = optional_integer(row, 7),
          .offset = optional_integer(row, 8),
          .bytes = optional_integer(row, 9),
          .chain = row.text(10)};
}

std::string field(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : std::string();
}

std::string sha256_of(const std::string& text) {
  Sha256 sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.finish();
}

// What docs/reliability.md says that the hash of a row covers.
std::string hash_of(const std::string& before, const Event& event) {
  return sha256_of(
      before + "\n" +
      join(std::vector<std::string>{std::to_string(event.sequence), event.kind, event.samples,
                                    field(event.batch), field(event.step), event.hash, event.detail,
                                    field(event.segment), field(event.offset), field(event.bytes)},
           "|"));
}

}  // namespace

Result<Events> Events::open(const std::string& run) {
  const std::string path = run + "/ledger.db";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(Errc::not_found, cat(path,
                                     ": expected the ledger of a run, found none; a run "
                                     "writes it unless ledger is off"));
  auto database = Database::open(path, Database::Access::read);
  RETURN_IF_ERROR(database);
  RETURN_IF_ERROR(database->run("BEGIN"));  // one state of a database that is written
  auto format = database->prepare("PRAGMA user_version");
  RETURN_IF_ERROR(format);
  RETURN_IF_ERROR(format->next());
  const bool begun = format->integer(0) != 0;  // else the run was killed before its first row
  if (begun && format->integer(0) != known_format)
    return fail(Errc::unsupported, cat(path, ": expected format ", known_format,
                                       " of a ledger, found ", format->integer(0)));
  return Events(std::move(*database), path, begun);
}

Result<> Events::for_each(const std::function<void(const Event&)>& visit) {
  if (!begun_) return {};
  auto rows = database_.prepare(
      "SELECT sequence, kind, samples, batch, step, hash, detail, segment, \"offset\", bytes, "
      "chain "
      "FROM events ORDER BY sequence");
  RETURN_IF_ERROR(rows);
  for (;;) {
    const auto more = rows->next();
    RETURN_IF_ERROR(more);
    if (!*more) return {};
    visit(event_of(*rows));
  }
}

bool Chain::survives(std::int64_t sequence) const {
  return std::ranges::none_of(starts, [&](const Start& start) {
    return start.sequence > sequence && start.kept < sequence;
  });
}

std::optional<std::vector<std::int64_t>> samples_of(const Event& event) {
  std::vector<std::int64_t> ids;
  if (event.samples.empty()) return ids;
  const auto list = parse_json(event.samples, "samples");
  if (!list || !list->is_array()) return std::nullopt;
  for (const Json& id : list->array()) {
    if (!id.is_integer()) return std::nullopt;
    ids.push_back(id.integer());
  }
  return ids;
}

Json detail_of(const Event& event) {
  if (event.detail.empty()) return {};
  auto detail = parse_json(event.detail, "detail");
  return detail ? std::move(*detail) : Json();
}

Json element_of(const Json& object, std::string_view list, std::size_t index) {
  const Json* found = object.find(list);
  if (!found || !found->is_array() || index >= found->array().size()) return {};
  return found->array()[index];
}

Json member_of(const Event& event, std::string_view name) {
  const Json detail = detail_of(event);
  const Json* found = detail.find(name);
  return found ? *found : Json();
}

Result<Chain> follow_chain(Events& events, const std::set<std::int64_t>& wanted,
                           Findings& findings) {
  Chain chain;
  std::int64_t expected = 1;
  std::string before(64, '0');
  RETURN_IF_ERROR(events.for_each([&](const Event& event) {
    ++findings.rows;
    if (event.sequence != expected)
      findings.add(Damage::chain,
                   cat("rows ", expected, " to ", event.sequence - 1, " are missing"));
    const std::string hash = hash_of(before, event);
    if (hash != event.chain)
      findings.add(Damage::chain,
                   cat("row ", event.sequence, " (", event.kind, "): expected the hash ", hash,
                       " of its content and of the row before, found ", event.chain));
    before = event.chain;  // so that one change is one finding
    expected = event.sequence + 1;
    if (wanted.contains(event.sequence)) chain.heads[event.sequence] = event.chain;
    if (event.kind != "started") return;
    const Json kept = member_of(event, "length");
    chain.starts.push_back({event.sequence, kept.is_integer() ? kept.integer() : 0});
  }));
  if (findings.rows > 0 && (chain.starts.empty() || chain.starts.front().sequence != 1))
    findings.add(Damage::chain, "the first row is not the start of a run");
  return chain;
}

}  // namespace troupe::launch::audit
