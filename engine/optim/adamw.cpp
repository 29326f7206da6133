#include "engine/optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/base/text.h"
#include "engine/nn/gradients.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::optim {
namespace {

// torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1.
float clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6))) : 1.0f;
}

/// Values of bf16 moments that are widened at a time: few enough for the L2 cache.
constexpr std::int64_t moments_chunk = std::int64_t{1} << 18;
/// Random numbers of an update: a sequence for each purpose.
enum RoundingPurpose : std::uint64_t { round_value = 0, round_exp_avg = 1, round_exp_avg_sq = 2 };

}  // namespace

AdamW::AdamW(nn::Parameters& parameters, parallel::Communicator* tp,
             std::shared_ptr<const nn::ArenaShards> shards, parallel::Communicator* pp,
             DType moments)
    : parameters_(parameters.trained()), tp_(tp), pp_(pp), shards_(std::move(shards)) {
  check(static_cast<bool>(parameters.grads()), "AdamW: parameters without gradients");
  check(!shards_ || shards_->arena_count() == parameters_.count(),
        "AdamW: shards of another model");
  auto& device = parameters.device();
  const std::int64_t count = shards_ ? shards_->count() : parameters_.count();
  exp_avg_ = device.empty(Shape{count}, moments);
  exp_avg_sq_ = device.empty(Shape{count}, moments);
  device.fill(exp_avg_, 0);
  device.fill(exp_avg_sq_, 0);
}

std::vector<AdamW::Range> AdamW::ranges(Gradients after) const {
  std::vector<Range> all;
  std::int64_t at = 0;
  const bool merges = exp_avg_.dtype() == DType::f32;
  for (std::size_t i = 0; i < parameters_.all().size(); ++i) {
    const auto& parameter = parameters_.all()[i];
    const Range range{at, at + parameter.value.count(), parameter.decays(),
                      after == Gradients::cleared && !parameter.state->assigned_by_gemm, i};
    if (merges && !all.empty() && all.back().decays == range.decays &&
        all.back().clears == range.clears) {
      all.back().end = range.end;
    } else {
      all.push_back(range);
    }
    at = range.end;
  }
  return all;
}

double AdamW::gradient_norm() {
  // f64: a sum of f32 squares cannot overflow
  double sum = shards_ ? nn::sum_of_squares(parameters_, *shards_, tp_)
                       : nn::sum_of_squares(parameters_, tp_, pp_ != nullptr);
  if (pp_ != nullptr)
    parallel::all_reduce_sum(*pp_, std::span(&sum, 1), "the norm of the gradients of all stages");
  return std::sqrt(sum);
}

std::string AdamW::first_nonfinite() {
  const std::string name = shards_ ? nn::first_nonfinite_parameter(parameters_, *shards_, tp_)
                                   : nn::first_nonfinite_parameter(parameters_, tp_);
  if (pp_ == nullptr) return name;
  const auto names =
      parallel::gather_strings(*pp_, name, "the tensors with a gradient that is not finite");
  const auto first = std::ranges::find_if(names, [](const auto& each) { return !each.empty(); });
  return first == names.end() ? "" : *first;
}

Result<AdamW::Report> AdamW::step(double learning_rate, const AdamWConfig& config, Gradients after,
                                  nn::WeightGather* gather) {
  check(config.beta1 >= 0 && config.beta1 < 1 && config.beta2 >= 0 && config.beta2 < 1,
        "AdamW: betas must lie in [0, 1)");
  check(config.eps >= 0 && config.weight_decay >= 0 && config.max_grad_norm >= 0,
        "AdamW: eps, weight_decay, max_grad_norm must be >= 0");
  const double norm = gradient_norm();
  if (!std::isfinite(norm)) {
    const std::string name = first_nonfinite();
    if (after == Gradients::cleared) zero_grad();
    return fail(Errc::bad_input,
                cat("the gradient of ", name, " is not finite at update ", steps_ + 1,
                    "; no weight was changed. Lower train.learning_rate or check the batch"));
  }
  ++steps_;
  apply(learning_rate, config, after, clip_factor(norm, config.max_grad_norm));
  if (shards_) {
    nn::WeightGather started(parameters_.device(), *shards_, parameters_.values());
    if (gather == nullptr || config.bf16_weights)
      started.finish();
    else
      *gather = std::move(started);
  }
  if (config.bf16_weights) round_weights(config.seed);
  for (const auto& parameter : parameters_.all())
    parameter.state->unset = after == Gradients::cleared && parameter.state->assigned_by_gemm;
  return Report{norm};
}

