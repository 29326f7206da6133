#include "launch/tools/megatron/architecture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/models/spec.h"
#include "launch/tools/convert/layer_split.h"

namespace troupe::launch::tools::megatron {
namespace {

using engine::models::DecoderSpec;
using engine::ops::Activation;

std::string activation_of(const DecoderSpec& spec) {
  constexpr std::array<std::string_view, 4> names{"silu", "gelu", "gelu-tanh", "squared-relu"};
  return cat(spec.gated ? "gated " : "", names[static_cast<std::size_t>(spec.activation)]);
}

/// Layers that --num-layers counts and that config.json does not have.
std::int64_t empty_layers(const CommandLine& line) {
  const Given* given = line.find("noop-layers");
  const auto places =
      convert::parse_numbers(given ? join(given->values, " ") : std::string(), "--noop-layers");
  return places ? std::ssize(*places) : 0;
}

/// Compares flags with what config.json says, and collects the contradictions.
class Check {
 public:
  Check(const CommandLine& line, const DecoderSpec& spec) : line_(line), spec_(spec) {}

  std::vector<std::string> problems() {
    sizes();
    vocabulary();
    positions();
    norms();
    switches();
    return std::move(problems_);
  }

 private:
  void number(std::string_view flag, double actual) {
    const Given* given = line_.find(flag);
    if (!given) return;
    const auto wanted = parse_number<double>(given->values[0]);
    // The same decimal number, written in two ways.
    if (!wanted || *wanted != actual) differs(flag, given->values[0], to_text(actual));
  }

  void differs(std::string_view flag, std::string_view given, std::string_view actual) {
    problems_.push_back(cat("--", flag, given.empty() ? "" : " ", given,
                            " contradicts config.json, which says ", actual));
  }

  /// A switch that says that something is so.
  void says(std::string_view flag, bool so, std::string_view actual) {
    if (line_.find(flag) && !so) differs(flag, "", actual);
  }

  void layers() {
    const Given* given = line_.find("num-layers");
    const std::int64_t empty = empty_layers(line_);
    if (given &&
        parse_number<double>(given->values[0]) != static_cast<double>(spec_.layers + empty))
      differs("num-layers", given->values[0],
              cat(spec_.layers, empty > 0 ? cat(" beside the ", empty, " of --noop-layers") : ""));
  }

  void sizes() {
    layers();
    number("hidden-size", static_cast<double>(spec_.width));
    number("ffn-hidden-size", static_cast<double>(spec_.inner));
    number("num-attention-heads", spec_.heads);
    number("kv-channels", spec_.head_size);
    if (line_.find("num-query-groups") && !line_.find("group-query-attention"))
      problems_.emplace_back("--num-query-groups: expected --group-query-attention beside it");
    else
      number("num-query-groups", spec_.kv_heads);
    if (line_.find("group-query-attention") && !line_.find("num-query-groups") &&
        spec_.kv_heads != 1)
      differs("group-query-attention", "without --num-query-groups (1)", cat(spec_.kv_heads));
  }

  void vocabulary() {
    number("padded-vocab-size", static_cast<double>(spec_.vocabulary));
    number("vocab-size", static_cast<double>(spec_.vocabulary));
    const Given* multiple = line_.find("make-vocab-size-divisible-by");
    if (!multiple) return;
    const double of =
        parse_number<double>(multiple->values[0]).value_or(0) *
        parse_number<double>(line_.value("tensor-model-parallel-size", "1")).value_or(1);
    if (!(of >= 1) || std::fmod(static_cast<double>(spec_.vocabulary), of) != 0)
      problems_.push_back(cat("--make-vocab-size-divisible-by ", multiple->values[0],
                              " x tensor ranks = ", to_text(of), ": config.json has vocab_size ",
                              spec_.vocabulary,
                              ", which is no multiple; a model is not padded during training"));
  }

