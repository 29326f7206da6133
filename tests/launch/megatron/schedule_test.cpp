// Learning rates of Megatron's flags against OptimizerParamScheduler, written again.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numbers>

#include "engine/base/text/parse.h"
#include "launch/run/settings.h"
#include "launch/tools/megatron/training.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch::tools::megatron {
namespace {

using Words = std::vector<std::string>;

/// Megatron-LM core_r0.8.0: megatron/core/optimizer_param_scheduler.py (get_lr), with the numbers
/// that megatron/training/training.py (get_optimizer_param_scheduler) gives it, all in samples.
class Scheduler {
 public:
  Scheduler(const CommandLine& line, double batch)
      : style_(line.value("lr-decay-style", "linear")),
        wsd_style_(line.value("lr-wsd-decay-style", "exponential")),
        most_(number(line, "lr", "0")),
        least_(number(line, "min-lr", "0")),
        first_(number(line, "lr-warmup-init", "0")),
        decay_(batch * number(line, "lr-decay-iters", line.value("train-iters"))),
        wsd_decay_(batch * number(line, "lr-wsd-decay-iters", "0")),
        warmup_(line.find("lr-warmup-fraction") ? decay_ * number(line, "lr-warmup-fraction", "0")
                                                : batch * number(line, "lr-warmup-iters", "0")) {}

  double rate(double samples) const {
    if (warmup_ > 0 && samples <= warmup_) return first_ + (most_ - first_) * samples / warmup_;
    if (style_ == "constant") return most_;
    if (samples > decay_) return least_;
    if (style_ == "inverse-square-root")
      return std::max(
          least_, most_ * std::sqrt(std::max(warmup_, 1.0)) / std::sqrt(std::max(samples, 1.0)));
    return least_ + coefficient(samples) * (most_ - least_);
  }

 private:
  static double number(const CommandLine& line, std::string_view flag, const std::string& other) {
    return parse_number<double>(line.value(flag, other)).value();
  }
  double coefficient(double samples) const {
    const double ratio = (samples - warmup_) / (decay_ - warmup_);
    if (style_ == "linear") return 1 - ratio;
    if (style_ == "cosine") return 0.5 * (std::cos(std::numbers::pi * ratio) + 1);
    const double begin = decay_ - wsd_decay_, part = (samples - begin) / wsd_decay_;
    if (samples <= begin) return 1;
    if (wsd_style_ == "linear") return 1 - part;
    if (wsd_style_ == "cosine") return 0.5 * (std::cos(std::numbers::pi * part) + 1);
    if (wsd_style_ == "exponential") return 2 * std::pow(0.5, part) - 1;
    return 1 - std::sqrt(part);
  }

  std::string style_, wsd_style_;
  double most_, least_, first_, decay_, wsd_decay_, warmup_;
};

/// Samples before each of `steps` iterations: megatron/core/num_microbatches_calculator.py.
std::vector<double> consumed(const CommandLine& line, std::size_t steps, double full) {
  std::vector<double> out{0};
  const Given* ramp = line.find("rampup-batch-size");
  while (out.size() < steps) {
    double size = full;
    if (ramp) {
      const auto value = [&](std::size_t i) {
        return parse_number<double>(ramp->values[i]).value();
      };
      const double start = value(0), increment = value(1), samples = value(2);
      const double interval = samples / std::floor((full - start) / increment);
      if (out.back() <= samples) size = start + std::floor(out.back() / interval) * increment;
    }
    out.push_back(out.back() + std::min(size, full));
  }
  return out;
}

TEST(MegatronSchedule, FortyCombinationsOfFlagsHaveItsLearningRates) {
  const std::string root = scratch_folder(), model = root + "/hf";
  std::filesystem::create_directory(model);
  put_small_model(model, small_config("Qwen3ForCausalLM"));
  const std::vector<Words> styles{
      {"--lr-decay-style", "linear"},
      {"--lr-decay-style", "cosine"},
      {"--lr-decay-style", "constant"},
      {"--lr-decay-style", "inverse-square-root"},
      {"--lr-decay-style", "WSD", "--lr-wsd-decay-iters", "5"},
      {"--lr-decay-style", "WSD", "--lr-wsd-decay-iters", "5", "--lr-wsd-decay-style", "linear"},
      {"--lr-decay-style", "WSD", "--lr-wsd-decay-iters", "5", "--lr-wsd-decay-style", "cosine"},
      {"--lr-decay-style", "WSD", "--lr-wsd-decay-iters", "5", "--lr-wsd-decay-style",
       "minus_sqrt"}};
  const std::vector<Words> lengths{
      {},
      {"--lr-warmup-iters", "3"},
      {"--lr-warmup-fraction", "0.17", "--lr-decay-iters", "25"},
      {"--lr-warmup-iters", "4", "--lr-warmup-init", "1e-6", "--lr-decay-iters", "12"},
      {"--lr-warmup-iters", "3", "--rampup-batch-size", "2", "2", "24"}};
  int combinations = 0;
  for (const Words& style : styles)
    for (const Words& length : lengths) {
      Words words{"--load",     model,           "--save", root + "/run",
                  "--finetune", "--seq-length",  "32",     "--data-path",
                  "enwiki",     "--lr",          "3e-5",   "--min-lr",
                  "1e-6",       "--train-iters", "20",     "--global-batch-size",
                  "8"};
      words.insert(words.end(), style.begin(), style.end());
      words.insert(words.end(), length.begin(), length.end());
      const auto line = value_or_throw(read_command_line(words));
      auto sources = value_or_throw(training_run("pretrain_gpt", line)).sources;
      sources.check_files = false;
      const auto config = value_or_throw(recipes::resolve(sources)).config;
      const auto plan = value_or_throw(run::plan_settings(config, 0, 1, 0));
      const Scheduler reference(line, 8);
      const auto samples = consumed(line, 20, 8);
      for (std::size_t step = 0; step < samples.size(); ++step)
        EXPECT_NEAR(plan.rate(static_cast<std::int64_t>(step) + 1), reference.rate(samples[step]),
                    1e-12 * 3e-5)
            << join(style, " ") << ' ' << join(length, " ") << ", iteration " << step + 1;
      ++combinations;
    }
  EXPECT_EQ(combinations, 40);
}

}  // namespace
}  // namespace troupe::launch::tools::megatron
