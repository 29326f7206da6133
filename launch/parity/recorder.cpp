#include "launch/parity/recorder.h"

#include <functional>
#include <string_view>

namespace troupe::launch::parity {

using engine::ops::Device;
using engine::ops::ObservedCall;

namespace {

/// Checksums of the rows of x [T, ...], f32.
std::vector<std::uint64_t> row_checksums(Device& device, const Tensor& x) {
  const std::vector<float> values = engine::ops::to_host(device, x);
  const auto rows = static_cast<std::size_t>(x.shape()[0]);
  if (rows == 0) return {};
  const std::size_t width = values.size() / rows;
  std::vector<std::uint64_t> out;
  for (std::size_t row = 0; row < rows; ++row)
    out.push_back(std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(values.data() + row * width), width * sizeof(float)}));
  return out;
}

bool is_same(const Tensor& a, const Tensor& b) {
  return a.buffer() == b.buffer() && a.offset_bytes() == b.offset_bytes();
}

}  // namespace

void Recorder::attach(const engine::models::Decoder& decoder) {
  const auto* table = decoder.parameters().find("model.embed_tokens.weight");
  if (table != nullptr) embedding_ = table->value;  // absent on a later stage
  width_ = decoder.spec().width;
  if (decoder.spec().labels == 0 && decoder.pp() == nullptr)
    vocabulary_ = decoder.head().weight->value.shape()[0];
}

void Recorder::computed(const ObservedCall& call, Device& device) {
  const Tensor& first = *call.outputs.front();
  if (!first || first.shape().rank() == 0) return;
  if (call.op == "gather_rows" && embedding_ && is_same(*call.input, embedding_)) numbers_.clear();
  if (!call.targets.empty()) {
    record_scores(call, device);
    return;
  }
  // A second product, with the output of a low-rank projection or with ones, adds an adapter or a
  // bias.
  if (call.op == "gemm" && first.shape()[1] == vocabulary_ && call.input->shape()[1] == width_)
    states_[{first.buffer().get(), first.offset_bytes()}] = row_checksums(device, *call.input);
  const bool in_pass = call.op != "copy" && !call.op.starts_with("scatter");
  if ((operations_ || tracing_) && in_pass && first.dtype() == DType::f32)
    record_rows(call, device);
}

void Recorder::record_rows(const ObservedCall& call, Device& device) {
  const Tensor& x = *call.outputs.front();
  const std::int64_t width = x.shape().stride();
  Place place{std::string(call.op), width, 0};
  // Of logits there are as many blocks as there are rows for.
  if (width != vocabulary_) place.number = numbers_[{place.op, width}]++;
  std::vector<std::uint64_t> rows = row_checksums(device, x);
  if (tracing_)
    trace_.push_back({std::move(place), block_, std::move(rows)});
  else
    computed_[place].insert(rows.begin(), rows.end());
}

void Recorder::record_scores(const ObservedCall& call, Device& device) {
  const auto column = [&](std::size_t i) {
    return i < call.outputs.size() ? engine::ops::to_host(device, *call.outputs[i])
                                   : std::vector<float>();
  };
  score_op_ = call.op;
  const std::vector<float> logp = column(0), lse = column(1), entropy = column(2);
  std::vector<std::uint64_t> hidden;
  if (call.op.starts_with("head")) {
    hidden = row_checksums(device, *call.input);
  } else if (const auto known =
                 states_.find({call.input->buffer().get(), call.input->offset_bytes()});
             known != states_.end()) {
    hidden = known->second;
  }
  for (std::size_t i = 0; i < call.targets.size(); ++i) {
    HeadRow row{call.targets[i], logp[i], lse[i], {}, i < hidden.size() ? hidden[i] : 0};
    if (!entropy.empty()) row.entropy = entropy[i];
    head_rows_.push_back(row);
  }
}

std::vector<Recorder::Step> Recorder::end_trace() {
  tracing_ = false;
  block_ = 0;
  return std::exchange(trace_, {});
}

}  // namespace troupe::launch::parity
