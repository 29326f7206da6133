// ObservedDevice: forwards every operation to another device and shows an observer what the
// operations of forward passes have computed.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// An operation that has returned.
struct ObservedCall {
  std::string_view op;  ///< the name of Device's function; "gemm" for each of grouped_gemm()
  /// What was assigned; of scatter_rows() the first row that was written.
  /// Operations that compute log-probabilities have logp, lse and, where it is computed, entropy.
  std::span<Tensor* const> outputs;
  const Tensor* input = nullptr;               ///< the first operand, where it is another tensor
  std::span<const std::int32_t> targets = {};  ///< [M] of operations with log-probabilities
};

class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// Called after each operation of a forward pass, in the thread that called it. May read and
  /// change the outputs through `device`, which is not observed.
  virtual void computed(const ObservedCall& call, Device& device) = 0;
};

/// `observer` must outlive the device. Operations that only backward passes and optimizers have are
/// not observed.
std::unique_ptr<Device> make_observed_device(std::shared_ptr<Device> inner, CallObserver& observer);

}  // namespace troupe::engine::ops
