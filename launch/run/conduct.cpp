#include "launch/run/conduct.h"

#include "actors/runtime/run.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/exit_code.h"
#include "launch/run/settings.h"

namespace troupe::launch {
namespace {

class Conductor {
 public:
  Conductor(const Session& session, const TextModel& text, Cast& cast, RunJournal& journal, const actors::Stop& stop)
      : config_(session.config()), session_(session), text_(text), cast_(cast), journal_(journal), stop_(stop) {}

  int run() {
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

  engine::data::DataOptions data_options() const { return value_or_throw(data_settings(config_, session_.spec(), config_.data.path)); }

  algorithms::Cluster cluster() {
    std::optional<algorithms::ReferenceRef> reference;
    if (needs_reference(config_)) reference = cast_.reference();
    return {cast_.policy(), std::move(reference), {}, {}, journal_, stop_, cast_.pieces(), std::chrono::seconds(config_.train.patience)};
  }

  int run_sft() {
    auto data = loader(engine::data::load_sft(data_options(), text_), 1);
    auto actors = cluster();
    const auto plan = begin(data.order().batches(), 1);
    return drive(algorithms::sft(actors, data, plan, value_or_throw(sft_settings(config_))), plan);
  }

  int run_dpo() {
    const auto settings = value_or_throw(dpo_settings(config_));
    auto data = loader(engine::data::load_pairs(data_options(), text_), 1);
    auto actors = cluster();
    const auto plan = begin(data.order().batches(), 1);
    return drive(algorithms::dpo(actors, data, plan, settings), plan);
  }

  int run_grpo() {
    const auto settings = value_or_throw(grpo_settings(config_));
    auto data = loader(engine::data::load_prompts(data_options(), text_), settings.minibatches);
    auto actors = cluster();
    actors.rollouts = cast_.rollouts();
    actors.verifier = cast_.verifier();
    const std::int64_t updates = std::int64_t{settings.epochs} * settings.minibatches;
    const auto plan = begin(data.order().batches(), updates);
    return drive(algorithms::grpo(actors, data, plan, settings), plan);
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
    actors::run(cast_.node(), std::move(algorithm), &stop_);
    journal_.plot();
    return stop_.requested() ? exit_interrupted : 0;
  }

  const RunConfig& config_;
  const Session& session_;
  const TextModel& text_;
  Cast& cast_;
  RunJournal& journal_;
  const actors::Stop& stop_;
};

}  // namespace

int conduct(const Session& session, const TextModel& text, Cast& cast, RunJournal& journal, const actors::Stop& stop) {
  return Conductor(session, text, cast, journal, stop).run();
}

}  // namespace troupe::launch
