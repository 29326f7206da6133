#include "launch/evaluation/scores.h"

#include <algorithm>
#include <cmath>

#include "algorithms/training/estimators.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/case.h"
#include "launch/evaluation/agieval_answer.h"
#include "launch/evaluation/answer_filters.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {
namespace {

constexpr std::int64_t no_choice = -100;  // of the reference

/// The first of the largest.
std::int64_t argmax(const std::vector<double>& values) {
  return std::ranges::max_element(values) - values.begin();
}

/// The numbers of the right choices; no_choice for what is none of them.
std::vector<std::int64_t> gold_choices(const TaskItem& item, const Json& target) {
  const auto count = std::ssize(item.choices);
  std::vector<std::int64_t> out;
  const auto add = [&](const Json& each) {
    if (each.is_integer())
      return out.push_back(each.integer() < count ? each.integer() : no_choice);
    const auto found =
        each.is_string() ? std::ranges::find(item.choices, each.string()) : item.choices.end();
    out.push_back(found == item.choices.end() ? no_choice : found - item.choices.begin());
  };
  if (target.is_array())
    for (const Json& each : target.array()) add(each);
  else
    add(target);
  return out;
}

/// sum of (p - 1[gold])^2 over the choices, p the softmax of the sums.
double brier(const std::vector<double>& sums, std::int64_t gold) {
  const double most = *std::ranges::max_element(sums);
  double total = 0, out = 0;
  for (const double each : sums) total += std::exp(each - most);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double p = std::exp(sums[i] - most) / total;
    const double wanted = static_cast<std::int64_t>(i) == gold ? 1 : 0;
    out += (p - wanted) * (p - wanted);
  }
  return out;
}

struct ChoiceScores {
  std::vector<double> sums, by_characters, by_bytes, information;
};

ChoiceScores choice_scores(const TaskItem& item, const std::vector<Likelihood>& likelihoods) {
  ChoiceScores out;
  for (std::size_t i = 0; i < item.choices.size(); ++i) {
    const double sum = likelihoods[i].logp;
    const std::string& choice = item.choices[i];
    out.sums.push_back(sum);
    out.by_characters.push_back(sum / static_cast<double>(count_code_points(choice)));
    out.by_bytes.push_back(sum / static_cast<double>(choice.size()));
    if (likelihoods.size() == 2 * item.choices.size())
      out.information.push_back(sum - likelihoods[i + item.choices.size()].logp);
  }
  return out;
}

double choice_value(const MetricConfig& metric, const ChoiceScores& scores,
                    const std::vector<std::int64_t>& gold,
                    const std::vector<Likelihood>& likelihoods) {
  const auto right = [&](const std::vector<double>& values) {
    return std::ranges::find(gold, argmax(values)) != gold.end() ? 1.0 : 0.0;
  };
  if (metric.name == "acc") return right(scores.sums);
  if (metric.name == "acc_norm") return right(scores.by_characters);
  if (metric.name == "acc_bytes") return right(scores.by_bytes);
  if (metric.name == "acc_mutual_info") return right(scores.information);
  if (metric.name == "brier_score") return brier(scores.sums, gold.empty() ? -1 : gold.front());
  return std::ranges::any_of(gold, [&](std::int64_t at) {  // exact_match
    return at >= 0 && likelihoods[static_cast<std::size_t>(at)].greedy;
  });
}

std::string without_characters(const std::string& text, std::string_view which) {
  std::string out;
  for (const char c : text)
    if (which.find(c) == std::string_view::npos) out += c;
  return out;
}

bool is_set(const MetricConfig& metric, std::string_view key) {
  const Json* found = metric.settings.find(key);
  return found != nullptr && found->is_bool() && found->boolean();
}

/// exact_match_hf_evaluate of lm_eval/api/metrics.py, one side.
Result<std::string> comparable(const MetricConfig& metric, std::string text) {
  if (const Json* patterns = metric.settings.find("regexes_to_ignore"))
    for (const Json& pattern : patterns->array()) {
      const auto regex = python_regex(pattern.string(), "regexes_to_ignore");
      RETURN_IF_ERROR(regex);
      auto made = substitute(*regex, text, "");
      RETURN_IF_ERROR(made);
      text = std::move(*made);
    }
  if (is_set(metric, "ignore_case")) text = engine::jinja::lower(text);
  if (is_set(metric, "ignore_punctuation"))
    text = without_characters(text, R"(!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~)");
  if (is_set(metric, "ignore_numbers")) text = without_characters(text, "0123456789");
  return text;
}

Result<double> exact_match(const MetricConfig& metric, const std::string& answer,
                           const std::vector<std::string>& golds) {
  const auto given = comparable(metric, answer);
  RETURN_IF_ERROR(given);
  for (const std::string& gold : golds) {
    const auto wanted = comparable(metric, gold);
    RETURN_IF_ERROR(wanted);
    if (*given == *wanted) return 1.0;
  }
  return 0.0;
}

