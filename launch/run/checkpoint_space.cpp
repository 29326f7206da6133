#include "launch/run/checkpoint_space.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "actors/roles/weights.h"
#include "engine/base/files/space_wait.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/disk_space.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::run {

namespace checkpoint = engine::checkpoint;

namespace {

constexpr std::int64_t f32_bytes = 4, half_bytes = 2;

// Bytes of one trained value: its weight and its average, and unless only the model is saved the
// two moments, and the f32 weight beside a rounded one. `auto` may be f32.
std::int64_t bytes_of_value(const config::RunConfig& config) {
  const bool rounded =
      !recipes::adapts(config) && (config.train.save_dtype == config::SaveDtype::bf16 ||
                                   config.train.save_dtype == config::SaveDtype::f16);
  const std::int64_t weight = rounded ? half_bytes : f32_bytes;
  const std::int64_t average = config.train.optimizer.ema_decay > 0 ? f32_bytes : 0;
  if (config.train.save_only_model) return weight + average;
  return weight + average + 2 * f32_bytes + (rounded ? f32_bytes : 0);
}

std::int64_t checkpoints_in(const std::string& output) {
  std::int64_t count = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(output, failed), end; !failed && at != end;
       at.increment(failed))
    count += checkpoint::step_of_name(at->path().filename().string()).has_value();
  return count;
}

}  // namespace

std::int64_t trained_values(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec) {
  if (!recipes::adapts(config)) return spec.parameter_count();
  engine::models::DecoderSpec adapted = spec;
  adapted.lora = value_or_throw(recipes::wanted_adapter(config, spec)).lora;
  return static_cast<std::int64_t>(actors::roles::trained_values(adapted));
}

std::uint64_t checkpoint_bytes(const config::RunConfig& config,
                               const engine::models::DecoderSpec& spec) {
  const recipes::RolesNeeded roles = recipes::roles_of(config);
  std::int64_t bytes = bytes_of_value(config) * trained_values(config, spec);
  if (roles.critic.needed) {
    const auto& source = config.critic.model;
    bytes += bytes_of_value(config) *
             (source.empty() ? spec : value_or_throw(checkpoint::read_folder_spec(source)))
                 .parameter_count();
  }
  if (roles.reference_follows) bytes += f32_bytes * spec.parameter_count();
  return static_cast<std::uint64_t>(bytes);
}

void check_checkpoint_space(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec) {
  const std::uint64_t needed = checkpoint_bytes(config, spec),
                      free = checkpoint::free_bytes(config.output);
  value_or_throw(checkpoint::check_space(config.output, needed, free));
  if (config.train.keep_last == 0) return;
  // The oldest is removed after the next is complete.
  const std::int64_t coming = config.train.keep_last + 1 - checkpoints_in(config.output);
  const std::uint64_t all = needed * static_cast<std::uint64_t>(std::max<std::int64_t>(1, coming));
  if (all > free)
    log_warning(cat("train.keep_last: ", coming, " more checkpoints of ",
                    checkpoint::mebibytes(needed), " need ", checkpoint::mebibytes(all), ", ",
                    free >> 20, " MiB are free in ", config.output));
}

void wait_for_space(const config::RunConfig& config) {
  const std::chrono::duration<double> longest(config.recovery.disk_wait);
  wait_for_disk_space(std::chrono::duration_cast<std::chrono::milliseconds>(longest),
                      [](const std::string& text) { log_warning(text); });
}

}  // namespace troupe::launch::run
