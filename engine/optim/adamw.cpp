#include "engine/optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/nn/gradients.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::optim {
namespace {

// torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1.
float clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6))) : 1.0f;
}

/// Values that are widened at a time: few enough for the L2 cache.
constexpr std::int64_t chunk_values = std::int64_t{1} << 18;
/// Random numbers of an update: a sequence for each purpose.
enum RoundingPurpose : std::uint64_t { round_value = 0, round_exp_avg = 1, round_exp_avg_sq = 2 };

/// Values of a tensor in f32: those of an f32 tensor itself, or a copy in scratch memory.
Tensor in_f32(ops::Device& device, const Tensor& values, const Tensor& scratch) {
  if (values.dtype() == DType::f32) return values;
  Tensor wide = scratch.flat(0, values.count());
  device.copy(values, wide);
  return wide;
}

Tensor scratch_for(ops::Device& device, const Tensor& values, std::int64_t count) {
  return values.dtype() == DType::f32 ? Tensor() : device.empty(Shape{count});
}

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
  const bool merges = all_in_f32();
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

bool AdamW::all_in_f32() const {
  const auto is_f32 = [](const Tensor& x) { return x.dtype() == DType::f32; };
  return is_f32(exp_avg_) && is_f32(parameters_.values()) && is_f32(parameters_.gradient_arena());
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
  check(std::ranges::all_of(config.betas, [](double beta) { return beta >= 0 && beta < 1; }),
        "AdamW: betas must lie in [0, 1)");
  check(config.eps >= 0 && config.weight_decay >= 0 && config.max_grad_norm >= 0,
        "AdamW: eps, weight_decay, max_grad_norm must be >= 0");
  const double scale = config.loss_scale > 0 ? config.loss_scale : 1,
               norm = gradient_norm() / scale;
  if (!std::isfinite(norm)) {
    const std::string name = config.loss_scale > 0 ? "" : first_nonfinite();
    if (after == Gradients::cleared) zero_grad();
    if (config.loss_scale > 0) return Report{.skipped = true};
    return fail(Errc::bad_input,
                cat("the gradient of ", name, " is not finite at update ", steps_ + 1,
                    "; no weight was changed. Lower train.learning_rate or check the batch"));
  }
  ++steps_;
  apply(learning_rate, config, after,
        static_cast<float>(double{clip_factor(norm, config.max_grad_norm)} / scale));
  if (reader_) reader_->wait_for_all();  // replicas send values that others of this rank's replace
  if (shards_) {
    nn::WeightGather started(*shards_, parameters_.values());
    if (gather == nullptr || config.weights == nn::WeightType::bf16)
      started.finish();
    else
      *gather = std::move(started);
  }
  if (config.weights == nn::WeightType::bf16 && parameters_.values().dtype() == DType::f32)
    round_weights(config.seed);
  for (const auto& parameter : parameters_.all())
    parameter.state->unset = after == Gradients::cleared && parameter.state->assigned_by_gemm;
  return Report{norm};
}

template <class Update>
void AdamW::for_each_part(const Range& range, const Update& update) {
  const auto part = [&](std::int64_t begin, std::int64_t end, std::int64_t at) {
    while (begin < end) {
      const std::int64_t until = reader_ ? std::min(end, reader_->wait_for(begin)) : end,
                         at_end = at + until - begin;
      update(Part{parameters_.values().flat(begin, until), parameters_.grads().flat(begin, until),
                  exp_avg_.flat(at, at_end), exp_avg_sq_.flat(at, at_end), begin, at});
      begin = until;
      at = at_end;
    }
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
                         .beta1 = config.betas[0],
                         .beta2 = config.betas[1],
                         .eps = config.eps,
                         .weight_decay = range.decays ? config.weight_decay : 0,
                         .step = steps_,
                         .grad_scale = grad_scale,
                         .clear_gradients = range.clears};
    for_each_part(range, [&](Part part) {
      if (all_in_f32())
        device.adamw(part.values, part.grads, part.exp_avg, part.exp_avg_sq, how);
      else
        update_in_chunks(part, range, how, config.seed);
      if (average_) update_average(part, config.ema_decay);
    });
    if (!shards_ || !range.clears) continue;
    Tensor whole = parameters_.grads().flat(range.begin, range.end);
    device.fill(whole, 0);
  }
}

void AdamW::update_in_chunks(const Part& part, const Range& range, const ops::AdamW& how,
                             std::uint64_t seed) {
  auto& device = parameters_.device();
  const std::int64_t count = part.values.count(), chunk = std::min(count, chunk_values);
  const Tensor& value = parameters_.all()[range.parameter].value;
  const std::int64_t width = value.shape().rank() == 2 ? value.shape()[1] : value.count();
  const Tensor wide_values = scratch_for(device, part.values, chunk),
               wide_grads = scratch_for(device, part.grads, chunk),
               wide_m = scratch_for(device, part.exp_avg, chunk),
               wide_v = scratch_for(device, part.exp_avg_sq, chunk);
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t end = std::min(count, begin + chunk);
    Tensor values = part.values.flat(begin, end), grads = part.grads.flat(begin, end),
           m = part.exp_avg.flat(begin, end), v = part.exp_avg_sq.flat(begin, end);
    Tensor p = in_f32(device, values, wide_values), g = in_f32(device, grads, wide_grads),
           first = in_f32(device, m, wide_m), second = in_f32(device, v, wide_v);
    device.adamw(p, g, first, second, how);
    const auto store = [&](const Tensor& from, Tensor& to, RoundingPurpose purpose) {
      if (to.dtype() == DType::bf16)
        device.store_bf16(from, to, rounding(range.parameter, seed, purpose),
                          {part.begin - range.begin + begin, width});
    };
    store(p, values, round_value);
    store(first, m, round_exp_avg);
    store(second, v, round_exp_avg_sq);
    if (how.clear_gradients && grads.dtype() == DType::bf16) device.fill(grads, 0);
  }
}

void AdamW::keep_average() {
  auto& device = parameters_.device();
  average_ = device.empty(Shape{exp_avg_.count()});
  for_each_part({0, parameters_.count(), false, false, 0}, [&](const Part& part) {
    Tensor to = average_.flat(part.at, part.at + part.values.count());
    device.copy(part.values, to);
  });
}

void AdamW::restore_average(const Tensor& all) {
  check(average_ && all.count() == parameters_.count() && all.dtype() == DType::f32,
        "AdamW::restore_average: values of another model");
  for_each_part({0, parameters_.count(), false, false, 0}, [&](const Part& part) {
    const std::int64_t count = part.values.count();
    Tensor to = average_.flat(part.at, part.at + count);
    parameters_.device().copy(all.flat(part.begin, part.begin + count), to);
  });
}

void AdamW::update_average(const Part& part, double decay) {
  auto& device = parameters_.device();
  const std::int64_t count = part.values.count(), chunk = std::min(count, chunk_values);
  const Tensor scratch = device.empty(Shape{chunk});
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t end = std::min(count, begin + chunk);
    Tensor average = average_.flat(part.at + begin, part.at + end),
           added = scratch.flat(0, end - begin);
    device.copy(part.values.flat(begin, end), added);
    device.scale(added, static_cast<float>(1 - decay));
    device.scale(average, static_cast<float>(decay));
    device.add(average, added, average);
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
