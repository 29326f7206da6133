#include "launch/recipes/held_out.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/lora.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"eval.path", [](RunConfig& c) { return Slot(&c.eval.path); },
     "held-out rows, in the form of the data's: file, folder, or list of them; their loss and "
     "metrics are written as eval/...",
     "", any},
    {"eval.every", [](RunConfig& c) { return Slot(&c.eval.every); },
     "steps between two looks at them; 0: only after the last step", "", at_least_0},
};

}  // namespace

std::span<const Field> eval_fields() {
  return table;
}

void judge_eval(Judging& j) {
  const auto& held_out = j.config.eval.path;
  if (held_out.empty())
    j.unused("eval.every", "there are no held-out rows to look at: eval.path is empty");
  for (const auto& path : held_out)
    if (std::ranges::find(j.config.data.path, path) != j.config.data.path.end())
      j.warn(cat(
          j.named("eval.path"),
          ": data.path has it too, so the held-out rows are trained on and say nothing of others"));
}

void judge_following(Judging& j, std::string_view key, std::int64_t every) {
  if (every > 0 && adapts(j.config))
    j.problem(cat(j.named(key),
                  ": with an adapter (lora.*) the reference is the base model with the adapter "
                  "off, which never changes; set it "
                  "to 0, or train the whole model"));
}

engine::data::DataOptions eval_options(const RunContext& context) {
  auto options = context.data_options();
  options.paths = context.config().eval.path;
  options.mix.clear();
  return options;
}

algorithms::HeldOut held_out_pairs(const RunContext& context, bool nll_on_prompt) {
  const auto batch_of = [&](const auto& batch) {
    return algorithms::pair_batch(batch, nll_on_prompt);
  };
  return held_out_batches(context, eval_options(context), engine::data::load_pairs, batch_of);
}

std::string nll_formula(double weight, const std::string& mean) {
  if (weight == 0) return "";
  const char* over = mean == "token" ? "the chosen answers' tokens"
                                     : "the chosen answers, each by its tokens' mean,";
  return cat(" + ", weight == 1 ? std::string() : to_text(weight) + " ", "mean over ", over,
             " of - log p");
}

}  // namespace troupe::launch
