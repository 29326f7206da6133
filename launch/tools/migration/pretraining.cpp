#include "launch/tools/migration/pretraining.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "engine/base/text.h"
#include "launch/config/schema.h"
#include "launch/tools/migration/input.h"

namespace troupe::launch::tools::migration {
namespace {

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "PREFIX", "PREFIX PREFIX" or "WEIGHT PREFIX WEIGHT PREFIX".
void blend(ImportSettings& settings, const config::YamlNode& value) {
  const std::vector<std::string> words = items_of(value);
  bool weighted = words.size() >= 2 && words.size() % 2 == 0;
  for (std::size_t i = 0; weighted && i < words.size(); i += 2)
    weighted = number_of(words[i]).has_value();
  std::vector<std::string> items;
  for (std::size_t i = weighted ? 1 : 0; i < words.size(); i += weighted ? 2 : 1)
    items.push_back(
        weighted ? cat("{path: ", config::yaml_text(words[i]), ", weight: ", words[i - 1], '}')
                 : config::yaml_text(words[i]));
  settings.set(weighted ? "data.mix" : "data.path",
               node_of_value(cat('[', join(items, ", "), ']')));
}

/// "START INCREMENT SAMPLES".
void rampup(ImportSettings& settings, const config::YamlNode& value) {
  const std::vector<std::string> words = items_of(value);
  if (words.size() != 3)
    return settings.line(Outcome::unusable, "expected START INCREMENT SAMPLES");
  settings.require("train.batch_rampup.increment", words[1]);
  settings.require("train.batch_rampup.samples", words[2]);
  settings.set("train.batch_rampup.start", scalar_node(words[0]));
}

void eval_iters(ImportSettings& settings, const config::YamlNode& value) {
  if (number_of(text_of(value)) == 0.0)
    return settings.line(Outcome::became, "eval.every: 0, no evaluation");
  settings.set("pretrain.eval_batches", value);
}

/// Layers of a virtual stage: --num-layers, which counts --noop-layers, is divided by the stages.
void virtual_stage(ImportSettings& settings, const config::YamlNode& value) {
  const double layers = settings.number("num_layers", 0),
               stages = settings.number("pipeline_model_parallel_size", 1),
               each = number_of(text_of(value)).value_or(0), count = layers / (stages * each);
  if (!(layers >= 1))
    return settings.line(Outcome::no_equivalent,
                         "set parallel.vpp to the layers of a pipeline stage divided by this");
  if (!(each >= 1) || count != std::floor(count))
    return settings.line(
        Outcome::no_equivalent,
        cat("expected a number that divides num_layers ", to_text(layers), " over ",
            to_text(stages), " stages; parallel.layers takes numbers that differ"));
  settings.set("parallel.vpp", scalar_node(to_text(count, 0)));
}

}  // namespace

bool convert_pretraining(ImportSettings& settings, std::string_view converter,
                         const config::YamlNode& value) {
  if (converter == "blend")
    blend(settings, value);
  else if (converter == "rampup")
    rampup(settings, value);
  else if (converter == "virtual")
    virtual_stage(settings, value);
  else if (converter == "eval_iters")
    eval_iters(settings, value);
  else
    return false;
  return true;
}

void finish_pretraining(ImportSettings& settings) {
  if (settings.recipe != "pretrain" || settings.number("eval_iters", 1) != 0) return;
  settings.current = "eval_iters 0";
  settings.put("eval.every", "0");
}

}  // namespace troupe::launch::tools::migration
