// Benchmark of a step of supervised training on a grid of two ranks, with one thread each, beside
// the same step in one process with two threads.
//   parallel --grid dp2|tp2|pp2 [--shape a|b|c] [--dtype f32|bf16] [--batch N] [--rounds N] threads
//   parallel --grid dp2|tp2|pp2 ... --mpi          processes: starts mpirun -n 2 itself
//   parallel --grid pp2 --vpp N ...                N virtual stages on each rank
// A round times the one process, while the other rank waits, and then the grid. The last line is a
// JSON object: `ratio` is the median over the rounds of the time of one process divided by that of
// the grid. With pp2, whose stages wait for `bubble` of the time, `ratio_without_bubble` is ratio /
// (1 - bubble).
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/losses/sft_loss.h"
#include "benchmarks/support/training.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/parallel/all_reduce.h"
#include "engine/parallel/grid.h"
#include "engine/parallel/pipeline.h"
#include "engine/parallel/thread_group.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::benchmarks {
namespace {

using engine::parallel::Grid;
using engine::parallel::Mesh;
using engine::train::Trainer;

struct Settings {
  Options options;
  Grid grid;
  int chunks = 1;  ///< virtual stages of each rank
  bool mpi = false;
};

Result<Grid> grid_of(std::string_view name) {
  if (name == "dp2") return Grid{.dp = 2};
  if (name == "tp2") return Grid{.tp = 2};
  if (name == "pp2") return Grid{.pp = 2};
  return fail(Errc::usage, cat("--grid must be dp2, tp2 or pp2, found ", quote(name)));
}

// What this program alone accepts, and the common flags.
Result<Settings> read_settings(std::span<const char* const> words) {
  Settings out;
  std::optional<Result<Grid>> grid;
  std::vector<const char*> common;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--mpi") {
      out.mpi = true;
    } else if (word == "--vpp" && i + 1 < words.size()) {
      out.chunks = std::atoi(words[++i]);
    } else if (word == "--grid" && i + 1 < words.size()) {
      grid = grid_of(words[++i]);
    } else if (word.starts_with("--grid=")) {
      grid = grid_of(word.substr(std::strlen("--grid=")));
    } else {
      common.push_back(words[i]);
    }
  }
  if (!grid) return fail(Errc::usage, "--grid dp2, tp2 or pp2 is missing");
  RETURN_IF_ERROR(*grid);
  out.grid = **grid;
  if (out.chunks < 1 || out.chunks > 4 || (out.chunks > 1 && out.grid.pp == 1))
    return fail(Errc::usage, "--vpp must be 1 to 4, with --grid pp2");
  auto options = read_options(common, {.batch = 8, .multiple = 2});
  RETURN_IF_ERROR(options);
  out.options = std::move(*options);
  return out;
}

// `layers` in `parts` parts of equal cost, at least 1 each, of which the last one also has what
// costs `extra` layers.
std::vector<std::int64_t> balanced(std::int64_t layers, int parts, double extra) {
  std::vector<std::int64_t> out;
  for (double left = static_cast<double>(layers) + extra; parts > 1; --parts) {
    const double share = left / parts;
    out.push_back(
        std::clamp(static_cast<std::int64_t>(share + 0.5), std::int64_t{1}, layers - (parts - 1)));
    layers -= out.back();
    left -= static_cast<double>(out.back());
  }
  out.push_back(layers);
  return out;
}

// Two stages of `chunks` chunks, all of equal cost: the head costs what V / (layer weights / D)
// layers do. Numbers of layers in the order of the model.
std::vector<std::int64_t> balanced_layers(const ModelShape& shape, int chunks) {
  const double head = static_cast<double>(shape.vocabulary * shape.width) /
                      static_cast<double>(shape.layer_weights() / shape.layers);
  // Each stage has a layer for each of its chunks.
  const std::int64_t of_first =
      std::clamp<std::int64_t>(balanced(shape.layers, 2, head)[0], chunks, shape.layers - chunks);
  const auto first = balanced(of_first, chunks, 0),
             last = balanced(shape.layers - of_first, chunks, head);
  std::vector<std::int64_t> layers;
  for (std::size_t chunk = 0; chunk < first.size(); ++chunk)
    layers.insert(layers.end(), {first[chunk], last[chunk]});
  return layers;
}

/// A model with its device and optimizer, in one process or on a rank of the grid.
class Training {
 public:
  Training(const Settings& settings, int threads, const Mesh* mesh)
      : device_(engine::ops::make_cpu_device(
            {.threads = threads, .isa = settings.options.isa.c_str()})),
        batch_(random_batch(settings.options.shape, settings.options.batch, 1)) {
    engine::train::TrainerOptions options{.dtype = settings.options.precision};
    engine::models::ModelPart part;
    if (mesh != nullptr) part = {&mesh->tp(), &mesh->pp(), {}};
    if (mesh != nullptr && mesh->grid().pp > 1) {
      part.layers = balanced_layers(settings.options.shape, settings.chunks);
      part.chunks = settings.chunks;
      options.micro_batch_tokens = static_cast<std::int32_t>(settings.options.shape.sequence);
    }
    trainer_.emplace(make_model(*device_, settings.options.shape, true, part), options, mesh);
  }

