// TrainingState: what a checkpoint of a run has in training/state.json. The only place that reads
// and writes its keys; those of the trainer are named in engine/train/trainer_state.h, that of the
// identity in engine/checkpoint/identity.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/train.h"
#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/identity.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/train/trainer_state.h"

namespace troupe::launch::run {

struct AlgorithmState {
  Json name;   ///< of the run's algorithm, a text; null: a model that is not trained
  Json state;  ///< of its controllers, an object, or null
};

struct TrainingState {
  std::int64_t step = 0;
  AlgorithmState algorithm;
  std::optional<Json> data;             ///< position in it
  std::optional<Json> selection;        ///< best values of the evaluations
  std::optional<std::int64_t> batches;  ///< of samples; absent: the checkpoint has no count
  std::int64_t round_start = -1;        ///< actors::protocol::RunState
  std::int64_t finished = 0;
  std::vector<std::uint64_t> versions;
  std::optional<engine::checkpoint::Identity> identity;
  engine::train::TrainerState trainer;

  TrainingState() = default;
  /// The state that a run of `algorithm` saves at `step`, without the trainer's and the identity.
  TrainingState(std::int64_t step, const std::string& algorithm,
                const actors::protocol::RunState& run);

  /// Errc::bad_input, corrupt: a value of another type. Keys that an earlier version did not write
  /// may be absent.
  static Result<TrainingState> from(const engine::checkpoint::SavedState& saved);
  /// The member "state" of the file.
  Json to_json() const;

  bool is_of(const std::string& algorithm_name) const {
    return algorithm.name == Json(algorithm_name);
  }
};

}  // namespace troupe::launch::run
