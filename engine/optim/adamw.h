// AdamW over a model's parameters: decoupled decay on matrices only, clipping by global norm, as
// torch.optim.AdamW and torch.nn.utils.clip_grad_norm_ compute them (Loshchilov & Hutter 2019, alg.
// 2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/error.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::optim {

struct AdamWConfig {
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;   ///< on matrices; vectors (norm gains, biases) never decay
  double max_grad_norm = 1;  ///< 0: no clipping
  /// Weights become bf16 after each update, rounded by chance under this seed: there is no f32
  /// master then, and what an update adds is not lost on the mean. Absent: they stay f32.
  std::optional<std::uint64_t> rounding_seed = {};
};

class AdamW {
 public:
  /// Of the trained parameters. Moments start at zero. `parameters` must have gradients and outlive
  /// this. `tp`: the ranks that hold the other parts of the model (nullptr: none); step() is then
  /// collective over them, and gives all of them the same answer.
  explicit AdamW(nn::Parameters& parameters, parallel::Communicator* tp = nullptr);

  struct Report {
    double grad_norm = 0;  ///< L2 norm over all logical gradients, before clipping
  };
  enum class Gradients { kept, cleared };
  /// One update. A gradient that is not finite changes no weight and no moment, and is
  /// Errc::bad_input, naming the first parameter that has one. `after`: whether the gradients count
  /// as 0 then, also after a refusal; the update clears them in its own pass over memory, or leaves
  /// that to what will assign them (nn::GradientState).
  Result<Report> step(double learning_rate, const AdamWConfig& config,
                      Gradients after = Gradients::kept);
  void zero_grad();

  /// Updates done.
  std::int64_t steps() const { return steps_; }
  /// First and second moments: [parameters.trained().count()], in the order of their arena.
  Tensor& exp_avg() { return exp_avg_; }
  Tensor& exp_avg_sq() { return exp_avg_sq_; }
  /// Continues a run: the moments as they were downloaded, and the number of updates done. Each
  /// span must have the moments' count.
  void restore(std::span<const float> exp_avg, std::span<const float> exp_avg_sq,
               std::int64_t steps);
  /// Continues a run whose moments were uploaded into exp_avg() and exp_avg_sq() already.
  void set_steps(std::int64_t steps);

 private:
  /// A stretch of the arena whose parameters all decay, or all do not, and whose gradients are all
  /// to be cleared, or are not.
  struct Range {
    std::int64_t begin, end;
    bool decays, clears;
  };
  std::vector<Range> ranges(Gradients after) const;
  void round_weights(std::uint64_t seed);

  nn::Parameters& parameters_;
  parallel::Communicator* tp_;
  Tensor exp_avg_, exp_avg_sq_;
  std::int64_t steps_ = 0;
};

}  // namespace troupe::engine::optim
