#include "engine/nn/router_balance.h"

#include <cmath>

#include "engine/base/errors/check.h"

namespace troupe::engine::nn {
namespace {

// Sums of rows that are not added to those of the batch.
std::vector<ops::RouterSums> sums_of(ops::Device& device, const ops::Router& how,
                                     const Tensor& logits, const ops::Routes& routes,
                                     std::span<const std::int32_t> offsets) {
  std::vector<ops::RouterSums> sums(offsets.size() - 1);
  device.add_router_sums(how, logits, routes, offsets, sums, true);
  return sums;
}

}  // namespace

double balance_value(const ops::Router& how, const ops::RouterSums& sums) {
  if (sums.tokens == 0) return 0;
  double dot = 0;
  for (std::size_t e = 0; e < sums.shares.size(); ++e)
    dot += static_cast<double>(sums.favourites[e]) * sums.shares[e];
  const auto tokens = static_cast<double>(sums.tokens);
  return static_cast<double>(how.experts) / static_cast<double>(how.chosen) * dot /
         (tokens * tokens);
}

void add_balance_gradients(const ops::Router& how, const ops::RouterSums& sums, double factor,
                           std::span<double> share_gradients) {
  if (sums.tokens == 0) return;
  const auto tokens = static_cast<double>(sums.tokens);
  const double each = factor * static_cast<double>(how.experts) /
                      (static_cast<double>(how.chosen) * tokens * tokens);
  for (std::size_t e = 0; e < share_gradients.size(); ++e)
    share_gradients[e] += each * static_cast<double>(sums.favourites[e]);
}

void RouterBalance::routed(ops::Device& device, const ops::Router& how, const Tensor& logits,
                           std::span<const std::int32_t> offsets, std::size_t layer,
                           ops::Routes& routes) {
  const std::int64_t rows = logits.shape()[0];
  if (capacity > 0)
    device.drop_choices(
        static_cast<std::int64_t>(std::ceil(static_cast<double>(rows * how.chosen) /
                                            static_cast<double>(how.experts) * capacity)),
        drop, routes);
  if (!counts) return;
  LayerBalance& own = layers.at(layer);
  const std::int32_t all[] = {0, static_cast<std::int32_t>(rows)};
  device.add_router_sums(how, logits, routes, all, std::span(&own.sums, 1), shares);
  if (by_sequence)
    for (const ops::RouterSums& each : sums_of(device, how, logits, routes, offsets))
      own.sequences += balance_value(how, each);
  if (by_micro_batch)
    own.micro_batches += balance_value(how, sums_of(device, how, logits, routes, all)[0]);
}

void RouterBalance::backward(ops::Device& device, const ops::Router& how, const Tensor& logits,
                             const ops::Routes& routes, std::span<const std::int32_t> offsets,
                             std::size_t layer, Tensor& dlogits) const {
  const std::vector<double>& batch = layers.at(layer).share_gradients;
  if (batch.empty() && sequence_factor == 0 && micro_batch_factor == 0 && squares_factor == 0)
    return;
  const auto width = static_cast<std::size_t>(how.experts);
  const std::int32_t all[] = {0, static_cast<std::int32_t>(logits.shape()[0])};
  const std::span<const std::int32_t> segments = sequence_factor != 0 ? offsets : std::span(all);
  std::vector<double> common = batch;
  common.resize(width);
  if (micro_batch_factor != 0)
    add_balance_gradients(how, sums_of(device, how, logits, routes, all)[0], micro_batch_factor,
                          common);
  std::vector<double> share_gradients;
  for (std::size_t n = 0; n + 1 < segments.size(); ++n)
    share_gradients.insert(share_gradients.end(), common.begin(), common.end());
  if (sequence_factor != 0) {
    const auto sums = sums_of(device, how, logits, routes, offsets);
    for (std::size_t n = 0; n < sums.size(); ++n)
      add_balance_gradients(how, sums[n], sequence_factor,
                            std::span(share_gradients).subspan(n * width, width));
  }
  device.add_router_slopes(how, logits, {segments, share_gradients, squares_factor}, dlogits);
}

}  // namespace troupe::engine::nn
