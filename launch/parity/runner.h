// PathRunner: a model, or a rank's part of it, with what records its operations.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/parallel/grid.h"
#include "launch/model/model.h"
#include "launch/parity/compare.h"
#include "launch/parity/locate.h"
#include "launch/parity/recorder.h"
#include "launch/parity/settings.h"

namespace troupe::launch::parity {

class PathRunner {
 public:
  /// Loads the model, or `mesh`'s part of it. Throws Failure.
  PathRunner(const Settings& settings, engine::ops::Precision precision,
             const engine::parallel::Mesh* mesh = nullptr);

  model::Model& model() { return *model_; }
  const engine::models::DecoderSpec& spec() const { return model_->spec(); }
  PathInputs inputs(std::span<const Text> texts);

  /// The values of a path. `reference`: those of `score`, absent for that path itself. On one rank
  /// they have log-sum-exps and hidden states.
  PathValues run(const Path& path, std::span<const Text> texts, const PathValues* reference);
  /// Where the last run() of the path, or of `score`, for these texts has other values than a
  /// forward pass; `found` is of text `number` of them. With ParityOptions::locate, on one rank.
  std::optional<Location> locate(const Path& path, std::span<const Text> texts, std::size_t number,
                                 const Difference& found);

 private:
  const Settings& settings_;
  bool alone_;  ///< the rows of operations are those of the whole model
  std::unique_ptr<Recorder> recorder_;
  std::optional<model::Model> model_;
  struct Trail {
    ComputedRows computed;
    std::string score_op;
  };
  std::map<std::string_view, Trail> trails_;  ///< by path
};

}  // namespace troupe::launch::parity
