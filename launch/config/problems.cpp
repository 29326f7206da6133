#include "launch/config/problems.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/adapter/peft_file.h"
#include "engine/base/text.h"
#include "engine/data/readers/file_list.h"
#include "engine/tokenizer/prompt_types.h"
#include "launch/config/fields.h"
#include "launch/profile/fields.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {

namespace {

// What every run is judged by; the recipe judges its own keys.
class General {
 public:
  explicit General(Judging& judging) : j_(judging), c_(judging.config) {}

  void all() {
    required();
    for (const Field& field : fields()) range(field);
    schedule();
    parallel();
    unused();
  }

 private:
  void problem(std::string text) { j_.problem(std::move(text)); }
  void warn(std::string text) { j_.warn(std::move(text)); }
  std::string named(std::string_view key) const { return j_.named(key); }
  bool given(std::string_view key) const { return j_.given(key); }

  void required() {
    algorithm();
    if (c_.model.empty()) problem("model is not set; give the model's directory: --set model=DIR");
    if (c_.data.path.empty() && c_.data.mix.empty())
      problem("data.path is not set; give the file with the rows: --set data.path=FILE");
    if (!c_.data.path.empty() && !c_.data.mix.empty())
      problem(cat(named("data.mix"), ": data.path is set, too; keep one of them"));
    if (c_.data.stream && c_.train.steps == 0)
      problem(cat(named("data.stream"),
                  ": how many rows a stream has is not known before it is read; say how long to "
                  "train: --set train.steps=N"));
    if (c_.output.empty())
      problem("output is not set; give a directory for the run: --set output=DIR");
    if (!c_.output.empty() && c_.output == c_.model)
      problem(cat(named("output"), ": is the model's own directory; choose another"));
  }

  void algorithm() {
    const auto known = algorithm_names();
    if (c_.algorithm.empty())
      return problem(cat("algorithm is not set; give --algorithm, one of ", join(known, ", ")));
    const Recipe* recipe = find_recipe(c_.algorithm);
    if (!recipe) {
      const std::string meant = nearest(c_.algorithm, known);
      return problem(cat(named("algorithm"), ": must be one of ", join(known, ", "),
                         meant.empty() ? "" : cat("; did you mean ", meant, "?")));
    }
    if (!c_.dialect.empty() && !find_dialect(c_.dialect, recipe->name))
      warn(cat(named("dialect"), ": ", recipe->name,
               " knows no way of that name that is not its own; nothing is changed by it"));
  }

