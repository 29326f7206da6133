#include "actors/roles/reward_scoring.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::actors::roles {
namespace {

using engine::data::Experience;
using Ids = std::vector<std::int32_t>;

// Index of the first token with which the completion's text is at least `bytes` long.
std::int32_t token_at(std::size_t bytes, const Ids& completion,
                      const engine::generate::TextDecoder& decode) {
  std::size_t low = 1, high = completion.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (decode(std::span(completion).first(middle)).size() >= bytes)
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<std::int32_t>(high) - 1;
}

void append_outcome(const protocol::RewardRequest& sample, Experience& batch) {
  Ids ids = sample.prompt_ids;
  ids.insert(ids.end(), sample.completion_ids.begin(), sample.completion_ids.end());
  std::vector<float> weights(ids.size(), 0.0f);
  if (!weights.empty()) weights.back() = 1;
  batch.append(ids, weights);
}

// Index of the scored token after a step: the placeholder, else the last token. `end` are the
// tokens of step_end.
std::size_t score_position(const Ids& end, const ProcessScoring& scoring) {
  if (!scoring.tokens) return end.size() - 1;
  return static_cast<std::size_t>(std::find(end.begin(), end.end(), scoring.tokens->placeholder) -
                                  end.begin());
}

struct MaskedTokens {
  Ids ids;
  std::vector<float> weights;
};

Result<MaskedTokens> tokens_with_steps(const protocol::RewardRequest& sample,
                                       const std::vector<std::string>& steps,
                                       const ProcessScoring& scoring) {
  const auto end = scoring.encoder->encode(scoring.step_end, false);
  RETURN_IF_ERROR(end);
  MaskedTokens out{.ids = sample.prompt_ids, .weights = {}};
  for (const auto& step : steps) {
    const auto piece = scoring.encoder->encode(step, false);
    RETURN_IF_ERROR(piece);
    out.ids.insert(out.ids.end(), piece->begin(), piece->end());
    out.ids.insert(out.ids.end(), end->begin(), end->end());
    out.weights.resize(out.ids.size(), 0.0f);
    out.weights[out.ids.size() - end->size() + score_position(*end, scoring)] = 1;
  }
  out.weights.resize(out.ids.size(), 0.0f);
  return out;
}

// A tokenizer's regular expressions may throw on hostile text: a failure of this sample, not of the
// run.
void append_steps(const protocol::RewardRequest& sample, const ProcessScoring& scoring,
                  ScoringBatch& query) {
  Steps steps;
  Result<MaskedTokens> marked;
  try {
    steps = split_steps(sample, scoring);
    marked = tokens_with_steps(sample, steps.texts, scoring);
  } catch (const Failure& failure) {
    marked = fail(failure.error());
  }
  if (!marked) {
    steps.ends.clear();
    query.failures.back() = marked.error().what;
    marked = MaskedTokens{.ids = sample.prompt_ids,
                          .weights = std::vector<float>(sample.prompt_ids.size(), 0.0f)};
  }
  query.batch.append(marked->ids, marked->weights);
  query.ends.push_back(std::move(steps.ends));
}

// Softmax over the C scores of a token, at class `of`.
double probability(std::span<const float> scores, std::int32_t of) {
  const double greatest = static_cast<double>(*std::max_element(scores.begin(), scores.end()));
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - greatest);
  return std::exp(static_cast<double>(scores[static_cast<std::size_t>(of)]) - greatest) / sum;
}

// Scores at the masked tokens of sequence n, [C] each, in order.
std::vector<std::span<const float>> scores_at(const ScoringBatch& query,
                                              const std::vector<float>& scores, std::size_t n) {
  const auto& batch = query.batch;
  check(!batch.tokens.empty() && scores.size() % batch.tokens.size() == 0,
        "reward: [T, C] scores are needed");
  const std::size_t classes = scores.size() / batch.tokens.size();
  std::vector<std::span<const float>> out;
  for (auto t = static_cast<std::size_t>(batch.offsets[n]);
       t < static_cast<std::size_t>(batch.offsets[n + 1]); ++t)
    if (batch.mask[t] != 0) out.push_back(std::span(scores).subspan(t * classes, classes));
  return out;
}

protocol::RewardResult process_result(const std::vector<std::span<const float>>& read,
                                      const std::vector<std::int32_t>& ends,
                                      const ProcessScoring& scoring, const std::string& label,
                                      double weight) {
  check(read.size() == ends.size(), "reward: one score a step");
  protocol::RewardResult result;
  std::vector<double> steps;
  for (std::size_t k = 0; k < read.size(); ++k) {
    steps.push_back(probability(read[k], scoring.right));
    result.steps.push_back({ends[k], weight * steps.back()});
  }
  const double whole = aggregate(scoring.aggregation, steps);
  result.parts = {{label, whole}};
  result.reward = result.from_steps = weight * whole;
  return result;
}

