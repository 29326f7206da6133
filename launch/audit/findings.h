// Findings of an audit: how much was examined, and what is wrong.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/base/text/terminal_text.h"

namespace troupe::launch::audit {

enum class Damage {
  chain,       ///< a row that was changed, removed or inserted, or a cut ledger
  lost,        ///< a sample or step without a part of its record
  duplicated,  ///< a sample that was trained or sampled more than once
  stale,       ///< a sample of weights that are too old for its batch, or not made yet
  payload,     ///< a segment that is damaged or gone
  weights,     ///< weights that are not those that were recorded
  checkpoint,  ///< a checkpoint that is damaged, or another than was recorded
  samples      ///< lines of samples.jsonl that are not those of the batch
};
constexpr std::array<std::string_view, 8> names_of(Damage) {
  return {"chain", "lost", "duplicated", "stale", "payload", "weights", "checkpoint", "samples"};
}

class Findings {
 public:
  /// Sentences that are kept of each kind; all are counted.
  static constexpr std::size_t kept = 20;

  void add(Damage kind, std::string_view what) {
    const auto index = static_cast<std::size_t>(kind);
    // It may have text of a damaged file.
    if (counts_[index]++ < kept) texts_[index].push_back(for_terminal(what));
  }
  std::size_t count(Damage kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  const std::vector<std::string>& texts(Damage kind) const {
    return texts_[static_cast<std::size_t>(kind)];
  }
  bool clean() const {
    for (const std::size_t count : counts_)
      if (count > 0) return false;
    return true;
  }

  std::int64_t rows = 0, first_step = 0, last_step = 0, batches = 0;
  std::int64_t trained = 0;   ///< samples of complete batches
  std::int64_t dropped = 0;   ///< samples with a reason
  std::int64_t open = 0;      ///< samples of batches that are not complete
  std::int64_t payloads = 0;  ///< whose hashes were computed; those of removed segments cannot be
  std::int64_t removed = 0;   ///< payloads of removed segments
  std::int64_t checkpoints = 0, weights = 0;  ///< compared
  std::int64_t logged = 0;                    ///< lines of samples.jsonl

  Json to_json(const std::string& run) const;
  std::string to_text(const std::string& run) const;

 private:
  std::array<std::size_t, 8> counts_{};
  std::array<std::vector<std::string>, 8> texts_;
};

}  // namespace troupe::launch::audit
