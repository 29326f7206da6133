#include "engine/ledger/stored_samples.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/database/database.h"
#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/ledger/segments.h"

namespace troupe::engine::ledger {
namespace {

// Of the surviving rows up to `?1`, of batches from `?2` on.
constexpr const char* select_sampled = R"(
SELECT samples, batch, detail, segment, "offset", bytes, hash, sequence FROM events e
WHERE kind = 'sampled' AND sequence <= ?1 AND batch >= ?2 AND NOT EXISTS (
  SELECT 1 FROM events s WHERE s.kind = 'started' AND s.sequence > e.sequence AND s.sequence <= ?1
  AND coalesce(json_extract(s.detail, '$.length'), 0) < e.sequence)
ORDER BY sequence)";

// What follows a row that is no longer what was written.
tl::unexpected<Error> damaged(const std::string& path, std::int64_t row, std::string_view what) {
  return fail(Errc::corrupt, cat(path, ": row ", row, ": ", what,
                                 "; `troupe audit` lists the damage of a ledger"));
}

Result<> check_anchor(Database& database, const std::string& path, const Anchor& until) {
  auto row = database.prepare("SELECT chain FROM events WHERE sequence = ?");
  RETURN_IF_ERROR(row);
  row->bind(0, until.length);
  const auto found = row->next();
  RETURN_IF_ERROR(found);
  if (!*found) return fail(Errc::corrupt, cat(path, ": expected ", until.length, " rows or more"));
  if (row->text(0) == until.head) return {};
  return damaged(path, until.length,
                 cat("expected the hash ", until.head, ", found ", row->text(0)));
}

class Reader {
 public:
  Reader(std::string output, Database database)
      : output_(std::move(output)),
        path_(cat(output_, "/", database_name)),
        database_(std::move(database)) {}

  Result<> read_removed() {
    auto rows = database_.prepare("SELECT segment FROM events WHERE kind = 'removed'");
    RETURN_IF_ERROR(rows);
    for (;;) {
      const auto more = rows->next();
      RETURN_IF_ERROR(more);
      if (!*more) return {};
      removed_.insert(rows->integer(0));
    }
  }

  Result<> read(const Anchor& until, std::int64_t first_batch) {
    RETURN_IF_ERROR(check_anchor(database_, path_, until));
    auto rows = database_.prepare(select_sampled);
    RETURN_IF_ERROR(rows);
    rows->bind(0, until.length);
    rows->bind(1, first_batch);
    for (;;) {
      const auto more = rows->next();
      RETURN_IF_ERROR(more);
      if (!*more) return {};
      RETURN_IF_ERROR(take(*rows));
    }
  }

  StoredSamples result() {
    StoredSamples out;
    for (const auto& key : gone_) out.removed += !payloads_.contains(key);
    for (auto& [key, payload] : payloads_)
      out.samples.push_back({key.first, key.second, std::move(payload)});
    return out;
  }

 private:
  Result<> take(const Statement& row) {
    const std::int64_t sequence = row.integer(7);
    const auto ids = parse_json(row.text(0), "samples"), detail = parse_json(row.text(2), "detail");
    const Json* sizes = detail ? detail->find("bytes") : nullptr;
    if (!ids || !ids->is_array() || !sizes || !sizes->is_array() ||
        sizes->array().size() != ids->array().size())
      return damaged(path_, sequence, "expected as many `bytes` in `detail` as `samples`");
    const bool gone = removed_.contains(row.integer(3));
    const auto payload = gone ? Result<std::string>() : payload_at(row);
    RETURN_IF_ERROR(payload);
    std::string_view rest = *payload;
    for (std::size_t n = 0; n < ids->array().size(); ++n) {
      const Json &id = ids->array()[n], &size = sizes->array()[n];
      if (gone && id.is_integer()) {
        gone_.insert({row.integer(1), id.integer()});
        continue;
      }
      if (!id.is_integer() || !size.is_integer() || size.integer() < 0 ||
          std::cmp_greater(size.integer(), rest.size()))
        return damaged(path_, sequence, "expected ids and sizes within the payload");
      const auto bytes = static_cast<std::size_t>(size.integer());
      payloads_[{row.integer(1), id.integer()}] = std::string(rest.substr(0, bytes));
      rest.remove_prefix(bytes);
    }
    return {};
  }

  Result<std::string> payload_at(const Statement& row) {
    const std::int64_t segment = row.integer(3), offset = row.integer(4), bytes = row.integer(5);
    const std::string path = cat(output_, "/", segments_folder, "/", segment_name(segment));
    if (segment != segment_ || !file_) {
      auto file = MappedFile::open(path);
      if (!file) return damaged(path_, row.integer(7), file.error().what);
      file_.emplace(std::move(*file));
      segment_ = segment;
    }
    const auto all = file_->bytes();
    if (offset < 0 || bytes < 0 || std::cmp_greater(offset, all.size()) ||
        std::cmp_greater(bytes, all.size() - static_cast<std::size_t>(offset)))
      return damaged(
          path, row.integer(7),
          cat("expected ", bytes, " bytes from ", offset, " on, found a file of ", all.size()));
    std::string out(reinterpret_cast<const char*>(all.data()) + offset,
                    static_cast<std::size_t>(bytes));
    if (const std::string found = payload_hash(out); found != row.text(6))
      return damaged(path, row.integer(7),
                     cat("expected a payload with the hash ", row.text(6), ", found ", found));
    return out;
  }

  std::string output_, path_;
  Database database_;
  using Key = std::pair<std::int64_t, std::int64_t>;  // batch and id
  std::set<std::int64_t> removed_;                    // segments
  std::set<Key> gone_;                                // samples that were in these
  std::map<Key, std::string> payloads_;
  std::optional<MappedFile> file_;  // of segment_
  std::int64_t segment_ = 0;
};

}  // namespace

Result<StoredSamples> read_samples(const std::string& output, const Anchor& until,
                                   std::int64_t first_batch) {
  const std::string path = cat(output, "/", database_name);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(Errc::not_found, cat(path, ": expected the ledger of a run, found none"));
  auto database = Database::open(path, Database::Access::read);
  RETURN_IF_ERROR(database);
  RETURN_IF_ERROR(database->run("BEGIN"));  // one state of it
  Reader reader(output, std::move(*database));
  RETURN_IF_ERROR(reader.read_removed());
  RETURN_IF_ERROR(reader.read(until, first_batch));
  return reader.result();
}

}  // namespace troupe::engine::ledger
