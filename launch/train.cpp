#include "launch/train.h"

#include "actors/runtime/thread_scheduler.h"
#include "engine/base/text.h"
#include "launch/interrupt.h"
#include "launch/run/conduct.h"
#include "launch/run/roles.h"
#include "transports/inproc/loopback.h"

namespace troupe::launch {
namespace {

// One process: all models share the device and the engine lane; the verifier, which needs neither, works beside them.
class Process final : public Cast {
 public:
  explicit Process(const RunConfig& config)
      : session_(config),
        device_(engine::ops::make_cpu_device({.threads = static_cast<int>(config.train.threads)})),
        journal_(config.output, cat(config.algorithm, ": ", config.model), config.train.log_every) {}

  int run() {
    catch_interrupts(stop_);
    policy_.emplace(node_.spawn("policy", make_policy(parts_, session_.output())));
    text_ = value_or_throw(TextModel::load(session_.config().model, session_.config().chat_template, session_.spec()));
    return conduct(session_, *text_, *this, journal_, stop_);
  }

  actors::Node& node() override { return node_; }
  algorithms::PolicyRef policy() override { return *policy_; }
  algorithms::ReferenceRef reference() override { return node_.spawn("reference", make_reference(parts_)); }
  std::vector<algorithms::RolloutRef> rollouts() override { return {node_.spawn("rollout", make_rollout(parts_, text_))}; }
  algorithms::VerifierRef verifier() override { return node_.spawn("verifier", make_verifier(session_.config()), {.lane = "verifier"}); }
  std::size_t pieces() const override { return 1; }

 private:
  Session session_;
  std::unique_ptr<engine::ops::Device> device_;
  const RoleParts parts_{session_.config(), session_.from(), *device_};
  RunJournal journal_;
  actors::Stop stop_;
  std::shared_ptr<TextModel> text_;
  actors::ThreadScheduler scheduler_;
  transports::Loopback transport_;
  actors::Node node_{"process", scheduler_, transport_};
  std::optional<algorithms::PolicyRef> policy_;
};

}  // namespace

int train(const RunConfig& config, const Origins&) {
  if (config.parallel.tp * config.parallel.dp > 1)
    throw Failure({Errc::unsupported, cat("parallel.tp ", config.parallel.tp, " x parallel.dp ", config.parallel.dp,
                                          ": a policy of several ranks cannot be run yet; set both to 1")});
  return Process(config).run();
}

}  // namespace troupe::launch
