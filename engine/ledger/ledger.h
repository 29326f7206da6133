// Ledger: the durable record of a run, OUTPUT/ledger.db (SQLite) and OUTPUT/ledger/*.seg. Rows are
// appended by one thread and written behind it by another, many in one transaction; what may not
// be told to anybody before it is durable waits for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/files/output_folder.h"
#include "engine/ledger/row.h"

namespace troupe::engine::ledger {

inline constexpr std::string_view database_name = "ledger.db";

/// The chain at a moment: its rows and the hash of the last of them.
struct Anchor {
  std::int64_t length = 0;
  std::string head = first_hash();
};

struct LedgerOptions {
  /// Rows that nobody waits for are written after this time, or when there are many.
  std::chrono::milliseconds delay{200};
  std::int64_t rows = 4096;                    ///< that are many
  std::int64_t bytes = std::int64_t{8} << 20;  ///< of payloads that are many
  /// Longest time of wait_durable(), and of append() while 8 times as many bytes wait.
  std::chrono::seconds timeout{300};
  /// Called with the name of each operation on files before it, in the writing thread; an error
  /// makes it fail. For tests.
  std::function<Result<>(std::string_view operation)> before = {};
};

struct LedgerCounts {
  std::int64_t rows = 0;   ///< that are durable, of this process
  std::int64_t syncs = 0;  ///< fsync and fdatasync of segments, and transactions
  std::int64_t waits = 0;  ///< calls of wait_durable() that waited
  double waited = 0;       ///< seconds in them
};

class Ledger {
 public:
  /// Opens or creates the ledger of an output directory whose lock is held. `expected`: the anchor
  /// of the checkpoint that the run resumes from. Verifies it, and the chain of the rows behind it.
  /// Errc::corrupt: the ledger is damaged or has fewer rows; unsupported: another format; io.
  static Result<std::unique_ptr<Ledger>> open(const OutputFolder& output,
                                              const std::optional<Anchor>& expected,
                                              LedgerOptions options = {});
  virtual ~Ledger() = default;

  /// Appends a row and returns its sequence, which counts from 1. With a payload, row.place and
  /// row.hash are set. The first error of the writing thread, which every later call returns.
  virtual Result<std::int64_t> append(Row row, std::string payload = {}) = 0;
  /// Returns when the row and all before it are durable.
  virtual Result<> wait_durable(std::int64_t sequence) = 0;
  /// Waits for all rows; the chain with them.
  virtual Result<Anchor> anchor() = 0;

  /// The segment that the next payload is written to; start_segment() begins another, unless the
  /// present one is empty.
  virtual std::int64_t segment() const = 0;
  virtual void start_segment() = 0;
  /// Appends a `removed` row and removes the segment when that is durable.
  virtual Result<> remove_segment(std::int64_t segment) = 0;

  /// Segments that were not removed when it was opened, with the last batch of their samples.
  virtual std::map<std::int64_t, std::int64_t> kept_segments() const = 0;

  virtual LedgerCounts counts() const = 0;
};

}  // namespace troupe::engine::ledger
