// Benchmark of loading a checkpoint of about 1 GB (as many of the shape's layers as needed), which
// is first written to the temporary folder and is therefore in the page cache. The ceiling is a
// copy in memory.
#include <algorithm>

#include "benchmarks/support/bandwidth.h"
#include "benchmarks/support/clock.h"
#include "benchmarks/support/program.h"
#include "benchmarks/support/scratch.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_parameters.h"
#include "engine/checkpoint/save_parameters.h"

namespace {

using namespace troupe::benchmarks;
using namespace troupe::engine;
using troupe::cat;
using troupe::to_text;

ModelShape stretched(const Options& options) {
  ModelShape shape = options.shape;
  if (options.tiny()) return shape;
  const std::int64_t wanted = 1000000000 / (options.bf16() ? 2 : 4),
                     layer = shape.layer_weights() / shape.layers;
  shape.layers =
      std::max<std::int64_t>(1, (wanted - shape.vocabulary * shape.width + layer / 2) / layer);
  return shape;
}

double file_bytes(const std::filesystem::path& folder) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    bytes += static_cast<double>(entry.file_size());
  return bytes;
}

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  const ModelShape shape = stretched(options);
  const ScratchFolder folder;
  const auto type = options.bf16() ? checkpoint::StoredType::bf16 : checkpoint::StoredType::f32;
  const auto model = make_model(*device, shape, false);
  troupe::value_or_throw(checkpoint::save_parameters(folder.path().string(), model->parameters(),
                                                     {.tied = true, .type = type}));
  const auto load = [&] {
    troupe::value_or_throw(
        checkpoint::load_parameters(folder.path().string(), model->parameters(), {.tied = true}));
  };
  load();
  const double peak = peak_rss_mib(), gigabytes = 1e-9 * file_bytes(folder.path());

  Bandwidth memory(options.threads, options.tiny());
  const Pairs pairs = in_pairs(
      options.rounds, [&] { return memory.copy(); }, [&] { return seconds(load); });
  say(cat(to_text(gigabytes, 3), " GB as ", options.dtype(), " (", shape.layers,
          " layers): ", to_text(pairs.time(), 3), " s, ", pairs.describe(), ", ",
          to_text(gigabytes / pairs.time(), 2), " GB/s; memcpy ", to_text(pairs.ceiling(), 1),
          " GB/s"));
  return {gigabytes / pairs.time(), "GB/s", pairs.ceiling(), pairs.ratio(gigabytes), peak};
}

}  // namespace

int main(int count, char** words) {
  return run("load", {}, count, words, measure);
}
