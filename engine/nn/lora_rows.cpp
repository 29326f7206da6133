#include "engine/nn/lora_rows.h"

#include <atomic>
#include <utility>

namespace troupe::engine::nn {

namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> latest = 0;
  return ++latest;
}

}  // namespace

LoraModel::LoraModel(Parameters tensors, std::unordered_map<const Parameter*, Lora> by_weight)
    : tensors_(std::move(tensors)), by_weight_(std::move(by_weight)), number_(next_number()) {
}

const Lora* LoraModel::find(const Parameter& weight) const {
  const auto found = by_weight_.find(&weight);
  return found == by_weight_.end() ? nullptr : &found->second;
}

void LoraRows::add(std::int64_t begin, std::int64_t count, const LoraModel* adapter) {
  if (adapter == nullptr) return;
  if (!runs.empty() && runs.back().adapter == adapter && runs.back().end == begin)
    runs.back().end += count;
  else
    runs.push_back({begin, begin + count, adapter});
}

void LoraRows::apply(const Parameter& weight, const Tensor& x, const ForwardContext& pass,
                     collectives::TensorGroup* tp, const Tensor& y) const {
  Saved nothing = Saved::nothing();
  for (const Run& run : runs) {
    const Lora* lora = run.adapter->find(weight);
    if (lora == nullptr) continue;
    Tensor part = y.rows(run.begin, run.end);
    lora->forward(x.rows(run.begin, run.end), weight.value, pass, tp, nothing, part);
  }
}

}  // namespace troupe::engine::nn
