#include "engine/adapter/lora_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "engine/adapter/module_pattern.h"
#include "engine/base/text/text.h"
#include "engine/models/storage.h"

namespace troupe::engine::adapter {
namespace {

constexpr std::string_view all_linear = "all-linear", head = "lm_head";
constexpr std::int64_t largest_rank = 1 << 16;
constexpr std::string_view experts_part = ".mlp.experts.";
constexpr std::array<std::string_view, 2> fused_projections{"gate_up_proj", "down_proj"};

// Index of the layer: 12 for "model.layers.12.mlp.up_proj"; -1: outside the layers.
std::int64_t layer_of(const std::string& module) {
  constexpr std::string_view prefix = "model.layers.";
  if (!module.starts_with(prefix)) return -1;
  return std::stoll(module.substr(prefix.size()));
}

// Routers, experts and shared experts, which all-linear leaves out.
bool of_mixture(std::string_view module) {
  return module.find(".mlp.experts.") != module.npos ||
         module.find(".mlp.shared_expert") != module.npos || module.ends_with(".mlp.gate");
}

bool selects(const ModulePattern& pattern, const std::string& module) {
  if (pattern.text() == all_linear) return module != head && !of_mixture(module);
  return pattern.matches(module);
}

// Fails for a target without a linear layer, and for a layer that the model does not have.
Result<> check_targets(const LoraConfig& config, const std::vector<ModulePattern>& targets,
                       const models::DecoderSpec& spec, const std::string& where) {
  const auto modules = linear_modules(spec);
  std::vector<std::string> ends;
  for (const auto& module : modules) ends.push_back(module.substr(module.rfind('.') + 1));
  for (const auto& target : targets) {
    if (std::ranges::any_of(modules, [&](const auto& module) { return selects(target, module); }))
      continue;
    const auto near = nearest(target.text(), ends);
    const auto shown = std::min<std::ptrdiff_t>(7, std::ssize(ends));
    return fail(Errc::usage,
                cat(where, "targets: no linear layer of this model is named ", quote(target.text()),
                    near.empty() ? "" : cat("; the nearest name is ", quote(near)),
                    " (known: ", join({ends.begin(), ends.begin() + shown}, ", "),
                    spec.tied || spec.labels > 0 ? "" : ", lm_head", ")"));
  }
  for (const auto layer : config.layers)
    if (layer < 0 || layer >= spec.layers)
      return fail(Errc::usage, cat(where, "layers: this model has layers 0 to ", spec.layers - 1,
                                   ", found ", layer));
  return {};
}

// The modules of LoraConfig::parameters (models::FusedExperts).
Result<std::vector<std::string>> fused_targets(const LoraConfig& config,
                                               const models::DecoderSpec& spec,
                                               const std::string& where) {
  std::vector<std::string> out;
  std::size_t found = 0;
  for (const auto& name : config.parameters) {
    const bool known =
        spec.experts && std::ranges::any_of(fused_projections, [&](std::string_view projection) {
          return cat("model.layers.0.mlp.experts.", projection).ends_with("." + name);
        });
    found += known ? 1 : 0;
    if (!known)
      return fail(Errc::usage, cat(where,
                                   "parameters: expected mlp.experts.gate_up_proj or "
                                   "mlp.experts.down_proj of a mixture of experts, found ",
                                   quote(name), spec.experts ? "" : "; this model has no experts"));
  }
  for (const auto& tensor : models::stored_tensors(spec))
    if (found > 0 && tensor.rows.size() > 1 && of_mixture(tensor.rows.front().parameter))
      return fail(Errc::unsupported,
                  cat(where, "parameters: ", spec.architecture, " stores its experts as ",
                      tensor.name, "; adapters of it are not supported"));
  for (std::int64_t layer = 0; found > 0 && layer < spec.layers; ++layer)
    for (const std::string_view projection : fused_projections) {
      const std::string module = cat("model.layers.", layer, ".mlp.experts.", projection);
      const bool wanted = std::ranges::any_of(
          config.parameters, [&](const auto& name) { return module.ends_with("." + name); });
      const bool here =
          config.layers.empty() || std::ranges::find(config.layers, layer) != config.layers.end();
      if (wanted && here && spec.has_experts(layer)) out.push_back(module);
    }
  return out;
}

// The adapters of a projection of all experts of a layer are one operation: they have one rank and
// one scale, and neither magnitudes nor dropout.
Result<> check_experts(const models::LoraSpec& lora, const models::DecoderSpec& spec,
                       const std::string& where) {
  if (!spec.experts) return {};
  std::map<std::string, std::vector<const models::LoraTarget*>> projections;
  for (const auto& target : lora.targets) {
    const auto at = target.module.find(experts_part);
    if (at == target.module.npos) continue;
    if (lora.dora || lora.dropout > 0)
      return fail(Errc::unsupported,
                  cat(where, lora.dora ? "dora" : "dropout", ": adapters of experts (",
                      target.module, ") have neither magnitudes nor dropout"));
    const auto number_end = target.module.find('.', at + experts_part.size());
    if (number_end == target.module.npos) continue;  // one adapter of all experts
    projections[target.module.substr(0, at) + target.module.substr(number_end)].push_back(&target);
  }
  for (const auto& [name, targets] : projections) {
    const auto& first = *targets.front();
    const bool alike = std::ranges::all_of(targets, [&](const auto* target) {
      return target->rank == first.rank && target->scale == first.scale;
    });
    if (!alike || std::ssize(targets) != spec.experts->router.experts)
      return fail(Errc::unsupported,
                  cat(where, "targets: ", first.module, ": all ", spec.experts->router.experts,
                      " experts of a layer must have an adapter of this "
                      "projection, of one rank "
                      "and alpha; found ",
                      targets.size(), alike ? "" : " of different ones"));
  }
  for (const auto& target : lora.targets)
    for (const auto& [name, targets] : projections) {
      const auto at = target.module.find(experts_part);
      const bool fused = models::fused_experts(target.module, spec).has_value();
      const bool both = name.ends_with(".down_proj") == target.module.ends_with(".down_proj");
      if (fused && both && name.starts_with(target.module.substr(0, at) + "."))
        return fail(Errc::usage, cat(where, "parameters: ", target.module,
                                     " has adapters of its experts by lora.targets, too"));
    }
  return {};
}

Result<std::vector<std::string>> targeted(const LoraConfig& config, const models::DecoderSpec& spec,
                                          const std::string& where) {
  const auto wanted = patterns_of(config.targets, where + "targets"),
             unwanted = patterns_of(config.exclude, where + "exclude");
  RETURN_IF_ERROR(wanted);
  RETURN_IF_ERROR(unwanted);
  RETURN_IF_ERROR(check_targets(config, *wanted, spec, where));
  auto fused = fused_targets(config, spec, where);
  RETURN_IF_ERROR(fused);
  std::vector<std::string> out;
  for (const auto& module : linear_modules(spec)) {
    const auto matches = [&](const ModulePattern& pattern) { return selects(pattern, module); };
    if (std::ranges::none_of(*wanted, matches) || std::ranges::any_of(*unwanted, matches)) continue;
    if (config.layers.empty() ||
        std::ranges::find(config.layers, layer_of(module)) != config.layers.end())
      out.push_back(module);
  }
  const bool has_head = !out.empty() && out.back() == head;
  out.insert(out.end() - (has_head ? 1 : 0), fused->begin(), fused->end());
  if (out.empty())
    return fail(Errc::usage, cat(where,
                                 "targets: every target is also "
                                 "excluded; there is nothing to adapt"));
  return out;
}

// The value of the first pattern that matches, as in PEFT's get_pattern_key.
template <class T>
Result<T> patterned(const std::vector<std::pair<std::string, T>>& patterns,
                    const std::string& module, T fallback, const std::string& where) {
  for (const auto& [text, value] : patterns) {
    const auto pattern = ModulePattern::create(text, where);
    RETURN_IF_ERROR(pattern);
    if (pattern->matches_suffix(module)) return value;
  }
  return fallback;
}

Result<std::vector<std::string>> saved_modules(const LoraConfig& config,
                                               const models::DecoderSpec& spec,
                                               const std::string& where) {
  std::vector<std::string> out;
  for (const auto& name : config.saved) {
    const bool known = name == "score" && spec.labels > 0;
    if (!known)
      return fail(
          Errc::unsupported,
          cat(where,
              "saved: only the score head of a reward model (\"score\") can be "
              "trained beside an "
              "adapter, found ",
              quote(name), spec.labels > 0 ? "" : "; this is a language model without one"));
    out.push_back(name);
  }
  return out;
}

// Products with it must stay finite in f32.
bool is_valid_alpha(double alpha) {
  return alpha != 0 && std::abs(alpha) <= 1e30;
}

Result<> check_numbers(const LoraConfig& config, const std::string& where) {
  if (!(config.dropout >= 0 && config.dropout < 1))
    return fail(Errc::usage,
                cat(where, "dropout must be at least 0 and below 1, found ", config.dropout));
  for (const auto& [name, rank] : config.rank_pattern)
    if (rank < 1 || rank > largest_rank)
      return fail(Errc::usage, cat(where, "rank_pattern: the rank of ", quote(name),
                                   " must be from 1 to ", largest_rank, ", found ", rank));
  if (config.rank < 1 || config.rank > largest_rank)
    return fail(Errc::usage,
                cat(where, "rank must be from 1 to ", largest_rank, ", found ", config.rank));
  for (const auto& [name, alpha] : config.alpha_pattern)
    if (!is_valid_alpha(alpha))
      return fail(Errc::usage, cat(where, "alpha_pattern: the alpha of ", quote(name),
                                   " must not be 0 or beyond 1e30, found ", alpha));
  if (!is_valid_alpha(config.alpha))
    return fail(Errc::usage, cat(where,
                                 "alpha must not be 0 (the adapter would have "
                                 "no effect) or beyond 1e30, found ",
                                 config.alpha));
  return {};
}

// PEFT's files use the base's module names: adapters of modules that this family fuses, renames or
// transposes are rejected, since they would load as adapters of other modules.
Result<> check_stored(const std::vector<std::string>& modules, models::DecoderSpec spec,
                      const std::string& where) {
  constexpr std::string_view first_layer = "model.layers.0.";
  spec.layers = 1;  // all layers are stored alike
  for (const auto& tensor : models::stored_tensors(spec))
    for (const auto& rows : tensor.rows) {
      if (tensor.rows.size() == 1 && !tensor.transposed && tensor.name == rows.parameter)
        continue;  // peft_file.h orders its rows
      const auto start = rows.parameter.starts_with(first_layer) ? first_layer.size() : 0;
      const std::string module = rows.parameter.substr(start, rows.parameter.rfind('.') - start);
      const auto meant = std::ranges::find_if(
          modules, [&](const std::string& name) { return name.ends_with(module); });
      if (meant != modules.end())
        return fail(Errc::unsupported,
                    cat(where, "targets: ", spec.architecture, " stores ", *meant,
                        " in another layout, as ", tensor.name,
                        "; adapters of it are not supported, remove the target"));
    }
  return {};
}

}  // namespace

namespace {

constexpr std::array<std::string_view, 3> projections{"gate_proj", "up_proj", "down_proj"};

// In the order of the weights (models::parameter_list).
void add_mixture(const models::ExpertsSpec& of, const std::string& mlp,
                 std::vector<std::string>& out) {
  out.push_back(mlp + "gate");
  for (const std::string_view name : projections)
    for (std::int64_t e = 0; e < of.router.experts; ++e)
      out.push_back(cat(mlp, "experts.", e, ".", name));
  for (const std::string_view name : projections)
    if (of.shared_inner > 0) out.push_back(cat(mlp, "shared_experts.", name));
  if (of.shared_gate) out.push_back(mlp + "shared_expert_gate");
}

}  // namespace

std::vector<std::string> linear_modules(const models::DecoderSpec& spec) {
  std::vector<std::string> out;
  const auto attention =
      spec.latent ? std::vector<std::string_view>{"q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
                                                  "kv_b_proj", "o_proj"}
                  : std::vector<std::string_view>{"q_proj", "k_proj", "v_proj", "o_proj"};
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    for (const auto name : attention)
      out.push_back(cat("model.layers.", layer, ".self_attn.", name));
    const std::string mlp = cat("model.layers.", layer, ".mlp.");
    if (spec.has_experts(layer)) {
      add_mixture(*spec.experts, mlp, out);
      continue;
    }
    for (const std::string_view name : projections)
      if (spec.gated || name != "gate_proj") out.push_back(cat(mlp, name));
  }
  if (spec.labels == 0) out.emplace_back(head);
  return out;
}

