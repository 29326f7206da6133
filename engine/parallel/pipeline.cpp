#include "engine/parallel/pipeline.h"

#include <algorithm>
#include <utility>

#include "engine/base/errors/check.h"

namespace troupe::engine::parallel {
namespace {

struct Division {
  int stages, stage, micro_batches, chunks;
};

struct Pass {
  int micro_batch, chunk;
};

// Appends the passes of one stage together with their messages.
class Scheduler {
 public:
  explicit Scheduler(const Division& given) : given_(given) {
    const auto [stages, stage, micro_batches, chunks] = given;
    check(stages >= 1 && 0 <= stage && stage < stages && micro_batches >= 0 && chunks >= 1,
          "pipeline schedule: a stage that does not exist");
    // The passes of whole groups: a schedule without some of its micro-batches waits for nothing
    // that the whole one does not wait for.
    for (int first = 0; first < micro_batches; first += stages)
      for (int chunk = 0; chunk < chunks; ++chunk)
        for (int i = first; i < first + stages; ++i) passes_.push_back({i, chunk});
  }

  std::size_t passes() const { return passes_.size(); }
  void forward(std::size_t pass) {
    const auto [micro_batch, chunk] = passes_[pass];
    const bool first = given_.stage == 0 && chunk == 0;
    const bool last = given_.stage == given_.stages - 1 && chunk == given_.chunks - 1;
    if (!first) add(PipelineWork::receive_activations, micro_batch, chunk);
    add(PipelineWork::forward, micro_batch, chunk);
    if (!last) add(PipelineWork::send_activations, micro_batch, chunk);
  }
  // Backward passes go through the chunks from the last to the first.
  void backward(std::size_t pass) {
    const auto [micro_batch, from_last] = passes_[pass];
    const int chunk = given_.chunks - 1 - from_last;
    const bool first = given_.stage == 0 && chunk == 0;
    const bool last = given_.stage == given_.stages - 1 && from_last == 0;
    if (!last) add(PipelineWork::receive_gradients, micro_batch, chunk);
    add(PipelineWork::backward, micro_batch, chunk);
    if (!first) add(PipelineWork::send_gradients, micro_batch, chunk);
  }
  PipelineSchedule take() { return std::move(schedule_); }

 private:
  void add(PipelineWork work, int micro_batch, int chunk) {
    if (micro_batch < given_.micro_batches) schedule_.push_back({work, micro_batch, chunk});
  }

  Division given_;
  std::vector<Pass> passes_;
  PipelineSchedule schedule_;
};

}  // namespace

PipelineSchedule one_forward_one_backward(int stages, int stage, int micro_batches, int chunks) {
  Scheduler scheduler({stages, stage, micro_batches, chunks});
  const int after = stages - 1 - stage;
  const auto ahead =
      std::min(static_cast<std::size_t>(chunks == 1 ? after : 2 * after + (chunks - 1) * stages),
               scheduler.passes());
  for (std::size_t i = 0; i < scheduler.passes(); ++i) {
    scheduler.forward(i);
    if (i >= ahead) scheduler.backward(i - ahead);
  }
  for (std::size_t i = scheduler.passes() - ahead; i < scheduler.passes(); ++i)
    scheduler.backward(i);
  return scheduler.take();
}

PipelineSchedule forward_only(int stages, int stage, int micro_batches, int chunks) {
  Scheduler scheduler({stages, stage, micro_batches, chunks});
  for (std::size_t i = 0; i < scheduler.passes(); ++i) scheduler.forward(i);
  return scheduler.take();
}

int max_passes_held(int stages, int stage, int micro_batches, int chunks) {
  int held = 0, most = 0;
  for (const auto& operation : one_forward_one_backward(stages, stage, micro_batches, chunks)) {
    held += operation.work == PipelineWork::forward ? 1 : 0;
    held -= operation.work == PipelineWork::backward ? 1 : 0;
    most = std::max(most, held);
  }
  return most;
}

double bubble(int stages, int micro_batches, int chunks) {
  check(stages >= 1 && micro_batches >= 1 && chunks >= 1,
        "bubble: expected stages, micro-batches and chunks");
  return static_cast<double>(stages - 1) / (micro_batches * chunks + stages - 1);
}

}  // namespace troupe::engine::parallel
