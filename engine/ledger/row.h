// Rows of the ledger (docs/reliability.md): what happened to a sample, a batch or a checkpoint of a
// run. A row is a change of state of one or more samples. Each has the SHA-256 of the one before it
// and of its own text, so that no row can be changed, removed or inserted unnoticed before the last
// hash that is known from elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::engine::ledger {

enum class Kind {
  started,    ///< the run began, or continued: `step` are the steps that it has
  admitted,   ///< samples are requested for `batch`
  leased,     ///< and given to a rollout, which `detail` names
  sampled,    ///< and complete: `hash` is that of the payload, which has all of the row's
  rewarded,   ///< and have rewards, or failures
  batched,    ///< and are part of the batch that is trained next
  dropped,    ///< or are not trained: `detail` has the reason
  committed,  ///< `step` is complete, and with it `batch` where the run has samples
  published,  ///< weights after `batch` batches were given to others: `hash` is theirs
  saved,      ///< the checkpoint of `step` is complete: `hash` is that of its manifest
  removed     ///< `segment` is removed: its samples are part of two checkpoints
};
constexpr std::array<std::string_view, 11> names_of(Kind) {
  return {"started", "admitted",  "leased",    "sampled", "rewarded", "batched",
          "dropped", "committed", "published", "saved",   "removed"};
}

/// Where a payload is: `bytes` from `offset` on of OUTPUT/ledger/SEGMENT.seg, without its frame.
struct Place {
  std::int64_t segment = 0, offset = 0, bytes = 0;
};

struct Row {
  Kind kind = Kind::started;
  std::vector<std::int64_t> samples;  ///< ids, in the order of the lists in `detail`
  std::optional<std::int64_t> batch, step;
  std::string hash;    ///< 32 hexadecimal digits (XXH3-128), or ""
  std::string detail;  ///< a JSON object, or ""
  std::optional<std::int64_t> segment = {};
  std::optional<Place> place = {};  ///< of the payload; `segment` is then its own
};

/// The hash before the first row.
std::string first_hash();

/// The ids of the samples as a JSON array, "" without samples.
std::string text_of(const std::vector<std::int64_t>& samples);

/// The text that a row's hash covers: sequence, kind, samples, batch, step, hash, detail, segment,
/// offset and bytes, separated by "|"; what is absent is empty. `detail` alone may contain "|":
/// all before it and after it is found by counting.
std::string text_of(std::int64_t sequence, const Row& row);

/// Appends a number as 8 bytes, little-endian.
void append_number(std::string& out, std::uint64_t number);

/// SHA-256 of the hash of the row before, "\n" and the text: 64 hexadecimal digits.
std::string chain_hash(std::string_view before, std::string_view text);

}  // namespace troupe::engine::ledger
