#include "engine/collectives/tensor_group.h"

#include <optional>
#include <utility>
#include <vector>

#include "engine/ops/host_values.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::collectives {

namespace {

/// HostTensorGroup: exchanges tensors through host memory, with any Communicator. A device in host
/// memory sends and receives f32 tensors where they lie; other tensors are copied.
class HostTensorGroup final : public TensorGroup {
 public:
  /// `owned`: `ranks` where the group owns them, or nullptr.
  HostTensorGroup(ops::Device& device, parallel::Communicator& ranks,
                  std::unique_ptr<parallel::Communicator> owned)
      : device_(device), ranks_(ranks), owned_(std::move(owned)) {}

  parallel::Communicator& ranks() const override { return ranks_; }
  void all_reduce(Tensor& x, std::string_view what) override;
  Pending start_all_gather(const Tensor& mine, Tensor& all, parallel::Counts counts,
                           std::string_view what) override;
  Pending start_reduce_scatter(const Tensor& values, parallel::Counts counts, Tensor& part,
                               std::string_view what) override;
  Pending start_all_to_all(const Tensor& mine, parallel::Counts sent, Tensor& theirs,
                           parallel::Counts received, std::string_view what) override;
  Pending start_send(const Tensor& x, int to, std::string_view what) override;
  Pending start_receive(Tensor& x, int from, std::string_view what) override;

 private:
  ops::Device& device_;
  parallel::Communicator& ranks_;
  std::unique_ptr<parallel::Communicator> owned_;
};

std::vector<std::size_t> in_bytes(parallel::Counts counts) {
  std::vector<std::size_t> bytes;
  for (const std::size_t count : counts) bytes.push_back(count * sizeof(float));
  return bytes;
}

/// An operation of a Communicator on the host's values of tensors.
class HostOperation final : public TensorOperation {
 public:
  /// An absent tensor is not part of the operation.
  HostOperation(ops::Device& device, const Tensor& from, const Tensor& to) {
    if (from) from_.emplace(device, from);
    if (to) to_.emplace(device, to);
  }
  std::span<float> from() { return from_->values(); }
  std::span<float> to() { return to_->values(); }
  std::span<const std::byte> from_bytes() { return std::as_bytes(from_->values()); }
  std::span<std::byte> to_bytes() { return std::as_writable_bytes(to_->values()); }
  void start(parallel::Pending pending) { pending_ = std::move(pending); }

  void finish() override {
    pending_.wait();
    if (to_) to_->store();
  }

 private:
  std::optional<ops::HostValues> from_, to_;
  parallel::Pending pending_;  ///< uses the values: destroyed first
};

/// Starts start(operation) on the values of `from` and `to`.
template <class Start>
Pending started(ops::Device& device, const Tensor& from, const Tensor& to, const Start& start) {
  auto operation = std::make_unique<HostOperation>(device, from, to);
  operation->start(start(*operation));
  return Pending(std::move(operation));
}

void HostTensorGroup::all_reduce(Tensor& x, std::string_view what) {
  ops::HostValues host(device_, x);
  parallel::all_reduce_sum(ranks_, host.values(), what);
  host.store();
}

Pending HostTensorGroup::start_all_gather(const Tensor& mine, Tensor& all, parallel::Counts counts,
                                          std::string_view what) {
  return started(device_, mine, all, [&](HostOperation& of) {
    return ranks_.start_all_gather(of.from_bytes(), of.to_bytes(), in_bytes(counts), what);
  });
}

Pending HostTensorGroup::start_reduce_scatter(const Tensor& values, parallel::Counts counts,
                                              Tensor& part, std::string_view what) {
  return started(device_, values, part, [&](HostOperation& of) {
    return ranks_.start_reduce_scatter(of.from(), counts, of.to(), what);
  });
}

Pending HostTensorGroup::start_all_to_all(const Tensor& mine, parallel::Counts sent, Tensor& theirs,
                                          parallel::Counts received, std::string_view what) {
  return started(device_, mine, theirs, [&](HostOperation& of) {
    return ranks_.start_all_to_all(of.from_bytes(), in_bytes(sent), of.to_bytes(),
                                   in_bytes(received), what);
  });
}

Pending HostTensorGroup::start_send(const Tensor& x, int to, std::string_view what) {
  return started(device_, x, {},
                 [&](HostOperation& of) { return ranks_.start_send(of.from_bytes(), to, what); });
}

Pending HostTensorGroup::start_receive(Tensor& x, int from, std::string_view what) {
  return started(device_, {}, x, [&](HostOperation& of) {
    return ranks_.start_receive(of.to_bytes(), from, what);
  });
}

}  // namespace

std::unique_ptr<TensorGroup> make_tensor_group(ops::Device& device, parallel::Communicator& ranks) {
  return std::make_unique<HostTensorGroup>(device, ranks, nullptr);
}

std::unique_ptr<TensorGroup> make_tensor_group(ops::Device& device,
                                               std::unique_ptr<parallel::Communicator> ranks) {
  parallel::Communicator& of = *ranks;
  return std::make_unique<HostTensorGroup>(device, of, std::move(ranks));
}

}  // namespace troupe::engine::collectives
