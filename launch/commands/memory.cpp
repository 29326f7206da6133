#include "launch/commands/memory.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/generate/kv_cache.h"
#include "engine/models/stages.h"
#include "engine/parallel/pipeline.h"
#include "engine/train/footprint.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"
#include "launch/run/checkpoint_space.h"
#include "launch/run/settings.h"

namespace troupe::launch {

namespace {

std::uint64_t size(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
}

std::uint64_t bytes_of(StateType type) {
  return type == StateType::bf16 ? 2 : 4;
}

/// Bytes of a value of the trained model. The weights and gradients of an adapter are f32.
struct ValueBytes {
  std::uint64_t weight, gradient, moment, average;
  explicit ValueBytes(const RunConfig& config)
      : weight(!adapts(config) && config.train.weights == WeightType::bf16 ? 2 : 4),
        gradient(adapts(config) ? 4 : bytes_of(config.train.gradients)),
        moment(bytes_of(config.train.moments)),
        average(config.train.ema_decay > 0 ? 4 : 0) {}
  std::uint64_t all() const { return weight + gradient + 2 * moment + average; }
};

/// Bytes of the adapter's weights; 0 without one.
std::uint64_t adapter_bytes(const RunConfig& config, const engine::models::DecoderSpec& spec) {
  return adapts(config) ? 4 * size(trained_values(config, spec)) : 0;
}

/// Bytes of the second gradient of a tied embedding (engine/nn/lookup_gradient.h); 0 without one.
std::uint64_t lookup_gradient_bytes(const RunConfig& config,
                                    const engine::models::DecoderSpec& spec) {
  const Recipe& recipe = recipe_of(config);
  const bool score_head = recipe.head != nullptr && recipe.head(config).labels > 0;
  if (!spec.tied || spec.labels > 0 || score_head || adapts(config)) return 0;
  return 4 * size(spec.vocabulary * spec.width);
}

/// Bytes of the reward models. Throws Failure.
std::uint64_t reward_bytes(const RunConfig& config) {
  std::uint64_t bytes = 0;
  for (const RewardItem& item : value_or_throw(reward_items(config)))
    bytes +=
        4 *
        size(value_or_throw(engine::checkpoint::read_folder_spec(item.path())).parameter_count());
  return bytes;
}

std::vector<engine::models::PipelineStage> stages_of(const RunConfig& config,
                                                     const engine::models::DecoderSpec& spec) {
  const auto pp = static_cast<int>(config.parallel.pp), vpp = static_cast<int>(config.parallel.vpp);
  const auto layers = value_or_throw(
      engine::models::stage_layers(spec, pp, layers_of_stages(config), noop_layers(config), vpp));
  std::vector<engine::models::PipelineStage> stages;
  for (int i = 0; i < pp; ++i) stages.push_back(engine::models::stage_of(i, layers, vpp));
  return stages;
}

/// Share of each pipeline stage in the parameters of the model. A tied table is on two stages.
std::vector<double> shares_of_stages(const RunConfig& config, engine::models::DecoderSpec spec) {
  spec.lora.reset();
  std::vector<double> shares;
  for (const auto& stage : stages_of(config, spec)) {
    std::int64_t count = 0;
    for (const auto& tensor :
         engine::models::parameter_list(spec, engine::models::split_of(spec, 0, 1), stage))
      count += tensor.shape.count();
    shares.push_back(static_cast<double>(count) / static_cast<double>(spec.parameter_count()));
  }
  return shares;
}

/// A model on the ranks of the policy's group: replicas on the ranks of parallel.dp and
/// parallel.cp, each sharded over parallel.tp ranks and the stages of parallel.pp.
struct Sharded {
  std::uint64_t replicas, ranks;  ///< ranks of one stage
  bool zero;
  std::vector<double> shares = {1};  ///< of the stages
  Sharded(const RunConfig& config, const engine::models::DecoderSpec& spec)
      : replicas(size(config.parallel.dp * config.parallel.cp)),
        ranks(replicas * size(config.parallel.tp)),
        zero(config.parallel.zero > 0) {
    if (config.parallel.pp > 1) shares = shares_of_stages(config, spec);
  }
  MemoryPart part(const std::string& what, std::uint64_t bytes) const {
    return divided(what, bytes, bytes * replicas);
  }
  /// The optimizer state, which parallel.zero divides over the replicas.
  MemoryPart moments(const std::string& what, std::uint64_t bytes) const {
    return divided(what, bytes, zero ? bytes : bytes * replicas);
  }
  /// A model, its gradients and, which parallel.zero divides, its optimizer state.
  MemoryPart trained(const std::string& what, std::uint64_t model, std::uint64_t moments) const {
    return divided(what, model + moments, model * replicas + moments * (zero ? 1 : replicas));
  }

