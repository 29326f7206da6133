#include "engine/nn/ring_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/nn/ring_heads.h"

namespace troupe::engine::nn {
namespace {

// Own rows that see some keys of one chunk of each sequence, and these keys.
struct ChunkCall {
  std::vector<std::int32_t> rows;  ///< of the own rows
  ops::PreparedLayout layout;
  std::vector<ops::KeyBlock> blocks;
};

/// Number of steps in a direction of the ring: between its inner rings, and within one.
struct Hop {
  int outer = 0, inner = 0;
};

/// Inner rings of `inner()` consecutive ranks, and outer rings of the ranks with the same place in
/// them. Keys pass through the inner rings, then move on by one inner ring, and so on. With one
/// inner ring, or inner rings of one rank, that is the plain ring.
class Ring {
 public:
  Ring(const ForwardContext& pass, const ops::AttentionShape& shape)
      : pass_(pass),
        part_(*pass.context),
        group_(*part_.groups->ring),
        inner_(part_.groups->inner),
        window_(shape.window) {}

  int rank() const { return group_.rank(); }
  int ranks() const { return group_.size(); }
  int inner() const { return inner_; }
  ops::Device& device() const { return pass_.device; }
  ops::Precision precision() const { return pass_.precision; }
  /// The rank whose keys this rank has in a step.
  int source(int step) const { return neighbour({-(step / inner_), -(step % inner_)}); }
  /// How the keys of a step reach the rank that has them in the next one.
  Hop hop_after(int step) const {
    return (step + 1) % inner_ == 0 ? Hop{1, 1 % inner_} : Hop{0, 1};
  }
  std::int64_t rows_of(int rank) const {
    std::int64_t rows = 0;
    for (const auto length : part_.lengths)
      for (const int chunk : chunks_of(rank)) rows += ring_chunk(length, chunk, ranks()).size();
    return rows;
  }
  /// The calls of a step: the two chunks of each sequence that `rank` has.
  std::vector<ChunkCall> calls(int rank) const;

  collectives::Pending send(const Tensor& x, Hop hop, const std::string& what) const {
    return group_.start_send(x, neighbour(hop), what);
  }
  collectives::Pending receive(Tensor& x, Hop hop, const std::string& what) const {
    return group_.start_receive(x, neighbour({-hop.outer, -hop.inner}), what);
  }

 private:
  int neighbour(Hop hop) const {
    const int outer = ranks() / inner_, o = rank() / inner_ + hop.outer,
              i = rank() % inner_ + hop.inner;
    return (o + outer) % outer * inner_ + (i + inner_) % inner_;
  }
  std::array<int, 2> chunks_of(int rank) const { return {rank, 2 * ranks() - 1 - rank}; }
  void add_sequence(std::size_t sequence, const ops::KeyBlock& keys, ChunkCall& call) const;

  const ForwardContext& pass_;
  const ContextPart& part_;
  collectives::TensorGroup& group_;
  int inner_, window_;
};

void Ring::add_sequence(std::size_t sequence, const ops::KeyBlock& keys, ChunkCall& call) const {
  const ops::Layout& own = part_.ring_layout;
  const std::size_t before = call.rows.size();
  for (auto row = own.offsets[sequence]; row < own.offsets[sequence + 1]; ++row) {
    const std::int32_t position = own.positions[static_cast<std::size_t>(row)];
    if (position < keys.first || (window_ > 0 && position - window_ + 1 >= keys.end)) continue;
    call.rows.push_back(row);
    call.layout.positions.push_back(position);
  }
  if (call.rows.size() == before) return;
  call.layout.offsets.push_back(static_cast<std::int32_t>(call.rows.size()));
  call.blocks.push_back(keys);
}

std::vector<ChunkCall> Ring::calls(int rank) const {
  std::vector<ChunkCall> all(2);
  for (auto& call : all) call.layout.offsets = {0};
  std::int64_t row = 0;
  for (std::size_t n = 0; n < part_.lengths.size(); ++n)
    for (std::size_t half = 0; half < 2; ++half) {
      const auto keys = ring_chunk(part_.lengths[n], chunks_of(rank)[half], ranks());
      if (keys.size() == 0) continue;
      add_sequence(n, {keys.begin, keys.end, row}, all[half]);
      row += keys.size();
    }
  std::erase_if(all, [](const ChunkCall& call) { return call.rows.empty(); });
  for (auto& call : all) call.layout = device().prepare(call.layout);
  return all;
}

// Two tensors that travel together, and the messages that pass them on.
class Travelling {
 public:
  Travelling(const Ring& ring, std::string name, Tensor first, Tensor second)
      : ring_(ring), name_(std::move(name)), now_{std::move(first), std::move(second)} {}

