#include "launch/memory/rank_memory.h"

#include <algorithm>
#include <optional>

#include "engine/checkpoint/load_decoder.h"
#include "engine/parallel/pipeline.h"
#include "engine/train/footprint.h"
#include "launch/memory/model_shares.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/run/settings.h"

namespace troupe::launch::memory {

namespace models = engine::models;

namespace {

models::DecoderSpec critic_spec(const config::RunConfig& config, models::DecoderSpec spec) {
  if (!config.critic.model.empty())
    spec = value_or_throw(engine::checkpoint::read_folder_spec(config.critic.model));
  spec.labels = 1;
  spec.tied = false;
  return spec;
}

/// Numbers of values of a rank's part of a model.
struct ValueCounts {
  std::int64_t all = 0, adapter = 0, trained = 0;
  std::int64_t lookup = 0;   ///< in the second gradient of a tied table (nn/lookup_gradient.h)
  std::int64_t largest = 0;  ///< of a tensor
  ValueCounts(const models::DecoderSpec& spec, const models::Split& split,
              const models::PipelineStage& stage) {
    for (const auto& tensor : models::parameter_list(spec, split, stage)) {
      const std::int64_t count = tensor.shape.count();
      all += count;
      largest = std::max(largest, count);
      if (tensor.adapter) adapter += count;
      if (!tensor.trainable) continue;
      trained += count;
      const bool whole = stage.count == 1 && spec.tied && spec.labels == 0;
      if (whole && tensor.name == "model.embed_tokens.weight") lookup = count;
    }
  }
};

/// One place of the grid, and what all places have in common.
class Place {
 public:
  Place(const config::RunConfig& config, const models::PipelineStage& stage, models::Split split)
      : config_(config),
        value_(config),
        stage_(stage),
        split_(std::move(split)),
        replicas_(count_of(config.parallel.dp * config.parallel.cp)) {}

  RankMemory memory(const models::DecoderSpec& policy, const models::DecoderSpec* critic) const {
    RankMemory out{.stage = stage_.index, .part = split_.index};
    const ValueCounts counts(policy, split_, stage_);
    out.adapter = 4 * count_of(counts.adapter);
    out.weights = value_.weight * count_of(counts.all - counts.adapter);
    out.lookup = 4 * count_of(counts.lookup);
    out.gradients = value_.gradient * count_of(counts.trained) + out.lookup;
    out.moments = shard(2 * value_.moment * count_of(counts.trained));
    out.average = shard(value_.average * count_of(counts.trained));
    if (critic != nullptr) {
      const ValueCounts own(*critic, split_, stage_);
      out.critic = (value_.weight + value_.gradient) * count_of(own.all) +
                   shard(2 * value_.moment * count_of(own.all));
    }
    add_passes(policy, counts, out);
    return out;
  }

 private:
  /// Of what parallel.zero divides over the replicas.
  std::uint64_t shard(std::uint64_t bytes) const {
    return config_.parallel.zero > 0 ? (bytes + replicas_ - 1) / replicas_ : bytes;
  }

  void add_passes(models::DecoderSpec part, const ValueCounts& counts, RankMemory& out) const {
    const recipes::Recipe& recipe = recipes::recipe_of(config_);
    const bool grads_known = recipe.grads_known != nullptr && recipe.grads_known(config_);
    const std::int64_t cp = config_.parallel.cp,
                       tokens = (config_.train.micro_batch_tokens + cp - 1) / cp;
    part.layers = std::ssize(stage_.layers());
    part.lora.reset();
    if (!stage_.last()) part.labels = 1;  // no logits
    engine::nn::Recomputed recomputed = config_.train.recomputed;
    recomputed.in_advance = recomputed.in_advance && !stage_.last();
    const auto own = engine::train::footprint(part, recomputed, tokens, split_, grads_known,
                                              config_.train.dtype);
    // One layer computes, one is written or read.
    const std::uint64_t in_memory = std::min(own.kept, 2 * own.kept / count_of(part.layers));
    out.activations = (config_.train.offload.empty() ? kept(own.kept) : in_memory) + own.passing;
    out.products = own.products;
    // The f32 copies of the largest tensor's bf16 weight, which an operation reads, of its bf16
    // gradient, which it adds to, and in f16 of its rounded values.
    const bool rounds = config_.train.dtype == engine::ops::Precision::f16;
    const std::uint64_t copies = std::uint64_t{value_.weight < 4} +
                                 std::uint64_t{value_.gradient < 4} + std::uint64_t{rounds};
    out.widened = 4 * copies * count_of(counts.largest);
  }
  /// Activations of the passes through a chunk that the stage holds at most, of any number of
  /// micro-batches.
  std::uint64_t kept(std::uint64_t all) const {
    const int chunks = static_cast<int>(stage_.chunks.size());
    const int passes =
        engine::parallel::max_passes_held(stage_.count, stage_.index, 4 * stage_.count, chunks);
    return count_of(passes) * all / stage_.chunks.size();
  }

  const config::RunConfig& config_;
  ValueBytes value_;
  const models::PipelineStage& stage_;
  models::Split split_;
  std::uint64_t replicas_;
};

}  // namespace

ValueBytes::ValueBytes(const config::RunConfig& config)
    : weight(bytes_of(run::value_types(config).values)),
      gradient(bytes_of(run::value_types(config).grads)),
      moment(bytes_of(stored(config.train.moments))),
      average(config.train.optimizer.ema_decay > 0 ? 4 : 0) {
}

std::vector<RankMemory> memory_of_ranks(const config::RunConfig& config,
                                        const models::DecoderSpec& spec) {
  const models::DecoderSpec policy = value_or_throw(recipes::trained_spec(config));
  std::optional<models::DecoderSpec> critic;
  if (recipes::roles_of(config).critic.needed && !recipes::has_grid(config, recipes::Role::critic))
    critic = critic_spec(config, spec);
  std::vector<RankMemory> ranks;
  for (const auto& [stage, split] : parts_of_model(config, policy))
    ranks.push_back(Place(config, stage, split).memory(policy, critic ? &*critic : nullptr));
  return ranks;
}

std::uint64_t critic_bytes(const config::RunConfig& config, const models::DecoderSpec& spec) {
  const config::RunConfig own =
      recipes::config_for(config, recipes::Role::critic, recipes::RankKind::processes);
  const ModelShares shares(own, critic_spec(config, spec));
  const ValueBytes value(own);
  const std::uint64_t moments = 2 * value.moment * shares.largest,
                      replicas =
                          std::max<std::uint64_t>(1, count_of(own.parallel.dp * own.parallel.cp));
  return (value.weight + value.gradient) * shares.largest +
         (own.parallel.zero > 0 ? (moments + replicas - 1) / replicas : moments);
}

}  // namespace troupe::launch::memory
