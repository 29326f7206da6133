#include "launch/memory/memory.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/generate/kv_cache.h"
#include "launch/memory/model_shares.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"
#include "launch/run/checkpoint_space.h"
#include "launch/run/settings.h"

namespace troupe::launch::memory {

namespace {

/// Bytes of the adapter's weights; 0 without one.
std::uint64_t adapter_bytes(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec) {
  return recipes::adapts(config) ? 4 * count_of(run::trained_values(config, spec)) : 0;
}

/// Whether the table of a tied embedding has a second gradient (engine/nn/lookup_gradient.h).
bool has_two_gradients(const config::RunConfig& config, const engine::models::DecoderSpec& spec) {
  const recipes::Recipe& recipe = recipes::recipe_of(config);
  const bool score_head = recipe.head != nullptr && recipe.head(config).labels > 0;
  return spec.tied && spec.labels == 0 && !score_head && !recipes::adapts(config);
}

/// Resident memory of the program without a model: about 20 MiB of code and libraries, of which
/// more is resident where the system maps larger parts of files, tokenizer and data.
constexpr std::uint64_t program_bytes = std::uint64_t{28} << 20;
/// What SQLite and the rows that wait to be written add, of the process that has the ledger.
constexpr std::uint64_t ledger_bytes = std::uint64_t{3} << 20;
/// What MPI's libraries add.
constexpr std::uint64_t mpi_bytes = std::uint64_t{10} << 20;

/// With the buffers of MPI and those for messages to other ranks (decisions/0026).
std::uint64_t program_under_mpirun(const config::RunConfig& config) {
  const config::ParallelConfig& grid = config.parallel;
  const std::int64_t others =
                         (grid.tp - 1) + (grid.dp * grid.cp - 1) + (grid.cp - 1) + (grid.pp - 1),
                     neighbours = grid.pp == 1 ? 0 : std::min<std::int64_t>(2, grid.pp - 1),
                     each = grid.vpp == 1 ? 32 : 64;
  return program_bytes + mpi_bytes + (count_of(2 * others + each * neighbours) << 20);
}

enum class Held { always, at_most };

/// A model that `ranks` ranks hold together, `all` bytes, of which one has `of_rank`.
MemoryPart divided(const std::string& what, std::uint64_t all, std::uint64_t of_rank,
                   std::uint64_t ranks, Held held = Held::always) {
  const std::uint64_t fixed = held == Held::always ? all : 0,
                      fixed_of_rank = held == Held::always ? of_rank : 0;
  const std::string each =
      ranks == 1 ? "" : cat(", ", bytes_text(of_rank), " on each of ", ranks, " ranks");
  return {what + each, all, of_rank, fixed, fixed_of_rank};
}

/// Models that only score. Throws Failure.
MemoryPart scorer_part(const std::string& what,
                       const std::vector<engine::models::DecoderSpec>& specs,
                       const config::RunConfig& config, recipes::Role role) {
  const config::RunConfig own = recipes::config_for(config, role, recipes::RankKind::threads);
  std::uint64_t all = 0, of_rank = 0, ranks = 1;
  for (const auto& spec : specs) {
    const ModelShares shares(own, spec);
    all += 4 * shares.all * count_of(own.parallel.dp * own.parallel.cp);
    of_rank += 4 * shares.largest;
    ranks = shares.ranks;
  }
  return divided(what, all, of_rank, ranks);
}

/// Throws Failure.
std::vector<engine::models::DecoderSpec> reward_specs(const config::RunConfig& config) {
  std::vector<engine::models::DecoderSpec> specs;
  for (const recipes::RewardItem& item : value_or_throw(recipes::reward_items(config)))
    specs.push_back(value_or_throw(engine::checkpoint::read_folder_spec(item.path())));
  return specs;
}

/// The models that the ranks of the policy's group train.
class Ranks {
 public:
  using Bytes = std::uint64_t (*)(const RankMemory&);

  Ranks(const config::RunConfig& config, const engine::models::DecoderSpec& spec)
      : places_(memory_of_ranks(config, spec)),
        replicas_(count_of(config.parallel.dp * config.parallel.cp)),
        stages_(count_of(config.parallel.pp)) {}