protocol::RewardResult outcome_result(const std::vector<std::span<const float>>& read,
                                      const OutcomeScoring& scoring, const std::string& label,
                                      double weight) {
  check(read.size() == 1 && read.front().size() == 1, "reward: one score a sample");
  const double score = scoring.normalization(static_cast<double>(read.front().front()));
  protocol::RewardResult result;
  result.parts = {{label, score}};
  result.reward = weight * score;
  return result;
}

}  // namespace

double Normalization::operator()(double score) const {
  const double scaled = (score - mean) / std_dev;
  return clip > 0 ? std::clamp(scaled, -clip, clip) : scaled;
}

double aggregate(Aggregation how, const std::vector<double>& steps) {
  if (steps.empty()) return 0;
  switch (how) {
    case Aggregation::min:
      return *std::min_element(steps.begin(), steps.end());
    case Aggregation::mean:
      return std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
    case Aggregation::last:
      return steps.back();
    case Aggregation::product:
      return std::accumulate(steps.begin(), steps.end(), 1.0, std::multiplies<>());
  }
  return 0;
}

Steps split_steps(const protocol::RewardRequest& sample, const ProcessScoring& scoring) {
  Steps out;
  const std::string& text = sample.completion;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto found = text.find(scoring.separator, begin);
    const std::size_t end = std::min(found, text.size());
    const std::string step = text.substr(begin, end - begin);
    begin = found == std::string::npos ? text.size() : found + scoring.separator.size();
    if (step.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    out.texts.push_back(step);
    out.ends.push_back(token_at(begin, sample.completion_ids, scoring.decode));
  }
  return out;
}

Result<> validate_scoring(const RewardScoring& scoring) {
  const auto* process = std::get_if<ProcessScoring>(&scoring);
  if (!process) return {};
  const auto end = process->encoder->encode(process->step_end, false);
  RETURN_IF_ERROR(end);
  if (process->separator.empty())
    return fail(Errc::usage, "separator: expected the text that ends a step, found nothing");
  if (end->empty())
    return fail(Errc::usage, "step_end: expected text that ends a step, found nothing");
  if (process->tokens && score_position(*end, *process) == end->size())
    return fail(Errc::usage,
                cat("step_end: expected the placeholder ", quote(process->tokens->placeholder_text),
                    " as a token of its own in it, found ", quote(process->step_end)));
  return {};
}

ScoringBatch scoring_batch(const std::vector<protocol::RewardRequest>& samples,
                           const RewardScoring& scoring) {
  ScoringBatch query;
  for (const auto& sample : samples) {
    query.failures.emplace_back();
    if (const auto* process = std::get_if<ProcessScoring>(&scoring))
      append_steps(sample, *process, query);
    else
      append_outcome(sample, query.batch);
  }
  query.batch.count = static_cast<double>(samples.size());
  return query;
}

std::vector<protocol::RewardResult> reward_results(const ScoringBatch& query,
                                                   const std::vector<float>& scores,
                                                   const RewardScoring& scoring,
                                                   const std::string& label, double weight) {
  std::vector<protocol::RewardResult> out;
  for (std::size_t n = 0; n + 1 < query.batch.offsets.size(); ++n) {
    const auto read = scores_at(query, scores, n);
    const auto* process = std::get_if<ProcessScoring>(&scoring);
    protocol::RewardResult result =
        process ? process_result(read, query.ends[n], *process, label, weight)
                : outcome_result(read, std::get<OutcomeScoring>(scoring), label, weight);
    std::string failure = query.failures[n];
    if (failure.empty() && !std::isfinite(*result.reward))
      failure = "the model's score is not a finite number";
    if (!failure.empty()) {
      result = {};
      result.failure = cat(label, ": ", failure);
      result.failure_kinds = {protocol::FailureKind::other};
    }
    out.push_back(std::move(result));
  }
  return out;
}

void add(const protocol::RewardResult& more, protocol::RewardResult& result) {
  if (result.not_applicable && !more.not_applicable) {
    result.reward = more.reward;
    result.failure.clear();
    result.not_applicable = false;
  } else if (!more.not_applicable) {
    result.reward =
        result.reward && more.reward ? std::optional(*result.reward + *more.reward) : std::nullopt;
  }
  result.parts.insert(result.parts.end(), more.parts.begin(), more.parts.end());
  if (!more.failure.empty() && !more.not_applicable)
    result.failure += cat(result.failure.empty() ? "" : "; ", more.failure);
  result.failure_kinds.insert(result.failure_kinds.end(), more.failure_kinds.begin(),
                              more.failure_kinds.end());
  result.steps.insert(result.steps.end(), more.steps.begin(), more.steps.end());
  std::stable_sort(result.steps.begin(), result.steps.end(),
                   [](const auto& a, const auto& b) { return a.end < b.end; });
  result.from_steps += more.from_steps;
}

}  // namespace troupe::actors::roles
