// Benchmark of a checkpoint: the time of two training steps without one, with one that is waited
// for, and with one that is written while they run, until it is durable. `hidden` is the share of
// the time of a save that overlaps.
#include <optional>

#include "algorithms/losses/sft_loss.h"
#include "benchmarks/support/scratch.h"
#include "benchmarks/support/training.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/write_checkpoint.h"

namespace troupe::benchmarks {
namespace {

namespace checkpoint = engine::checkpoint;

constexpr int steps_a_save = 2;

enum class Save { none, waits, overlaps };

class Run {
 public:
  explicit Run(const Options& options)
      : device_(make_device(options)),
        trainer_(make_trainer(*device_, options)),
        batch_(random_batch(options.shape, options.batch, 1)),
        lock_(value_or_throw(checkpoint::DirectoryLock::acquire(scratch_.path().string()))) {}

  /// Seconds of the steps after a save and of what remains of that.
  double time(Save how) {
    return seconds([&] {
      std::unique_ptr<checkpoint::CheckpointWrite> write;
      if (how != Save::none) write = value_or_throw(start());
      std::optional<Result<std::string>> written;
      if (how == Save::waits) written = write->finish(true);
      if (how == Save::overlaps) trainer_.optimizer().set_reader(write.get());
      for (int i = 0; i < steps_a_save; ++i) {
        step();
        if (write && !written) written = write->finish(false);
      }
      if (write && !written) written = write->finish(true);
      if (written) value_or_throw(std::move(*written));
      trainer_.optimizer().set_reader(nullptr);
    });
  }

 private:
  void step() {
    trainer_.forward_backward(batch_, loss_);
    value_or_throw(trainer_.update(1e-4));
  }
  Result<std::unique_ptr<checkpoint::CheckpointWrite>> start() {
    auto& optimizer = trainer_.optimizer();
    return checkpoint::start_checkpoint(nullptr, &lock_,
                                        {1,
                                         trainer_.model().parameters(),
                                         {},
                                         optimizer.exp_avg(),
                                         optimizer.exp_avg_sq(),
                                         Json::Object{}});
  }

  ScratchFolder scratch_;
  std::unique_ptr<engine::ops::Device> device_;
  engine::train::Trainer trainer_;
  engine::data::Experience batch_;
  engine::loss::AnyLoss loss_{algorithms::SftLoss{}};
  checkpoint::DirectoryLock lock_;
};

Outcome measure(const Options& options) {
  Run run(options);
  run.time(Save::none);
  const double before = peak_rss_mib();
  std::vector<double> none, waits, overlaps;
  for (int round = 0; round < options.rounds; ++round) {
    none.push_back(run.time(Save::none));
    waits.push_back(run.time(Save::waits));
    overlaps.push_back(run.time(Save::overlaps));
  }
  const double growth = peak_rss_mib() - before, plain = median(none), waited = median(waits),
               overlapped = median(overlaps), hidden = (waited - overlapped) / (waited - plain);
  say(cat(steps_a_save, " steps: ", to_text(plain, 3), " s; with a save that is waited for ",
          to_text(waited, 3), " s, with one that overlaps ", to_text(overlapped, 3), " s (",
          to_text(100 * hidden, 0), " % of it); the process grew by ", to_text(growth, 1), " MiB"));
  Outcome out{overlapped, "s", plain, plain / overlapped, before};
  out.figures = {{"waited_s", waited}, {"hidden", hidden}, {"growth_mib", growth}};
  return out;
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) {
  return troupe::benchmarks::run("save", {}, count, words, troupe::benchmarks::measure);
}
