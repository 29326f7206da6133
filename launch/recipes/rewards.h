// The items of a run's `reward` that are models: {rule: model, path: DIR} is an outcome reward
// model, {rule: process, path: DIR} a process reward model. The others are rules (sampling.h).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "actors/roles/reward_scoring.h"
#include "launch/config/run_config.h"
#include "launch/recipes/role.h"

namespace troupe::launch::recipes {

/// Normalization of rewards: by the mean and std that OpenRLHF writes to the model's config.json
/// (saved), or by those of the rule (given).
enum class RewardNormalization { none, saved, given };
constexpr std::array<std::string_view, 3> names_of(RewardNormalization) {
  return {"none", "saved", "given"};
}

/// Options of {rule: model}.
struct OutcomeItem {
  std::string path;  ///< a model directory
  RewardNormalization normalize = RewardNormalization::none;
  double mean = 0, std = 1;  ///< given
  double clip = 0;           ///< clip rewards to plus or minus this after normalization; 0: off

  static void each_field(auto& self, auto&& field) {
    field("path", self.path);
    field("normalize", self.normalize);
    field("mean", self.mean);
    field("std", self.std);
    field("clip", self.clip);
  }
};

/// Options of {rule: process}.
struct ProcessItem {
  std::string path;
  algorithms::PrmKind kind = algorithms::PrmKind::token_class;  ///< prm.kind of its training run
  /// Aggregation of the probabilities that steps are correct.
  actors::roles::Aggregation aggregation = actors::roles::Aggregation::min;
  std::string separator = "\n";  ///< end of a step of a completion
  /// Text after each step for the model; empty: the separator, or " PLACEHOLDER" and the separator.
  std::string step_end;
  int right = 1;  ///< token_class: label of a correct step
  std::string placeholder = "ки";
  /// placeholder: reward tokens, that of a correct step first.
  std::vector<std::string> reward_tokens{"+", "-"};

  static void each_field(auto& self, auto&& field) {
    field("path", self.path);
    field("kind", self.kind);
    field("aggregation", self.aggregation);
    field("separator", self.separator);
    field("step_end", self.step_end);
    field("right", self.right);
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

/// The rules that are models.
inline constexpr std::array<std::string_view, 2> model_rules{"model", "process"};
bool is_model(const config::RewardRule& rule);
/// Returns the items in the order of `reward`. Errc::usage for an unknown option, a missing path, a
/// repeated label, a standard deviation that is not above 0.
Result<std::vector<RewardItem>> reward_items(const config::RunConfig& config);

/// Roles needed for the items of `reward`.
RoleUse verifier_use(const config::RunConfig& config);
RoleUse reward_use(const config::RunConfig& config);

}  // namespace troupe::launch::recipes