  std::uint64_t count() const { return replicas_ * places_.size(); }
  /// The sum over all ranks, with the bytes of each, or of each stage, in its name.
  MemoryPart part(const std::string& what, Bytes of) const {
    MemoryPart out{.what = what};
    std::vector<std::string> each;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      out.bytes += replicas_ * of(places_[i]);
      if (places_[i].part == 0) each.push_back(bytes_text(of(places_[i])));
    }
    if (stages_ > 1)
      out.what += cat(", ", join(each, ", "), " on a rank of each of ", stages_, " stages");
    else if (count() > 1)
      out.what += cat(", ", each.front(), " on each of ", count(), " ranks");
    return out;
  }
  /// The same of what is resident whatever the data; `lookup`: except for these bytes.
  MemoryPart fixed(const std::string& what, Bytes of, Bytes lookup = nullptr) const {
    MemoryPart out = part(what, of);
    out.fixed = out.bytes - (lookup ? sum(lookup) : 0);
    return out;
  }
  std::uint64_t sum(Bytes of) const { return part("", of).bytes; }

 private:
  std::vector<RankMemory> places_;
  std::uint64_t replicas_, stages_;
};

void add_activations(std::vector<MemoryPart>& parts, const config::RunConfig& config,
                     const Ranks& ranks) {
  std::vector<std::string> names;
  for (const auto what : config.train.recomputed.kinds) names.emplace_back(name_of(what));
  const std::string recomputed =
      names.empty() ? "" : cat(", ", join(names, " and "), " recomputed");
  parts.push_back(
      {cat("activations of ", std::int64_t{config.train.micro_batch_tokens} * config.parallel.dp,
           " tokens", recomputed, config.train.offload.empty() ? "" : ", in files", " (estimate)"),
       ranks.sum([](const auto& rank) { return rank.activations; }), 0, 0, 0});
  parts.push_back({"packed GEMM operands and logits of the head (estimate)",
                   ranks.sum([](const auto& rank) { return rank.products; }), 0, 0, 0});
  const auto widened = ranks.sum([](const auto& rank) { return rank.widened; });
  if (widened > 0) parts.push_back({"f32 copies of operands", widened, 0, 0, 0});
}

/// Tokens of the KV cache that a rollout can use: pages are allocated from the lowest on, so those
/// beyond the sequences of its batches never become resident.
std::int64_t cached_tokens(const config::RunConfig& config,
                           const engine::models::DecoderSpec& spec) {
  const auto generator = run::generator_settings(config, spec);
  const std::int64_t all = engine::generate::cache_pages(generator, spec) * generator.page_size;
  // Evaluations and other programs send other numbers of sequences.
  const bool other_sequences =
      !config.eval.path.empty() || config.data.selection.split > 0 || !config.serve.listen.empty();
  if (other_sequences || config.async.on() || config.grpo.dynamic.on) return all;
  const recipes::RowUse use = recipes::recipe_of(config).row_use(config);
  // A greedy answer is one more (grpo.estimator remax).
  // A prefix cache keeps the pages of all sequences of a step, after which the weights change.
  const std::int64_t samples = (use.samples + 1) * use.batches * config.train.batch_size,
                     sequences = generator.prefix_cache
                                     ? samples
                                     : std::min<std::int64_t>(
                                           samples, config.rollout.generator.max_sequences),
                     pages = (run::max_length(config, spec) + generator.page_size - 1) /
                             generator.page_size;
  return std::min(all, sequences * pages * generator.page_size);
}

/// Weights and KV cache of the rollout actor.
void add_rollout(std::vector<MemoryPart>& parts, const config::RunConfig& config,
                 const engine::models::DecoderSpec& spec) {
  const config::RunConfig own =
      recipes::config_for(config, recipes::Role::rollout, recipes::RankKind::threads);
  const ModelShares shares(own, spec);
  const std::uint64_t adapter = adapter_bytes(config, spec), replicas = count_of(own.parallel.dp);
  const auto add = [&](const std::string& what, std::uint64_t all, std::uint64_t of_rank) {
    parts.push_back(divided(what, replicas * all, of_rank, shares.ranks));
  };
  if (adapter > 0)
    add("rollout weights, adapter, and a buffer for the next adapter", 4 * shares.all + 2 * adapter,
        4 * shares.largest + 2 * adapter);
  else
    add("rollout weights, and a buffer for the next", 8 * shares.all, 8 * shares.largest);
  // Ranks that have a part of the model copy it from all published values.
  if (adapter == 0 && shares.ranks > 1) {
    const std::uint64_t published = 4 * count_of(spec.parameter_count());
    parts.push_back({"published weights, once on a host", published, published, 0, 0});
  }
  if (recipes::samples_in_int8(config))
    add("rollout weights, int8 copy", shares.all, shares.largest);
  else if (config.train.dtype == engine::ops::Precision::bf16)
    add("rollout weights, packed bf16 copy", 2 * shares.all, 2 * shares.largest);
  const std::uint64_t tokens = count_of(cached_tokens(config, spec));
  parts.push_back(divided(cat("KV cache of ", tokens, " tokens (at most)"),
                          replicas * tokens * count_of(engine::generate::cached_token_bytes(spec)),
                          tokens * shares.cached, shares.ranks, Held::at_most));
}

}  // namespace

