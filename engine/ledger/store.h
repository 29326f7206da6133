// Store: the rows of a ledger in SQLite. Used by the writing thread only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/base/database/database.h"
#include "engine/ledger/ledger.h"

namespace troupe::engine::ledger {

inline constexpr std::int64_t store_format = 2;

class Store {
 public:
  static Result<Store> open(const OutputFolder& output);

  /// The last row and its hash.
  const Anchor& chain() const { return chain_; }
  const std::string& path() const { return path_; }
  /// Errc::corrupt unless the rows from `from` on continue its hash to the last one.
  Result<> verify(const Anchor& from);
  /// The largest number of a segment that a row has; 0 without one.
  Result<std::int64_t> last_segment();
  /// Segments with payloads, with the last batch of these: those that are kept, or were removed.
  Result<std::map<std::int64_t, std::int64_t>> segments(bool removed);

  Result<> begin();
  /// Adds the next row of the chain; its number is chain().length.
  Result<> insert(const Row& row);
  /// When it returns the rows are durable.
  Result<> commit() { return database_.run("COMMIT"); }
  /// After an error since begin(): the rows since then are none of the chain. The errno value of
  /// the error, if it was one of a file; else 0.
  int roll_back();

 private:
  Store(Database database, Statement insert, std::string path)
      : database_(std::move(database)), insert_(std::move(insert)), path_(std::move(path)) {}
  Result<> read_end();

  Database database_;
  Statement insert_;
  std::string path_;
  Anchor chain_, begun_;  ///< begun_: at begin()
};

}  // namespace troupe::engine::ledger