  void positions() {
    const Given* limit = line_.find("max-position-embeddings");
    const double length = parse_number<double>(line_.value("seq-length", "1")).value_or(1);
    const double most = limit ? parse_number<double>(limit->values[0]).value_or(0) : length;
    const bool learned = spec_.learned_positions > 0;
    if (limit && (most < length || (learned && most > static_cast<double>(spec_.max_positions))))
      problems_.push_back(cat("--max-position-embeddings ", limit->values[0],
                              ": expected at least --seq-length ", to_text(length),
                              learned ? cat(" and at most ", spec_.max_positions,
                                            ", the learned positions of config.json")
                                      : ""));
    const bool rotary = !spec_.rotary.empty();
    const std::string type = line_.value("position-embedding-type", rotary ? "rope" : "");
    if (!type.empty() && (type == "rope") != rotary)
      differs("position-embedding-type", type, rotary ? "rope" : "no rotary positions");
    says("use-rotary-position-embeddings", rotary, "no rotary positions");
    rotated_share();
  }

  /// Megatron rounds the rotated channels of a head down; the published 0.51 are half of 128.
  void rotated_share() {
    const Given* given = line_.find("rotary-percent");
    if (!given || spec_.rotary.empty()) return;
    const double channels = spec_.latent ? static_cast<double>(spec_.width) / spec_.heads
                                         : static_cast<double>(spec_.head_size);
    const double wanted = parse_number<double>(given->values[0]).value_or(0) * channels;
    const auto& pairs = spec_.rotary[0].inverse_frequencies;
    const auto rotated = std::ranges::count_if(pairs, [](double pair) { return pair != 0; });
    if (!(wanted >= 0) || static_cast<std::int64_t>(wanted) / 2 != rotated)
      differs("rotary-percent", given->values[0],
              cat(to_text(2 * static_cast<double>(rotated) / channels), ": ", 2 * rotated, " of ",
                  to_text(channels), " channels"));
  }

  void norms() {
    const std::string actual = spec_.layer_norm ? "LayerNorm" : "RMSNorm";
    if (const Given* norm = line_.find("normalization"); norm && norm->values[0] != actual)
      differs("normalization", norm->values[0], actual);
    says("qk-layernorm", spec_.head_norms || spec_.latent, "no norms of queries and keys");
    says("post-norm", spec_.norm_placement == engine::models::NormPlacement::both,
         "no norms behind attention and MLP");
  }

  void switches() {
    const std::string activation = activation_of(spec_);
    const Activation kind = spec_.activation;
    says("swiglu", spec_.gated && kind == Activation::silu, activation);
    says("geglu", spec_.gated && kind != Activation::silu && kind != Activation::relu2, activation);
    says("gelu-tanh", kind == Activation::gelu_tanh, activation);
    says("openai-gelu", !spec_.gated && kind == Activation::gelu_tanh, activation);
    says("squared-relu", kind == Activation::relu2, activation);
    says("untie-embeddings-and-output-weights", !spec_.tied, "tie_word_embeddings: true");
    says("add-qkv-bias", spec_.attention_bias, "no biases of queries, keys and values");
    says("add-dense-bias", spec_.output_bias, "no bias of the attention's output");
    says("disable-bias-linear", !spec_.output_bias && !spec_.mlp_bias, "biases");
    number("output-logit-softcapping", spec_.logit_softcap);
    number("attn-logit-softcapping", spec_.attention_softcap);
    number("sliding-window", spec_.layers > 0 ? spec_.layer_at(0).window : 0);
    families();
  }

  /// Switches of one or two families.
  void families() {
    says("multi-latent-attention", spec_.latent.has_value(), "no latent attention");
    says("multi-head-latent-attention", spec_.latent.has_value(), "no latent attention");
    says("embed-layernorm", spec_.embedding_norm, "no norm behind the embedding");
    says("use-glm-rope", spec_.head_order.interleaved,
         "rotary pairs of channels i and i + half of a head");
    says("add-rmsnorm-offset", spec_.norm_offset == 1, "norms that multiply by their weight");
    says("square-alibi-mask", spec_.alibi, "no ALiBi");
    says("fill-neg-inf", spec_.alibi, "no ALiBi");
    const double root = std::sqrt(static_cast<double>(spec_.width));
    says("input-embeds-norm", std::abs(spec_.embedding_multiplier / root - 1) < 0.01,
         "embeddings that are not multiplied by the root of the width");
    int window = 0;
    bool full = false;
    for (std::int64_t layer = 0; layer < spec_.layers; ++layer) {
      window = std::max(window, spec_.layer_at(layer).window);
      full = full || spec_.layer_at(layer).window == 0;
    }
    number("interleave-sliding-window", full ? window : 0);
  }

