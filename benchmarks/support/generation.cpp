#include "benchmarks/support/generation.h"

#include <algorithm>

#include "benchmarks/support/clock.h"

namespace troupe::benchmarks {
namespace {

using engine::generate::GeneratorConfig;

GeneratorConfig config_of(const Options& options, std::int64_t& begun) {
  GeneratorConfig config;
  const Lengths lengths = lengths_of(options);
  const std::int64_t pages =
      options.batch * ((lengths.prompt + lengths.fresh) / config.page_size + 1);
  config.pages =
      static_cast<std::int32_t>(std::max(pages, options.shape.sequence / config.page_size + 2));
  config.max_sequences = static_cast<std::int32_t>(options.batch);
  config.precision = options.precision;
  if (options.int8) config.weights = engine::models::WeightFormat::int8;
  config.on_token = [&begun](const engine::generate::TokenEvent& event) {
    begun += event.index == 0;
  };
  return config;
}

}  // namespace

Lengths lengths_of(const Options& options) {
  return options.tiny() ? Lengths{4, 8} : Lengths{};
}

Requests::Requests(const Options& options)
    : options_(options),
      device_(make_device(options)),
      model_(make_model(*device_, options.shape, false)),
      generator_(value_or_throw(
          engine::generate::Generator::create(*model_, config_of(options, begun_)))) {
}

void Requests::submit(std::int64_t prompt, std::int64_t fresh, bool greedy) {
  engine::generate::Request request{
      .id = ++next_, .prompt = random_tokens(options_.shape, prompt, next_), .sample_id = next_};
  request.params.greedy = greedy;
  request.params.max_new_tokens = static_cast<std::int32_t>(fresh);
  request.params.ignore_eos = true;
  value_or_throw(generator_.submit(std::move(request)));
}

Timing Requests::generate(bool greedy) {
  const Lengths lengths = lengths_of(options_);
  for (std::int64_t i = 0; i < options_.batch; ++i) submit(lengths.prompt, lengths.fresh, greedy);
  const auto before = generator_.stats();
  auto first = before;
  Timing out;
  begun_ = 0;
  while (!generator_.idle()) {
    const bool steady = begun_ == options_.batch;
    const double time = seconds([&] { generator_.step(); });
    out.whole += time;
    if (steady) out.steady += time;
    if (!steady) first = generator_.stats();
  }
  const auto& after = generator_.stats();
  out.tokens = after.sampled - before.sampled;
  out.passes = after.steps - before.steps;
  out.steady_tokens = after.sampled - first.sampled;
  out.steady_passes = after.steps - first.steps;
  return out;
}

double Requests::prompt() {
  submit(options_.shape.sequence, 1, true);
  return seconds([&] {
    while (!generator_.idle()) generator_.step();
  });
}

}  // namespace troupe::benchmarks