 private:
  MemoryPart divided(const std::string& what, std::uint64_t alone, std::uint64_t total) const {
    if (shares.size() > 1) return over_stages(what, total);
    if (ranks <= 1) return {what, alone};
    return {cat(what, ", ", bytes_text(total / ranks), " on each of ", ranks, " ranks"), total};
  }
  MemoryPart over_stages(const std::string& what, std::uint64_t total) const {
    std::vector<std::string> each;
    std::uint64_t all = 0;
    for (const double share : shares) {
      const auto stage = static_cast<std::uint64_t>(share * static_cast<double>(total));
      each.push_back(bytes_text(stage / ranks));
      all += stage;
    }
    return {cat(what, ", ", join(each, ", "), " on a rank of each of ", shares.size(), " stages"),
            all};
  }
};

/// Passes through a chunk whose activations a stage holds at most, of any number of micro-batches.
std::uint64_t passes_held(const engine::models::PipelineStage& stage) {
  const int chunks = static_cast<int>(stage.chunks.size());
  return size(engine::parallel::max_passes_held(stage.count, stage.index, 4 * stage.count, chunks));
}

/// Footprint of a training step, summed over all ranks of the policy's group. Throws Failure if the
/// model cannot be sharded that way.
engine::train::Footprint step_footprint(const RunConfig& config,
                                        const engine::models::DecoderSpec& spec) {
  const auto tp = static_cast<int>(config.parallel.tp);
  value_or_throw(engine::models::check_split(spec, tp));
  const Recipe& recipe = recipe_of(config);
  const bool grads_known = recipe.grads_known != nullptr && recipe.grads_known(config);
  engine::train::Footprint all;
  const std::int64_t cp = config.parallel.cp,
                     tokens = (config.train.micro_batch_tokens + cp - 1) / cp;  // of a rank
  const std::uint64_t replicas = size(config.parallel.dp * cp);
  for (const auto& stage : stages_of(config, spec)) {
    engine::models::DecoderSpec part = spec;
    part.layers = std::ssize(stage.layers());
    if (!stage.last()) part.labels = 1;  // no logits
    for (int index = 0; index < tp; ++index) {
      engine::models::Split split = engine::models::split_of(spec, index, tp);
      split.divides_rows = config.parallel.sp;
      auto recomputed = recomputed_settings(config);
      recomputed.in_advance = recomputed.in_advance && !stage.last();
      const auto own = engine::train::footprint(part, recomputed, tokens, split, grads_known);
      all.kept += replicas * (config.train.offload.empty()
                                  ? passes_held(stage) * own.kept / stage.chunks.size()
                                  // One layer computes, one is written or read.
                                  : std::min(own.kept, 2 * own.kept / size(part.layers)));
      all.passing += replicas * own.passing;
      all.products += replicas * own.products;
    }
  }
  return all;
}

/// The f32 copies of the largest tensor's bf16 weight, which an operation reads, of its bf16
/// gradient, which it adds to, and in f16 of its rounded values, on every rank.
void add_widened(std::vector<MemoryPart>& parts, const RunConfig& config,
                 const engine::models::DecoderSpec& spec) {
  const ValueBytes value(config);
  const bool rounds = config.train.dtype == engine::ops::Precision::f16;
  const std::uint64_t copies =
      std::uint64_t{value.weight < 4} + std::uint64_t{value.gradient < 4} + std::uint64_t{rounds};
  if (copies == 0) return;
  const auto tp = static_cast<int>(config.parallel.tp);
  std::int64_t largest = 0;
  for (const auto& tensor :
       engine::models::parameter_list(spec, engine::models::split_of(spec, 0, tp)))
    largest = std::max(largest, tensor.shape.count());
  const std::uint64_t ranks =
      size(config.parallel.dp * config.parallel.cp * config.parallel.tp * config.parallel.pp);
  parts.push_back({"f32 copies of operands", 4 * copies * size(largest) * ranks});
}

void add_activations(std::vector<MemoryPart>& parts, const RunConfig& config,
                     const engine::models::DecoderSpec& spec) {
  const auto step = step_footprint(config, spec);
  std::vector<std::string> names;
  for (const Recompute what : config.train.recompute) names.emplace_back(name_of(what));
  const std::string recomputed =
      names.empty() ? "" : cat(", ", join(names, " and "), " recomputed");
  parts.push_back(
      {cat("activations of ", config.train.micro_batch_tokens * config.parallel.dp, " tokens",
           recomputed, config.train.offload.empty() ? "" : ", in files", " (estimate)"),
       step.kept + step.passing});
  parts.push_back({"packed GEMM operands and logits of the head (estimate)", step.products});
  add_widened(parts, config, spec);
}

/// Weights and KV cache of the rollout actor.
void add_rollout(std::vector<MemoryPart>& parts, const RunConfig& config,
                 const engine::models::DecoderSpec& spec, std::uint64_t weights,
                 std::uint64_t adapter) {
  parts.push_back(adapter > 0
                      ? MemoryPart{"rollout weights, adapter, and a buffer for the next adapter",
                                   weights + 2 * adapter}
                      : MemoryPart{"rollout weights, and a buffer for the next", 2 * weights});
  if (samples_in_int8(config))
    parts.push_back({"rollout weights, int8 copy", weights / 4});
  else if (config.train.dtype == engine::ops::Precision::bf16)
    parts.push_back({"rollout weights, packed bf16 copy", weights / 2});
  const auto generator = generator_settings(config, spec);
  const std::int64_t tokens = engine::generate::cache_pages(generator, spec) * generator.page_size;
  parts.push_back({cat("KV cache of ", tokens, " tokens (at most)"),
                   size(tokens * engine::generate::cached_token_bytes(spec))});
}

}  // namespace

std::uint64_t trained_bytes(const RunConfig& config, const engine::models::DecoderSpec& spec) {
  return adapts(config) ? adapter_bytes(config, spec) : 4 * size(spec.parameter_count());
}

namespace {

/// Weights, gradients and optimizer state of the policy.
void add_model(std::vector<MemoryPart>& parts, const RunConfig& config,
               const engine::models::DecoderSpec& spec, const Sharded& sharded) {
  const ValueBytes value(config);
  const auto count = size(spec.parameter_count()), adapter = adapter_bytes(config, spec),
             trained = adapter > 0 ? adapter / 4 : count;
  parts.push_back(
      sharded.part(value.weight < 4 ? "weights (bf16)" : "weights (f32)", value.weight * count));
  if (adapter > 0) parts.push_back(sharded.part("adapter", adapter));
  // Pipeline stages each have one of the two gradients. The one of the lookup is f32.
  const std::uint64_t lookup = config.parallel.pp > 1 ? 0 : lookup_gradient_bytes(config, spec);
  parts.push_back(
      sharded.part(cat(lookup > 0 ? "gradients, two of the tied embedding" : "gradients",
                       value.gradient < 4 ? " (bf16)" : ""),
                   value.gradient * trained + lookup));
  parts.push_back(
      sharded.moments(value.moment < 4 ? "AdamW's two moments (bf16)" : "AdamW's two moments",
                      2 * value.moment * trained));
  if (value.average > 0)
    parts.push_back(
        sharded.moments("moving average of the weights (f32)", value.average * trained));
}

}  // namespace

std::vector<MemoryPart> memory_needed(const RunConfig& config,
                                      const engine::models::DecoderSpec& spec) {
  const std::uint64_t weights = 4 * size(spec.parameter_count());
  const std::uint64_t adapter = adapter_bytes(config, spec);
  const Sharded sharded(config, spec);
  std::vector<MemoryPart> parts;
  add_model(parts, config, spec, sharded);
  const RolesNeeded roles = roles_of(config);
  if (roles.reference.needed) parts.push_back({"reference model", weights});
  const ValueBytes value(config);
  if (roles.critic.needed)
    parts.push_back(sharded.trained("critic: weights, gradients and moments",
                                    (value.weight + value.gradient) * (weights / 4),
                                    2 * value.moment * (weights / 4)));
  if (roles.reward.needed) parts.push_back({"reward models", reward_bytes(config)});
  add_activations(parts, config, spec);
  if (roles.rollout.needed) add_rollout(parts, config, spec, weights, adapter);
  if (roles.rollout.needed && config.async.on())
    parts.push_back({cat(config.async.eta + 1, config.async.eta == 0 ? " version" : " versions",
                         " of the weights to sample with"),
                     size(config.async.eta + 1) * (adapter > 0 ? adapter : weights)});
  return parts;
}

std::string bytes_per_parameter(const RunConfig& config) {
  const ValueBytes value(config);
  return cat(value.all(), " (weight ", value.weight, ", gradient ", value.gradient, ", moments ",
             2 * value.moment, value.average > 0 ? ", average 4)" : ")");
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return cat(to_text(value, unit == 0 ? 0 : 1), ' ', units[unit]);
}

}  // namespace troupe::launch
