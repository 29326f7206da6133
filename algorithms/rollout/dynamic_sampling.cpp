#include "algorithms/rollout/dynamic_sampling.h"

#include <algorithm>
#include <cmath>

#include "algorithms/rollout/sampling.h"
#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

// What is compared: the reward, or one of its parts; not-a-number where there is none.
double measure_of(const protocol::RewardResult& verdict, const std::string& metric) {
  if (metric.empty()) return verdict.reward.value_or(std::nan(""));
  for (const auto& [rule, value] : verdict.parts)
    if (rule == metric) return value;
  return std::nan("");
}

std::string bounds_text(const DynamicSampling& rule) {
  if (std::isinf(rule.low()) && std::isinf(rule.high())) return "";
  return cat(" with a mean above ", rule.low(), " and below ", rule.high());
}

std::string nothing_differs(const Gathered& round, const GrpoConfig& config) {
  return cat("dynamic sampling: of ", round.groups_drawn, " groups of ", config.group, " samples, ",
             round.refills, " refills included, not one has different rewards",
             bounds_text(config.dynamic), " (their mean is ",
             round.reward_sum / static_cast<double>(round.rewards), "): ");
}

Failure nothing_to_learn(const Gathered& round, const GrpoConfig& config) {
  return Failure({Errc::bad_input, cat(nothing_differs(round, config),
                                       "there is nothing to learn from. Are the prompts far too "
                                       "easy or far too hard, or does the reward "
                                       "give the same to every answer?")});
}

bool wants_more(const Gathered& round, const GrpoConfig& config, std::size_t wanted) {
  const bool allowed =
      config.dynamic.max_refills == 0 || round.refills < config.dynamic.max_refills;
  return config.dynamic.on && round.prompts.ids.size() < wanted && allowed;
}

}  // namespace

bool worth_keeping(std::span<const protocol::RewardResult> group, const DynamicSampling& rule) {
  double sum = 0, count = 0, least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const auto& verdict : group) {
    const double value = measure_of(verdict, rule.metric);
    if (std::isnan(value)) continue;
    sum += value, count += 1, least = std::min(least, value), greatest = std::max(greatest, value);
  }
  return least < greatest && sum / count > rule.low() && sum / count < rule.high();
}

void keep(Gathered& into, const PromptBatch& prompts, Sampled more, const GrpoConfig& config,
          std::size_t wanted) {
  const auto group = static_cast<std::size_t>(config.group);
  into.groups_drawn += static_cast<std::int64_t>(prompts.ids.size());
  for (const auto& verdict : more.verdicts)
    if (verdict.reward) into.reward_sum += *verdict.reward, ++into.rewards;
  into.prompts.owners.insert(into.prompts.owners.end(), prompts.owners.begin(),
                             prompts.owners.end());
  auto& all = into.sampled;
  std::vector<float> reference = std::move(all.batch.reference_logp);
  for (std::size_t i = 0; i < prompts.ids.size() && into.prompts.ids.size() < wanted; ++i) {
    const auto verdicts = std::span(more.verdicts).subspan(i * group, group);
    if (config.dynamic.on && !worth_keeping(verdicts, config.dynamic)) continue;
    into.prompts.examples.push_back(prompts.examples[i]),
        into.prompts.ids.push_back(prompts.ids[i]);
    all.verdicts.insert(all.verdicts.end(), verdicts.begin(), verdicts.end());
    const auto drawn = std::span(more.drawn).subspan(i * group, group);
    std::ranges::move(drawn, std::back_inserter(all.drawn));
    if (more.batch.reference_logp.empty()) continue;
    const auto *from = more.batch.reference_logp.data() + more.batch.offsets[i * group],
               *to = more.batch.reference_logp.data() + more.batch.offsets[(i + 1) * group];
    reference.insert(reference.end(), from, to);
  }
  all.batch = assemble(into.prompts, all.drawn, 0, config);
  all.batch.reference_logp = std::move(reference);
}

Task<std::optional<Gathered>> gather(Cluster& c,
                                     engine::data::Loader<engine::data::PromptRow>& data,
                                     const GrpoConfig& config, bool learned) {
  Gathered round;
  std::size_t wanted = 0;
  for (;;) {
    const auto prompts = data.next();
    if (!prompts) break;
    if (wanted == 0) wanted = prompts->ids.size();
    c.journal.status(cat(round.groups_drawn > 0 ? "refilling: " : "", "drawing ",
                         prompts->ids.size() * static_cast<std::size_t>(config.group), " samples"));
    auto sampling = sample_and_judge(c, *prompts, config, config.compares());
    auto sampled = co_await sampling;
    keep(round, *prompts, std::move(sampled), config, wanted);
    if (!wants_more(round, config, wanted)) break;
    ++round.refills;
  }
  if (wanted == 0) co_return std::nullopt;
  if (round.prompts.ids.empty()) {
    if (!learned) throw nothing_to_learn(round, config);
    log_warning(cat(nothing_differs(round, config),
                    "there is nothing left to learn, and the run ends here"));
    co_return std::nullopt;
  }
  if (round.prompts.ids.size() < wanted)
    log_warning(cat("dynamic sampling: after ", round.refills, " refills only ",
                    round.prompts.ids.size(), " of ", wanted, " groups have different rewards",
                    bounds_text(config.dynamic), "; the round is trained on with these"));
  co_return round;
}

}  // namespace troupe::algorithms