  void range(const Field& field) {
    RunConfig copy = c_;
    const Slot slot = field.slot(copy);
    if (const auto* word = std::get_if<std::string*>(&slot)) choice(field, **word);
    if (const auto* words = std::get_if<std::vector<std::string>*>(&slot))
      for (const auto& word : **words) choice(field, word);
    if (const auto* whole = std::get_if<std::int64_t*>(&slot))
      number(field, static_cast<double>(**whole), true);
    if (const auto* real = std::get_if<double*>(&slot)) number(field, **real, false);
    if (const auto* list = std::get_if<std::vector<double>*>(&slot)) {
      if (field.length != 0 && (*list)->size() != field.length) {
        problem(
            cat(named(field.key), ": must have ", field.length, " numbers, has ", (*list)->size()));
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
    problem(cat(named(field.key), ": must be one of ", join(known, ", "),
                meant.empty() ? "" : cat("; did you mean ", meant, "?")));
  }

  void number(const Field& field, double value, bool whole) {
    const Range& r = field.range;
    const bool low_ok = r.above_low ? value > r.low : value >= r.low;
    const bool high_ok = r.below_high ? value < r.high : value <= r.high;
    if (low_ok && high_ok) return;
    std::string text = cat(named(field.key), ": must be ", allowed_text(field));
    const bool open = low_ok ? r.below_high : r.above_low;
    const double bound = low_ok ? r.high : r.low;
    if (!open)
      text += cat("; the nearest valid value is ", whole ? to_text(bound, 0) : to_text(bound));
    problem(std::move(text));
  }

  void schedule() {
    const TrainConfig& t = c_.train;
    if (t.steps > 0 && t.warmup_steps >= t.steps) {
      warn(cat(named("train.warmup_steps"), ": the run of ", t.steps,
               " steps ends before the warm-up does"));
    }
    if (t.decay_steps > 0 && t.schedule != "wsd")
      warn(cat(named("train.decay_steps"), ": only the schedule wsd has a separate decay"));
    if (t.steps > 0 && t.schedule == "wsd" && t.warmup_steps + t.decay_steps > t.steps) {
      problem(cat(named("train.decay_steps"),
                  ": warm-up and decay together are longer than train.steps = ", t.steps,
                  "; the nearest valid value is ",
                  std::max<std::int64_t>(0, t.steps - t.warmup_steps)));
    }
    if (t.steps > 0 && given("train.epochs"))
      warn(cat(named("train.epochs"), ": not used, train.steps is set and wins"));
    if (t.keep_last == 1) {
      problem(cat(named("train.keep_last"),
                  ": a run that is killed while it saves needs the one before; the nearest valid "
                  "value is 2"));
    }
    if (t.learning_rate == 0) warn("train.learning_rate is 0: nothing will be learned");
  }

  void parallel() {
    const ParallelConfig& p = c_.parallel;
    constexpr std::int64_t most = 1024;
    if (p.tp < 1 || p.dp < 1 || p.tp > most || p.dp > most || p.tp * p.dp <= most)
      return;  // range() has spoken, or all is well
    problem(cat(named("parallel.dp"), " x ", named("parallel.tp"), ": a group has at most ", most,
                " ranks, these are ", p.tp * p.dp));
  }

  void unused() {
    if (!find_recipe(c_.algorithm)) return;
    for (const Field& field : fields())
      if (!applies(field, c_.algorithm)) j_.unused(field.key, cat("not used by ", c_.algorithm));
  }

  Judging& j_;
  const RunConfig& c_;
};

void need_model(std::string_view key, const std::string& path, Findings& findings) {
  std::error_code ignored;
  if (path.empty()) return;
  if (!std::filesystem::is_directory(path, ignored)) {
    findings.problems.push_back(
        cat(key, " = ", quote(path, 400),
            ": no such directory; a Hugging Face model directory is expected"));
  } else if (!std::filesystem::is_regular_file(path + "/config.json", ignored)) {
    findings.problems.push_back(
        cat(key, " = ", quote(path, 400), ": has no config.json, so it is not a model directory"));
  }
}

void need_files(std::string_view key, const std::vector<std::string>& paths, Findings& findings) {
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (std::filesystem::exists(path, ignored)) continue;
    const bool pattern = path.find_first_of("*?[") != std::string::npos;
    if (!pattern) findings.problems.push_back(cat(key, ": no file or folder ", quote(path, 400)));
    const auto found = pattern ? engine::data::list_data_files({path}) : std::vector<std::string>{};
    if (!found) findings.problems.push_back(cat(key, ": ", found.error().what));
  }
}

}  // namespace

void judge(const RunConfig& config, const Origins& origins, Findings& findings) {
  Judging judging(config, origins, findings);
  General(judging).all();
  if (const Recipe* recipe = find_recipe(config.algorithm)) recipe->judge(judging);
  judge_lora(judging);
  judge_profile(judging);
}

void judge_files(const RunConfig& config, Findings& findings) {
  std::error_code ignored;
  need_model("model", config.model, findings);
  if (!config.lora.adapter.empty() && !engine::adapter::is_adapter(config.lora.adapter))
    findings.problems.push_back(cat(
        "lora.adapter = ", quote(config.lora.adapter, 400),
        ": no adapter_config.json there; the directory of an adapter in PEFT's form is expected"));
  if (const Recipe* recipe = find_recipe(config.algorithm); recipe && recipe->reference)
    need_model(cat(recipe->name, ".reference"), recipe->reference(config), findings);
  need_files("data.path", config.data.path, findings);
  for (const MixSource& source : config.data.mix) need_files("data.mix", source.path, findings);
  if (!config.chat_template.empty() &&
      !std::filesystem::is_regular_file(config.chat_template, ignored) &&
      !engine::tokenizer::is_prompt_type(config.chat_template)) {
    findings.problems.push_back(
        cat("chat_template: no file ", quote(config.chat_template, 400),
            ", and no prompt type of that name (docs/coming-from-mindspeed.md)"));
  }
  if (config.resume != "auto" && config.resume != "never" &&
      !std::filesystem::is_directory(config.resume, ignored)) {
    findings.problems.push_back(
        cat("resume = ", quote(config.resume, 400),
            ": must be auto, never, or a checkpoint's directory; there is no such directory"));
  }
}

}  // namespace troupe::launch
