#include "launch/recipes/rewards/orm.h"

#include <algorithm>

#include "algorithms/reward_model.h"
#include "engine/base/text.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/run_context.h"
#include "launch/recipes/valid_loss.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"orm.loss", [](RunConfig& c) { return Slot(&c.orm.loss); },
     "bradley_terry: - log sigmoid(s_w - s_l - margin), with the rows' margins where they have one "
     "(TRL, OpenRLHF, MindSpeed); log_exp: "
     "log(1 + exp(s_l - s_w)), which knows no margin (OpenRLHF)",
     "bradley_terry|log_exp", any},
    {"orm.center_rewards_coefficient",
     [](RunConfig& c) { return Slot(&c.orm.center_rewards_coefficient); },
     "weight of (s_w + s_l)^2, which keeps scores around 0; 0.01 is usual, 0: none", "",
     at_least_0},
    {"orm.head_deviation", [](RunConfig& c) { return Slot(&c.orm.head_deviation); },
     "the score head that a language model gets at the start is drawn from a normal distribution "
     "this wide; 0: zeros",
     "", at_least_0},
};

RolesNeeded roles(const RunConfig&) {
  return {};
}

ScoreHeadWanted head(const RunConfig& config) {
  return {.labels = 1, .bias = false, .deviation = config.orm.head_deviation};
}

void judge(Judging& j) {
  judge_eval(j);
}

std::string formula(const RunConfig& config) {
  const OrmConfig& o = config.orm;
  const std::string center =
      o.center_rewards_coefficient > 0
          ? cat(" + ", to_text(o.center_rewards_coefficient), " (s_w + s_l)^2")
          : "";
  return cat("L = mean over pairs of ",
             o.loss == "log_exp" ? "log(1 + exp(s_l - s_w))" : "- log sigmoid(s_w - s_l - margin)",
             center,
             "\ns: the score head's number at the last token of prompt and answer; margin: the "
             "row's, or 0\n",
             "pairs of which one is longer than train.max_length are left out");
}

algorithms::HeldOut held_out_scored_pairs(const RunContext& context) {
  auto options = eval_options(context);
  options.encode.skip_longer = true;
  return held_out_batches(context, options, engine::data::load_pairs,
                          engine::data::to_scored_pairs);
}

int run(RunContext& context) {
  const auto loss = value_or_throw(orm_settings(context.config()));
  auto options = context.data_options();
  options.encode.skip_longer = true;
  auto data = context.loader<engine::data::PairExample>(options);
  const auto has_margin = [](const engine::data::PairExample& pair) {
    return pair.margin.has_value();
  };
  if (loss.kind == algorithms::OrmLossKind::log_exp &&
      std::ranges::any_of(data.dataset().examples, has_margin))
    throw Failure({Errc::usage,
                   "orm.loss = log_exp: rows of the data have a margin, which it would ignore; "
                   "choose bradley_terry, or map "
                   "another column with data.columns.margin"});
  return run_on_rows(context, data, loss, held_out_scored_pairs(context), algorithms::orm);
}

}  // namespace

Result<algorithms::OrmLoss> orm_settings(const RunConfig& config) {
  const Json fields =
      Json::Object{{"loss", config.orm.loss},
                   {"center_rewards_coefficient", config.orm.center_rewards_coefficient}};
  return valid_loss<algorithms::OrmLoss>(fields, "orm");
}

Recipe orm_recipe() {
  return {"orm",
          "outcome reward model: score the chosen answer of each pair above the rejected one",
          {"orm", "eval"},
          table,
          engine::data::Purpose::pairs,
          roles,
          nullptr,
          judge,
          formula,
          run,
          head};
}

std::vector<Preset> orm_dialects() {
  return {{"trl",
           "orm",
           "RewardTrainer of TRL 1.16",
           {{"train.learning_rate", "1e-4"}, {"train.max_length", "1024"}}},
          {"openrlhf",
           "orm",
           "OpenRLHF's train_rm",
           {{"train.learning_rate", "9e-6"}, {"train.max_length", "512"}}},
          {"mindspeed", "orm", "MindSpeed's --stage orm", {{"orm.loss", "bradley_terry"}}}};
}

}  // namespace troupe::launch
