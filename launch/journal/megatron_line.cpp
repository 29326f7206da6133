#include "launch/journal/megatron_line.h"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "engine/base/text.h"

namespace troupe::launch::journal {
namespace {

double value_of(const algorithms::Metrics& metrics, std::string_view name) {
  const double* value = algorithms::find_metric(metrics, name);
  return value ? *value : std::nan("");
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

std::string local_time(double clock) {
  const auto seconds = static_cast<std::time_t>(clock);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof(buffer), "%Y-%m-%d %H:%M:%S", &parts);
  return buffer;
}

// Between two lines of dashes of its length.
std::string validation_lines(std::int64_t step, double loss) {
  // Megatron bounds the exponent so that the perplexity stays finite.
  const std::string text = cat(" validation loss at iteration ", step, " on validation set | ",
                               formatted("lm loss value: %.6E | ", loss),
                               formatted("lm loss PPL: %.6E | ", std::exp(std::min(20.0, loss))));
  const std::string dashes(text.size() + 1, '-');
  return cat(dashes, '\n', text, '\n', dashes, '\n');
}

}  // namespace

std::string MegatronLog::step(std::int64_t step, const algorithms::Metrics& metrics, double seconds,
                              double flops, double clock) {
  std::string out;
  if (step > 0) {
    ++steps_;
    loss_ += value_of(metrics, "loss");
    seconds_ += seconds;
    flops_ += flops;
  }
  if (steps_ > 0 && options_.every > 0 && step % options_.every == 0) {
    const auto count = static_cast<double>(steps_);
    const auto whole = [](std::int64_t value) { return static_cast<long long>(value); };
    const std::int64_t consumed = options_.consumed(step);
    const double* scale = algorithms::find_metric(metrics, "loss_scale");
    const double* skipped = algorithms::find_metric(metrics, "skipped");
    const double before = std::exchange(skipped_, skipped ? *skipped : 0);
    out =
        cat(" [", local_time(clock), "]",
            formatted(" iteration %8lld/%8lld |", whole(step), whole(total_)),
            formatted(" consumed samples: %12lld |", whole(consumed)),
            formatted(" elapsed time per iteration (ms): %.1f |", 1000 * seconds_ / count),
            formatted(" throughput per GPU (TFLOP/s/GPU): %.1f |",
                      seconds_ > 0 ? 1e-12 * flops_ / seconds_ / options_.ranks : 0.0),
            formatted(" learning rate: %.6E |", value_of(metrics, "learning_rate")),
            formatted(" global batch size: %5lld |", whole(consumed - options_.consumed(step - 1))),
            formatted(" lm loss: %.6E |", loss_ / count),
            formatted(" loss scale: %.1f |", scale ? *scale : 1.0),
            formatted(" grad norm: %.3f |", value_of(metrics, "grad_norm")),
            formatted(" number of skipped iterations: %3.0f |", skipped_ - before),
            " number of nan iterations:   0 |\n");
    steps_ = 0;
    loss_ = seconds_ = flops_ = 0;
  }
  const double eval = value_of(metrics, "eval/loss");
  return std::isnan(eval) ? out : out + validation_lines(step, eval);
}

}  // namespace troupe::launch::journal
