#include "launch/commands/logprobs.h"

#include <iostream>

#include "engine/base/text.h"
#include "engine/train/scoring.h"
#include "launch/commands/json_lines.h"
#include "launch/commands/model.h"

namespace troupe::launch {

int logprobs(const ModelOptions& options) {
  Model model = value_or_throw(Model::load(options));
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
      values.push_back(number_or_null(static_cast<double>(logp[t])));
    }
    return Json(Json::Object{{"logprobs", std::move(values)}, {"nll", number_or_null(nll)}});
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(answer_lines(std::cin, std::cout, answer));
  return 0;
}

}  // namespace troupe::launch
