// The items of a run's `reward` that are models: {rule: model, path: DIR} is an outcome reward
// model, {rule: process, path: DIR} a process reward model. The others are rules (sampling.h).
#pragma once

#include <string>
#include <vector>

#include "actors/roles/reward_scoring.h"
#include "launch/config/run_config.h"
#include "launch/recipes/role.h"

namespace troupe::launch {

/// Options of {rule: model}.
struct OutcomeItem {
  enum class Normalize { none, saved, given };
  friend constexpr std::array<std::string_view, 3> names_of(Normalize) {
    return {"none", "saved", "given"};
  }
  std::string path;                       ///< a model directory
  Normalize normalize = Normalize::none;  ///< saved: by "mean" and "std" of the model's
                                          ///< config.json, where OpenRLHF writes them
  double mean = 0, std = 1;               ///< given
  double clip = 0;  ///< rewards are held within -clip and clip, after normalization; 0: not

  static void each_field(auto& self, auto&& field) {
    field("path", self.path), field("normalize", self.normalize), field("mean", self.mean),
        field("std", self.std), field("clip", self.clip);
  }
};

/// Options of {rule: process}.
struct ProcessItem {
  enum class Kind { token_class, placeholder };
  friend constexpr std::array<std::string_view, 2> names_of(Kind) {
    return {"token_class", "placeholder"};
  }
  std::string path;
  Kind kind = Kind::token_class;  ///< as it was trained: prm.kind
  actors::roles::Aggregation aggregation =
      actors::roles::Aggregation::min;  ///< of the steps' probabilities of being right
  std::string separator = "\n";         ///< what ends a step of a completion
  std::string step_end;  ///< what stands behind each step for the model; empty: the separator, or "
                         ///< PLACEHOLDER" and the separator
  int right = 1;         ///< token_class: the label of a right step
  std::string placeholder = "ки";
  std::vector<std::string> reward_tokens{"+", "-"};  ///< placeholder: a right step's first

  static void each_field(auto& self, auto&& field) {
    field("path", self.path), field("kind", self.kind), field("aggregation", self.aggregation),
        field("separator", self.separator);
    field("step_end", self.step_end), field("right", self.right),
        field("placeholder", self.placeholder);
    field("reward_tokens", self.reward_tokens);
  }
};

struct RewardItem {
  std::string label;
  double weight = 1;
  std::variant<OutcomeItem, ProcessItem> options;
  const std::string& path() const {
    return std::visit([](const auto& item) -> const std::string& { return item.path; }, options);
  }
};

bool is_model(const RewardRule& rule);
/// In the order of `reward`. Errc::usage: an unknown option, no path, two of one label, a deviation
/// that is not above 0.
Result<std::vector<RewardItem>> reward_items(const RunConfig& config);

/// Of an algorithm that is rewarded: who is needed for the items of `reward`.
RoleUse verifier_use(const RunConfig& config);
RoleUse reward_use(const RunConfig& config);

}  // namespace troupe::launch
