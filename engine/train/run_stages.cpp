#include "engine/train/run_stages.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/ops/host_values.h"
#include "engine/parallel/pipeline.h"

namespace troupe::engine::train {
namespace {

using parallel::PipelineWork;

// A message on its way, which keeps its values until it was received.
class Sent {
 public:
  void send(ops::Device& device, parallel::Communicator& pp, const Tensor& x, int to,
            const std::string& what) {
    wait();
    values_ = std::make_unique<ops::HostValues>(device, x);
    pending_ = pp.start_send(std::as_bytes(values_->values()), to, what);
  }
  void wait() {
    std::exchange(pending_, {}).wait();
    values_.reset();
  }

 private:
  std::unique_ptr<ops::HostValues> values_;  // outlives pending_
  parallel::Pending pending_;
};

class StageRun {
 public:
  StageRun(ops::Device& device, parallel::Communicator& pp, const StagePasses& passes)
      : device_(device), pp_(pp), passes_(passes) {}

  void run() {
    const int count = static_cast<int>(passes_.rows.size());
    for (const auto& [work, micro_batch] :
         passes_.backward ? parallel::one_forward_one_backward(pp_.size(), pp_.rank(), count)
                          : parallel::forward_only(pp_.size(), pp_.rank(), count))
      perform(work, static_cast<std::size_t>(micro_batch));
    activations_.wait();
    gradients_.wait();
  }

 private:
  void perform(PipelineWork work, std::size_t micro_batch) {
    switch (work) {
      case PipelineWork::receive_activations:
        received_ = receive(micro_batch, pp_.rank() - 1, "activations", [] {});
        break;
      case PipelineWork::forward:
        output_ = passes_.forward(micro_batch, std::exchange(received_, {}));
        break;
      case PipelineWork::send_activations:
        activations_.send(device_, pp_, std::exchange(output_, {}), pp_.rank() + 1,
                          name("activations", micro_batch, pp_.rank()));
        break;
      case PipelineWork::receive_gradients:
        received_ = receive(micro_batch, pp_.rank() + 1, "gradients of activations",
                            [&] { passes_.before_backward(micro_batch); });
        break;
      case PipelineWork::backward:
        output_ = passes_.backward(micro_batch, std::exchange(received_, {}));
        break;
      case PipelineWork::send_gradients:
        gradients_.send(device_, pp_, std::exchange(output_, {}), pp_.rank() - 1,
                        name("gradients of activations", micro_batch, pp_.rank()));
        break;
    }
  }

  static std::string name(std::string_view what, std::size_t micro_batch, int from) {
    return cat(what, " of micro-batch ", micro_batch, " from stage ", from);
  }
  // Calls meanwhile() while the message is on its way.
  template <class Work>
  Tensor receive(std::size_t micro_batch, int from, std::string_view what, Work meanwhile) {
    const Tensor x = device_.empty({passes_.rows[micro_batch], passes_.width});
    ops::HostValues host(device_, x);
    auto message = pp_.start_receive(std::as_writable_bytes(host.values()), from,
                                     name(what, micro_batch, from));
    meanwhile();
    message.wait();
    host.store();
    return x;
  }

  ops::Device& device_;
  parallel::Communicator& pp_;
  const StagePasses& passes_;
  Tensor received_, output_;
  Sent activations_, gradients_;
};

}  // namespace

void run_stages(ops::Device& device, parallel::Communicator& pp, const StagePasses& passes) {
  StageRun(device, pp, passes).run();
}

}  // namespace troupe::engine::train
