// Benchmark of an optimizer update: gradient norm, clipping, AdamW and clearing of gradients. The
// ceiling is memory bandwidth.
#include "engine/optim/adamw.h"

#include "benchmarks/support/bandwidth.h"
#include "benchmarks/support/clock.h"
#include "benchmarks/support/program.h"
#include "engine/base/text/text.h"

namespace {

using namespace troupe::benchmarks;
using troupe::cat;
using troupe::to_text;

// Minimum bytes per weight: the gradient for the norm; then weight, gradient and two moments, read
// and written.
constexpr double bytes_a_weight = 4 + 16 + 16;

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  const auto model = make_model(*device, options.shape, true);
  auto& parameters = model->parameters();
  troupe::engine::optim::AdamW optimizer(parameters);
  const auto update = [&] {
    device->fill(parameters.grads(), 1e-3f);
    return seconds([&] {
      troupe::value_or_throw(optimizer.step(1e-4, {}));
      optimizer.zero_grad();
    });
  };
  update();
  const double peak = peak_rss_mib();
  Bandwidth memory(options.threads, options.tiny());
  const Pairs pairs = in_pairs(
      options.rounds, [&] { return memory.update(); }, update);
  const double gigabytes = 1e-9 * bytes_a_weight * static_cast<double>(parameters.count());
  say(cat("an update of ", to_text(1e-6 * static_cast<double>(parameters.count()), 1),
          " million weights (f32 with either --dtype): ", to_text(1e3 * pairs.time(), 2), " ms, ",
          pairs.describe(), "; ", to_text(gigabytes / pairs.time(), 1), " GB/s of ",
          to_text(pairs.ceiling(), 1)));
  return {gigabytes / pairs.time(), "GB/s", pairs.ceiling(), pairs.ratio(gigabytes), peak};
}

}  // namespace

int main(int count, char** words) {
  return run("adamw", {}, count, words, measure);
}
