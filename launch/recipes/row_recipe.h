// The recipe of a method that trains on rows and states all else in its settings
// (algorithms/method.h).
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "launch/recipes/held_out.h"
#include "launch/recipes/recipe.h"

namespace troupe::launch::recipes {

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
            return algorithms::settings_of<M>(config).formula();
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

}  // namespace troupe::launch::recipes