  void step() {
    trainer_->forward_backward(batch_, loss_);
    value_or_throw(trainer_->update(1e-4));
  }

 private:
  std::unique_ptr<engine::ops::Device> device_;
  engine::data::Experience batch_;
  engine::loss::AnyLoss loss_{algorithms::SftLoss{}};
  std::optional<Trainer> trainer_;
};

void report(const Settings& settings, const Pairs& pairs) {
  const Options& options = settings.options;
  const double tokens = static_cast<double>(options.batch * options.shape.sequence);
  const double ratio = pairs.ratio(1);
  Json line(Json::Object{{"name", "parallel"},
                         {"shape", options.shape.name},
                         {"dtype", options.dtype()},
                         {"grid", engine::parallel::to_string(settings.grid)},
                         {"kind", settings.mpi ? "mpi" : "threads"}});
  line.set("value", tokens / pairs.time()).set("unit", "tokens/s").set("ratio", ratio);
  if (settings.grid.pp > 1) {
    const double bubble =
        engine::parallel::bubble(2, static_cast<int>(options.batch), settings.chunks);
    line.set("vpp", settings.chunks)
        .set("bubble", bubble)
        .set("ratio_without_bubble", ratio / (1 - bubble));
  }
  say(cat("step ", to_text(pairs.time(), 4), " s on the grid, ", to_text(1 / pairs.ceiling(), 4),
          " s in one process; ", pairs.describe()));
  say(line.dump());
}

void measure(const Settings& settings, engine::parallel::Communicator& own) {
  const Mesh mesh = value_or_throw(Mesh::create(own.split(0, own.rank()), settings.grid));
  std::optional<Training> alone;
  if (own.rank() == 0) alone.emplace(settings, own.size(), nullptr);
  Training grid(settings, 1, &mesh);
  const auto on_one = [&] {
    const double took = alone ? seconds([&] { alone->step(); }) : 0;
    engine::parallel::barrier(own, "the step in one process");
    return 1 / took;
  };
  const auto on_grid = [&] {
    return seconds([&] {
      grid.step();
      engine::parallel::barrier(own, "the step on the grid");
    });
  };
  on_one();
  on_grid();
  // All ranks run the same number of rounds, so none is left out as disturbed.
  Pairs pairs(settings.options.rounds);
  for (int i = 0; i < settings.options.rounds; ++i) {
    const double rate = on_one();
    pairs.add(rate, on_grid(), false);
  }
  if (own.rank() == 0) report(settings, pairs);
}

void measure_threads(const Settings& settings) {
  engine::parallel::ThreadGroup group(settings.grid.ranks());
  std::vector<std::thread> threads;
  for (int r = 0; r < settings.grid.ranks(); ++r)
    threads.emplace_back(
        [&settings, own = std::shared_ptr(group.rank(r))] { measure(settings, *own); });
  for (auto& thread : threads) thread.join();
}

// Replaces this process by mpirun with two processes of this program.
int start_mpirun(char** words) {
  std::vector<std::string> command{"mpirun", "--bind-to", "none", "-n", "2"};
  if (geteuid() == 0) command.insert(command.begin() + 1, "--allow-run-as-root");
  command.insert(command.end(), {"--oversubscribe", "/proc/self/exe"});
  char path[4096];
  const auto length = readlink("/proc/self/exe", path, sizeof path);
  if (length > 0) command.back().assign(path, static_cast<std::size_t>(length));
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  for (char** word = words + 1; *word != nullptr; ++word) arguments.push_back(*word);
  arguments.push_back(nullptr);
  execvp("mpirun", arguments.data());
  std::fprintf(stderr, "parallel: mpirun cannot be started: %s; install openmpi-bin\n",
               std::strerror(errno));
  return 1;
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) try {
  using namespace troupe;
  const auto settings = benchmarks::read_settings({words + 1, static_cast<std::size_t>(count - 1)});
  if (!settings) {
    std::fprintf(stderr, "parallel: %s\n", settings.error().what.c_str());
    return 2;
  }
  if (transports::mpi::under_mpirun()) {
    const auto world = value_or_throw(transports::mpi::mpi_world());
    benchmarks::measure(*settings, *world);
    return 0;
  }
  if (settings->mpi) return benchmarks::start_mpirun(words);
  benchmarks::measure_threads(*settings);
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "parallel: %s\n", error.what()), 1;
}
