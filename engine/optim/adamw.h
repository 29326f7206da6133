// AdamW (Loshchilov & Hutter 2019, alg. 2): decoupled weight decay on matrices only, clipping by
// global norm, as torch.optim.AdamW and torch.nn.utils.clip_grad_norm_ compute them. Weights,
// gradients and moments are f32 or bf16; an update is computed in f32.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/fields.h"
#include "engine/nn/arena_reader.h"
#include "engine/nn/arena_shards.h"
#include "engine/nn/parameters.h"
#include "engine/nn/weight_gather.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::optim {

struct AdamWConfig {
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;   ///< on matrices; vectors (norm gains, biases) never decay
  double max_grad_norm = 1;  ///< 0: no clipping
  /// bf16: weights stored in f32 become values of bf16 after each update, rounded stochastically,
  /// as weights stored in bf16 always do.
  nn::WeightType weights = nn::WeightType::f32;
  std::uint64_t seed = 0;  ///< of stochastic rounding
  /// The gradients are those of the loss times this (train::LossScale); 0: of the loss itself. A
  /// gradient that is not finite is then an overflow and not an error.
  double loss_scale = 0;
  /// Share of the former average in the moving average of the weights (keep_average()).
  double ema_decay = 0;

  /// Those that a run has once for each model that it trains.
  static void each_field(auto& self, auto&& field) {
    field("betas", self.betas, from_0_below_1, "AdamW betas");
    field("eps", self.eps, above_0, "AdamW epsilon");
    field("weight_decay", self.weight_decay, at_least_0,
          "decoupled weight decay of matrices; vectors are never decayed");
    field("max_grad_norm", self.max_grad_norm, at_least_0,
          "clip the global gradient norm to this; 0: no clipping");
  }
};

class AdamW {
 public:
  /// Optimizes the trained parameters. Moments start at zero. `parameters` must have gradients and
  /// outlive this. `tp`: the ranks with the other parts of the model (nullptr: none); step() is
  /// collective over them and returns the same result on all.
  /// `shards` (nullptr: none): the replicas that divide the moments, of parameters.trained(). The
  /// gradients were summed over them by nn::reduce_scatter_gradients(); step() is collective over
  /// them, too, and gives every replica all weights, with the bits of an undivided optimizer.
  /// `pp`: the ranks with the other pipeline stages (nullptr: none); as `tp`. The norm is a sum
  /// over tensors, then over the stages in their order; `shards` are by tensor.
  /// `moments`: type in which the moments are stored. bf16 ones are widened for an update and then
  /// rounded stochastically, and so are weights that `parameters` stores in bf16.
  explicit AdamW(nn::Parameters& parameters, parallel::Communicator* tp = nullptr,
                 std::shared_ptr<const nn::ArenaShards> shards = nullptr,
                 parallel::Communicator* pp = nullptr, DType moments = DType::f32);

  struct Report {
    double grad_norm = 0;  ///< L2 norm over all logical gradients of the loss, before clipping
    bool skipped = false;  ///< a scaled gradient was not finite: no weight and no moment changed
  };
  enum class Gradients { kept, cleared };
  /// One update. If a gradient is not finite, no weight and no moment changes: Errc::bad_input,
  /// naming the first such parameter; or, with loss_scale, Report::skipped, with the norm 0. With
  /// Gradients::cleared the gradients count as 0 afterwards, also after an error: they are cleared
  /// in the same pass over memory or marked unset (nn::GradientState). `gather` receives the
  /// exchange of the weights between the shards' replicas, which the caller waits for before it
  /// reads weights (nullptr: step() waits; with WeightType::bf16 it always does). Of weights in
  /// bf16 two buckets are in flight at a time.
  Result<Report> step(double learning_rate, const AdamWConfig& config,
                      Gradients after = Gradients::kept, nn::WeightGather* gather = nullptr);
  void zero_grad();

  /// step() changes no value before `reader` (nullptr: none) has read it. No bit of the result
  /// depends on it. It outlives its use.
  void set_reader(nn::ArenaReader* reader) { reader_ = reader; }

  /// Keeps an exponential moving average of the weights in f32, of the values that have moments
  /// here: after each update average <- decay average + (1 - decay) weight. It starts from the
  /// present weights.
  void keep_average();
  /// The average, divided as the moments are; absent without keep_average().
  const Tensor& average() const { return average_; }
  /// Restores the average from that of all values [parameters.trained().count()], in f32.
  void restore_average(const Tensor& all);

  /// Numbers of the trained tensors in the whole model, which key stochastic rounding; initially 0,
  /// 1, ... For a rank that has some of them.
  void set_numbers(std::vector<std::uint32_t> numbers);

  /// Number of updates.
  std::int64_t steps() const { return steps_; }
  /// How the moments are divided; nullptr: every replica has all.
  const nn::ArenaShards* shards() const { return shards_.get(); }
  /// First and second moments: [parameters.trained().count()], in the order of their arena, or
  /// [shards()->count()].
  Tensor& exp_avg() { return exp_avg_; }
  Tensor& exp_avg_sq() { return exp_avg_sq_; }
  /// Restores moments and the number of updates. Each span must have the moments' count.
  void restore(std::span<const float> exp_avg, std::span<const float> exp_avg_sq,
               std::int64_t steps);
  /// Restores the number of updates; the moments were uploaded to exp_avg() and exp_avg_sq().
  void set_steps(std::int64_t steps);

 private:
  /// A range of the arena with uniform weight decay and clearing of gradients; with bf16 weights or
  /// moments it is one tensor.
  struct Range {
    std::int64_t begin, end;
    bool decays, clears;
    std::size_t parameter;  ///< the first one
  };
  /// Values, gradients and moments of a part of a range.
  struct Part {
    Tensor values, grads, exp_avg, exp_avg_sq;
    std::int64_t begin;  ///< first value in the arena
    std::int64_t at;     ///< of the first value in the moments
  };
  /// Whether all tensors of an update are f32.
  bool all_in_f32() const;
  std::vector<Range> ranges(Gradients after) const;
  /// Of the gradients on all ranks.
  double gradient_norm();
  std::string first_nonfinite();
  /// Calls update(part) for each part of a range of the arena whose moments this rank has, once the
  /// reader has read it.
  template <class Update>
  void for_each_part(const Range& range, const Update& update);
  void apply(double learning_rate, const AdamWConfig& config, Gradients after, float grad_scale);
  /// An update of a part some of whose tensors are bf16, in chunks of f32.
  void update_in_chunks(const Part& part, const Range& range, const ops::AdamW& how,
                        std::uint64_t seed);
  void update_average(const Part& part, double decay);
  /// Stochastic rounding of a tensor at this update. Random numbers are indexed by the position in
  /// the whole tensor: ranks that hold the same element agree, whatever the grid.
  ops::StochasticRounding rounding(std::size_t parameter, std::uint64_t seed,
                                   std::uint64_t purpose) const;
  void round_weights(std::uint64_t seed);

  nn::Parameters& parameters_;
  parallel::Communicator *tp_, *pp_;
  std::shared_ptr<const nn::ArenaShards> shards_;
  std::vector<std::uint32_t> numbers_;  ///< of the tensors; empty: 0, 1, ...
  Tensor exp_avg_, exp_avg_sq_;
  Tensor average_;  ///< absent: none is kept
  nn::ArenaReader* reader_ = nullptr;
  std::int64_t steps_ = 0;
};

}  // namespace troupe::engine::optim
