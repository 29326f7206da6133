#include "launch/commands/explain/run_size.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text/text.h"
#include "engine/data/loader/sampler.h"
#include "engine/data/megatron/pretraining_data.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/recipes/recipes.h"
#include "launch/run/settings.h"

namespace troupe::launch::commands {

namespace {

double ratio_of(std::int64_t sum, std::int64_t count) {
  return static_cast<double>(sum) / static_cast<double>(std::max<std::int64_t>(1, count));
}

/// Of the examples that were read, with `added` tokens at the end of each sequence, of at most
/// `longest` in all.
TokenCounts counts_of(const DataPreview& preview, std::int64_t added, std::int64_t longest) {
  TokenCounts out;
  for (const std::int64_t length : preview.lengths) {
    const auto all = static_cast<double>(std::max(length, std::min(length + added, longest)));
    out.tokens += all;
    out.squares += all * all;
    ++out.count;
    out.longest = std::max(out.longest, static_cast<std::int64_t>(all));
  }
  return out;
}

TokenCounts scaled(TokenCounts counts, double factor) {
  return {factor * counts.tokens, factor * counts.squares, factor * counts.count, counts.longest};
}

std::string about(const RunSize& size) {
  return size.about ? "about " : "";
}

std::string whole(double value) {
  return grouped(std::llround(value));
}

std::string tokens_text(const RunSize& size) {
  if (size.samples == 0) return cat(about(size), whole(size.most.tokens), " in the run");
  return cat(whole(size.least.tokens), " to ", whole(size.most.tokens), ", by the lengths of ",
             whole(size.samples), " completions");
}

/// Two significant digits where there is less than one epoch.
std::string epochs_text(double epochs) {
  if (epochs >= 1) return to_text(std::round(100 * epochs) / 100);
  const double unit = std::pow(10, std::floor(std::log10(epochs)) - 1);
  const int decimals = static_cast<int>(std::max(0.0, 1 - std::floor(std::log10(epochs))));
  std::string text = to_text(unit * std::round(epochs / unit), decimals);
  while (text.ends_with('0')) text.pop_back();
  return text;
}

}  // namespace

Result<RunSize> size_of_run(const config::RunConfig& config,
                            const engine::models::DecoderSpec& spec, const DataPreview& preview) {
  const recipes::RowUse use = recipes::recipe_of(config).row_use(config);
  const auto loader = run::loader_settings(config, use.batches);
  std::int64_t all = 0;
  for (const auto& source : preview.sources) all += static_cast<std::int64_t>(source.size);
  const bool endless = config.data.stream || !preview.rows;
  const engine::data::Sampler sampler(preview.sources, loader);
  const auto batches = endless ? 0 : sampler.batches();
  if (batches == 0 && config.train.steps == 0) return RunSize{.about = true};
  const auto plan = run::plan_settings(config, batches, use.updates, 0);
  RETURN_IF_ERROR(plan);
  RunSize out{.steps = plan->steps, .about = !preview.complete};
  out.passes = ratio_of(use.updates, use.batches);
  out.examples = ratio_of(plan->steps, use.updates) * static_cast<double>(loader.batch_size);
  if (config.train.steps == 0)
    out.examples = std::min(out.examples, config.train.epochs * static_cast<double>(all));
  if (preview.rows) out.epochs = out.examples / static_cast<double>(std::max<std::int64_t>(1, all));
  const double each = out.examples / ratio_of(preview.examples, 1);
  const auto completions = static_cast<double>(std::max<std::int64_t>(1, use.samples));
  const std::int64_t longest = run::max_length(config, spec),
                     most = use.samples > 0 ? config.rollout.sampling.max_new_tokens : 0;
  out.samples = use.samples > 0 ? out.examples * completions : 0;
  out.least =
      scaled(counts_of(preview, std::min<std::int64_t>(1, most), longest), each * completions);
  out.most = scaled(counts_of(preview, most, longest), each * completions);
  return out;
}

Result<RunSize> size_of_run(const config::RunConfig& config, std::int64_t length,
                            const std::vector<recipes::TokenFile>& files) {
  const auto plan = run::plan_settings(config, 0, 1, 0);
  RETURN_IF_ERROR(plan);
  const auto split = engine::data::megatron::parse_split(config.pretrain.split);
  RETURN_IF_ERROR(split);
  RunSize out{.steps = plan->steps};
  out.examples =
      static_cast<double>(config.train.batch_rampup.consumed(plan->steps, config.train.batch_size));
  const auto tokens = static_cast<double>(length);
  out.least =
      out.most = {out.examples * tokens, out.examples * tokens * tokens, out.examples, length};
  double all = 0;
  for (const recipes::TokenFile& file : files)
    all += (*split)[0] * static_cast<double>(file.tokens);
  if (all > 0 && config.data.mix.empty()) out.epochs = out.most.tokens / all;
  return out;
}

std::string size_text(const config::RunConfig& config, const RunSize& size) {
  if (size.steps == 0)
    return labelled_line("steps", "unknown: the rows were not counted; train.steps sets them");
  std::string steps =
      cat(about(size), grouped(size.steps), ", batch size ", config.train.batch_size);
  if (size.epochs > 0)
    steps += cat(", ", epochs_text(size.epochs), size.epochs == 1 ? " epoch" : " epochs");
  std::string text = labelled_line("steps", steps) + labelled_line("tokens", tokens_text(size));
  const auto warmup = config.train.warmup_of(size.steps);
  if (!config.train.warms_up_in(size.steps))
    text += labelled_line("warmup", cat(warmup,
                                        " steps, longer than the run: the learning rate "
                                        "does not reach its peak"));
  return text;
}

}  // namespace troupe::launch::commands
