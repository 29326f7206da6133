#include "engine/ledger/store.h"

#include "engine/base/files/space_wait.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::engine::ledger {
namespace {

// Events of the surviving history: those that no later start has taken back.
constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS events(
  sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, samples TEXT, batch INTEGER, step INTEGER,
  hash TEXT, detail TEXT, segment INTEGER, "offset" INTEGER, bytes INTEGER, chain TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS starts ON events(sequence) WHERE kind = 'started';
CREATE INDEX IF NOT EXISTS removals ON events(segment) WHERE kind = 'removed';
CREATE INDEX IF NOT EXISTS payloads ON events(segment, batch) WHERE bytes IS NOT NULL;
CREATE VIEW IF NOT EXISTS surviving AS SELECT * FROM events e WHERE NOT EXISTS (
  SELECT 1 FROM events s WHERE s.kind = 'started' AND s.sequence > e.sequence
  AND coalesce(json_extract(s.detail, '$.length'), 0) < e.sequence);
CREATE VIEW IF NOT EXISTS samples AS
  SELECT each.value AS sample, max(batch) AS batch,
    CASE WHEN max(kind = 'dropped') THEN 'dropped' WHEN max(kind = 'batched') THEN 'batched'
      WHEN max(kind = 'rewarded') THEN 'rewarded' WHEN max(kind = 'sampled') THEN 'sampled'
      WHEN max(kind = 'leased') THEN 'leased' ELSE 'admitted' END AS state,
    max(CASE WHEN kind = 'sampled'
      THEN json_extract(detail, '$.hashes[' || each.key || ']') END) AS hash,
    max(CASE WHEN kind = 'rewarded'
      THEN json_extract(detail, '$.rewards[' || each.key || ']') END) AS reward
  FROM surviving, json_each(surviving.samples) AS each
  WHERE samples IS NOT NULL GROUP BY each.value;
)";

void bind_optional(Statement& statement, int parameter, const std::optional<std::int64_t>& value) {
  if (value)
    statement.bind(parameter, *value);
  else
    statement.bind_null(parameter);
}

void bind_text(Statement& statement, int parameter, const std::string& value) {
  if (value.empty())
    statement.bind_null(parameter);
  else
    statement.bind(parameter, value);
}

// The text that the hash of a stored row covers; columns are those of the table, in their order.
std::string stored_text(const Statement& row) {
  std::string out = row.text(0);
  for (int column = 1; column <= 9; ++column) out += cat('|', row.text(column));
  return out;
}

// The first column of the first row, "" without one.
Result<std::string> value_of(Database& database, std::string_view sql) {
  auto statement = database.prepare(sql);
  RETURN_IF_ERROR(statement);
  const auto row = statement->next();
  RETURN_IF_ERROR(row);
  return *row ? statement->text(0) : "";
}

Result<std::int64_t> number_of(Database& database, std::string_view sql) {
  const auto text = value_of(database, sql);
  RETURN_IF_ERROR(text);
  if (text->empty()) return 0;
  const auto number = parse_number<std::int64_t>(*text);
  if (!number) return fail(Errc::corrupt, cat(sql, ": expected an integer, found ", quote(*text)));
  return *number;
}

Result<> prepare_database(Database& database, const std::string& path) {
  const auto mode = value_of(database, "PRAGMA journal_mode = WAL");
  RETURN_IF_ERROR(mode);
  if (*mode != "wal")
    return fail(Errc::io,
                cat(path,
                    ": expected a file system on which SQLite can use a "
                    "write-ahead log, found journal mode ",
                    quote(*mode), ": put the output on a local disk, or set ledger to off"));
  RETURN_IF_ERROR(database.run("PRAGMA synchronous = FULL"));
  const auto format = number_of(database, "PRAGMA user_version");
  RETURN_IF_ERROR(format);
  if (*format != 0 && *format != store_format)
    return fail(Errc::unsupported,
                cat(path, ": expected format ", store_format, " of a ledger, found ", *format,
                    "; resume with the version of troupe that wrote it"));
  if (*format == store_format) return {};
  return database.run(
      cat("BEGIN IMMEDIATE;", schema, "PRAGMA user_version = ", store_format, "; COMMIT"));
}

// The same on a disk that may be full for a while.
Result<> prepare_with_space(Database& database, const std::string& path) {
  SpaceWait space(path);
  for (;;) {
    const auto prepared = prepare_database(database, path);
    if (prepared) return {};
    const int code = database.system_error();
    static_cast<void>(database.run("ROLLBACK"));
    if (!space.again(code)) return prepared;
  }
}

}  // namespace

