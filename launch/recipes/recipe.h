// Recipe: all that launch knows of one algorithm, in one file each: its keys, what can be wrong
// with them, its loss in words, the actors that it needs, and how it is run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/data/layouts/sample.h"
#include "launch/config/fields.h"
#include "launch/recipes/judging.h"
#include "launch/recipes/role.h"

namespace troupe::launch {

class RunContext;

/// The score head that an algorithm trains; `labels` 0: it trains a language model.
struct ScoreHeadWanted {
  int labels = 0;
  bool bias = false;
  double deviation =
      0;  ///< a language model gets a fresh head from a normal distribution this wide
};

struct Recipe {
  std::string_view name;     ///< of the algorithm
  std::string_view summary;  ///< one line, for --help and the reference page
  std::vector<std::string_view>
      sections;  ///< of the run file that it reads, besides those that every run does
  std::span<const Field> fields;  ///< the keys of its own section
  engine::data::Purpose rows;     ///< what its data is read for

  RolesNeeded (*roles)(const RunConfig&);
  /// The directory of the model that it compares with, "" the one that training began from;
  /// nullptr: it never compares.
  std::string (*reference)(const RunConfig&);
  /// What is wrong or odd with the keys of its sections together.
  void (*judge)(Judging&);
  /// A few lines: the loss with the run's own numbers in it. algorithms/losses is what they
  /// describe.
  std::string (*formula)(const RunConfig&);
  /// Reads the data, runs the algorithm to its end or until it is stopped, and returns the
  /// process's exit code. Throws Failure.
  int (*run)(RunContext&);
  /// nullptr: a language model is trained.
  ScoreHeadWanted (*head)(const RunConfig&) = nullptr;
  /// Whether its loss's slopes are known before the forward pass, so that logits need not be kept;
  /// nullptr: they are not.
  bool (*grads_known)(const RunConfig&) = nullptr;
};

/// Other defaults for a recipe, by name: an algorithm that is a setting of another (dr_grpo of
/// grpo), or a tool's way to do it (verl). What a file or --set says wins.
struct Preset {
  std::string_view name;
  std::string_view of;  ///< the recipe
  std::string_view summary;
  std::vector<std::pair<std::string_view, std::string_view>> values;  ///< key and YAML value
};

}  // namespace troupe::launch