/// The texts that an answer may equal.
std::vector<std::string> gold_texts(const TaskItem& item) {
  const auto text = [&](const Json& each) {
    if (each.is_integer() && !item.choices.empty() && each.integer() >= 0 &&
        each.integer() < std::ssize(item.choices))
      return item.choices[static_cast<std::size_t>(each.integer())];
    return each.is_string() ? each.string() : python_text(each);
  };
  std::vector<std::string> out;
  if (item.target.is_array())
    for (const Json& each : item.target.array()) out.push_back(text(each));
  else
    out.push_back(text(item.target));
  return out;
}

std::vector<std::int64_t> passes_wanted(const MetricConfig& metric) {
  const Json* k = metric.settings.find("k");
  std::vector<std::int64_t> out;
  if (k != nullptr && k->is_integer()) out.push_back(k->integer());
  if (k != nullptr && k->is_array())
    for (const Json& each : k->array())
      if (each.is_integer()) out.push_back(each.integer());
  if (out.empty()) out.push_back(1);
  return out;
}

Result<> add_passes(const MetricConfig& metric, const TaskItem& item, const Json& programs,
                    const CodeCheck& check, ItemScores& out) {
  std::int64_t passed = 0, count = 0;
  for (const Json& program : programs.is_array() ? programs.array() : Json::Array{programs}) {
    const auto ran = check(cat(program.string(), "\n", gold_texts(item).front()));
    RETURN_IF_ERROR(ran);
    passed += *ran ? 1 : 0;
    ++count;
  }
  for (const std::int64_t k : passes_wanted(metric))
    if (k <= count)
      out.values.push_back({cat("pass@", k), {algorithms::pass_at_k(count, passed, k)}});
  return {};
}

}  // namespace

Result<ItemScores> score_likelihoods(const TaskConfig& task, const TaskItem& item, const Json& row,
                                     const std::vector<Likelihood>& likelihoods) {
  ItemScores out;
  Json::Array pairs;
  for (const Likelihood& each : likelihoods)
    pairs.push_back(Json::Array{each.logp, each.greedy ? "True" : "False"});
  out.filtered = std::move(pairs);
  if (task.output_type == OutputType::multiple_choice) {
    const Json* listed = task.process_results == "agieval_choices" ? row.find("gold") : nullptr;
    const auto gold = gold_choices(item, listed != nullptr ? *listed : item.target);
    const ChoiceScores scores = choice_scores(item, likelihoods);
    for (const MetricConfig& metric : task.metrics)
      out.values.push_back({metric.name, {choice_value(metric, scores, gold, likelihoods)}});
    return out;
  }
  const double logp = likelihoods.front().logp;
  std::string text = item.continuations.front();
  // The words and bytes of WikiText are those of the page as it is published.
  if (task.process_results == "wikitext")
    if (const Json* page = row.find("page"); page && page->is_string()) text = page->string();
  const auto words = static_cast<double>(count_words(text)),
             bytes = static_cast<double>(text.size());
  for (const MetricConfig& metric : task.metrics) {
    if (metric.name == "acc")
      out.values.push_back({"acc", {likelihoods.front().greedy ? 1.0 : 0.0}});
    if (metric.name == "perplexity") out.values.push_back({"perplexity", {logp}});
    if (metric.name == "word_perplexity") out.values.push_back({metric.name, {logp, words}});
    if (metric.name == "byte_perplexity" || metric.name == "bits_per_byte")
      out.values.push_back({metric.name, {logp, bytes}});
  }
  return out;
}

Result<ItemScores> score_texts(const TaskConfig& task, const TaskItem& item, const Json& row,
                               const FilterPipeline& filter, const std::vector<std::string>& texts,
                               const CodeCheck& check) {
  ItemScores out;
  auto answer = filtered(filter, texts, row);
  RETURN_IF_ERROR(answer);
  out.filtered = std::move(*answer);
  const Json& first = out.filtered.is_array() ? out.filtered.array().front() : out.filtered;
  out.no_answer = first.string().empty() || first.string() == "[invalid]";
  if (task.process_results == "agieval_math") {
    const bool same = same_agieval_answer(first.string(), gold_texts(item).front());
    out.values.push_back({"acc", {same ? 1.0 : 0.0}});
    return out;
  }
  for (const MetricConfig& metric : task.metrics) {
    if (metric.name == "pass_at_k") {
      RETURN_IF_ERROR(add_passes(metric, item, out.filtered, check, out));
    } else if (metric.name == "exact_match") {
      const auto value = exact_match(metric, first.string(), gold_texts(item));
      RETURN_IF_ERROR(value);
      out.values.push_back({metric.name, {*value}});
    }
  }
  return out;
}

}  // namespace troupe::launch::evaluation
