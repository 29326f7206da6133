#include "launch/commands/generate.h"

#include <iostream>
#include <optional>
#include <utility>

#include "launch/commands/json_lines.h"
#include "launch/commands/sampler.h"

namespace troupe::launch {

namespace {

int stream(const GenerateOptions& options) {
  std::optional<engine::tokenizer::StreamDecoder> decoder;
  const auto on_token = [&](const engine::generate::TokenEvent& event) {
    std::cout << decoder->push(event.token) << std::flush;
  };
  Sampler sampler(options, on_token);
  const auto tokens =
      value_or_throw(sampler.model().tokens_of(Json::Object{{"prompt", options.prompt}}, "prompt"));
  const auto& tokenizer = *value_or_throw(sampler.model().tokenizer());
  auto sampling = sampler.settings();
  if (sampling.beams.count > 1) {
    for (const auto& each : value_or_throw(sampler.generate(tokens, sampling)))
      std::cout << tokenizer.decode(tokens, true) << each.text << std::endl;
    return 0;
  }
  const auto samples = static_cast<std::uint64_t>(std::exchange(sampling.beams.returned, 1));
  for (std::uint64_t k = 0; k < samples; ++k) {
    decoder.emplace(tokenizer, true);
    for (const auto id : tokens) std::cout << decoder->push(id);
    value_or_throw(sampler.generate(tokens, sampling, k));
    std::cout << decoder->finish() << std::endl;
  }
  return 0;
}

}  // namespace

int generate(const GenerateOptions& options) {
  if (options.has_prompt) return stream(options);
  Sampler sampler(options, {});
  const auto answer = [&](const Json& line) -> Result<Json> {
    const auto tokens = sampler.model().tokens_of(line, "prompt");
    RETURN_IF_ERROR(tokens);
    auto sampling = sampler.settings();
    RETURN_IF_ERROR(read_settings(line, sampling));
    const auto generated = sampler.generate(*tokens, sampling);
    RETURN_IF_ERROR(generated);
    const bool has_text = sampler.model().tokenizer().has_value();
    const bool has_score = sampling.beams.count > 1;
    if (sampling.beams.returned == 1) return json_of(generated->front(), has_text, has_score);
    Json::Array all;
    for (const auto& each : *generated) all.push_back(json_of(each, has_text, has_score));
    return Json(Json::Object{{"samples", std::move(all)}});
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(answer_lines(std::cin, std::cout, answer));
  return 0;
}

}  // namespace troupe::launch
