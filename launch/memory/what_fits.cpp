#include "launch/memory/what_fits.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/memory/memory.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::memory {

namespace {

void train_adapter(config::RunConfig& config) {
  config.lora.rank = 8;
  config.parallel.sp = false;
  config.train.optimizer.weights = engine::nn::WeightType::f32;
}

void round_states(config::RunConfig& config) {
  if (!recipes::adapts(config)) config.train.optimizer.weights = engine::nn::WeightType::bf16;
  config.train.gradients = config.train.moments = engine::nn::StateType::bf16;
}

/// Rows, or completions, of one update.
std::int64_t examples_of_update(const config::RunConfig& config) {
  const recipes::RowUse use = recipes::recipe_of(config).row_use(config);
  return config.train.batch_size * use.batches * std::max<std::int64_t>(1, use.samples) /
         std::max<std::int64_t>(1, use.updates);
}

constexpr const char* bf16_keys = "train.weights, train.gradients and train.moments = bf16";

class Search {
 public:
  Search(const config::RunConfig& config, const MemoryPlace& place)
      : config_(config), place_(place) {}

  /// Settings of a run on this machine.
  void here(const std::string& settings, const config::RunConfig& changed) {
    const auto fixed = fixed_of(changed, place_.threads);
    if (!fixed || !fits(*fixed, place_.processes)) return;
    found_.push_back(cat(settings, " (",
                         bytes_text(*fixed * static_cast<std::uint64_t>(place_.processes)), ")"));
  }

  /// The smallest number of hosts with a process each, over which `divide` divides the run.
  template <class Divide>
  void on_hosts(const char* key, const Divide& divide) {
    for (int hosts = 2; hosts <= 1024; hosts *= 2) {
      config::RunConfig changed = config_;
      divide(changed.parallel, hosts);
      if (changed.parallel.dp > examples_of_update(config_)) return;  // some would have none
      const auto fixed = fixed_of(changed, false);
      if (!fixed || !fits(*fixed, 1)) continue;
      found_.push_back(
          cat(key, " = ", hosts, " over ", hosts, " hosts (", bytes_text(*fixed), " on each)"));
      return;
    }
  }

  std::string text() const {
    if (found_.empty())
      return "No adapter, type of the states or division over hosts like this one makes it fit: "
             "choose a smaller model or a machine with more memory";
    return cat("What would fit: ", join(found_, "; "));
  }

 private:
  /// nullopt: the run would be refused.
  static std::optional<std::uint64_t> fixed_of(const config::RunConfig& changed, bool threads) {
    try {
      const config::RunConfig valid =
          value_or_throw(recipes::config_of(recipes::to_yaml(changed), "the changed run"));
      return memory_need(valid, value_or_throw(recipes::spec_of(valid, valid.model)), threads)
          .fixed;
    } catch (const Failure&) {
      return std::nullopt;
    }
  }
  bool fits(std::uint64_t fixed, int processes) const {
    return compare_memory({fixed, fixed}, processes, place_.room, [] { return std::string(); })
        .has_value();
  }

  const config::RunConfig& config_;
  const MemoryPlace& place_;
  std::vector<std::string> found_;
};

}  // namespace

std::string what_fits(const config::RunConfig& config, const MemoryPlace& place) {
  Search search(config, place);
  config::RunConfig adapter = config, rounded = config, zero = config;
  train_adapter(adapter);
  if (!recipes::adapts(config)) search.here("lora.rank = 8", adapter);
  round_states(rounded);
  search.here(bf16_keys, rounded);
  zero.parallel.zero = 1;
  if (config.parallel.zero == 0 && config.parallel.dp * config.parallel.cp > 1)
    search.here("parallel.zero = 1", zero);
  search.on_hosts("parallel.tp", [](config::ParallelConfig& p, int hosts) { p.tp *= hosts; });
  search.on_hosts("parallel.pp", [](config::ParallelConfig& p, int hosts) { p.pp *= hosts; });
  search.on_hosts("parallel.zero = 1 and parallel.dp", [](config::ParallelConfig& p, int hosts) {
    p.zero = 1;
    p.dp *= hosts;
  });
  return search.text();
}

}  // namespace troupe::launch::memory
