#include "engine/nn/latent_projections.h"

#include <limits>
#include <numeric>
#include <utility>

#include "engine/base/errors/check.h"

namespace troupe::engine::nn {
namespace {

// The blocks of all rows, one below the other.
Tensor blocks_of(const Tensor& x, std::int64_t width) {
  return x.view({x.count() / width, width});
}

// Sizes in blocks of columns that no map divides.
struct Blocks {
  explicit Blocks(const LatentShape& of)
      : width(std::gcd(std::gcd(of.plain / 2, of.rotary / 2),
                       std::gcd(std::int64_t{of.value}, of.rank))),
        heads(of.heads),
        plain(of.plain / width),
        rotary(of.rotary / width),
        value(of.value / width),
        rank(of.rank / width) {}
  std::int64_t size() const { return plain + rotary; }

  // Block of the files' order [plain, rotary] for block `i` of a head in memory.
  std::int64_t stored(std::int64_t i) const {
    const std::int64_t half = size() / 2, second = i / half, at = i % half;
    return at < rotary / 2 ? plain + second * (rotary / 2) + at
                           : second * (plain / 2) + at - rotary / 2;
  }
  // from(head, block of the head) for `size` blocks of every head.
  template <class From>
  ColumnMap map(std::int64_t size, std::int64_t source, From from) const {
    std::vector<std::int32_t> blocks;
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t i = 0; i < size; ++i)
        blocks.push_back(static_cast<std::int32_t>(from(head, i)));
    return {std::move(blocks), source, width};
  }

  std::int64_t width, heads, plain, rotary, value, rank;
};

void check_shape(const LatentShape& shape) {
  check(shape.plain % 2 == 0 && shape.rotary % 2 == 0 && shape.rotary > 0 && shape.value > 0 &&
            shape.value <= shape.head_size() && shape.rank > 0,
        "LatentProjections: even numbers of channels, and values no larger than keys");
}

}  // namespace

ColumnMap::ColumnMap(std::vector<std::int32_t> from, std::int64_t source, std::int64_t width)
    : from_(std::move(from)),
      into_(static_cast<std::size_t>(source), -1),
      source_(source),
      width_(width) {
  for (std::size_t i = 0; i < from_.size(); ++i)
    if (from_[i] >= 0) into_[static_cast<std::size_t>(from_[i])] = static_cast<std::int32_t>(i);
}

ops::Indices ColumnMap::rows_of(ops::Device& device, std::int64_t count,
                                const std::vector<std::int32_t>& blocks,
                                std::int64_t source) const {
  check(count * source <= std::numeric_limits<std::int32_t>::max(),
        "ColumnMap: more than 2^31 blocks in a pass");
  std::vector<std::int32_t> rows;
  rows.reserve(static_cast<std::size_t>(count) * blocks.size());
  for (std::int64_t t = 0; t < count; ++t) {
    const auto first = static_cast<std::int32_t>(t * source);
    for (const std::int32_t block : blocks) rows.push_back(block < 0 ? -1 : first + block);
  }
  return device.indices(rows);
}

Tensor ColumnMap::select(ops::Device& device, const Tensor& x) const {
  const std::int64_t count = x.shape()[0];
  Tensor y = device.empty({count, static_cast<std::int64_t>(from_.size()) * width_});
  Tensor blocks = blocks_of(y, width_);
  device.gather_rows(blocks_of(x, width_), rows_of(device, count, from_, source_), blocks);
  return y;
}

Tensor ColumnMap::select_backward(ops::Device& device, const Tensor& dy) const {
  const std::int64_t count = dy.shape()[0];
  Tensor dx = device.empty({count, source_ * width_});
  Tensor blocks = blocks_of(dx, width_);
  device.gather_rows(blocks_of(dy, width_),
                     rows_of(device, count, into_, static_cast<std::int64_t>(from_.size())),
                     blocks);
  return dx;
}

void ColumnMap::add_backward(ops::Device& device, const Tensor& dy, Tensor& dx) const {
  Tensor blocks = blocks_of(dx, width_);
  device.scatter_add_rows(blocks_of(dy, width_), rows_of(device, dy.shape()[0], from_, source_),
                          blocks);
}

LatentProjections::LatentProjections(Modules modules, const LatentShape& shape)
    : modules_(std::move(modules)) {
  check_shape(shape);
  const Blocks of(shape);
  const std::int64_t size = of.size(), pair = of.plain + of.value;
  queries_ =
      of.map(size, of.heads * size, [&](auto head, auto i) { return head * size + of.stored(i); });
  plain_ = of.map(size, of.heads * pair, [&](auto head, auto i) {
    return of.stored(i) < of.plain ? head * pair + of.stored(i) : -1;
  });
  rotary_ = of.map(size, of.rank + of.rotary, [&](auto, auto i) {
    return of.stored(i) < of.plain ? -1 : of.rank + of.stored(i) - of.plain;
  });
  values_ = of.map(size, of.heads * pair, [&](auto head, auto i) {
    return i < of.value ? head * pair + of.plain + i : -1;
  });
  outputs_ = of.map(of.value, of.heads * size, [&](auto head, auto i) { return head * size + i; });
  std::vector<std::int32_t> latent(static_cast<std::size_t>(of.rank));
  std::iota(latent.begin(), latent.end(), 0);
  latent_ = {std::move(latent), of.rank + of.rotary, of.width};
}

HeadTensors LatentProjections::forward(const Tensor& x, const ForwardContext& pass,
                                       Saved& saved) const {
  const auto& [q_a, q_b, kv_a, kv_b, q_norm, kv_norm] = modules_;
  ops::Device& device = pass.device;
  const std::vector<Tensor> down = forward_grouped({&q_a, &kv_a}, x, pass, saved);
  const Tensor q = q_b.forward(q_norm.forward(down[0], pass, saved), pass, saved);
  const Tensor latent = kv_norm.forward(latent_.select(device, down[1]), pass, saved);
  const Tensor kv = kv_b.forward(latent, pass, saved);
  Tensor keys = plain_.select(device, kv);
  device.add(keys, rotary_.select(device, down[1]), keys);
  return {queries_.select(device, q), keys, values_.select(device, kv)};
}

Tensor LatentProjections::backward(const HeadTensors& grads, const ForwardContext& pass,
                                   Saved& saved) const {
  const auto& [q_a, q_b, kv_a, kv_b, q_norm, kv_norm] = modules_;
  ops::Device& device = pass.device;
  const auto backward_up = [&](const Linear& up, const Tensor& dy) {
    Tensor dlatent = device.empty({dy.shape()[0], up.weight->value.shape()[1]});
    up.backward(dy, pass, saved, dlatent, false);
    return dlatent;
  };
  Tensor dkv = plain_.select_backward(device, grads.keys);
  device.add(dkv, values_.select_backward(device, grads.values), dkv);
  const Tensor dlatent = kv_norm.backward(backward_up(kv_b, dkv), pass, saved);
  Tensor dkv_a = latent_.select_backward(device, dlatent);
  rotary_.add_backward(device, grads.keys, dkv_a);
  const Tensor dq = backward_up(q_b, queries_.select_backward(device, grads.queries));
  const Tensor dq_a = q_norm.backward(dq, pass, saved);
  Tensor dx = device.empty({dq_a.shape()[0], q_a.weight->value.shape()[1]});
  backward_grouped({{kv_a, dkv_a}, {q_a, dq_a}}, pass, saved, dx);
  return dx;
}

}  // namespace troupe::engine::nn