  const CommandLine& line_;
  const DecoderSpec& spec_;
  std::vector<std::string> problems_;
};

/// Adds a whole number of a flag to a config.json.
class Sizes {
 public:
  Sizes(const CommandLine& line, Json& config) : line_(line), config_(config) {}

  std::int64_t add(std::string_view flag, const char* field, std::int64_t otherwise = 0) {
    const std::string text = line_.value(flag, otherwise > 0 ? cat(otherwise) : "");
    const std::int64_t value = parse_number<std::int64_t>(text).value_or(0);
    if (value < 1)
      missing_.push_back(cat("--", flag));
    else
      config_.set(field, value);
    return value;
  }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  const CommandLine& line_;
  Json& config_;
  std::vector<std::string> missing_;
};

std::string family_of(const CommandLine& line) {
  if (line.find("qk-layernorm")) return "qwen3";
  return line.find("add-qkv-bias") ? "qwen2" : "llama";
}

}  // namespace

Result<Replaced> check_architecture(const CommandLine& line, const std::string& path) {
  const auto config = read_json(path);
  RETURN_IF_ERROR(config);
  const auto spec = engine::models::read_spec(*config, path);
  RETURN_IF_ERROR(spec);
  auto problems = Check(line, *spec).problems();
  for (std::string& problem : differing_fields(line, *config))
    problems.push_back(std::move(problem));
  Replaced out = replaced_values(line, *config, *spec);
  for (const std::string& problem : out.problems) problems.push_back(problem);
  if (!problems.empty()) return fail(Errc::usage, cat(path, ":\n", join(problems, "\n")));
  const auto limit = parse_number<double>(line.value("max-position-embeddings", "0"));
  if (limit && *limit > static_cast<double>(spec->max_positions))
    out.overrides.set("max_position_embeddings", static_cast<std::int64_t>(*limit));
  return out;
}

Result<Json> config_of_flags(const CommandLine& line) {
  const std::string family = family_of(line);
  Json out;
  out.set("architectures", Json::Array{Json(family == "qwen3"   ? "Qwen3ForCausalLM"
                                            : family == "qwen2" ? "Qwen2ForCausalLM"
                                                                : "LlamaForCausalLM")});
  out.set("model_type", family).set("hidden_act", "silu");
  Sizes sizes(line, out);
  if (const std::int64_t layers = sizes.add("num-layers", "num_hidden_layers"); layers > 0)
    out.set("num_hidden_layers", layers - empty_layers(line));
  const std::int64_t width = sizes.add("hidden-size", "hidden_size");
  sizes.add("ffn-hidden-size", "intermediate_size", 4 * width);
  const std::int64_t heads = sizes.add("num-attention-heads", "num_attention_heads");
  if (line.find("group-query-attention"))
    sizes.add("num-query-groups", "num_key_value_heads", 1);
  else
    out.set("num_key_value_heads", heads);
  sizes.add("kv-channels", "head_dim", heads > 0 ? width / heads : 0);
  sizes.add("max-position-embeddings", "max_position_embeddings");
  sizes.add(line.find("padded-vocab-size") ? "padded-vocab-size" : "vocab-size", "vocab_size");
  if (!sizes.missing().empty())
    return fail(Errc::usage,
                cat("there is no config.json beside the tokenizer or in --load; to define a model, "
                    "also give ",
                    join(sizes.missing(), ", ")));
  out.set("rope_theta", parse_number<double>(line.value("rotary-base", "10000")).value_or(0));
  out.set("rms_norm_eps", parse_number<double>(line.value("norm-epsilon", "1e-5")).value_or(0));
  out.set("tie_word_embeddings", line.find("untie-embeddings-and-output-weights") == nullptr);
  for (const auto flag : {"swiglu", "disable-bias-linear", "normalization"})
    if (!line.find(flag))
      return fail(Errc::usage, cat("--", flag,
                                   " is missing: without a config.json, only models "
                                   "with RMSNorm, SwiGLU and no biases of linear layers can be "
                                   "defined"));
  return out;
}

}  // namespace troupe::launch::tools::megatron
