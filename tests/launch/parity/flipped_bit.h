// A device that changes one bit of one output of one call.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/ops/observed_device.h"
#include "launch/parity/parity.h"

namespace troupe::launch::parity {

class FlippedBit final : public engine::ops::CallObserver {
 public:
  /// From now on calls are counted by operation, and none is changed.
  void count() { arm("", 0, 0, 0); }
  /// Changes the first element of a row of an output of the call of `op` with this number from now
  /// on.
  void arm(std::string op, int number, std::size_t output, std::int64_t row) {
    op_ = std::move(op);
    number_ = number;
    output_ = output;
    row_ = row;
    flipped_ = false;
    calls_.clear();
  }
  bool flipped() const { return flipped_; }
  const std::map<std::string, int>& calls() const { return calls_; }

  void computed(const engine::ops::ObservedCall& call, engine::ops::Device& device) override {
    const int number = calls_[std::string(call.op)]++;
    if (call.op != op_ || number != number_ || output_ >= call.outputs.size()) return;
    Tensor& x = *call.outputs[output_];
    if (x.dtype() != DType::f32) return;
    std::vector<float> values = engine::ops::to_host(device, x);
    const std::int64_t row = std::min(row_, x.shape()[0] - 1);
    float& changed = values[static_cast<std::size_t>(row * x.shape().stride())];
    changed = std::bit_cast<float>(std::bit_cast<std::uint32_t>(changed) ^ (1U << 22));
    device.upload(x, values);
    flipped_ = true;
  }

  /// Options for a small model of tests/data/parity, which computes on this device.
  ParityOptions options_for(const std::string& model) {
    ParityOptions options;
    options.model.model = std::string(TROUPE_TEST_DATA "/parity/") + model;
    options.model.random_weights = true;
    options.model.threads = 1;
    options.model.observe = [this](std::shared_ptr<engine::ops::Device> device) {
      return std::shared_ptr(engine::ops::make_observed_device(std::move(device), *this));
    };
    options.samples = 4;
    options.max_new_tokens = 8;
    options.locate = true;
    return options;
  }

 private:
  std::string op_;
  int number_ = 0;
  std::size_t output_ = 0;
  std::int64_t row_ = 0;
  bool flipped_ = false;
  std::map<std::string, int> calls_;
};

}  // namespace troupe::launch::parity
