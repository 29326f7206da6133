#include "launch/tools/migration/numbers.h"

#include <algorithm>
#include <cmath>

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"

namespace troupe::launch::tools::migration {
namespace {

constexpr double max_rows = 1e9;

/// A factor of a batch: a whole number above 0. Throws Failure (Errc::usage) for another one.
double count_of(std::string_view name, double value) {
  if (value > 0 && value == std::floor(value)) return value;
  throw Failure(
      {Errc::usage, cat(name, " ", to_text(value),
                        ": a whole number above 0 is expected; correct the file, or give another "
                        "value after it (NAME=VALUE)")});
}

/// A product with the name of each factor.
class Product {
 public:
  explicit Product(const NumberOf& number) : number_(number) {}
  /// `otherwise`: the tool's default, which is marked as such.
  void times(std::string_view name, double otherwise) {
    const double value = number_(name, std::nan(""));
    factor(std::isnan(value) ? cat(name, ", the tool's default") : std::string(name),
           count_of(name, std::isnan(value) ? otherwise : value));
  }
  void by(std::string_view name, double otherwise) {
    const double given = number_(name, std::nan(""));
    const double value = count_of(name, std::isnan(given) ? otherwise : given);
    text_ +=
        cat(" / ", to_text(value), " (", name, std::isnan(given) ? ", the tool's default)" : ")");
    value_ /= value;
  }
  void factor(std::string_view name, double value) {
    text_ += cat(text_.empty() ? "" : " x ", to_text(value), " (", name, ")");
    value_ *= value;
  }
  /// Rounded up. Throws Failure (Errc::usage) beyond the largest batch.
  std::int64_t whole() const {
    if (value_ <= max_rows)
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(value_ - 1e-9)));
    throw Failure({Errc::usage, cat("a batch of ", text_, " = ", to_text(value_), ": at most ",
                                    to_text(max_rows, 0), " rows are possible; correct the file")});
  }
  std::string text() const {
    if (text_.empty()) return "";
    const bool exact = std::abs(value_ - static_cast<double>(whole())) < 1e-9;
    return cat(text_, exact ? " = " : ", rounded up, = ", whole());
  }

 private:
  const NumberOf& number_;
  double value_ = 1;
  std::string text_;
};

bool is_reinforcement(std::string_view method) {
  return method == "ppo" || method == "grpo";
}

BatchNumbers of_transformers(std::string_view method, bool trl, std::int64_t devices,
                             const NumberOf& number) {
  Product rows(number);
  rows.times("per_device_train_batch_size", 8);
  rows.times("gradient_accumulation_steps", 1);
  rows.factor("devices", static_cast<double>(devices));
  const double accumulation = number("gradient_accumulation_steps", 1);
  BatchNumbers out;
  if (trl && method == "grpo") {
    Product minibatches(number);
    if (number("steps_per_generation", 0) != 0) {
      minibatches.times("steps_per_generation", accumulation);
      minibatches.by("gradient_accumulation_steps", 1);
    } else if (number("generation_batch_size", 0) != 0) {
      minibatches.times("generation_batch_size", 0);
      minibatches.by("gradient_accumulation_steps", 1);
      minibatches.by("per_device_train_batch_size", 8);
    }
    out.minibatches = minibatches.whole();
    out.minibatches_text = minibatches.text();
    rows.by("num_generations", 8);
  }
  if (trl && method == "ppo") rows.by("num_mini_batches", 1);
  out.batch = rows.whole();
  out.batch_text = rows.text();
  return out;
}

BatchNumbers of_rollouts(std::string_view batch, double batch_default, std::string_view rollout,
                         double rollout_default, const NumberOf& number) {
  Product rows(number), minibatches(number);
  rows.times(batch, batch_default);
  // verl's fully asynchronous trainer has no rollout batch, but generates prompt by prompt.
  if (number(rollout, rollout_default) == 0 && number("data.gen_batch_size", 0) > 0)
    return {rows.whole(), 1, rows.text(), ""};
  minibatches.times(rollout, rollout_default);
  minibatches.by(batch, batch_default);
  return {rows.whole(), minibatches.whole(), rows.text(), minibatches.text()};
}

BatchNumbers of_openrlhf(const NumberOf& number) {
  Product rows(number), minibatches(number);
  rows.times("train_batch_size", 128);
  rows.by("n_samples_per_prompt", 1);
  minibatches.times("rollout_batch_size", 1024);
  minibatches.times("n_samples_per_prompt", 1);
  minibatches.by("train_batch_size", 128);
  return {rows.whole(), minibatches.whole(), rows.text(), minibatches.text()};
}

BatchNumbers of_rows(std::string_view name, double otherwise, const NumberOf& number) {
  if (number(name, otherwise) == 0) return {};
  Product rows(number);
  rows.times(name, otherwise);
  return {rows.whole(), 1, rows.text(), ""};
}

}  // namespace

BatchNumbers batch_numbers(tables::Tool tool, std::string_view method, std::int64_t devices,
                           const NumberOf& number) {
  const bool rollouts = is_reinforcement(method);
  switch (tool) {
    case tables::Tool::trl:
    case tables::Tool::llama_factory:
      return of_transformers(method, tool == tables::Tool::trl, std::max<std::int64_t>(1, devices),
                             number);
    case tables::Tool::verl:
      return rollouts ? of_rollouts("actor_rollout_ref.actor.ppo_mini_batch_size", 256,
                                    "data.train_batch_size", 1024, number)
                      : of_rows("data.train_batch_size", 256, number);
    case tables::Tool::openrlhf:
      return rollouts ? of_openrlhf(number) : of_rows("train_batch_size", 128, number);
    case tables::Tool::mindspeed:
      return rollouts && number("mini_batch_size", 0) > 0 && number("global_batch_size", 0) > 0
                 ? of_rollouts("mini_batch_size", 1, "global_batch_size", 1, number)
                 : of_rows("global_batch_size", 0, number);
  }
  return {};
}

}  // namespace troupe::launch::tools::migration
