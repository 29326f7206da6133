#include "launch/train.h"

#include "actors/roles/rollout.h"
#include "actors/roles/scorer.h"
#include "actors/roles/trainer.h"
#include "actors/roles/verifier.h"
#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "algorithms/catalog.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/exit_code.h"
#include "launch/interrupt.h"
#include "launch/journal/run_journal.h"
#include "launch/rewards.h"
#include "launch/run/session.h"
#include "launch/run/settings.h"
#include "launch/run/text_model.h"
#include "transports/inproc/loopback.h"

namespace troupe::launch {
namespace {

namespace roles = actors::roles;

// One process: all models share the device and the engine lane; the verifier, which needs neither, works beside them.
class Process {
 public:
  explicit Process(const RunConfig& config)
      : config_(config), session_(config), journal_(config.output, cat(config.algorithm, ": ", config.model), config.train.log_every) {}

  int run() {
    catch_interrupts(stop_);
    if (config_.parallel.tp * config_.parallel.dp > 1)
      throw Failure({Errc::unsupported, cat("parallel.tp ", config_.parallel.tp, " x parallel.dp ", config_.parallel.dp,
                                            ": a policy of several ranks cannot be run yet; set both to 1")});
    auto trainer = session_.make_trainer();
    text_ = value_or_throw(TextModel::load(config_.model, config_.chat_template, session_.spec()));
    policy_.emplace(node_.spawn("policy", roles::Trainer(std::move(trainer), algorithms::losses(), session_.saver())));
    if (config_.algorithm == "sft") return run_sft();
    if (config_.algorithm == "dpo") return run_dpo();
    if (config_.algorithm == "grpo") return run_grpo();
    throw Failure({Errc::usage, cat("algorithm ", quote(config_.algorithm), ": sft, dpo or grpo is expected")});
  }

 private:
  template <class T>
  engine::data::Loader<T> loader(Result<engine::data::Dataset<T>> dataset, std::int64_t batches_of) {
    auto rows = value_or_throw(std::move(dataset));
    const auto& report = rows.report;  // when rows were left out or cut, the data library has warned of it already
    if (report.bad + report.untrainable + report.truncated == 0) log_info(report.text());
    engine::data::Loader<T> out(std::move(rows), loader_settings(config_, batches_of));
    if (const Json* place = session_.state().find("data")) value_or_throw(out.restore(*place));
    return out;
  }

  algorithms::Cluster cluster(std::optional<algorithms::ReferenceRef> reference, std::vector<algorithms::RolloutRef> rollouts = {},
                              std::optional<algorithms::VerifierRef> verifier = {}) {
    return {*policy_, std::move(reference), std::move(rollouts), std::move(verifier), journal_, stop_};
  }

  algorithms::ReferenceRef reference(const std::string& folder) {
    return node_.spawn("reference", roles::Scorer(session_.make_model(folder.empty() ? config_.model : folder), scoring_settings(config_)));
  }

  int run_sft() {
    const auto options = value_or_throw(data_settings(config_, session_.spec(), config_.data.path));
    auto data = loader(engine::data::load_sft(options, *text_), 1);
    auto actors = cluster({});
    const auto plan = begin(data.order().batches(), 1);
    return drive(algorithms::sft(actors, data, plan, value_or_throw(sft_settings(config_))), plan);
  }

  int run_dpo() {
    const auto options = value_or_throw(data_settings(config_, session_.spec(), config_.data.path));
    const auto settings = value_or_throw(dpo_settings(config_));
    auto data = loader(engine::data::load_pairs(options, *text_), 1);
    auto actors = cluster(reference(config_.dpo.reference));
    const auto plan = begin(data.order().batches(), 1);
    return drive(algorithms::dpo(actors, data, plan, settings), plan);
  }

  int run_grpo() {
    const auto options = value_or_throw(data_settings(config_, session_.spec(), config_.data.path));
    const auto settings = value_or_throw(grpo_settings(config_));
    auto data = loader(engine::data::load_prompts(options, *text_), settings.minibatches);
    std::optional<algorithms::ReferenceRef> scorer;
    if (settings.loss.beta != 0) scorer = reference(config_.grpo.reference);
    auto rules = value_or_throw(actors::rules::Rules::from_json(reward_rules(config_), "reward"));
    auto actors = cluster(scorer, {rollout()}, node_.spawn("verifier", roles::Verifier(std::move(rules)), {.lane = "verifier"}));
    const std::int64_t updates = std::int64_t{settings.epochs} * settings.minibatches;
    const auto plan = begin(data.order().batches(), updates);
    return drive(algorithms::grpo(actors, data, plan, settings), plan);
  }

  algorithms::RolloutRef rollout() {
    auto settings = generator_settings(config_, session_.spec());
    settings.decode = [text = text_](std::span<const std::int32_t> ids) { return text->decode(ids); };
    return node_.spawn("rollout", value_or_throw(roles::Rollout::create(session_.make_empty_model(), std::move(settings))));
  }

  algorithms::Plan begin(std::int64_t batches, std::int64_t updates) {
    auto plan = value_or_throw(plan_settings(config_, batches, updates, session_.done()));
    journal_.begin(plan.steps, plan.done);
    return plan;
  }

  int drive(actors::Task<void> algorithm, const algorithms::Plan& plan) {
    if (plan.done >= plan.steps) {
      log_info(cat(config_.output, ": all ", plan.steps, " steps are done already; raise train.steps to go on"));
      return 0;
    }
    actors::run(node_, std::move(algorithm), &stop_);
    journal_.plot();
    return stop_.requested() ? exit_interrupted : 0;
  }

  RunConfig config_;
  Session session_;
  RunJournal journal_;
  actors::Stop stop_;
  std::shared_ptr<TextModel> text_;
  actors::ThreadScheduler scheduler_;
  transports::Loopback transport_;
  actors::Node node_{"process", scheduler_, transport_};
  std::optional<algorithms::PolicyRef> policy_;
};

}  // namespace

int train(const RunConfig& config, const Origins&) { return Process(config).run(); }

}  // namespace troupe::launch
