#include "launch/run/session.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/resolve.h"
#include "launch/run/settings.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;

namespace {

// The checkpoint that train.resume means, or "".
std::string starting_point(const RunConfig& config) {
  if (config.resume != "auto" && config.resume != "never") {
    value_or_throw(checkpoint::verify_checkpoint(config.resume));
    return config.resume;
  }
  const auto found = value_or_throw(checkpoint::find_latest(config.output));
  if (!found) return "";
  for (const auto& warning : found->warnings) log_warning(warning);
  if (config.resume == "never")
    throw Failure({Errc::usage, cat(config.output, " holds a run already (", found->path,
                                    "), and resume is \"never\": choose another output, remove it, or resume")});
  return found->path;
}

}  // namespace

Session::Session(const RunConfig& config)
    : config_(config),
      lock_(value_or_throw(checkpoint::DirectoryLock::take(config.output))),
      device_(engine::ops::make_cpu_device({.threads = static_cast<int>(config.train.threads)})),
      from_(starting_point(config)) {
  value_or_throw(write_file_durably(config.output + "/config.yaml", to_yaml(config)));
}

engine::models::DecoderSpec Session::spec() const {
  return value_or_throw(checkpoint::read_folder_spec(from_.empty() ? config_.model : from_));
}

std::unique_ptr<engine::train::Trainer> Session::make_trainer() {
  const auto options = trainer_settings(config_);
  if (from_.empty()) {
    auto model = value_or_throw(checkpoint::load_decoder(*device_, config_.model, true));
    return std::make_unique<engine::train::Trainer>(std::move(model), options);
  }
  auto own = spec();
  const bool tied = own.tied;
  auto model = std::make_unique<engine::models::Decoder>(*device_, std::move(own), true);
  auto trainer = std::make_unique<engine::train::Trainer>(std::move(model), options);
  auto& optimizer = trainer->optimizer();
  auto loaded = value_or_throw(
      checkpoint::load_checkpoint(from_, trainer->model().parameters(), tied, &optimizer.exp_avg(), &optimizer.exp_avg_sq()));
  optimizer.set_steps(loaded.step);
  done_ = loaded.step;
  state_ = std::move(loaded.state);
  const Json* algorithm = state_.find("algorithm");
  if (!algorithm || *algorithm != Json(config_.algorithm))
    throw Failure({Errc::usage, cat(from_, " was written by algorithm ", algorithm ? algorithm->dump() : "null", ", this run is ",
                                    quote(config_.algorithm), ": give it another output directory")});
  log_info(cat("going on from ", from_, " (step ", done_, ")"));
  return trainer;
}

std::unique_ptr<engine::models::Decoder> Session::make_model(const std::string& folder) {
  return value_or_throw(checkpoint::load_decoder(*device_, folder, false));
}

std::unique_ptr<engine::models::Decoder> Session::make_empty_model() {
  return std::make_unique<engine::models::Decoder>(*device_, spec(), false);
}

actors::roles::Saver Session::saver() {
  return [this](std::int64_t step, const Json& state, engine::train::Trainer& trainer) {
    Json whole = Json::Object{};
    whole.set("algorithm", config_.algorithm);
    whole.set("data", state);
    auto& optimizer = trainer.optimizer();
    const checkpoint::Snapshot snapshot{step,
                                        trainer.model().parameters(),
                                        {.source = config_.model, .tied = trainer.model().spec().tied},
                                        optimizer.exp_avg(),
                                        optimizer.exp_avg_sq(),
                                        std::move(whole)};
    return checkpoint::write_checkpoint(lock_, snapshot, {.keep_last = static_cast<int>(config_.train.keep_last)});
  };
}

}  // namespace troupe::launch
