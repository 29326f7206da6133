#include "engine/parallel/pipeline.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace troupe::engine::parallel {
namespace {

// Appends the passes of one stage together with their messages.
class Scheduler {
 public:
  Scheduler(int stages, int stage, int micro_batches)
      : first_(stage == 0), last_(stage == stages - 1) {
    check(stages >= 1 && 0 <= stage && stage < stages && micro_batches >= 0,
          "pipeline schedule: a stage that does not exist");
  }

  void forward(int micro_batch) {
    if (!first_) add(PipelineWork::receive_activations, micro_batch);
    add(PipelineWork::forward, micro_batch);
    if (!last_) add(PipelineWork::send_activations, micro_batch);
  }
  void backward(int micro_batch) {
    if (!last_) add(PipelineWork::receive_gradients, micro_batch);
    add(PipelineWork::backward, micro_batch);
    if (!first_) add(PipelineWork::send_gradients, micro_batch);
  }
  PipelineSchedule take() { return std::move(schedule_); }

 private:
  void add(PipelineWork work, int micro_batch) { schedule_.push_back({work, micro_batch}); }

  bool first_, last_;
  PipelineSchedule schedule_;
};

}  // namespace

PipelineSchedule one_forward_one_backward(int stages, int stage, int micro_batches) {
  Scheduler scheduler(stages, stage, micro_batches);
  const int ahead = std::min(stages - 1 - stage, micro_batches);
  for (int i = 0; i < ahead; ++i) scheduler.forward(i);
  for (int i = ahead; i < micro_batches; ++i) {
    scheduler.forward(i);
    scheduler.backward(i - ahead);
  }
  for (int i = micro_batches - ahead; i < micro_batches; ++i) scheduler.backward(i);
  return scheduler.take();
}

PipelineSchedule forward_only(int stages, int stage, int micro_batches) {
  Scheduler scheduler(stages, stage, micro_batches);
  for (int i = 0; i < micro_batches; ++i) scheduler.forward(i);
  return scheduler.take();
}

double bubble(int stages, int micro_batches) {
  check(stages >= 1 && micro_batches >= 1, "bubble: expected stages and micro-batches");
  return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

}  // namespace troupe::engine::parallel
