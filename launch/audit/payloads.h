// The payloads of the ledger's segments: each is there, with the hash of its row.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/base/files/file.h"
#include "launch/audit/events.h"
#include "launch/audit/findings.h"

namespace troupe::launch::audit {

class Payloads {
 public:
  /// `run`: its output directory. `findings` outlives it.
  Payloads(std::string run, Findings& findings) : run_(std::move(run)), findings_(findings) {}
  /// All rows in their order, before examine(): segments that were removed.
  void note(const Event& event);
  /// Rows in their order.
  void examine(const Event& event);

 private:
  bool open(std::int64_t segment);
  std::string difference(const Event& event) const;
  static std::string difference_of_samples(const Event& event, std::string_view payload);

  std::string run_;
  Findings& findings_;
  std::set<std::int64_t> removed_, unreadable_;
  std::optional<MappedFile> file_;  ///< of segment_
  std::int64_t segment_ = 0;
};

/// XXH3-128 of a text, 32 hexadecimal digits.
std::string xxh3_of(std::string_view bytes);

}  // namespace troupe::launch::audit