  const Tensor& first() const { return now_[0]; }
  const Tensor& second() const { return now_[1]; }
  void replace(Tensor first, Tensor second) { now_ = {std::move(first), std::move(second)}; }

  /// Starts to send what this rank has of rank `from`, and to receive that of rank `next`.
  void start(Hop hop, int from, int next) {
    const std::int64_t rows = ring_.rows_of(next);
    for (std::size_t i = 0; i < 2; ++i) {
      next_[i] = ring_.device().empty({rows, now_[i].shape()[1]});
      sending_[i] = ring_.send(now_[i], hop, what(i, from));
      receiving_[i] = ring_.receive(next_[i], hop, what(i, next));
    }
  }
  void finish() {
    for (std::size_t i = 0; i < 2; ++i) {
      receiving_[i].wait();
      sending_[i].wait();
      now_[i] = std::exchange(next_[i], {});
    }
  }

 private:
  std::string what(std::size_t i, int rank) const {
    return cat(name_, i == 0 ? " keys" : " values", " of rank ", rank, " of the ring");
  }

  const Ring& ring_;
  std::string name_;
  std::array<Tensor, 2> now_, next_;
  std::array<collectives::Pending, 2> sending_, receiving_;
};

/// The keys and values that this rank has in each step. Those of the next inner ring are on their
/// way while the keys of this one pass through it.
class RingKeys {
 public:
  RingKeys(const Ring& ring, const Tensor& k, const Tensor& v)
      : ring_(ring), inner_(ring, "the", k, v), outer_(ring, "the", {}, {}) {}

  const Tensor& keys() const { return inner_.first(); }
  const Tensor& values() const { return inner_.second(); }
  /// Starts the messages of a step.
  void start(int step) {
    const int source = ring_.source(step), inner = ring_.inner();
    if (step % inner == 0 && step + inner < ring_.ranks()) {
      outer_.replace(inner_.first(), inner_.second());
      outer_.start({1, 0}, source, ring_.source(step + inner));
    }
    if ((step + 1) % inner != 0) inner_.start({0, 1}, source, ring_.source(step + 1));
  }
  /// Waits for the keys of the next step.
  void finish(int step) {
    if (step + 1 == ring_.ranks()) return;
    if ((step + 1) % ring_.inner() != 0) return inner_.finish();
    outer_.finish();
    inner_.replace(outer_.first(), outer_.second());
  }

 private:
  const Ring& ring_;
  Travelling inner_, outer_;
};

// Dropout of some rows, and of the heads of a group.
class DropoutOfRows {
 public:
  DropoutOfRows(ops::Device& device, const ops::AttentionDropout* all,
                const std::vector<std::int32_t>& rows, const HeadGroup& group) {
    if (all == nullptr) return;
    std::vector<std::uint64_t> ids;
    for (const auto row : rows) ids.push_back(all->rows.host[static_cast<std::size_t>(row)]);
    ids_ = device.row_ids(ids);
    of_.emplace(all->probability, all->key, all->layer, ids_,
                all->first_head + group.queries.first);
  }
  DropoutOfRows(const DropoutOfRows&) = delete;
  const ops::AttentionDropout* get() const { return of_ ? &*of_ : nullptr; }

 private:
  ops::RowIds ids_;
  std::optional<ops::AttentionDropout> of_;
};

// Outputs over some keys and over others -> over both, row by row and head by head.
class Merged {
 public:
  Merged(ops::Device& device, Tensor& out, const ops::AttentionShape& shape)
      : device_(device),
        out_(out),
        values_(static_cast<std::size_t>(out.count()), 0.0F),
        heads_(static_cast<std::size_t>(shape.heads)),
        size_(static_cast<std::size_t>(shape.head_size)),
        lse_(static_cast<std::size_t>(out.shape()[0]) * heads_,
             -std::numeric_limits<double>::infinity()) {}

  void add(const std::vector<std::int32_t>& rows, const HeadRange& heads, const Tensor& out,
           const Tensor& lse) {
    const std::vector<float> outs = ops::to_host(device_, out), lses = ops::to_host(device_, lse);
    const auto first = static_cast<std::size_t>(heads.first),
               count = static_cast<std::size_t>(heads.count);
    for (std::size_t i = 0; i < rows.size() * count; ++i) {
      const std::size_t at = static_cast<std::size_t>(rows[i / count]) * heads_ + first + i % count;
      const double more = lses[i], largest = std::max(lse_[at], more);
      const double sum =
          largest + std::log(std::exp(lse_[at] - largest) + std::exp(more - largest));
      const auto old_weight = static_cast<float>(std::exp(lse_[at] - sum)),
                 new_weight = static_cast<float>(std::exp(more - sum));
      float* to = &values_[at * size_];
      const float* from = &outs[i * size_];
      for (std::size_t c = 0; c < size_; ++c) to[c] = old_weight * to[c] + new_weight * from[c];
      lse_[at] = sum;
    }
  }
  void store(Tensor* lse) {
    device_.upload(out_, values_);
    if (lse != nullptr) device_.upload(*lse, std::vector<float>(lse_.begin(), lse_.end()));
  }

