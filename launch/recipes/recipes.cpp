#include "launch/recipes/recipes.h"

#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/base/errors/check.h"
#include "launch/recipes/grpo.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/kto.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/ppo.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/recipe.h"
#include "launch/recipes/reward_model.h"

namespace troupe::launch::recipes {

namespace {

template <class M>
concept ComparesWithReference = requires(const M& method) {
  { method.reference } -> std::convertible_to<std::string>;
  { method.following } -> std::convertible_to<algorithms::ReferenceSync>;
};

template <algorithms::RowMethod M>
void validate_row_method(Validation& v) {
  const M& method = algorithms::settings_of<M>(v.config);
  validate_eval(v);
  if constexpr (ComparesWithReference<M>) validate_following(v, M::name, method.following);
  if constexpr (requires { method.validate(v); }) method.validate(v);
}

template <algorithms::RowMethod M>
int run_row_method(RunContext& context) {
  const M& method = algorithms::settings_of<M>(context.config());
  auto data = context.loader<typename M::Row>(context.data_options());
  auto held_out = held_out_batches<typename M::Row>(
      context, eval_options(context), [&](const auto& rows) { return batch_of(method, rows); });
  return run_on_rows(context, data, method, std::move(held_out), [](auto&&... arguments) {
    return train(std::forward<decltype(arguments)>(arguments)...);
  });
}

/// The recipe of a method that trains on rows and states all else in its settings
/// (algorithms/method.h).
template <algorithms::RowMethod M>
Recipe recipe_for(std::type_identity<M>) {
  Recipe recipe{
      .name = M::name,
      .summary = M::summary,
      .sections = {M::name, "eval"},
      .rows = M::Row::purpose,
      .validate = validate_row_method<M>,
      .formula =
          [](const config::RunConfig& config) {
            const std::string formula = algorithms::settings_of<M>(config).formula();
            if constexpr (std::is_same_v<M, algorithms::SftConfig>)
              return cat(formula, config.train.average.formula());
            return formula;
          },
      .run = run_row_method<M>,
      .grads_known =
          [](const config::RunConfig& config) {
            return algorithms::settings_of<M>(config).loss.needs().grad_is_input_independent;
          }};
  if constexpr (ComparesWithReference<M>) {
    recipe.roles = roles_with_reference<M>;
    recipe.reference = [](const config::RunConfig& config) {
      return algorithms::settings_of<M>(config).reference;
    };
  }
  return recipe;
}

}  // namespace

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> table = [] {
    std::vector<Recipe> all;
    const algorithms::MethodSettings methods;
    algorithms::MethodSettings::each_method(
        methods, [&]<class M>(const M&) { all.push_back(recipe_for(std::type_identity<M>())); });
    return all;
  }();
  return table;
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  for (const Preset& preset : algorithm_presets()) names.emplace_back(preset.name);
  return names;
}

const Recipe* find_recipe(std::string_view algorithm) {
  const Preset* preset = find_preset(algorithm);
  for (const Recipe& recipe : recipes())
    if (recipe.name == (preset ? preset->of : algorithm)) return &recipe;
  return nullptr;
}

const Recipe& recipe_of(const config::RunConfig& config) {
  const Recipe* recipe = find_recipe(config.algorithm);
  check(recipe != nullptr, "recipe_of: the algorithm was not validated");
  return *recipe;
}

RolesNeeded roles_of(const config::RunConfig& config) {
  RolesNeeded roles = recipe_of(config).roles(config);
  if (base_is_reference(config))
    roles.reference = {false, "without an adapter (lora.rank), whose base is the reference"};
  return roles;
}

bool reads(std::string_view algorithm, const config::Field& field) {
  const auto has_part = [&](const Recipe& recipe) {
    return std::ranges::find(recipe.sections, config::part_of(field)) != recipe.sections.end();
  };
  if (std::ranges::none_of(recipes(), has_part)) return true;
  const Recipe* recipe = find_recipe(algorithm);
  return recipe && has_part(*recipe);
}

}  // namespace troupe::launch::recipes
