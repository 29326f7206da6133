#include "launch/problems.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "actors/roles/rules/rules.h"
#include "engine/base/text.h"
#include "launch/fields.h"
#include "launch/rewards.h"

namespace troupe::launch {

namespace {

class Judge {
 public:
  Judge(const RunConfig& config, const Origins& origins, Findings& findings) : c_(config), origins_(origins), findings_(findings) {}

  void all() {
    required();
    for (const Field& field : fields()) range(field);
    schedule();
    parallel();
    if (c_.algorithm == "dpo") dpo();
    if (c_.algorithm == "grpo") grpo(), rollout(), rewards();
    unused();
  }

 private:
  void problem(std::string text) { findings_.problems.push_back(std::move(text)); }
  void warn(std::string text) { findings_.warnings.push_back(std::move(text)); }
  /// "train.steps = 0 (run.yaml:7)"
  std::string named(std::string_view key) const {
    return cat(key, " = ", value_text(*find_field(key), c_), " (", origins_.at(std::string(key)), ")");
  }
  bool given(std::string_view key) const {
    const auto found = origins_.find(std::string(key));
    return found != origins_.end() && found->second != "default";
  }

  void required() {
    if (c_.algorithm.empty()) problem("algorithm is not set; give --algorithm sft, dpo or grpo");
    if (c_.model.empty()) problem("model is not set; give the model's directory: --set model=DIR");
    if (c_.data.path.empty()) problem("data.path is not set; give the file with the rows: --set data.path=FILE");
    if (c_.output.empty()) problem("output is not set; give a directory for the run: --set output=DIR");
    if (!c_.output.empty() && c_.output == c_.model) problem(cat(named("output"), ": is the model's own directory; choose another"));
  }

  void range(const Field& field) {
    RunConfig copy = c_;
    const Slot slot = field.slot(copy);
    if (const auto* word = std::get_if<std::string*>(&slot)) choice(field, **word);
    if (const auto* whole = std::get_if<std::int64_t*>(&slot)) number(field, static_cast<double>(**whole), true);
    if (const auto* real = std::get_if<double*>(&slot)) number(field, **real, false);
    if (const auto* list = std::get_if<std::vector<double>*>(&slot)) {
      if (field.length != 0 && (*list)->size() != field.length) {
        problem(cat(named(field.key), ": must have ", field.length, " numbers, has ", (*list)->size()));
      }
      for (const double each : **list) number(field, each, false);
    }
  }

  void choice(const Field& field, const std::string& word) {
    if (field.choices.empty() || word.empty()) return;
    std::vector<std::string> known(1);
    for (const char c : field.choices) {
      if (c == '|')
        known.emplace_back();
      else
        known.back() += c;
    }
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    const std::string meant = nearest(word, known);
    problem(cat(named(field.key), ": must be one of ", join(known, ", "), meant.empty() ? "" : cat("; did you mean ", meant, "?")));
  }

  void number(const Field& field, double value, bool whole) {
    const Range& r = field.range;
    const bool low_ok = r.above_low ? value > r.low : value >= r.low;
    const bool high_ok = r.below_high ? value < r.high : value <= r.high;
    if (low_ok && high_ok) return;
    std::string text = cat(named(field.key), ": must be ", allowed_text(field));
    const bool open = low_ok ? r.below_high : r.above_low;
    const double bound = low_ok ? r.high : r.low;
    if (!open) text += cat("; the nearest valid value is ", whole ? to_text(bound, 0) : to_text(bound));
    problem(std::move(text));
  }

  void schedule() {
    const TrainConfig& t = c_.train;
    if (t.steps > 0 && t.warmup_steps >= t.steps) {
      warn(cat(named("train.warmup_steps"), ": the run of ", t.steps, " steps ends before the warm-up does"));
    }
    if (t.decay_steps > 0 && t.schedule != "wsd") warn(cat(named("train.decay_steps"), ": only the schedule wsd has a separate decay"));
    if (t.steps > 0 && t.schedule == "wsd" && t.warmup_steps + t.decay_steps > t.steps) {
      problem(cat(named("train.decay_steps"), ": warm-up and decay together are longer than train.steps = ", t.steps,
                  "; the nearest valid value is ", std::max<std::int64_t>(0, t.steps - t.warmup_steps)));
    }
    if (t.steps > 0 && given("train.epochs")) warn(cat(named("train.epochs"), ": not used, train.steps is set and wins"));
    if (t.keep_last == 1) {
      problem(cat(named("train.keep_last"), ": a run that is killed while it saves needs the one before; the nearest valid value is 2"));
    }
    if (t.learning_rate == 0) warn("train.learning_rate is 0: nothing will be learned");
  }

  void parallel() {
    const ParallelConfig& p = c_.parallel;
    constexpr std::int64_t most = 1024;
    if (p.tp < 1 || p.dp < 1 || p.tp > most || p.dp > most || p.tp * p.dp <= most) return;  // range() has spoken, or all is well
    problem(cat(named("parallel.dp"), " x ", named("parallel.tp"), ": a group has at most ", most, " ranks, these are ", p.tp * p.dp));
  }

