// A ledger in a folder of its own, and what a reader finds in it.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/database/database.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/ledger/ledger.h"
#include "engine/ledger/segments.h"

namespace troupe::engine::ledger {

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    std::string name = testing::TempDir() + "ledger-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~LedgerTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  OutputFolder output() const { return value_or_throw(OutputFolder::open(folder_)); }
  Result<std::unique_ptr<Ledger>> open(const std::optional<Anchor>& expected = {},
                                       LedgerOptions options = {}) const {
    return Ledger::open(output(), expected, std::move(options));
  }
  static Row sampled(std::int64_t sample) {
    return {.kind = Kind::sampled,
            .samples = {sample},
            .batch = 0,
            .step = {},
            .hash = {},
            .detail = {}};
  }
  static std::string payload_of(std::int64_t sample) {
    return cat("tokens of sample ", sample, std::string(static_cast<std::size_t>(sample), '.'));
  }
  /// Appends samples [first, first + count) with payloads, and waits until they are durable.
  static void append_samples(Ledger& ledger, std::int64_t first, std::int64_t count) {
    std::int64_t last = 0;
    for (std::int64_t sample = first; sample < first + count; ++sample)
      last = value_or_throw(ledger.append(sampled(sample), payload_of(sample)));
    value_or_throw(ledger.wait_durable(last));
  }
  Database database() const {
    return value_or_throw(Database::open(path("ledger.db"), Database::Access::write));
  }
  void edit(const std::string& sql) const { value_or_throw(database().run(sql)); }
  /// The payloads of all rows, each compared with its hash.
  std::vector<std::string> payloads() const {
    auto db = database();
    auto rows = value_or_throw(
        db.prepare("SELECT segment, \"offset\", bytes, hash FROM events WHERE bytes IS NOT NULL "
                   "ORDER BY sequence"));
    std::vector<std::string> out;
    while (value_or_throw(rows.next())) {
      const auto file = value_or_throw(read_file(path("ledger/" + segment_name(rows.integer(0)))));
      const auto size = static_cast<std::size_t>(rows.integer(2));
      out.push_back(file.substr(static_cast<std::size_t>(rows.integer(1)), size));
      EXPECT_EQ(payload_hash(out.back()), rows.text(3));
    }
    return out;
  }

  std::string folder_;
};

}  // namespace troupe::engine::ledger
