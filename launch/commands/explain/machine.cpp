#include "launch/commands/explain/machine.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "engine/base/environment/processors.h"
#include "engine/base/files/file.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/devices/make_device.h"
#include "engine/ops/roofline.h"
#include "launch/commands/explain/rate_cache.h"

namespace troupe::launch::commands {

namespace {

/// train.threads, or the cores of the machine.
std::int64_t threads_of(const config::RunConfig& config, std::int64_t cores) {
  return config.train.threads > 0 ? std::min<std::int64_t>(config.train.threads, cores) : cores;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  return std::strftime(text, sizeof text, "%Y-%m-%d", &parts) > 0 ? text : "0000-00-00";
}

/// The best of three measurements: another process can only make them slower.
double measured(std::int64_t threads, bool bf16) {
  const auto device =
      engine::ops::make_device({.threads = static_cast<int>(threads), .pin_threads = false});
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const auto ceiling = engine::ops::measure_ceiling(*device, bf16);
    best = std::max(best, bf16 ? ceiling.bf16_flops : ceiling.f32_flops);
  }
  return best;
}

void store(const std::string& path, const std::string& text) {
  std::error_code failed;
  const auto folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, failed);
  // Without it the next estimate measures again.
  if (const auto written = write_file_durably(path, text); !written)
    log_debug(cat("explain: the rate is not kept: ", written.error().what));
}

/// Of this machine: from the cache, or measured.
StoredRate local_rate(const RateKey& key, bool again) {
  constexpr std::size_t max_bytes = 1 << 20;
  const std::string path = rate_cache_path();
  const std::string text = path.empty() ? "" : read_file(path, max_bytes).value_or("");
  const auto found = find_rate(text, key);
  if (!found)
    log_warning(cat(path, ": ", found.error().what, "; it is written again"));
  else if (*found && !again)
    return **found;
  const StoredRate rate{measured(key.threads, key.dtype == "bf16"), today()};
  if (rate.flops > 0 && !path.empty()) store(path, with_rate(text, key, rate));
  return rate;
}

std::string gflops_text(double flops) {
  return cat(to_text(flops / 1e9, flops < 1e11 ? 1 : 0), " GFLOP/s");
}

}  // namespace

MachineRate rate_of(const MachineOptions& machine, const config::RunConfig& config) {
  const std::int64_t here = engine::usable_processors(),
                     cores = machine.cores > 0 ? machine.cores : here,
                     threads = threads_of(config, cores);
  if (machine.gflops > 0) {
    const double share =
        machine.cores > 0 ? static_cast<double>(threads) / static_cast<double>(cores) : 1;
    const double flops = 1e9 * machine.gflops * share;
    return {flops, cat(gflops_text(flops),
                       share < 1 ? cat(" on ", threads, " of ", cores, " cores (--gflops, --cores)")
                                 : " (--gflops)")};
  }
  const bool bf16 = config.train.dtype == engine::ops::Precision::bf16;
  const std::int64_t measured_threads = std::min(threads, here);
  const RateKey key{processor_name(), engine::ops::best_instruction_set(), measured_threads,
                    bf16 ? "bf16" : "f32"};
  const StoredRate rate = local_rate(key, machine.measure);
  if (!(rate.flops > 0)) return {};
  const double scale = static_cast<double>(threads) / static_cast<double>(measured_threads),
               flops = rate.flops * scale;
  std::string origin = cat(gflops_text(flops), " in ", key.dtype, " on ", threads,
                           threads == 1 ? " thread, " : " threads, ");
  origin += threads > here ? cat("in proportion to ", measured_threads, " here, measured on ")
                           : std::string("measured on ");
  return {flops, cat(origin, rate.date)};
}

memory::MemoryPlace memory_of(const MachineOptions& machine) {
  if (!machine.is_other()) return memory::memory_place();
  memory::MemoryPlace place{.processes = 1, .threads = true, .room = {}};
  if (machine.memory > 0) place.room.machine = {machine.memory, "--memory"};
  return place;
}

}  // namespace troupe::launch::commands
