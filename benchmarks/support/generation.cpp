#include "benchmarks/support/generation.h"

#include <algorithm>
#include <cstdlib>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/peer.h"
#include "benchmarks/support/program.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace troupe::benchmarks {
namespace {

using engine::generate::GeneratorConfig;

GeneratorConfig config_of(const Options& options, std::int64_t& begun) {
  GeneratorConfig config;
  const Lengths lengths = lengths_of(options);
  const std::int64_t pages = options.batch * ((lengths.prompt + lengths.fresh) / config.page_size + 1);
  config.pages = static_cast<std::int32_t>(std::max(pages, options.shape.sequence / config.page_size + 2));
  config.max_sequences = static_cast<std::int32_t>(options.batch);
  config.precision = options.precision;
  config.on_token = [&begun](const engine::generate::TokenEvent& event) { begun += event.index == 0; };
  return config;
}

}  // namespace

Lengths lengths_of(const Options& options) { return options.tiny() ? Lengths{4, 8} : Lengths{}; }

Requests::Requests(engine::models::Decoder& model, const Options& options)
    : options_(options), generator_(value_or_throw(engine::generate::Generator::create(model, config_of(options, begun_)))) {}

void Requests::submit(std::int64_t prompt, std::int64_t fresh, bool greedy) {
  engine::generate::Request request{.id = ++next_, .prompt = random_tokens(options_.shape, prompt, next_), .sample_id = next_};
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
  out.tokens = after.sampled - before.sampled, out.passes = after.steps - before.steps;
  out.steady_tokens = after.sampled - first.sampled, out.steady_passes = after.steps - first.steps;
  return out;
}

double Requests::prompt() {
  submit(options_.shape.sequence, 1, true);
  return seconds([&] {
    while (!generator_.idle()) generator_.step();
  });
}

void say_llama(const Options& options, double tokens_per_second, double prompt_per_second) {
  const char *program = std::getenv("TROUPE_LLAMA_BENCH"), *model = std::getenv("TROUPE_LLAMA_MODEL");
  if (!program) return;
  if (!model) return say("llama.cpp: TROUPE_LLAMA_MODEL does not name a GGUF file of this shape");
  if (options.batch > 1) return say("llama.cpp: llama-bench has no batches of sequences");
  const std::string command = cat(quoted(program), " -m ", quoted(model), " -t ", options.threads, " -p ", options.shape.sequence, " -n ",
                                  lengths_of(options).fresh, " -r ", options.rounds, " -o json 2>/dev/null");
  const auto rows = parse_json(output_of(command), "what llama-bench said");
  if (!rows || !rows->is_array()) return say("llama.cpp: llama-bench did not answer with JSON");
  for (const Json& row : rows->array()) {
    const auto fresh = get_integer(row, "n_gen", "llama-bench");
    const auto rate = get_number(row, "avg_ts", "llama-bench");
    if (!fresh || !rate) return say("llama.cpp: llama-bench's rows lack n_gen or avg_ts");
    const double ours = *fresh > 0 ? tokens_per_second : prompt_per_second;
    say(cat("llama.cpp: ", to_text(*rate, 1), *fresh > 0 ? " new tokens/s" : " prompt tokens/s", ", ours over it ",
            to_text(ours / *rate, 2)));
  }
}

}  // namespace troupe::benchmarks
