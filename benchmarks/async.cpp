// Benchmark of asynchronous batches: GRPO's loop over real actors, in nodes that are connected by
// hub and spokes with CURVE, where the engines only consume time. `async --rollout-ms R --train-ms
// T --eta E [--reward-ms W] [--rollouts N] [--steps S]`: sampling a batch takes R on all rollouts
// together, training it T, the reward of a sample W, with as many rewards at a time as a batch has
// samples. The last line is one JSON object: `ratio` is max(R, T) divided by the time of a step,
// which is 1 where sampling and training overlap completely.
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "actors/runtime/node.h"
#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "algorithms/grpo.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "transports/zmq/hub.h"
#include "transports/zmq/spoke.h"

namespace {

using namespace troupe;              // NOLINT: a program of one page
using namespace troupe::algorithms;  // NOLINT
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::int64_t prompts_per_batch = 8, group = 8, samples = prompts_per_batch * group;

struct Settings {
  double rollout_ms = 100, train_ms = 100, reward_ms = 0;
  std::int64_t eta = 1, rollouts = 2, steps = 12;
};

void consume(double milliseconds) {
  std::this_thread::sleep_for(Milliseconds(milliseconds));
}

struct Policy {
  using Handled = actors::Messages<protocol::TrainStep, protocol::Logprobs, protocol::Score,
                                   protocol::Publish, protocol::Save, protocol::FinishSave>;
  double train_ms;
  std::uint64_t updates = 0;

  protocol::StepStats on(protocol::TrainStep m) {
    consume(train_ms);
    return {0, 1, m.learning_rate, static_cast<double>(m.batch.token_count()), ++updates, {}};
  }
  std::vector<float> on(protocol::Logprobs m) {
    return std::vector<float>(m.batch.tokens.size(), -1.0f);
  }
  std::vector<float> on(protocol::Score m) {
    return std::vector<float>(m.batch.tokens.size(), 0.0f);
  }
  protocol::Weights on(protocol::Publish m) {
    return {m.version, updates, std::make_shared<const std::vector<float>>(1, 0.0f), {}, {}};
  }
  std::string on(protocol::Save m) { return cat("checkpoint-", m.step); }
  std::string on(protocol::FinishSave) { return ""; }
};

struct Rollout {
  using Handled = actors::Messages<protocol::Generate, protocol::PrepareWeights,
                                   protocol::CommitWeights, protocol::CancelSamples>;
  double sample_ms;  ///< of one sample
  std::uint64_t prepared = 0, version = 0, updates = 0;

  std::vector<protocol::Completion> on(protocol::Generate m) {
    consume(sample_ms * static_cast<double>(m.requests.size()));
    std::vector<protocol::Completion> out;
    for (const auto& request : m.requests)
      out.push_back({request.sample_id,
                     {4, 3},
                     {-1.0f, -1.0f},
                     {},
                     cat(request.sample_id % 2),
                     protocol::FinishReason::stop,
                     {{version, 2}},
                     updates});
    return out;
  }
  std::vector<float> on(protocol::PrepareWeights m) {
    prepared = m.weights.version;
    updates = m.weights.updates;
    return {};
  }
  std::uint64_t on(protocol::CancelSamples) { return 0; }
  void on(protocol::CommitWeights m) {
    check(m.version == prepared, "a version is committed that was not prepared");
    version = m.version;
  }
};

/// Rewards the samples of a message at the same time, and the messages that arrive meanwhile.
struct Verifier {
  using Handled = actors::Messages<protocol::ComputeRewards>;
  actors::Node* node;
  double reward_ms;

  actors::Task<std::vector<protocol::RewardResult>> on(protocol::ComputeRewards m) {
    if (reward_ms > 0) {
      const Milliseconds delay(reward_ms);
      auto pause = node->after(std::chrono::duration_cast<actors::Duration>(delay));
      co_await pause.get();
    }
    std::vector<protocol::RewardResult> results;
    for (const auto& each : m.requests) results.push_back({each.completion == "1" ? 1.0 : 0.0});
    co_return results;
  }
};

/// Records when each step ended, and the greatest staleness.
class Watch final : public Journal {
 public:
  void begin(std::int64_t, std::int64_t) override {}
  void record(std::int64_t, const Metrics& metrics) override {
    ends.push_back(std::chrono::steady_clock::now());
    for (const auto& [name, value] : metrics)
      if (name == "staleness/max") staleness = std::max(staleness, value);
  }
  void sample(std::int64_t, const Sample&) override {}
  void status(std::string_view) override {}
  std::vector<std::chrono::steady_clock::time_point> ends;
  double staleness = 0;
};

/// The nodes of a run, each with its transport, as in a cluster of processes.
class Network {
 public:
  explicit Network(std::vector<std::string> names) {
    const auto hub_keys = transports::new_keys();
    std::map<std::string, transports::KeyPair> keys;
    std::map<std::string, std::string> allowed;
    for (const auto& name : names) {
      keys[name] = transports::new_keys();
      allowed[keys[name].public_key] = name;
    }
    hub_ = value_or_throw(
        transports::Hub::bind({"controller", {"tcp://127.0.0.1:*"}, hub_keys, allowed, {}}));
    home_ = std::make_unique<actors::Node>("controller", scheduler_, *hub_);
    for (const auto& name : names) {
      auto spoke = value_or_throw(transports::Spoke::create(
          {name, "controller", hub_->endpoints()[0], keys[name], hub_keys.public_key, {}}));
      nodes_[name] = std::make_unique<actors::Node>(name, scheduler_, *spoke);
      spokes_.push_back(std::move(spoke));
    }
  }
  void open() {
    hub_->open();
    for (auto& spoke : spokes_) spoke->open();
  }
  actors::Node& home() { return *home_; }
  actors::Node& at(const std::string& name) { return *nodes_.at(name); }
  template <class Actor>
  auto spawn(const std::string& name, Actor actor, actors::ActorOptions placement = {}) {
    const auto there = at(name).spawn(name, std::move(actor), std::move(placement));
    return home_->ref(there.address(), typename Actor::Handled{});
  }