std::uint64_t trained_bytes(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec) {
  return recipes::adapts(config) ? adapter_bytes(config, spec)
                                 : 4 * count_of(spec.parameter_count());
}

namespace {

/// Weights, gradients and optimizer state of the policy.
void add_model(std::vector<MemoryPart>& parts, const config::RunConfig& config,
               const engine::models::DecoderSpec& spec, const Ranks& ranks) {
  const ValueBytes value(config);
  parts.push_back(ranks.fixed(value.weight < 4 ? "weights (bf16)" : "weights (f32)",
                              [](const auto& rank) { return rank.weights; }));
  if (recipes::adapts(config))
    parts.push_back(ranks.fixed("adapter", [](const auto& rank) { return rank.adapter; }));
  // Pipeline stages each have one of the two gradients. The one of the lookup is f32.
  const bool two = config.parallel.pp == 1 && has_two_gradients(config, spec);
  parts.push_back(ranks.fixed(
      cat(two ? "gradients, two of the tied embedding" : "gradients",
          value.gradient < 4 ? " (bf16)" : ""),
      [](const auto& rank) { return rank.gradients; },
      [](const auto& rank) { return rank.lookup; }));
  parts.push_back(
      ranks.fixed(value.moment < 4 ? "AdamW's two moments (bf16)" : "AdamW's two moments",
                  [](const auto& rank) { return rank.moments; }));
  if (value.average > 0)
    parts.push_back(ranks.fixed("moving average of the weights (f32)",
                                [](const auto& rank) { return rank.average; }));
}

/// Models that are not trained: once in a process, or on each rank of mpirun or group of ranks.
std::vector<MemoryPart> other_models(const config::RunConfig& config,
                                     const engine::models::DecoderSpec& spec) {
  const recipes::RolesNeeded roles = recipes::roles_of(config);
  std::vector<MemoryPart> parts;
  if (roles.critic.needed && recipes::has_grid(config, recipes::Role::critic)) {
    const std::uint64_t each = critic_bytes(config, spec),
                        ranks = count_of(config.parallel.ranks());
    parts.push_back(divided("critic: weights, gradients and moments", ranks * each, each, ranks));
  }
  if (roles.reference.needed)
    parts.push_back(scorer_part("reference model", {spec}, config, recipes::Role::reference));
  if (roles.reward.needed)
    parts.push_back(
        scorer_part("reward models", reward_specs(config), config, recipes::Role::reward));
  if (roles.rollout.needed) add_rollout(parts, config, spec);
  if (roles.rollout.needed && config.async.on()) {
    const std::uint64_t versions = count_of(config.async.eta + 1) * trained_bytes(config, spec);
    parts.push_back({cat(config.async.eta + 1, config.async.eta == 0 ? " version" : " versions",
                         " of the weights to sample with"),
                     versions, versions, 0, 0});
  }
  return parts;
}

}  // namespace

std::vector<MemoryPart> memory_needed(const config::RunConfig& config,
                                      const engine::models::DecoderSpec& spec) {
  const Ranks ranks(config, spec);
  std::vector<MemoryPart> parts;
  add_model(parts, config, spec, ranks);
  if (recipes::roles_of(config).critic.needed && !recipes::has_grid(config, recipes::Role::critic))
    parts.push_back(ranks.fixed("critic: weights, gradients and moments",
                                [](const auto& rank) { return rank.critic; }));
  for (auto& part : other_models(config, spec)) parts.push_back(std::move(part));
  if (recipes::roles_of(config).rollout.needed &&
      config.weights.format == actors::protocol::WeightCoding::delta)
    parts.push_back({"newest weights, for differences (cluster: policy and controller)",
                     2 * trained_bytes(config, spec), 0, 0, 0});
  add_activations(parts, config, ranks);
  const std::uint64_t ledger = config.ledger == config::LedgerUse::on ? ledger_bytes : 0;
  parts.push_back({"program and libraries (estimate)", program_bytes + ledger, 0, 0, 0});
  return parts;
}

std::vector<RankPeak> peaks_of_ranks(const config::RunConfig& config,
                                     const engine::models::DecoderSpec& spec) {
  std::uint64_t others = 0, fixed = 0;
  for (const auto& part : other_models(config, spec)) {
    others += part.of_rank;
    fixed += part.fixed_of_rank;
  }
  std::vector<RankPeak> peaks;
  for (const RankMemory& rank : memory_of_ranks(config, spec))
    peaks.push_back({rank, others, program_under_mpirun(config), fixed});
  return peaks;
}

std::string bytes_per_parameter(const config::RunConfig& config) {
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

}  // namespace troupe::launch::memory