template <class Update>
void AdamW::for_each_part(const Range& range, const Update& update) {
  const auto part = [&](std::int64_t begin, std::int64_t end, std::int64_t at) {
    update(Part{parameters_.values().flat(begin, end), parameters_.grads().flat(begin, end),
                exp_avg_.flat(at, at + end - begin), exp_avg_sq_.flat(at, at + end - begin),
                begin});
  };
  if (!shards_) return part(range.begin, range.end, range.begin);
  for (const auto& piece : shards_->mine(range.begin, range.end))
    part(piece.begin, piece.end, piece.at);
}

void AdamW::apply(double learning_rate, const AdamWConfig& config, Gradients after,
                  float grad_scale) {
  auto& device = parameters_.device();
  for (const Range& range : ranges(after)) {
    const ops::AdamW how{.learning_rate = learning_rate,
                         .beta1 = config.beta1,
                         .beta2 = config.beta2,
                         .eps = config.eps,
                         .weight_decay = range.decays ? config.weight_decay : 0,
                         .step = steps_,
                         .grad_scale = grad_scale,
                         .clear_gradients = range.clears};
    for_each_part(range, [&](Part part) {
      if (exp_avg_.dtype() == DType::bf16) return update_bf16(part, range, how, config.seed);
      device.adamw(part.values, part.grads, part.exp_avg, part.exp_avg_sq, how);
    });
    if (!shards_ || !range.clears) continue;
    Tensor whole = parameters_.grads().flat(range.begin, range.end);
    device.fill(whole, 0);
  }
}

void AdamW::update_bf16(const Part& part, const Range& range, const ops::AdamW& how,
                        std::uint64_t seed) {
  auto& device = parameters_.device();
  const std::int64_t count = part.values.count(), chunk = std::min(count, moments_chunk);
  const Tensor &value = parameters_.all()[range.parameter].value,
               first = device.empty(Shape{chunk}), second = device.empty(Shape{chunk});
  const std::int64_t width = value.shape().rank() == 2 ? value.shape()[1] : value.count();
  for (std::int64_t at = 0; at < count; at += chunk) {
    const std::int64_t end = std::min(count, at + chunk);
    Tensor values = part.values.flat(at, end), grads = part.grads.flat(at, end),
           m = part.exp_avg.flat(at, end), v = part.exp_avg_sq.flat(at, end),
           wide_m = first.flat(0, end - at), wide_v = second.flat(0, end - at);
    device.load_bf16(m, wide_m);
    device.load_bf16(v, wide_v);
    device.adamw(values, grads, wide_m, wide_v, how);
    const ops::FlatPart where{part.begin - range.begin + at, width};
    device.store_bf16(wide_m, m, rounding(range.parameter, seed, round_exp_avg), where);
    device.store_bf16(wide_v, v, rounding(range.parameter, seed, round_exp_avg_sq), where);
  }
}

ops::StochasticRounding AdamW::rounding(std::size_t parameter, std::uint64_t seed,
                                        std::uint64_t purpose) const {
  const nn::Parameter& of = parameters_.all()[parameter];
  const Shape whole = of.logical_shape();
  const std::int64_t pitch = whole.rank() == 2 ? whole[1] : 1;
  return {
      .key = uniform_below(~std::uint64_t{0}, seed, static_cast<std::uint64_t>(steps_), purpose),
      .stream = numbers_.empty() ? static_cast<std::uint32_t>(parameter) : numbers_[parameter],
      .first = of.shard.whole() ? 0 : of.shard.begin * (of.shard.axis == 0 ? pitch : 1),
      .ld = pitch};
}

void AdamW::round_weights(std::uint64_t seed) {
  auto& all = parameters_.all();
  for (std::size_t i = 0; i < all.size(); ++i)
    parameters_.device().round_to_bf16(all[i].value, rounding(i, seed, round_value));
}

void AdamW::set_numbers(std::vector<std::uint32_t> numbers) {
  check(numbers.size() == parameters_.all().size(), "AdamW::set_numbers: one for each tensor");
  numbers_ = std::move(numbers);
}

void AdamW::zero_grad() {
  parameters_.device().fill(parameters_.grads(), 0);
}

void AdamW::restore(std::span<const float> exp_avg, std::span<const float> exp_avg_sq,
                    std::int64_t steps) {
  const auto count = static_cast<std::size_t>(exp_avg_.count());
  check(exp_avg.size() == count && exp_avg_sq.size() == count,
        "AdamW::restore: moments of another model");
  parameters_.device().upload(exp_avg_, exp_avg);
  parameters_.device().upload(exp_avg_sq_, exp_avg_sq);
  set_steps(steps);
}

void AdamW::set_steps(std::int64_t steps) {
  check(steps >= 0, "AdamW::set_steps: negative count");
  steps_ = steps;
}

}  // namespace troupe::engine::optim
