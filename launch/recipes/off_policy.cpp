#include "launch/recipes/off_policy.h"

#include "engine/base/text/text.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::recipes {

using namespace algorithms;

namespace {

// What makes the policy recompute old log-probabilities.
std::string reason_of(const Validation& v, std::string_view section, const OldLogp& old) {
  if (old.set) return v.named(cat(section, ".recompute_old_logp"));
  if (samples_in_int8(v.config)) return v.named("rollout.weights");
  return "the model, whose rotary frequencies change within train.max_length,";
}

}  // namespace

void validate_correction(Validation& v, std::string_view section, const Correction& correction,
                         const OldLogp& old) {
  const auto key = [&](std::string_view name) { return cat(section, ".", name); };
  const Correction& c = correction;
  if (const auto length = rotary_switch_within(v.config); length > 0)
    v.warn(
        cat("the model's rotary frequencies change at ", length,
            " tokens: a longer sample begins with those of short texts and is trained with those "
            "of long ones, so the policy recomputes the old log-probabilities of all samples; "
            "train.max_length at most ",
            length, " avoids it"));
  if (c.filter == FilterOver::none)
    for (const auto* name : {"filter_by", "filter_low", "filter_high"})
      v.unused(key(name), cat(key("filter"), " is none"));
  if (c.filter != FilterOver::none && c.filter_by != FilterBy::k1)
    v.unused(key("filter_low"), cat(key("filter_by"), " ", name_of(c.filter_by),
                                    " is a distance, which has no lower bound"));
  if (c.any() && !old.recomputed && !old.approximated)
    v.warn(cat(key("correction"), ", ", key("filter"),
               ": the old log-probabilities are those of the rollouts, so every weight is exactly "
               "1; ",
               key("recompute_old_logp"), " = true recomputes them with the policy"));
  if (!c.any() && old.set && !samples_have_other_logp(v.config))
    v.warn(cat(v.named(key("recompute_old_logp")),
               ": costs a forward pass over every sample, and no correction uses the difference"));
  if (c.weight == Over::sequence)
    v.warn(cat(v.named(key("correction")),
               ": a product over the sample grows or shrinks with its length; geometric does not"));
}

void validate_proximal(Validation& v, std::string_view section, const OldLogp& old,
                       bool trained_once, bool corrects) {
  if (!old.approximated) return;
  const std::string key = v.named(cat(section, ".proximal"));
  if (old.recomputed)
    v.problem(cat(key, ": approximates what ", reason_of(v, section, old),
                  " recomputes; set one of them"));
  if (trained_once)
    v.warn(cat(key,
               ": every rollout is trained on once, right after sampling, so the approximation is "
               "the rollout policy itself"));
  if (!corrects)
    v.warn(cat(key, ": decoupled PPO weights samples by its ratio to the rollout policy; set ",
               section, ".correction, such as token"));
}

std::string weight_factor(const Correction& correction) {
  return correction.weight != Over::none ? "w " : "";
}

std::string filter_factor(const Correction& correction) {
  const Correction& c = correction;
  if (c.filter == FilterOver::none) return "";
  if (c.filter_by == FilterBy::k1)
    return cat("[ratio to the rollout, ", name_of(c.filter), ", within ", to_text(c.filter_low),
               " and ", to_text(c.filter_high), "] ");
  return cat("[", c.filter_by == FilterBy::k2 ? "y^2 / 2" : "e^y - 1 - y",
             ", y = log p_old(t) - log p_rollout(t), ",
             c.filter == FilterOver::token      ? "of the token"
             : c.filter == FilterOver::sequence ? "summed over the sample"
             : c.filter == FilterOver::greatest ? "the sample's greatest"
                                                : "the sample's mean",
             ", at most ", to_text(c.filter_high), "] ");
}

std::string weight_definition(const Correction& correction) {
  const Correction& c = correction;
  if (c.weight == Over::none) return "";
  return cat("w = p_old(t) / p_rollout(t) over the ",
             c.weight == Over::token      ? "token"
             : c.weight == Over::sequence ? "sample"
                                          : "sample's geometric mean",
             ", ", name_of(c.outside), " outside ", to_text(c.low), " and ",
             c.high > 0 ? to_text(c.high) : "any", "\n");
}

}  // namespace troupe::launch::recipes
