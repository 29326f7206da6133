// Recipe: what launch knows of one algorithm: the sections that it reads, how they are validated,
// its loss as a formula, the actors that it needs, and how it runs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/data/layouts/sample.h"
#include "launch/recipes/role.h"
#include "launch/recipes/run_context.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

/// The score head that an algorithm trains; `labels` 0: it trains a language model.
struct ScoreHeadSpec {
  int labels = 0;
  bool bias = false;
  double init_std = 0;  ///< of the weights of a new head
};

/// What an algorithm makes of its rows.
struct RowUse {
  std::int64_t batches = 1;  ///< batches of train.batch_size rows that it reads at a time
  std::int64_t updates = 1;  ///< optimizer steps that it makes with them
  std::int64_t samples = 0;  ///< completions that it samples for each row
};

struct Recipe {
  std::string_view name;     ///< of the algorithm
  std::string_view summary;  ///< one line, for --help and the reference page
  /// Sections of the run file that it reads, besides those that every run reads.
  std::vector<std::string_view> sections;
  engine::data::Purpose rows;  ///< what the data is read for
  /// Layout of rows without data.format; automatic: detected.
  engine::data::Layout layout = engine::data::Layout::automatic;

  RolesNeeded (*roles)(const config::RunConfig&) = [](const config::RunConfig&) {
    return RolesNeeded{};
  };
  /// Completes the options with which the rows are read. Throws Failure.
  void (*prepare_rows)(const config::RunConfig&, const engine::data::TextEncoder&,
                       engine::data::DataOptions&) = [](const auto&, const auto&, auto&) {};
  RowUse (*row_use)(const config::RunConfig&) = [](const config::RunConfig&) { return RowUse{}; };
  /// Reports problems and warnings of its sections.
  void (*validate)(Validation&);
  /// A few lines: the loss with the run's numbers. algorithms/losses computes it.
  std::string (*formula)(const config::RunConfig&);
  /// Reads the data and runs the algorithm until it ends or is stopped. Returns the exit code of
  /// the process. Throws Failure.
  int (*run)(RunContext&);
  /// The directory of the reference model, "" for the initial weights; nullptr: no reference.
  std::string (*reference)(const config::RunConfig&) = nullptr;
  /// nullptr: trains a language model.
  ScoreHeadSpec (*head)(const config::RunConfig&) = nullptr;
  /// True if the gradient of the loss does not depend on the model's output, so that logits need
  /// not be kept; nullptr: false.
  bool (*grads_known)(const config::RunConfig&) = nullptr;
};

/// Other defaults for a recipe, by name: an algorithm that is a setting of another (dr_grpo of
/// grpo), or the defaults of another tool (verl). A file and --set override them.
struct Preset {
  std::string_view name;
  std::string_view of;  ///< the recipe
  std::string_view summary;
  std::vector<std::pair<std::string_view, std::string_view>> values;  ///< key and YAML value
};

}  // namespace troupe::launch::recipes
