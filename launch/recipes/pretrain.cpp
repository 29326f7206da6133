#include "launch/recipes/pretrain.h"

#include <filesystem>

#include "engine/base/text/text.h"
#include "engine/checkpoint/init_weights.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/pretraining_batches.h"

namespace troupe::launch::recipes {
namespace {

namespace data = engine::data;
namespace megatron = engine::data::megatron;

constexpr data::Layout default_layout = data::Layout::text;

algorithms::PretrainingPlan batches_of(const config::RunConfig& config) {
  return {.full = config.train.batch_size, .rampup = config.train.batch_rampup};
}

void validate_rampup(Validation& v) {
  const algorithms::BatchRampup& r = v.config.train.batch_rampup;
  if (r.start == 0) {
    v.unused({"train.batch_rampup.increment", "train.batch_rampup.samples"},
             "train.batch_rampup.start is 0");
    return;
  }
  const std::int64_t full = v.config.train.batch_size;
  if (r.start > full || r.increment < 1 || (full - r.start) % r.increment != 0)
    v.problem(cat(v.named("train.batch_rampup.increment"),
                  ": batches must grow from train.batch_rampup.start = ", r.start,
                  " to train.batch_size = ", full, " in whole steps of at least 1"));
  if (v.config.train.steps == 0)
    v.problem(cat(v.named("train.batch_rampup.start"),
                  ": the number of batches is not known; set the length of the run: --steps N"));
}

void validate_token_files(Validation& v) {
  v.check(megatron::parse_split(v.config.pretrain.split));
  if (v.config.train.steps == 0)
    v.problem(
        "train.steps is not set; Megatron's order of samples depends on their number: give "
        "the length of the run: --steps N");
  v.unused({"data.split", "data.shuffle", "data.format", "data.chunk", "data.stream"},
           "token files are not rows; pretrain.split divides them");
  if (!validates_token_files(v.config))
    v.unused("eval.every", "pretrain.split has no validation data, and eval.path is empty");
}

void validate_pretrain(Validation& v) {
  v.unused({"eval.samples", "eval.temperature", "eval.pass_reward"},
           "only methods that sample (grpo, ppo) use it");
  validate_rampup(v);
  if (adapts(v.config) && starts_from_random_weights(v.config))
    v.problem(cat(v.named("init.weights"),
                  ": an adapter (lora.*) needs a trained base; expected a model directory with "
                  "weights"));
  if (!starts_from_random_weights(v.config))
    v.unused({"init.std", "init.scaled_output"}, "the weights are those of the model's files");
  if (reads_token_files(v.config)) return validate_token_files(v);
  validate_eval(v);
  v.unused({"pretrain.split", "pretrain.reset_documents", "pretrain.mask_end_of_document"},
           "data.path has no token files (PREFIX.bin and PREFIX.idx)");
}

std::string formula(const config::RunConfig& config) {
  return cat(
      "L = - sum over tokens t of log p(t | the tokens before it)  /  tokens of the "
      "batch\n",
      config.pretrain.reset_documents ? "the tokens before it: of its document\n"
                                      : "the tokens before it: of its sample\n",
      config.train.average.formula());
}

// The token behind the last one of a sample is predicted from it, and takes a position.
void check_positions(const config::RunConfig& config, std::int64_t length) {
  const auto spec = value_or_throw(spec_of(config, config.model));
  const bool table = spec.learned_positions > 0 && length + 1 > spec.learned_positions;
  if (table || spec.keys_change_at(length + 1))
    throw Failure(
        {Errc::usage, cat("train.max_length ", length, ": the model has ", spec.max_positions,
                          " positions, and a sample has one token "
                          "more than it trains on; expected at most ",
                          length - 1)});
}

std::int64_t vocabulary_of(const config::RunConfig& config) {
  return value_or_throw(spec_of(config, config.model)).vocabulary;
}

// Requests as Megatron does, which its order of samples depends on.
megatron::PretrainingData open_token_files(const config::RunConfig& config, std::int64_t length) {
  auto options = value_or_throw(token_file_options(config, length));
  const auto batches = batches_of(config);
  const std::int64_t evaluations =
      config.eval.every > 0 ? config.train.steps / config.eval.every + 1 : 1;
  const std::int64_t held_out = config.pretrain.eval_batches * batches.full;
  options.samples = {batches.rampup.consumed(config.train.steps, batches.full),
                     evaluations * held_out, held_out};
  return value_or_throw(megatron::PretrainingData::open(options));
}

// The first samples of the validation data.
algorithms::HeldOut validation_batches(const config::RunConfig& config,
                                       const megatron::PretrainingData& all, std::int64_t length) {
  algorithms::HeldOut out{.batches = {}, .every = config.eval.every};
  if (!validates_token_files(config)) return out;
  const megatron::PretrainingSplit* split = all.split(1);
  std::optional<megatron::PretrainingData> other;
  const std::int64_t wanted = config.pretrain.eval_batches * config.train.batch_size;
  if (!config.eval.path.empty()) {
    auto options = value_or_throw(token_file_options(config, length));
    options.parts.clear();
    options.has_weights = false;
    for (const std::string& path : config.eval.path) options.parts.push_back({path, 0});
    options.split = "1";
    if (options.parts.size() == 1) options.samples = {wanted, wanted, wanted};
    other = value_or_throw(megatron::PretrainingData::open(options));
    split = other->split(0);
  }
  if (!split) return out;
  const auto samples = token_batches(*split, 0, vocabulary_of(config));
  for (std::int64_t i = 0; i < config.pretrain.eval_batches; ++i) {
    auto batch = samples->next(config.train.batch_size);
    if (!batch) break;
    out.batches.push_back(std::move(*batch));
  }
  return out;
}

int run_over(RunContext& context, algorithms::PretrainingBatches& batches, std::int64_t count,
             algorithms::HeldOut held_out) {
  auto actors = context.cluster();
  const auto plan = context.begin(count);
  return context.run(algorithms::pretrain(actors, batches, plan, batches_of(context.config()),
                                          std::move(held_out)),
                     plan);
}

int run_token_files(RunContext& context) {
  const config::RunConfig& config = context.config();
  const std::int64_t length = context.max_length();
  check_positions(config, length);
  const auto all = open_token_files(config, length);
  if (!all.split(0))
    throw Failure({Errc::usage, cat("pretrain.split ", quote(config.pretrain.split),
                                    ": has no training data; expected a first weight above 0")});
  std::int64_t consumed = 0;
  if (const Json* saved = context.saved_data()) {
    consumed =
        value_or_throw(get_integer(*saved, "consumed_samples", "the checkpoint's data state"));
    const auto samples =
        value_or_throw(get_integer(*saved, "samples", "the checkpoint's data state"));
    if (samples != all.split(0)->size())
      log_warning(cat("the run had ", samples, " samples, now there are ", all.split(0)->size(),
                      ": their order may be another, as in Megatron (train.steps)"));
  }
  log_info(cat("data: ", all.split(0)->size(), " training samples of ", length, " tokens"));
  const auto batches =
      token_batches(*all.split(0), consumed, vocabulary_of(config), config.train.average);
  return run_over(context, *batches, 0, validation_batches(config, all, length));
}

data::DataOptions text_options(data::DataOptions options) {
  if (options.layout == data::Layout::automatic && options.mix.empty())
    options.layout = default_layout;
  options.encode.train_on_prompt = true;
  return options;
}

int run_pretrain(RunContext& context) {
  if (reads_token_files(context.config())) return run_token_files(context);
  const auto to_batch = [](const auto& rows) { return data::to_experience(rows); };
  auto held_out =
      held_out_batches<data::SftExample>(context, text_options(eval_options(context)), to_batch);
  auto rows = context.loader<data::SftExample>(text_options(context.data_options()));
  const std::int64_t count = context.config().train.batch_rampup.start > 0 ? 0 : rows.batches();
  const auto batches = row_batches(std::move(rows), context.config().train.average);
  return run_over(context, *batches, count, std::move(held_out));
}

}  // namespace

bool is_token_dataset(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path + ".idx", ignored) &&
         std::filesystem::is_regular_file(path + ".bin", ignored);
}

