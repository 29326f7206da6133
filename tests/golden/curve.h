// Training curves of TRL's trainers, replayed: every step's loss within 2e-5 (relative above 1) and
// gradient norm within 1e-4, relative.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/load_decoder.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/golden.h"

namespace troupe::algorithms {

using engine::data::Experience;
using engine::loss::AnyLoss;

inline const std::string model_folder = TROUPE_TEST_DATA "/models/stories260k/hf";

template <class T>
std::vector<T> numbers(const Json& array) {
  std::vector<T> out;
  for (const auto& x : array.array()) out.push_back(static_cast<T>(x.number()));
  return out;
}

/// One run of one file.
struct Curve {
  Json file, run;
  std::unique_ptr<engine::ops::Device> device = engine::ops::make_cpu_device();

  Curve(const std::string& path, const std::string& name)
      : file(value_or_throw(read_json(test::golden_folder() + "/" + path))) {
    const Json* found = file.find("runs")->find(name);
    if (found != nullptr) run = *found;
  }
  const Json& settings() const { return *run.find("settings"); }
  const Json::Array& batches() const {
    return (run.find("batches") ? run : file).find("batches")->array();
  }
  const Json& logged(std::size_t step) const { return run.find("log")->array().at(step); }
  double hyper(const char* key) const { return file.find("hyper")->find(key)->number(); }

  engine::train::Trainer trainer() const {
    return trainer(value_or_throw(engine::checkpoint::load_decoder(*device, model_folder, true)));
  }
  engine::train::Trainer trainer(std::unique_ptr<engine::models::Decoder> model) const {
    const auto betas = numbers<double>(*file.find("hyper")->find("betas"));
    engine::train::TrainerOptions options;
    options.micro_batch_tokens = 512;  // several micro-batches a step
    options.optimizer.betas = {betas[0], betas[1]};
    options.optimizer.eps = hyper("eps");
    options.optimizer.weight_decay = hyper("weight_decay");
    options.optimizer.max_grad_norm = hyper("max_grad_norm");
    return {std::move(model), options};
  }
  /// Metrics of the log that the loss reports too; they pass through one more subtraction of large
  /// numbers than the loss.
  void expect_metrics(std::size_t step, const std::map<std::string, double>& found) const {
    for (const auto& [name, value] : found) {
      const Json* logged_value = logged(step).find(name);
      if (logged_value == nullptr) continue;
      const double expected = logged_value->number();
      EXPECT_NEAR(value, expected, 1e-4 * std::max(1.0, std::abs(expected)))
          << name << " of step " << step;
    }
  }
};

/// Allowed differences of a run: 2e-5 and 1e-4, or three times the float32 noise of TRL itself
/// where the golden README reports more.
struct Noise {
  double loss = 2e-5, norm = 1e-4;
};

struct Run {
  const char *title, *name;  ///< of the case, and in the file
  Noise noise = {};
};

inline std::string title_of(const ::testing::TestParamInfo<Run>& info) {
  return info.param.title;
}
inline void PrintTo(const Run& run, std::ostream* out) {
  *out << run.name;
}

/// A case of a family of runs, each one test: replay() asks the family for the batch of a step and
/// compares what was logged.
class GoldenCurve : public ::testing::TestWithParam<Run> {
 protected:
  explicit GoldenCurve(const char* path) : path_(path) {}
  void SetUp() override {
    SKIP_WITHOUT_GOLDEN(path_);
    curve_.emplace(path_, GetParam().name);
    if (curve_->run.is_null()) GTEST_SKIP() << path_ << " has no run " << GetParam().name;
  }
  template <class MakeBatch>
  void replay(const AnyLoss& loss, MakeBatch&& make_batch) {
    auto trained = curve_->trainer();
    replay(trained, loss, std::forward<MakeBatch>(make_batch));
  }
  template <class MakeBatch>
  void replay(engine::train::Trainer& trained, const AnyLoss& loss, MakeBatch&& make_batch) {
    const Noise noise = GetParam().noise;
    for (std::size_t step = 0; step < curve_->batches().size(); ++step) {
      const auto result = trained.forward_backward(make_batch(curve_->batches()[step]), loss);
      const auto update = value_or_throw(trained.update(curve_->hyper("learning_rate")));
      const double expected = curve_->logged(step).find("loss")->number(),
                   norm = curve_->logged(step).find("grad_norm")->number();
      EXPECT_NEAR(result.loss, expected, noise.loss * std::max(1.0, std::abs(expected)))
          << "step " << step;
      EXPECT_NEAR(update.grad_norm, norm, noise.norm * norm + 1e-7) << "step " << step;
      curve_->expect_metrics(step, result.report.values());
    }
  }

  std::string path_;
  std::optional<Curve> curve_;
};

}  // namespace troupe::algorithms