Result<Store> Store::open(const OutputFolder& output) {
  const std::string name(database_name), path = output.path_of(name);
  if (!output.contains(name)) {
    RETURN_IF_ERROR(output.append(name));  // with the permissions of the run's files
    RETURN_IF_ERROR(output.sync());
  }
  auto database = Database::open(path, Database::Access::write);
  RETURN_IF_ERROR(database);
  RETURN_IF_ERROR(prepare_with_space(*database, path));
  auto insert = database->prepare("INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  RETURN_IF_ERROR(insert);
  Store out(std::move(*database), std::move(*insert), path);
  RETURN_IF_ERROR(out.read_end());
  return out;
}

Result<> Store::read_end() {
  auto last =
      database_.prepare("SELECT sequence, chain FROM events ORDER BY sequence DESC LIMIT 1");
  RETURN_IF_ERROR(last);
  const auto row = last->next();
  RETURN_IF_ERROR(row);
  if (*row) chain_ = {last->integer(0), last->text(1)};
  return {};
}

Result<std::int64_t> Store::last_segment() {
  return number_of(database_, "SELECT coalesce(max(segment), 0) FROM events");
}

Result<std::map<std::int64_t, std::int64_t>> Store::segments(bool removed) {
  auto rows = database_.prepare(
      cat("SELECT segment, max(batch) FROM events e WHERE bytes IS NOT NULL AND ",
          removed ? "" : "NOT ",
          "EXISTS (SELECT 1 FROM events r WHERE r.kind = 'removed' AND r.segment = e.segment) "
          "GROUP BY segment"));
  RETURN_IF_ERROR(rows);
  std::map<std::int64_t, std::int64_t> out;
  for (;;) {
    const auto more = rows->next();
    RETURN_IF_ERROR(more);
    if (!*more) return out;
    out[rows->integer(0)] = rows->integer(1);
  }
}

Result<> Store::verify(const Anchor& from) {
  Anchor at;
  if (from.length > 0) {
    auto anchored = database_.prepare("SELECT chain FROM events WHERE sequence = ?");
    RETURN_IF_ERROR(anchored);
    anchored->bind(0, from.length);
    const auto found = anchored->next();
    RETURN_IF_ERROR(found);
    if (!*found)
      return fail(Errc::corrupt,
                  cat(path_, ": expected ", from.length, " rows or more, found ", chain_.length));
    if (anchored->text(0) != from.head)
      return fail(Errc::corrupt, cat(path_, ": row ", from.length, ": expected the hash ",
                                     from.head, ", found ", anchored->text(0)));
    at = from;
  }
  auto rows = database_.prepare("SELECT * FROM events WHERE sequence > ? ORDER BY sequence");
  RETURN_IF_ERROR(rows);
  rows->bind(0, at.length);
  for (;;) {
    const auto more = rows->next();
    RETURN_IF_ERROR(more);
    if (!*more) return {};
    if (rows->integer(0) != at.length + 1)
      return fail(Errc::corrupt, cat(path_, ": row ", at.length + 1, " is missing"));
    at = {at.length + 1, chain_hash(at.head, stored_text(*rows))};
    if (rows->text(10) != at.head)
      return fail(Errc::corrupt, cat(path_, ": row ", at.length, ": expected the hash ", at.head,
                                     " of its content, found ", rows->text(10)));
  }
}

Result<> Store::begin() {
  begun_ = chain_;
  return database_.run("BEGIN IMMEDIATE");
}

int Store::roll_back() {
  const int code = database_.system_error();
  // SQLite has done so itself where it could not continue.
  static_cast<void>(database_.run("ROLLBACK"));
  chain_ = begun_;
  return code;
}

Result<> Store::insert(const Row& row) {
  const Anchor next{chain_.length + 1, chain_hash(chain_.head, text_of(chain_.length + 1, row))};
  insert_.bind(0, next.length);
  insert_.bind(1, name_of(row.kind));
  bind_text(insert_, 2, text_of(row.samples));
  bind_optional(insert_, 3, row.batch);
  bind_optional(insert_, 4, row.step);
  bind_text(insert_, 5, row.hash);
  bind_text(insert_, 6, row.detail);
  bind_optional(insert_, 7, row.place ? std::optional(row.place->segment) : row.segment);
  bind_optional(insert_, 8, row.place ? std::optional(row.place->offset) : std::nullopt);
  bind_optional(insert_, 9, row.place ? std::optional(row.place->bytes) : std::nullopt);
  insert_.bind(10, next.head);
  RETURN_IF_ERROR(insert_.run());
  chain_ = next;
  return {};
}

}  // namespace troupe::engine::ledger