  void dpo() {
    const DpoConfig& d = c_.dpo;
    const bool smooths = d.loss == "cdpo" || d.loss == "robust" || d.loss == "exo_pair";
    if (d.label_smoothing > 0 && !smooths) {
      problem(cat(named("dpo.label_smoothing"), ": ", d.loss, " does not use it; for smoothed labels set dpo.loss to cdpo or robust"));
    }
    if (d.label_smoothing == 0 && d.loss == "exo_pair") problem("dpo.loss = exo_pair: needs dpo.label_smoothing above 0, such as 0.001");
    if (given("dpo.discopop_tau") && d.loss != "discopop") warn(cat(named("dpo.discopop_tau"), ": not used by dpo.loss = ", d.loss));
  }

  void grpo() {
    const GrpoConfig& g = c_.grpo;
    if (g.group_size == 1) {
      problem(cat(named("grpo.group_size"),
                  ": advantages are relative to the group's mean, so a group of one learns nothing (and with "
                  "grpo.scale_rewards = ",
                  g.scale_rewards, " divides zero by zero); the nearest valid value is 2"));
    }
    if (g.beta == 0 && !g.reference.empty()) warn(cat(named("grpo.reference"), ": not used, grpo.beta is 0"));
    if (g.beta == 0 && (given("grpo.kl") || given("grpo.kl_times_ratio"))) warn("grpo.kl, grpo.kl_times_ratio: not used, grpo.beta is 0");
    if (g.constant_length > 0 && g.aggregation != "dr_grpo") {
      problem(cat(named("grpo.constant_length"), ": has a meaning for grpo.aggregation = dr_grpo only"));
    }
    if (const std::int64_t round = g.epochs * g.minibatches, left = c_.train.steps % round; left != 0) {
      warn(cat(named("train.steps"), ": one batch of samples makes ", round,
               " steps (grpo.epochs x grpo.minibatches), so the last is trained on ",
               "in part; a run that is made longer later goes on with fresh samples"));
    }
    if (g.clip_low == 1) warn(cat(named("grpo.clip_low"), ": ratios are never clipped from below"));
  }

  void rollout() {
    if (c_.rollout.temperature == 0) {
      problem(
          cat(named("rollout.temperature"), ": greedy samples of a prompt are all the same, so no advantage is ever above 0; 1 is usual"));
    }
  }

  void rewards() {
    if (c_.reward.empty()) problem("reward is not set; grpo needs at least one rule: --set reward=exact_match");
    bool some = c_.reward.empty();
    for (const RewardRule& rule : c_.reward) some = some || rule.weight != 0;
    if (c_.reward.empty()) return;
    if (auto rules = actors::rules::Rules::from_json(reward_rules(c_), "reward"); !rules) problem(rules.error().what);
    if (!some) problem("reward: every weight is 0, so every reward is 0");
  }

  void unused() {
    for (const Field& field : fields()) {
      if (!c_.algorithm.empty() && given(field.key) && !applies(field, c_.algorithm)) {
        warn(cat(named(field.key), ": not used by ", c_.algorithm));
      }
    }
  }

  const RunConfig& c_;
  const Origins& origins_;
  Findings& findings_;
};

void need_model(std::string_view key, const std::string& path, Findings& findings) {
  std::error_code ignored;
  if (path.empty()) return;
  if (!std::filesystem::is_directory(path, ignored)) {
    findings.problems.push_back(cat(key, " = ", quote(path, 400), ": no such directory; a Hugging Face model directory is expected"));
  } else if (!std::filesystem::is_regular_file(path + "/config.json", ignored)) {
    findings.problems.push_back(cat(key, " = ", quote(path, 400), ": has no config.json, so it is not a model directory"));
  }
}

}  // namespace

void judge(const RunConfig& config, const Origins& origins, Findings& findings) { Judge(config, origins, findings).all(); }

void judge_files(const RunConfig& config, Findings& findings) {
  std::error_code ignored;
  need_model("model", config.model, findings);
  if (config.algorithm == "dpo") need_model("dpo.reference", config.dpo.reference, findings);
  if (config.algorithm == "grpo") need_model("grpo.reference", config.grpo.reference, findings);
  for (const std::string& path : config.data.path) {
    if (!std::filesystem::exists(path, ignored)) findings.problems.push_back(cat("data.path: no file or folder ", quote(path, 400)));
  }
  if (!config.chat_template.empty() && !std::filesystem::is_regular_file(config.chat_template, ignored)) {
    findings.problems.push_back(cat("chat_template: no file ", quote(config.chat_template, 400)));
  }
  if (config.resume != "auto" && config.resume != "never" && !std::filesystem::is_directory(config.resume, ignored)) {
    findings.problems.push_back(
        cat("resume = ", quote(config.resume, 400), ": must be auto, never, or a checkpoint's directory; there is no such directory"));
  }
}

}  // namespace troupe::launch
