// TensorGroup: a group of ranks that exchange tensors of their devices. engine/parallel moves bytes
// of the host; what moves values of a device goes through this class, so that devices with a
// network of their own need no detour.
#pragma once

#include <memory>
#include <string_view>

#include "engine/ops/device.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::collectives {

/// A started operation of a TensorGroup, as an implementation provides it.
class TensorOperation {
 public:
  /// Without finish(): what parallel::Pending does when it was not waited for.
  virtual ~TensorOperation() = default;
  /// Waits until the results are in their tensors and the operands can be changed. Called once.
  virtual void finish() = 0;
};

/// Owns a started operation, which keeps its tensors. Their values stay as they are until wait()
/// returns, and the group lives until then.
class Pending {
 public:
  Pending() = default;  ///< nothing to wait for
  explicit Pending(std::unique_ptr<TensorOperation> operation) : operation_(std::move(operation)) {}
  /// Throws as Communicator does. Without an operation, returns at once.
  void wait() {
    if (const auto operation = std::move(operation_)) operation->finish();
  }

 private:
  std::unique_ptr<TensorOperation> operation_;
};

/// One rank's view of its group. Rules of order, of names and of errors are those of
/// parallel::Communicator. Tensors are f32, or bf16 that is exchanged as f32: sums are in f32, in
/// the order of the ranks, and rounded once. Numbers of values by rank are parallel::Counts. One
/// operation at a time may use a tensor.
class TensorGroup {
 public:
  virtual ~TensorGroup() = default;

  /// The same ranks, for values of the host.
  virtual parallel::Communicator& ranks() const = 0;
  int rank() const { return ranks().rank(); }
  int size() const { return ranks().size(); }

  /// Replaces x by its sum over the ranks, the same bits on all of them.
  virtual void all_reduce(Tensor& x, std::string_view what) = 0;
  /// Concatenates every rank's `mine`, of counts[rank] values, into `all`. `mine` may be its own
  /// place in `all`.
  virtual Pending start_all_gather(const Tensor& mine, Tensor& all, parallel::Counts counts,
                                   std::string_view what) = 0;
  /// part <- the sum of the counts[rank()] values of this rank's part of `values`. `part` may be
  /// its own place in `values`.
  virtual Pending start_reduce_scatter(const Tensor& values, parallel::Counts counts, Tensor& part,
                                       std::string_view what) = 0;
  /// Sends sent[r] values of `mine` to rank r and receives received[r] values from it, both in the
  /// order of the ranks.
  virtual Pending start_all_to_all(const Tensor& mine, parallel::Counts sent, Tensor& theirs,
                                   parallel::Counts received, std::string_view what) = 0;
  virtual Pending start_send(const Tensor& x, int to, std::string_view what) = 0;
  virtual Pending start_receive(Tensor& x, int from, std::string_view what) = 0;
};

/// The fastest group that the device has over these ranks. The arguments outlive it.
std::unique_ptr<TensorGroup> make_tensor_group(ops::Device& device, parallel::Communicator& ranks);
/// The group owns its ranks.
std::unique_ptr<TensorGroup> make_tensor_group(ops::Device& device,
                                               std::unique_ptr<parallel::Communicator> ranks);

}  // namespace troupe::engine::collectives
