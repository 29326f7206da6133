#include "engine/train/run_stages.h"

#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/parallel/pipeline.h"

namespace troupe::engine::train {
namespace {

using parallel::PipelineWork;

// Messages on their way in one direction.
class Sent {
 public:
  Sent(collectives::TensorGroup& group, std::size_t most) : group_(group), most_(most) {}

  void send(const Tensor& x, int to, const std::string& what) {
    if (messages_.size() == most_) wait_for_first();
    messages_.push_back(group_.start_send(x, to, what));
  }
  void wait() {
    while (!messages_.empty()) wait_for_first();
  }

 private:
  void wait_for_first() {
    messages_.front().wait();
    messages_.pop_front();
  }

  collectives::TensorGroup& group_;
  std::size_t most_;
  std::deque<collectives::Pending> messages_;
};

class StageRun {
 public:
  StageRun(ops::Device& device, const StageGroups& groups, const StagePasses& passes)
      : device_(device),
        groups_(groups),
        passes_(passes),
        stages_(groups.activations.size()),
        stage_(groups.activations.rank()),
        activations_(groups.activations, max_sent()),
        gradients_(groups.gradients, max_sent()) {}

  void run() {
    const int count = static_cast<int>(passes_.rows.size());
    for (const auto& operation :
         passes_.backward
             ? parallel::one_forward_one_backward(stages_, stage_, count, passes_.chunks)
             : parallel::forward_only(stages_, stage_, count, passes_.chunks))
      perform(operation);
    activations_.wait();
    gradients_.wait();
  }

 private:
  std::size_t max_sent() const {
    return passes_.chunks == 1 ? 1 : static_cast<std::size_t>(stages_);
  }
  int before() const { return (stage_ + stages_ - 1) % stages_; }
  int after() const { return (stage_ + 1) % stages_; }

  void perform(const parallel::PipelineOperation& operation) {
    const auto i = static_cast<std::size_t>(operation.micro_batch),
               chunk = static_cast<std::size_t>(operation.chunk);
    // A message has the name of the chunk that sends it, of all chunks of the model.
    const int own = operation.chunk * stages_ + stage_;
    switch (operation.work) {
      case PipelineWork::receive_activations:
        received_ =
            receive(i, groups_.activations, before(), name("activations", i, own - 1), [] {});
        break;
      case PipelineWork::forward:
        output_ = passes_.forward(i, chunk, std::exchange(received_, {}));
        break;
      case PipelineWork::send_activations:
        activations_.send(std::exchange(output_, {}), after(), name("activations", i, own));
        break;
      case PipelineWork::receive_gradients:
        received_ =
            receive(i, groups_.gradients, after(), name("gradients of activations", i, own + 1),
                    [&] { passes_.before_backward(i, chunk); });
        break;
      case PipelineWork::backward:
        output_ = passes_.backward(i, chunk, std::exchange(received_, {}));
        break;
      case PipelineWork::send_gradients:
        gradients_.send(std::exchange(output_, {}), before(),
                        name("gradients of activations", i, own));
        break;
    }
  }

  static std::string name(std::string_view what, std::size_t micro_batch, int from) {
    return cat(what, " of micro-batch ", micro_batch, " from stage ", from);
  }
  // Calls meanwhile() while the message is on its way.
  template <class Work>
  Tensor receive(std::size_t micro_batch, collectives::TensorGroup& group, int from,
                 const std::string& what, Work meanwhile) {
    Tensor x = device_.empty({passes_.rows[micro_batch], passes_.width});
    auto message = group.start_receive(x, from, what);
    meanwhile();
    message.wait();
    return x;
  }

  ops::Device& device_;
  StageGroups groups_;
  const StagePasses& passes_;
  int stages_, stage_;
  Tensor received_, output_;
  Sent activations_, gradients_;
};

}  // namespace

void run_stages(ops::Device& device, const StageGroups& groups, const StagePasses& passes) {
  StageRun(device, groups, passes).run();
}

}  // namespace troupe::engine::train
