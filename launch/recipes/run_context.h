// RunContext: the interface through which a recipe reads its data, gets its actors and runs its
// algorithm. Implemented by run/algorithm_run.h.
#pragma once

#include "actors/runtime/task.h"
#include "algorithms/training/cluster.h"
#include "algorithms/training/plan.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/data/loader/loader.h"
#include "launch/config/run_config.h"

namespace troupe::launch::recipes {

class RunContext {
 public:
  virtual ~RunContext() = default;
  virtual const config::RunConfig& config() const = 0;
  /// Longest sequence in tokens: train.max_length, or the model's.
  virtual std::int64_t max_length() const = 0;
  /// Encodes text with the policy's tokenizer and chat template.
  virtual const engine::data::TextEncoder& text() const = 0;
  /// The position in the data in the checkpoint that the run resumes from; nullptr: there is none.
  virtual const Json* saved_data() const = 0;
  /// State of the algorithm's controllers in it; null if there is none.
  virtual Json algorithm_state() const = 0;
  virtual engine::data::DataOptions data_options() const = 0;
  /// Options for batches of `batches_of` times train.batch_size rows.
  virtual engine::data::LoaderOptions loader_options(std::int64_t batches_of) const = 0;

  /// The actors that the recipe needs; starts them or waits for them. Throws Failure.
  virtual algorithms::Cluster cluster() = 0;
  /// Starts the journal. `batches`: batches in one run over the loader (0: unlimited); `updates`:
  /// optimizer steps per batch. Throws Failure.
  virtual algorithms::TrainingPlan begin(std::int64_t batches, std::int64_t updates) = 0;
  algorithms::TrainingPlan begin(std::int64_t batches) { return begin(batches, 1); }
  /// Runs the algorithm to its end or until the run is stopped; returns the process's exit code.
  virtual int run(actors::Task<void> algorithm, const algorithms::TrainingPlan& plan) = 0;

  /// Batches of `batches_of` times train.batch_size rows, from the position where the run resumes.
  template <class T>
  engine::data::Loader<T> loader(const engine::data::DataOptions& options,
                                 std::int64_t batches_of = 1) {
    const auto loader = loader_options(batches_of);
    auto out = value_or_throw(engine::data::make_loader<T>(options, text(), loader));
    // The data library has already warned if rows were dropped or truncated.
    const auto& report = out.dataset().report;
    if (!out.streams() && report.bad + report.untrainable + report.truncated == 0)
      log_info(report.text());
    const auto examples = std::ssize(out.dataset().examples);
    if (!out.streams() && out.dataset().sources.size() == 1 && loader.batch_size > examples)
      log_warning(cat("train.batch_size: a batch of ", loader.batch_size, " is more than the ",
                      examples, examples == 1 ? " example" : " examples",
                      " of the data, so a step uses all of them"));
    if (const Json* saved = saved_data()) value_or_throw(out.restore(*saved));
    return out;
  }
};

}  // namespace troupe::launch::recipes
