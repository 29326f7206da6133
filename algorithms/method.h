// What a training method states about itself, in one settings struct of algorithms/NAME.h that
// methods.h lists: its losses, its keys (each_field) and, if it trains on rows of data, all that a
// run needs. The loss catalog, the sections of the configuration and the recipes of the launcher
// derive from it.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "algorithms/held_out.h"
#include "algorithms/training/plan.h"
#include "engine/data/loader/loader.h"
#include "engine/loss/loss.h"

namespace troupe::algorithms {

/// The losses that a method sends to its trainers.
template <engine::loss::Loss... Ls>
struct LossList {
  static void add_to(engine::loss::LossTable& table) {
    (table.insert(engine::loss::entry<Ls>()), ...);
  }
};

/// `name` is the value of --algorithm and the section of the run file.
template <class M>
concept Method = std::default_initializable<M> && requires(engine::loss::LossTable& table) {
  { M::name } -> std::convertible_to<std::string_view>;
  M::Losses::add_to(table);
};

/// How a method reports settings that contradict each other. Keys are whole: "simpo.gamma".
class SettingsReport {
 public:
  virtual ~SettingsReport() = default;
  /// "train.steps = 0 (run.yaml:7)"
  virtual std::string named(std::string_view key) const = 0;
  /// True if a file, --set or a preset sets the key.
  virtual bool given(std::string_view key) const = 0;
  /// train.batch_size, which a method may restrict.
  virtual std::int64_t batch_size() const = 0;
  /// True if rows are read once, in order (data.stream).
  virtual bool streams() const = 0;
  /// The run is refused.
  virtual void problem(std::string text) = 0;
  virtual void warn(std::string text) = 0;
  /// Warns of a key that the user set and that has no effect, with the reason.
  virtual void unused(std::string_view key, std::string_view why) = 0;
  /// Reports the error of a result, if it is one.
  template <class T>
  void check(const Result<T>& result) {
    if (!result) problem(result.error().what);
  }
};

/// A method that trains on rows of data, and that launch/recipes/recipes.cpp runs as it is. `Row`:
/// an example type of engine/data/layouts/encode.h. `formula`: a few lines, the loss with the run's
/// numbers. batch_of() and train() are functions beside the settings; preference.h has those of
/// methods on pairs. Optional members: `void validate(SettingsReport&) const`; `std::string
/// reference` and `ReferenceSync following`, for a method that compares with a reference model.
template <class M>
concept RowMethod = Method<M> &&
    requires(const M& method, Cluster& cluster, engine::data::Loader<typename M::Row>& data,
             const engine::data::Batch<typename M::Row>& rows, TrainingPlan plan,
             HeldOut held_out) {
  { M::summary } -> std::convertible_to<std::string_view>;
  { method.formula() } -> std::same_as<std::string>;
  { batch_of(method, rows) } -> std::same_as<engine::data::Experience>;
  { train(cluster, data, plan, method, held_out) } -> std::same_as<Task<void>>;
};

}  // namespace troupe::algorithms
