// Benchmark of `troupe serve` with a model, over HTTP: --batch requests at once, compared with
// generation without a server; the time to the first token of a prompt of 1,024 tokens of which all
// but the last page are cached; and prompt lookup on repetitive text.
#include "benchmarks/serve_engine.h"

#include <fstream>
#include <memory>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/http_load.h"
#include "benchmarks/support/program.h"
#include "benchmarks/support/scratch.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/serving/generation_thread.h"
#include "launch/serve/api/api.h"
#include "launch/serve/formats/chat_formats.h"
#include "launch/serve/http/server.h"

namespace troupe::benchmarks {
namespace {

namespace api = troupe::launch::serve::api;
namespace http = troupe::launch::serve::http;
namespace generate = engine::generate;
using engine::serving::ServiceCounters;

/// Lengths of prompts and outputs in tokens, of the long prompt, and of a draft.
struct Sizes {
  std::int64_t prompt, fresh, long_prompt;
  std::int32_t draft;
};

Sizes sizes_of(const Options& options) {
  return options.tiny() ? Sizes{4, 8, 100, 4} : Sizes{32, 128, 1024, 8};
}

/// A checkpoint of the shape with random weights, and its configuration.
void write_model(const Options& options, const std::filesystem::path& folder) {
  const ModelShape& shape = options.shape;
  const auto device = make_device(options);
  const auto model = make_model(*device, shape, false);
  const auto type =
      options.bf16() ? engine::checkpoint::StoredType::bf16 : engine::checkpoint::StoredType::f32;
  value_or_throw(engine::checkpoint::save_parameters(folder.string(), model->parameters(),
                                                     {.tied = true, .type = type}));
  const Json config = Json::Object{
      {"architectures", Json::Array{shape.biases ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", shape.biases ? "qwen2" : "llama"},
      {"vocab_size", shape.vocabulary},
      {"hidden_size", shape.width},
      {"intermediate_size", shape.inner},
      {"num_hidden_layers", shape.layers},
      {"num_attention_heads", shape.heads},
      {"num_key_value_heads", shape.kv_heads},
      {"hidden_act", "silu"},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", 1e4},
      {"max_position_embeddings", std::int64_t{2048}},
      {"tie_word_embeddings", true}};
  std::ofstream(folder / "config.json") << config.dump();
}

api::ServedModelOptions model_options(const Options& options, const std::string& folder) {
  return {.model = {
              .model = folder,
              .dtype = options.bf16() ? engine::ops::Precision::bf16 : engine::ops::Precision::f32,
              .threads = options.threads}};
}

std::int64_t cache_tokens(const Options& options) {
  const Sizes sizes = sizes_of(options);
  return std::max(options.batch * (sizes.prompt + sizes.fresh), 2 * sizes.long_prompt) + 1024;
}

generate::GeneratorConfig config_of(const Options& options, const api::ServedModel& model) {
  generate::GeneratorConfig config;
  config.precision = model.precision();
  config.pages = static_cast<std::int32_t>(cache_tokens(options) / config.page_size);
  config.max_sequences = static_cast<std::int32_t>(options.batch);
  return config;
}

Json request_of(const std::vector<std::int32_t>& prompt, std::int64_t fresh) {
  Json::Array ids;
  for (const std::int32_t id : prompt) ids.emplace_back(std::int64_t{id});
  return Json::Object{
      {"prompt", std::move(ids)}, {"max_tokens", fresh}, {"ignore_eos", true}, {"seed", 1}};
}

/// A server for the model while this exists.
class Served {
 public:
  Served(const Options& options, const std::string& folder, std::int32_t lookup) {
    models_ = value_or_throw(api::ModelSet::load(
        model_options(options, folder), {.max_batch = static_cast<std::int32_t>(options.batch),
                                         .cache_tokens = cache_tokens(options),
                                         .lookup = lookup}));
    api_ =
        std::make_unique<api::Api>(*models_, "benchmark", launch::serve::formats::chat_formats());
    server_ = value_or_throw(http::Server::start({}, api_->routes(), {}, nullptr));
    ask(request_of({1}, 1), 1);  // packs the weights
  }
  ~Served() {
    server_->drain(std::chrono::seconds(1));
    models_->stop();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  /// Sends the request `count` times at once; returns the seconds until all are answered.
  double ask(const Json& body, std::int64_t count) {
    const std::string text = body.dump();
    HttpLoad load{.port = server_->port(),
                  .connections = static_cast<int>(count),
                  .seconds = 600,
                  .max_requests = count};
    load.request =
        cat("POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ", text.size(),
            "\r\n\r\n", text);
    const HttpResult result = value_or_throw(run_load(load));
    if (std::ssize(result.ok) != count)
      throw Failure(Error{Errc::internal, "a request of the benchmark was not answered with 200"});
    return 1e-3 * std::ranges::max(result.ok);
  }
  ServiceCounters counters() const { return models_->counters(); }

 private:
  std::unique_ptr<api::ModelSet> models_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<http::Server> server_;
};

/// The same requests without a server.
double offline(const Options& options, const std::string& folder,
               const std::vector<std::int32_t>& prompt) {
  auto model = value_or_throw(api::ServedModel::load(model_options(options, folder)));
  auto generator =
      value_or_throw(generate::Generator::create(model.decoder(), config_of(options, model)));
  std::vector<generate::Request> requests;
  for (std::int64_t i = 0; i < options.batch; ++i) {
    generate::Request each{.id = static_cast<std::uint64_t>(i), .prompt = prompt};
    each.params = model.defaults();
    each.params.max_new_tokens = static_cast<std::int32_t>(sizes_of(options).fresh);
    each.params.ignore_eos = true;
    each.params.seed = 1;
    requests.push_back(std::move(each));
  }
  generate::Request first{.id = 0, .prompt = {1}};
  first.params.max_new_tokens = 1;
  const auto run = [&generator](std::vector<generate::Request> wanted) {
    for (auto& each : wanted) value_or_throw(generator.submit(std::move(each)));
    while (!generator.idle()) generator.step();
  };
  run({first});  // packs the weights
  return seconds([&] { run(std::move(requests)); });
}

struct Rounds {
  std::vector<double> offline, served, streamed, first, cached, plain, drafted;
};

void measure_load(const Options& options, const std::string& folder, std::uint64_t seed,
                  Rounds& out) {
  const Sizes sizes = sizes_of(options);
  const auto prompt = random_tokens(options.shape, sizes.prompt, seed);
  const auto long_prompt = random_tokens(options.shape, sizes.long_prompt, seed + 1000);
  Json request = request_of(prompt, sizes.fresh);
  out.offline.push_back(offline(options, folder, prompt));
  Served served(options, folder, 0);
  out.served.push_back(served.ask(request, options.batch));
  request.set("stream", true);
  out.streamed.push_back(served.ask(request, options.batch));
  out.first.push_back(served.ask(request_of(long_prompt, 1), 1));
  out.cached.push_back(served.ask(request_of(long_prompt, 1), 1));
}

/// An output of one token, again and again: random weights write no repetitive text of their own.
/// Returns the share of the drafts that was right.
double measure_lookup(const Options& options, const std::string& folder, std::uint64_t seed,
                      Rounds& out) {
  const Sizes sizes = sizes_of(options);
  Json request = request_of(random_tokens(options.shape, sizes.prompt, seed), sizes.fresh);
  request.set("allowed_token_ids", Json::Array{std::int64_t{7}});
  out.plain.push_back(Served(options, folder, 0).ask(request, 1));
  Served served(options, folder, sizes.draft);
  out.drafted.push_back(served.ask(request, 1));
  const ServiceCounters counters = served.counters();
  return static_cast<double>(counters.accepted) /
         static_cast<double>(std::max<std::int64_t>(counters.drafted, 1));
}

/// The median of the quotients of the rounds.
double quotient(std::vector<double> over, const std::vector<double>& under) {
  for (std::size_t i = 0; i < over.size(); ++i) over[i] /= under[i];
  return median(std::move(over));
}

Outcome measure(const Options& options) {
  const ScratchFolder folder;
  write_model(options, folder.path());
  Rounds rounds;
  double right = 0;
  for (int i = 0; i < options.rounds; ++i) {
    const auto seed = static_cast<std::uint64_t>(i) + 1;
    measure_load(options, folder.path().string(), seed, rounds);
    right += measure_lookup(options, folder.path().string(), seed, rounds) / options.rounds;
  }
  const Sizes sizes = sizes_of(options);
  const auto tokens = static_cast<double>(options.batch * sizes.fresh);
  say(cat(options.batch, " requests at once, ", to_text(tokens / median(rounds.offline), 1),
          " tokens/s without a server; streamed ",
          to_text(quotient(rounds.offline, rounds.streamed), 3), " of it"));
  say(cat("first token of a prompt of ", sizes.long_prompt, " tokens after ",
          to_text(1e3 * median(rounds.first), 1), " ms, cached ",
          to_text(1e3 * median(rounds.cached), 1),
          " ms: ", to_text(quotient(rounds.cached, rounds.first), 3), " of it"));
  say(cat("prompt lookup, one repetitive sequence, drafts of ", sizes.draft, " tokens, ",
          to_text(100 * right, 0), " % right: ", to_text(quotient(rounds.plain, rounds.drafted), 2),
          " times the tokens/s"));
  Outcome outcome{tokens / median(rounds.served), "tokens/s", tokens / median(rounds.offline),
                  quotient(rounds.offline, rounds.served), peak_rss_mib()};
  outcome.figures = {{"streamed_ratio", quotient(rounds.offline, rounds.streamed)},
                     {"cached_first_token_ratio", quotient(rounds.cached, rounds.first)},
                     {"lookup_speedup", quotient(rounds.plain, rounds.drafted)}};
  return outcome;
}

}  // namespace

int serve_engine(int count, char** words) {
  return run("serve", {}, count, words, measure);
}

}  // namespace troupe::benchmarks