 private:
  actors::ThreadScheduler scheduler_;
  std::unique_ptr<transports::Hub> hub_;
  std::vector<std::unique_ptr<transports::Spoke>> spokes_;
  std::unique_ptr<actors::Node> home_;
  std::map<std::string, std::unique_ptr<actors::Node>> nodes_;
};

GrpoConfig config_of(const Settings& settings) {
  GrpoConfig config;
  config.group = group;
  config.sampling.max_new_tokens = 8;
  config.logged_completions = 0;
  config.async = {.mode = AsyncMode::pinned, .eta = settings.eta};
  config.recompute_old = config.async.stale();  // the defaults of stale samples
  config.loss.correction = {.weight = config.async.stale() ? Over::token : Over::none, .high = 2};
  return config;
}

engine::data::Loader<engine::data::PromptRow> prompts() {
  engine::data::Dataset<engine::data::PromptRow> rows;
  for (int i = 0; i < 64; ++i) rows.examples.push_back({{4, 9}, cat("prompt ", i), Json(), Json()});
  return {std::move(rows), {.batch_size = prompts_per_batch, .seed = 1}};
}

TrainingPlan plan_of(std::int64_t steps) {
  const auto schedule = value_or_throw(engine::optim::Schedule::create(
      engine::optim::ScheduleKind::constant, {.total_steps = steps}));
  return {.steps = steps, .learning_rate = 0.01, .schedule = schedule};
}

// Milliseconds of a step, over the second half of the run; the first steps fill the queues.
double step_ms(const Watch& watch) {
  const std::size_t half = watch.ends.size() / 2;
  const Milliseconds time = watch.ends.back() - watch.ends[half - 1];
  return time.count() / static_cast<double>(watch.ends.size() - half);
}

void measure(const Settings& settings) {
  std::vector<std::string> names{"policy", "verifier"};
  for (std::int64_t i = 0; i < settings.rollouts; ++i) names.push_back(cat("rollout-", i));
  Watch watch;
  actors::Stop stop;
  Network network(names);
  Cluster cluster{network.spawn("policy", Policy{settings.train_ms}),
                  {},
                  {},
                  network.spawn("verifier", Verifier{&network.at("verifier"), settings.reward_ms},
                                {.max_concurrency = 64}),
                  watch,
                  stop,
                  4};
  for (std::int64_t i = 0; i < settings.rollouts; ++i)
    cluster.rollouts.push_back(network.spawn(
        cat("rollout-", i), Rollout{settings.rollout_ms * static_cast<double>(settings.rollouts) /
                                    static_cast<double>(samples)}));
  network.open();
  auto data = prompts();
  actors::run(network.home(), grpo(cluster, data, plan_of(settings.steps), config_of(settings)));
  const double step = step_ms(watch);
  std::printf("a step takes %.1f ms; sampling %.0f, training %.0f, a reward %.0f\n", step,
              settings.rollout_ms, settings.train_ms, settings.reward_ms);
  Json line = Json::Object{};
  line.set("benchmark", "async")
      .set("eta", settings.eta)
      .set("step_ms", step)
      .set("staleness_max", watch.staleness)
      .set("ratio", std::max(settings.rollout_ms, settings.train_ms) / step);
  std::printf("%s\n", line.dump().c_str());
}

Result<Settings> read_settings(int count, char** words) {
  Settings out;
  const auto usage = [](const std::string& found) {
    return fail(Errc::usage,
                cat("expected --rollout-ms, --train-ms, --reward-ms, --eta, --rollouts or --steps "
                    "and a number of at least 0 (rollouts: 1 to 16; steps: at least 4), found ",
                    found));
  };
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i], value = i + 1 < count ? words[i + 1] : "";
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(number >= 0) || number > 1e6)
      return usage(cat(name, " ", value));
    if (name == "--rollout-ms")
      out.rollout_ms = number;
    else if (name == "--train-ms")
      out.train_ms = number;
    else if (name == "--reward-ms")
      out.reward_ms = number;
    else if (name == "--eta")
      out.eta = static_cast<std::int64_t>(number);
    else if (name == "--rollouts")
      out.rollouts = static_cast<std::int64_t>(number);
    else if (name == "--steps")
      out.steps = static_cast<std::int64_t>(number);
    else
      return usage(name);
  }
  if (out.rollouts < 1 || out.rollouts > 16 || out.steps < 4)
    return usage(cat(out.rollouts, " rollouts and ", out.steps, " steps"));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const auto settings = read_settings(argc, argv);
  if (!settings) {
    std::fprintf(stderr, "async: %s\n", settings.error().what.c_str());
    return 2;
  }
  try {
    measure(*settings);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "async: %s\n", failure.error().what.c_str());
    return 1;
  }
  return 0;
}
