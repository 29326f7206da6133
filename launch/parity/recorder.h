// Recorder: the rows that the operations of a device have computed, as checksums, and the rows of
// its log-probabilities.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/models/decoder.h"
#include "engine/ops/observed_device.h"
#include "launch/parity/values.h"

namespace troupe::launch::parity {

/// A place in a forward pass: the name of the operation, the width of its rows, and its number
/// among those of the pass that have both. Equal in every pass of a model, whatever its rows.
struct Place {
  std::string op;
  std::int64_t width = 0;
  int number = 0;
  auto operator<=>(const Place&) const = default;
};

/// Checksums of the rows that were computed at each place.
using ComputedRows = std::map<Place, std::unordered_set<std::uint64_t>>;

class Recorder final : public engine::ops::CallObserver {
 public:
  /// `operations`: records the rows of all operations, in 8 bytes each, and not only those of
  /// log-probabilities.
  explicit Recorder(bool operations) : operations_(operations) {}

  /// Passes of this decoder begin with a look-up of its embedding. Call it before the first pass.
  void attach(const engine::models::Decoder& decoder);
  void computed(const engine::ops::ObservedCall& call, engine::ops::Device& device) override;

  /// What was recorded since the last call.
  std::vector<HeadRow> take_head_rows() { return std::exchange(head_rows_, {}); }
  ComputedRows take_computed_rows() { return std::exchange(computed_, {}); }
  /// The last operation that computed log-probabilities.
  const std::string& score_op() const { return score_op_; }

  /// Each operation of the next pass with the checksums of its rows, in their order, until
  /// end_trace().
  struct Step {
    Place place;
    std::size_t block = 0;  ///< block()
    std::vector<std::uint64_t> rows;
  };
  void begin_trace() { tracing_ = true; }
  std::vector<Step> end_trace();
  /// The block of layers of the following operations.
  void block(std::size_t number) { block_ = number; }

 private:
  void record_rows(const engine::ops::ObservedCall& call, engine::ops::Device& device);
  void record_scores(const engine::ops::ObservedCall& call, engine::ops::Device& device);

  /// Identifies memory while it is not freed.
  using Memory = std::pair<const void*, std::size_t>;

  bool operations_, tracing_ = false;
  std::size_t block_ = 0;
  std::int64_t vocabulary_ = 0, width_ = 0;
  Tensor embedding_;
  std::map<std::pair<std::string, std::int64_t>, int> numbers_;  ///< of the current pass
  std::map<Memory, std::vector<std::uint64_t>> states_;          ///< hidden states of logits
  std::vector<HeadRow> head_rows_;
  std::string score_op_;
  ComputedRows computed_;
  std::vector<Step> trace_;
};

}  // namespace troupe::launch::parity
