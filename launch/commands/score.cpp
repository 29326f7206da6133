#include "launch/commands/score.h"

#include <cmath>
#include <iostream>

#include "algorithms/held_out.h"
#include "engine/base/text/text.h"
#include "engine/data/loader/dataset.h"
#include "engine/train/scoring.h"
#include "launch/model/json_lines.h"
#include "launch/model/model.h"
#include "launch/run/text_model.h"

namespace troupe::launch::commands {

namespace {

/// [2 * pairs] chosen at 2k, rejected at 2k+1.
std::vector<double> scores_of(model::Model& model,
                              const std::vector<engine::data::PairExample>& pairs) {
  std::vector<double> out;
  for (const auto& batch : algorithms::in_batches(pairs, 64)) {
    const auto experience = engine::data::to_scored_pairs(batch);
    const auto scores =
        engine::train::scores(model.decoder(), experience, engine::loss::ReadAt::token, {},
                              {.precision = model.precision()});
    for (std::size_t n = 1; n < experience.offsets.size(); ++n)
      out.push_back(
          static_cast<double>(scores[static_cast<std::size_t>(experience.offsets[n]) - 1]));
  }
  return out;
}

Json bins_of(const algorithms::Calibration& found) {
  Json::Array bins;
  for (const auto& bin : found.bins)
    if (bin.pairs > 0)
      bins.push_back(Json::Object{{"from", bin.low},
                                  {"to", bin.high},
                                  {"pairs", static_cast<std::int64_t>(bin.pairs)},
                                  {"confidence", bin.confidence},
                                  {"accuracy", bin.accuracy}});
  return bins;
}

Json summary(const std::vector<double>& scores, int bins) {
  std::vector<double> margins;
  double sum = 0, squares = 0, margin = 0;
  for (std::size_t k = 0; k + 1 < scores.size(); k += 2) {
    margins.push_back(scores[k] - scores[k + 1]);
    margin += margins.back();
  }
  for (const double score : scores) sum += score;
  const double count = static_cast<double>(scores.size()), mean = sum / count;
  for (const double score : scores) squares += (score - mean) * (score - mean);
  const auto found = algorithms::calibration(margins, bins);
  return Json::Object{{"pairs", static_cast<std::int64_t>(margins.size())},
                      {"accuracy", found.accuracy},
                      {"margin", margin / static_cast<double>(margins.size())},
                      {"mean", mean},
                      {"std", std::sqrt(squares / std::max(1.0, count - 1))},
                      {"calibration_error", found.error},
                      {"bins", bins_of(found)}};
}

}  // namespace

int score(const ScoreOptions& options) {
  model::Model model = value_or_throw(model::Model::load(options.model));
  if (model.spec().labels != 1)
    throw Failure(
        {Errc::usage,
         cat(options.model.model,
             ": expected an outcome reward model (a score head with one label), found ",
             model.spec().labels == 0 ? std::string("a language model")
                                      : cat("a score head of ", model.spec().labels, " labels"))});
  const auto text = value_or_throw(run::TextModel::load(model.folders().text, "", model.spec()));
  engine::data::DataOptions data{.paths = options.data};
  data.encode.max_length = options.max_length > 0
                               ? std::min(options.max_length, model.spec().max_positions)
                               : model.spec().max_positions;
  data.encode.skip_longer = true;
  const auto pairs = value_or_throw(engine::data::load<engine::data::PairExample>(data, *text));
  std::cout << summary(scores_of(model, pairs.examples), options.bins).dump() << "\n";
  return 0;
}

int logprobs(const model::ModelOptions& options) {
  model::Model model = value_or_throw(model::Model::load(options, model::NeededHead::language));
  const auto answer = [&](const Json& line) -> Result<Json> {
    const auto tokens = model.tokens_of(line, "text");
    RETURN_IF_ERROR(tokens);
    if (static_cast<std::int64_t>(tokens->size()) > model.spec().max_positions) {
      return fail(Errc::bad_input, cat(tokens->size(), " tokens; the model has ",
                                       model.spec().max_positions, " positions"));
    }
    engine::data::Experience batch;
    batch.append(*tokens, std::vector<float>(tokens->size(), 1.0f));
    const auto logp = engine::train::logprobs(
        model.decoder(), batch, {.precision = model.precision(), .every_token = true});
    Json::Array values;
    values.emplace_back(nullptr);
    double nll = 0;
    for (std::size_t t = 1; t < logp.size(); ++t) {
      nll -= static_cast<double>(logp[t]);
      values.push_back(model::number_or_null(static_cast<double>(logp[t])));
    }
    return Json(Json::Object{{"logprobs", std::move(values)}, {"nll", model::number_or_null(nll)}});
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(model::answer_lines(std::cout, answer));
  return 0;
}

}  // namespace troupe::launch::commands
