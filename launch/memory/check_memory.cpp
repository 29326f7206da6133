#include "launch/memory/check_memory.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/memory/memory.h"
#include "launch/memory/what_fits.h"
#include "launch/recipes/recipes.h"
#include "launch/run/settings.h"
#include "transports/mpi/started_ranks.h"

namespace troupe::launch::memory {

namespace {

MemoryNeed need_of_process(const config::RunConfig& config,
                           const engine::models::DecoderSpec& spec) {
  MemoryNeed need;
  for (const MemoryPart& part : memory_needed(config, spec)) {
    need.fixed += part.fixed;
    need.all += part.bytes;
  }
  return need;
}

MemoryNeed need_of_largest_rank(const config::RunConfig& config,
                                const engine::models::DecoderSpec& spec) {
  MemoryNeed need;
  for (const RankPeak& rank : peaks_of_ranks(config, spec)) {
    need.fixed = std::max(need.fixed, rank.fixed());
    need.all = std::max(need.all, rank.bytes());
  }
  return need;
}

/// The limit that a part of MemoryNeed exceeds.
struct Exceeded {
  std::uint64_t needed = 0;
  const MemoryRoom* room = nullptr;  ///< null: none
};

Exceeded exceeded(std::uint64_t of_process, int processes, const AvailableMemory& room) {
  const std::uint64_t all = of_process * static_cast<std::uint64_t>(processes);
  if (room.process.known() && of_process > room.process.bytes) return {of_process, &room.process};
  if (room.machine.known() && all > room.machine.bytes) return {all, &room.machine};
  return {};
}

std::string figures(const Exceeded& found, int processes) {
  return cat(bytes_text(found.needed),
             processes > 1 ? cat(" on the ", processes, " ranks of this machine") : "", ", and ",
             bytes_text(found.room->bytes), " are available (", found.room->limit, ")");
}

/// Settings that lower what is no weight, gradient or optimizer state.
std::string lower(const config::RunConfig& config) {
  std::vector<std::string> settings{
      cat("lower train.micro_batch_tokens (", config.train.micro_batch_tokens, ")")};
  if (!config.train.recomputed.has(engine::nn::Recompute::full))
    settings.emplace_back("set train.recompute to [full]");
  if (recipes::roles_of(config).rollout.needed)
    settings.push_back(cat("lower rollout.max_sequences (", config.rollout.generator.max_sequences,
                           ") or rollout.cache_tokens"));
  return join(settings, ", or ");
}

}  // namespace

MemoryPlace memory_place() {
  MemoryPlace place;
  const auto ranks = transports::mpi::started_ranks();
  place.threads = !ranks.started;
  place.processes = std::max(1, ranks.local_size);
  return place;
}

MemoryNeed memory_need(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                       bool ranks_are_threads) {
  return ranks_are_threads ? need_of_process(config, spec) : need_of_largest_rank(config, spec);
}

Result<std::string> compare_memory(const MemoryNeed& of_process, int processes,
                                   const AvailableMemory& room,
                                   const std::function<std::string()>& advice) {
  if (const Exceeded fixed = exceeded(of_process.fixed, processes, room); fixed.room != nullptr)
    return fail(Errc::full, cat("memory: weights, gradients and optimizer state need ",
                                figures(fixed, processes), ". ", advice()));
  if (const Exceeded all = exceeded(of_process.all, processes, room); all.room != nullptr)
    return cat("memory: with activations and caches the run may need ", figures(all, processes));
  return std::string();
}

Result<std::string> check_memory(const config::RunConfig& config,
                                 const engine::models::DecoderSpec& spec,
                                 const MemoryPlace& place) {
  const MemoryNeed need = memory_need(config, spec, place.threads);
  auto warning =
      compare_memory(need, place.processes, place.room, [&] { return what_fits(config, place); });
  if (warning && !warning->empty()) *warning += cat(": ", lower(config));
  return warning;
}

}  // namespace troupe::launch::memory