Result<models::LoraSpec> resolve_targets(const LoraConfig& config, const models::DecoderSpec& spec,
                                         const std::string& where) {
  RETURN_IF_ERROR(check_numbers(config, where));
  auto saved = saved_modules(config, spec, where);
  RETURN_IF_ERROR(saved);
  const auto modules = targeted(config, spec, where);
  RETURN_IF_ERROR(modules);
  RETURN_IF_ERROR(check_stored(*modules, spec, where));
  models::LoraSpec lora{{}, config.dora, config.dropout, std::move(*saved)};
  for (const auto& target : *modules) {
    // PEFT's patterns name the module of the experts' parameters.
    const bool fused = models::fused_experts(target, spec).has_value();
    const std::string module = fused ? target.substr(0, target.rfind('.')) : target;
    const auto rank =
        patterned(config.rank_pattern, module, std::int64_t{config.rank}, where + "rank_pattern");
    const auto alpha =
        patterned(config.alpha_pattern, module, config.alpha, where + "alpha_pattern");
    RETURN_IF_ERROR(rank);
    RETURN_IF_ERROR(alpha);
    const auto size = static_cast<double>(*rank);
    lora.targets.push_back(
        {target, static_cast<int>(*rank), *alpha / (config.rslora ? std::sqrt(size) : size)});
    if (module == head && config.dora)
      return fail(Errc::unsupported, cat(where,
                                         "dora: the output head (lm_head) can have an "
                                         "adapter, but not one with magnitudes"));
  }
  RETURN_IF_ERROR(check_experts(lora, spec, where));
  return lora;
}

Result<> check_trainable(const models::LoraSpec& lora) {
  if (lora.dropout == 0) return {};
  if (lora.dora)
    return fail(Errc::unsupported,
                "an adapter with magnitudes (DoRA) is "
                "trained without dropout here: set "
                "lora.dropout to 0 or lora.dora to false");
  for (const auto& target : lora.targets)
    if (target.module == head)
      return fail(Errc::unsupported,
                  "an adapter of the output head (lm_head) is trained without "
                  "dropout here: set "
                  "lora.dropout to 0, or leave lm_head out of "
                  "lora.targets");
  return {};
}

}  // namespace troupe::engine::adapter