 private:
  ops::Device& device_;
  Tensor& out_;
  std::vector<float> values_;
  std::size_t heads_, size_;
  std::vector<double> lse_;
};

// The keys and values of a group of heads.
RingKeys own_keys(const Ring& ring, const RingInputs& in, const HeadGroup& group) {
  return {ring, gather_heads(ring.device(), in.k, group.keys),
          gather_heads(ring.device(), in.v, group.keys)};
}

void attend(const Ring& ring, const RingInputs& in, const HeadGroup& group, Merged& merged) {
  ops::Device& device = ring.device();
  RingKeys keys = own_keys(ring, in, group);
  for (int step = 0; step < ring.ranks(); ++step) {
    keys.start(step);
    for (const ChunkCall& call : ring.calls(ring.source(step))) {
      const Tensor q = gather_heads(device, in.q, call.rows, group.queries);
      Tensor some = device.empty(q.shape()),
             some_lse = device.empty({std::ssize(call.rows), group.queries.count});
      const ops::KeyValues kv{keys.keys(), keys.values(), call.blocks};
      const DropoutOfRows dropout(device, in.dropout, call.rows, group);
      device.attention({q, kv, call.layout, group.shape, ring.precision(), dropout.get()}, some,
                       &some_lse);
      merged.add(call.rows, group.queries, some, some_lse);
    }
    keys.finish(step);
  }
}

// Assigns dk and dv, and adds to dq.
void backward_of_call(const Ring& ring, const RingInputs& in, const HeadGroup& group,
                      const ChunkCall& call, const ops::KeyValues& kv,
                      const ops::AttentionBackward& with, Tensor& dk, Tensor& dv) {
  ops::Device& device = ring.device();
  const auto gathered = [&](const Tensor& x) {
    return gather_heads(device, x, call.rows, group.queries);
  };
  const Tensor q = gathered(in.q), out = gathered(with.out), lse = gathered(with.lse),
               dout = gathered(with.dout);
  Tensor dq = device.empty(q.shape());
  const DropoutOfRows dropout(device, in.dropout, call.rows, group);
  device.attention_backward({q, kv, call.layout, group.shape, ring.precision(), dropout.get()},
                            {out, lse, dout, dq, dk, dv});
  add_heads(device, dq, call.rows, group.queries, with.dq);
}

void attend_backward(const Ring& ring, const RingInputs& in, const HeadGroup& group,
                     const ops::AttentionBackward& with) {
  ops::Device& device = ring.device();
  RingKeys keys = own_keys(ring, in, group);
  Travelling gradients(ring, "the gradients of", {}, {});
  for (int step = 0; step < ring.ranks(); ++step) {
    const int source = ring.source(step);
    keys.start(step);
    Tensor dk = device.empty(keys.keys().shape()), dv = device.empty(dk.shape());
    device.fill(dk, 0);  // keys that no own row sees
    device.fill(dv, 0);
    for (const ChunkCall& call : ring.calls(source))
      backward_of_call(ring, in, group, call, {keys.keys(), keys.values(), call.blocks}, with, dk,
                       dv);
    // What the ranks before have added, which was on its way meanwhile.
    if (step > 0) {
      gradients.finish();
      device.add(gradients.first(), dk, dk);
      device.add(gradients.second(), dv, dv);
    }
    gradients.replace(dk, dv);
    gradients.start(ring.hop_after(step), source, ring.source(step + 1));
    keys.finish(step);
  }
  gradients.finish();
  set_heads(device, gradients.first(), group.keys, with.dk);
  set_heads(device, gradients.second(), group.keys, with.dv);
}

}  // namespace

void ring_attention(const ForwardContext& pass, const RingInputs& in, Tensor& out, Tensor* lse) {
  const Ring ring(pass, in.shape);
  Merged merged(pass.device, out, in.shape);
  for (const HeadGroup& group : head_groups(*pass.context, in.shape))
    attend(ring, in, group, merged);
  merged.store(lse);
}

void ring_attention_backward(const ForwardContext& pass, const RingInputs& in,
                             const ops::AttentionBackward& with) {
  const Ring ring(pass, in.shape);
  pass.device.fill(with.dq, 0);
  for (const HeadGroup& group : head_groups(*pass.context, in.shape))
    attend_backward(ring, in, group, with);
}

}  // namespace troupe::engine::nn