bool reads_token_files(const config::RunConfig& config) {
  if (config.algorithm != algorithms::PretrainConfig::name) return false;
  if (!config.data.paths.empty()) return is_token_dataset(config.data.paths.front());
  return !config.data.mix.empty() && !config.data.mix.front().paths.empty() &&
         is_token_dataset(config.data.mix.front().paths.front());
}

bool validates_token_files(const config::RunConfig& config) {
  if (!config.eval.path.empty()) return true;
  const auto split = megatron::parse_split(config.pretrain.split);
  return split && (*split)[1] > 0;
}

bool starts_from_random_weights(const config::RunConfig& config) {
  if (config.algorithm != algorithms::PretrainConfig::name) return false;
  return config.init.weights == config::InitialWeights::random ||
         (config.init.weights == config::InitialWeights::automatic && !config.model.empty() &&
          !engine::checkpoint::has_weight_files(config.model));
}

Result<std::vector<TokenFile>> token_files(const config::RunConfig& config) {
  const auto options = token_file_options(config, 1);
  RETURN_IF_ERROR(options);
  std::vector<TokenFile> files;
  for (const auto& part : options->parts) {
    const auto dataset = megatron::IndexedDataset::open(part.prefix);
    RETURN_IF_ERROR(dataset);
    files.push_back({part.prefix, dataset->documents(), dataset->tokens()});
  }
  return files;
}

Recipe recipe_for(std::type_identity<algorithms::PretrainConfig>) {
  return {.name = algorithms::PretrainConfig::name,
          .summary = "pretraining on text or token files, from random weights or a checkpoint",
          .sections = {"pretrain", "init", "eval"},
          .rows = data::Purpose::sft,
          .layout = default_layout,
          .prepare_rows = [](const auto&, const auto&,
                             data::DataOptions& options) { options = text_options(options); },
          .validate = validate_pretrain,
          .formula = formula,
          .run = run_pretrain,
          .grads_known = [](const config::RunConfig&) { return true; }};
}

}  // namespace troupe::launch::recipes
