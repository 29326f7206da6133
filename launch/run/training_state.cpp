#include "launch/run/training_state.h"

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::launch::run {
namespace {

using engine::train::LossScale, engine::train::TrainerState;

constexpr const char *algorithm_key = "algorithm", *name_key = "name", *state_key = "state",
                     *data_key = "data", *selection_key = "selection", *batches_key = "batches",
                     *round_key = "round_start", *finished_key = "finished_samples",
                     *versions_key = "versions";

std::int64_t integer_or(const Json& state, const char* key, std::int64_t otherwise) {
  const Json* found = state.find(key);
  return found && found->is_integer() ? found->integer() : otherwise;
}

std::optional<Json> copy_of(const Json& state, const char* key) {
  const Json* found = state.find(key);
  return found ? std::optional(*found) : std::nullopt;
}

// A count of the trainer; one that equals the step is absent. Written as a number with a fraction.
Result<> read_trainer_field(const Json& state, const char* key, const std::string& where,
                            std::int64_t& count) {
  if (!state.find(key)) return {};
  const auto number = get_number(state, key, where);
  RETURN_IF_ERROR(number);
  if (!(*number >= 0 && *number <= 9007199254740992.0))
    return fail(Errc::corrupt,
                cat(where, ": ", key, ": expected a count, found ", to_text(*number)));
  count = static_cast<std::int64_t>(*number);
  return {};
}

// Numbers that are absent are 0.
template <class S>
Result<> read_trainer_field(const Json& state, const char* key, const std::string&,
                            std::optional<S>& part) {
  const Json* stored = state.find(key);
  if (!stored) return {};
  S::each_field(part.emplace(), [&](const char* name, auto& value) {
    const Json* number = stored->find(name);
    if (number && number->is_number())
      value = static_cast<std::remove_reference_t<decltype(value)>>(number->number());
  });
  return {};
}

void write_trainer_field(Json& out, const char* key, std::int64_t step, std::int64_t count) {
  if (count != step) out.set(key, static_cast<double>(count));
}

template <class S>
void write_trainer_field(Json& out, const char* key, std::int64_t, const std::optional<S>& part) {
  if (part) out.set(key, fields_to_json(*part));
}

}  // namespace

TrainingState::TrainingState(std::int64_t at, const std::string& method,
                             const actors::protocol::RunState& run)
    : step(at),
      algorithm{method, run.algorithm},
      data(run.data),
      round_start(run.round_start),
      finished(static_cast<std::int64_t>(run.finished)),
      versions(run.versions) {
  if (!run.selection.is_null()) selection = run.selection;
  if (run.batches > 0) batches = run.batches;
}

Result<TrainingState> TrainingState::from(const engine::checkpoint::SavedState& saved) {
  const Json& state = saved.state;
  TrainingState out;
  out.step = out.trainer.updates = saved.step;
  if (const Json* algorithm = state.find(algorithm_key)) {
    if (const Json* name = algorithm->find(name_key)) out.algorithm.name = *name;
    if (const Json* own = algorithm->find(state_key)) out.algorithm.state = *own;
  }
  out.data = copy_of(state, data_key);
  out.selection = copy_of(state, selection_key);
  if (state.find(batches_key)) {
    const auto batches = get_integer(state, batches_key, saved.file);
    RETURN_IF_ERROR(batches);
    out.batches = *batches;
  }
  out.round_start = integer_or(state, round_key, -1);
  out.finished = integer_or(state, finished_key, 0);
  if (const Json* versions = state.find(versions_key); versions && versions->is_array())
    for (const Json& each : versions->array())
      if (each.is_integer()) out.versions.push_back(static_cast<std::uint64_t>(each.integer()));
  auto identity = engine::checkpoint::identity_in(state, saved.file);
  RETURN_IF_ERROR(identity);
  out.identity = std::move(*identity);
  Result<> read;
  TrainerState::each_field(out.trainer, [&](const char* key, auto& value) {
    if (read) read = read_trainer_field(state, key, saved.file, value);
  });
  RETURN_IF_ERROR(read);
  return out;
}

Json TrainingState::to_json() const {
  Json out = Json::Object{};
  out.set(algorithm_key, Json::Object{{name_key, algorithm.name}, {state_key, algorithm.state}});
  if (data) out.set(data_key, *data);
  if (selection) out.set(selection_key, *selection);
  if (batches) out.set(batches_key, *batches);
  if (round_start >= 0) out.set(round_key, round_start);
  if (finished > 0) out.set(finished_key, finished);
  if (!versions.empty()) {
    const Json::Array list(versions.begin(), versions.end());
    out.set(versions_key, list);
  }
  if (identity) out.set(engine::checkpoint::identity_key, identity->to_json());
  TrainerState::each_field(trainer, [&](const char* key, const auto& value) {
    write_trainer_field(out, key, step, value);
  });
  return out;
}

}  // namespace troupe::launch::run
