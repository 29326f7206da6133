// Benchmark of a whole GRPO step in one process: samples of two prompts (32 tokens each, 64 new
// tokens per sample), the reference's log-probabilities, and an update. --batch is the number of
// samples of both prompts. Training computes shared prefixes once (train.share_prefixes), as
// sampling and the reference do.
#include <algorithm>

#include "algorithms/advantages/advantage.h"
#include "algorithms/losses/grpo_loss.h"
#include "benchmarks/support/training.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/generate/generator.h"
#include "engine/train/trainer.h"

namespace {

using namespace troupe::benchmarks;
using namespace troupe::engine;

constexpr std::int64_t prompts = 2, prompt_tokens = 32, new_tokens = 64;

class Step {
 public:
  Step(ops::Device& device, const Options& options)
      : options_(options),
        trainer_(make_model(device, options.shape, true),
                 {.dtype = options.precision, .share_prefixes = true}),
        reference_(make_model(device, options.shape, false)),
        generator_(
            troupe::value_or_throw(generate::Generator::create(trainer_.model(), config()))) {}

  void operator()() {
    const double sampling = seconds([&] { sample(); });
    const double scoring = seconds([&] {
      batch_.reference_logp =
          train::logprobs(*reference_, batch_, {.precision = options_.precision});
    });
    const double training = seconds([&] {
      trainer_.forward_backward(batch_, loss_);
      troupe::value_or_throw(trainer_.update(1e-6));
      generator_.weights_changed(trainer_.version());
    });
    parts_ = {sampling, scoring, training};
  }
  const std::vector<double>& parts() const { return parts_; }

 private:
  generate::GeneratorConfig config() const {
    generate::GeneratorConfig config;
    config.max_sequences = static_cast<std::int32_t>(options_.batch);
    config.pages = static_cast<std::int32_t>(options_.batch *
                                             ((prompt_tokens + new_tokens) / config.page_size + 1));
    config.precision = options_.precision;
    return config;
  }

  std::vector<generate::Request> requests() {
    std::vector<generate::Request> out;
    for (std::int64_t i = 0; i < options_.batch; ++i) {
      const auto prompt = static_cast<std::uint64_t>(i / (options_.batch / prompts));
      generate::Request request{.id = ++samples_,
                                .prompt = random_tokens(options_.shape, prompt_tokens, prompt),
                                .sample_id = samples_};
      request.params.max_new_tokens = new_tokens;
      request.params.ignore_eos = true;
      out.push_back(std::move(request));
    }
    return out;
  }

  // A batch of samples with random rewards.
  void sample() {
    auto asked = requests();
    for (const auto& each : asked) troupe::value_or_throw(generator_.submit(each));
    std::vector<troupe::engine::generate::Generation> samples;
    while (!generator_.idle())
      for (auto& done : generator_.step()) samples.push_back(std::move(done));
    std::ranges::sort(samples, {}, &troupe::engine::generate::Generation::sample_id);
    batch_ = {};
    std::vector<double> rewards;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      auto tokens = asked[i].prompt;
      tokens.insert(tokens.end(), samples[i].ids.begin(), samples[i].ids.end());
      std::vector<float> mask(static_cast<std::size_t>(prompt_tokens), 0.0f);
      batch_.old_logp.insert(batch_.old_logp.end(), mask.begin(), mask.end());
      batch_.old_logp.insert(batch_.old_logp.end(), samples[i].sampling_logp.begin(),
                             samples[i].sampling_logp.end());
      mask.resize(tokens.size(), 1.0f);
      batch_.append(tokens, mask);
      rewards.push_back(troupe::uniform(2, samples_, i));
    }
    batch_.count = static_cast<double>(options_.batch * new_tokens);
    const auto advantages =
        troupe::algorithms::group_advantages(rewards, static_cast<int>(options_.batch / prompts));
    batch_.advantage = troupe::algorithms::per_token(advantages.values, batch_.offsets);
  }

  Options options_;
  train::Trainer trainer_;
  std::unique_ptr<models::Decoder> reference_;
  generate::Generator generator_;
  loss::AnyLoss loss_{troupe::algorithms::GrpoLoss{.beta = 0.04}};
  data::Experience batch_;
  std::uint64_t samples_ = 0;
  std::vector<double> parts_;
};

// Prompts pass through the layers once, and through attention once per sample when they are scored;
// the head processes new tokens only. A new token attends to its whole sequence, as in training.
Work work_of(const Options& options) {
  const ModelShape& shape = options.shape;
  const double layers = static_cast<double>(shape.layer_weights()),
               head = static_cast<double>(shape.weights()) - layers;
  const double length = prompt_tokens + new_tokens, samples = static_cast<double>(options.batch);
  const double drawn = static_cast<double>(prompts * prompt_tokens) + samples * new_tokens,
               scored = samples * length, read = samples * new_tokens;
  return {1e-9 * 10 * (layers * drawn + head * read),
          1e-9 * shape.attention(length) * (drawn + 4 * scored)};
}

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  Step step(*device, options);
  const Steps steps = time_steps(*device, options, work_of(options), [&] { step(); });
  const double seconds_a_step = steps.pairs.time();
  say(troupe::cat("a step: ", troupe::to_text(seconds_a_step, 3), " s; of the last one sampling ",
                  troupe::to_text(step.parts()[0], 3), " s, the reference ",
                  troupe::to_text(step.parts()[1], 3), " s, training ",
                  troupe::to_text(step.parts()[2], 3), " s"));
  return outcome_of(steps, static_cast<double>(options.batch * new_tokens), "new tokens/s");
}

}  // namespace

int main(int count, char** words) {
  return run("grpo_step", {.batch = 16, .multiple = prompts}, count, words, measure);
}
