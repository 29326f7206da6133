#include "engine/checkpoint/init_weights.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/nn/logical_tensors.h"

namespace troupe::engine::checkpoint {
namespace {

// Two values from two uniform ones (Box and Muller 1958).
std::vector<float> normal_values(std::int64_t count, double std_dev, std::uint64_t seed,
                                 std::uint64_t stream) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const double radius = std_dev * std::sqrt(-2 * std::log(1 - uniform(seed, stream, i)));
    const double angle = 2 * std::numbers::pi * uniform(seed, stream, i + 1);
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return values;
}

bool is_output_projection(std::string_view name) {
  return name.ends_with(".self_attn.o_proj.weight") || name.ends_with(".mlp.down_proj.weight");
}

}  // namespace

bool has_weight_files(const std::string& folder) {
  constexpr std::array<std::string_view, 5> endings{".safetensors", ".bin", ".pt", ".pth",
                                                    ".index.json"};
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    for (const auto ending : endings)
      if (name.ends_with(ending)) return true;
  }
  return false;
}

Result<double> initializer_range(const std::string& folder) {
  const std::string path = folder + "/config.json";
  const auto config = read_json(path, {.bytes = 16u << 20});
  RETURN_IF_ERROR(config);
  const Json* range = config->is_object() ? config->find("initializer_range") : nullptr;
  if (!range || range->is_null()) return 0.02;
  if (range->is_number() && range->number() > 0 && std::isfinite(range->number()))
    return range->number();
  return fail(Errc::bad_input,
              cat(path, ": \"initializer_range\" must be a positive number, found ",
                  quote(range->dump(), 40), "; init.std sets another"));
}

void init_weights(models::Decoder& model, const InitOptions& options) {
  const double layers = static_cast<double>(model.spec().layers);
  const double scaled =
      options.scaled_output ? options.std_dev / std::sqrt(2 * layers) : options.std_dev;
  for (nn::Parameter& parameter : model.parameters().all()) {
    if (!parameter.decays()) {
      const bool gain = parameter.name.ends_with(".weight");
      model.device().fill(parameter.value,
                          gain ? static_cast<float>(1 - model.spec().norm_offset) : 0.0f);
      continue;
    }
    const double std_dev = is_output_projection(parameter.name) ? scaled : options.std_dev;
    const auto logical = normal_values(parameter.logical_shape().count(), std_dev, options.seed,
                                       stream_of(parameter.name));
    std::vector<float> part(static_cast<std::size_t>(parameter.value.count()));
    nn::copy_shard(logical, parameter, part);
    model.device().upload(parameter.value, part);
  }
}

}  // namespace troupe::engine::checkpoint
