#include "engine/ops/cpu/attention/decode.h"

#include <algorithm>

namespace troupe::engine::ops::cpu {

DecodeAttention::DecodeAttention(const Context& context, const AttentionInputs& in)
    : context_(context),
      kernels_(context.kernels),
      layout_(in.layout),
      shape_(in.shape),
      seen_(in.kv, in.layout, in.shape.window),
      softmax_(kernels_, seen_, in),
      runs_(in.kv, in.layout, in.shape.window),
      q_(data(in.q)),
      k_(data(in.kv.k)),
      v_(data(in.kv.v)) {
}

template <class Visit>
void DecodeAttention::for_each_run(const Block& block, const float* from, Visit visit) const {
  constexpr std::int64_t max_keys = 32;
  runs_.for_each(block.sequence, block.seen, [&](const KvRun& run, const KvRun& next) {
    prefetch_rows_of(from + next.row * width() + block.kv_head * shape_.head_size, width(),
                     std::min(next.keys, max_keys), shape_.head_size);
    visit(run);
  });
}

int DecodeAttention::kv_heads_per_block() const {
  if (heads_per_kv() > 1) return 1;
  int kv_heads = shape_.kv_heads;
  const std::int64_t enough =
      context_.pool.threads() == 1 ? 1 : std::int64_t{3} * context_.pool.threads();
  while (kv_heads > 1 && layout_.sequences() * (shape_.kv_heads / kv_heads) < enough)
    kv_heads = (kv_heads + 1) / 2;
  return kv_heads;
}

std::vector<DecodeAttention::Block> DecodeAttention::blocks() const {
  std::vector<Block> all;
  const int kv_heads = kv_heads_per_block();
  for (std::size_t n = 0; n + 1 < layout_.offsets.size(); ++n) {
    const std::int64_t row = layout_.offsets[n];
    if (row == layout_.offsets[n + 1]) continue;
    for (int g = 0; g < shape_.kv_heads; g += kv_heads)
      all.push_back({n, g, std::min(kv_heads, shape_.kv_heads - g), row, seen_.of(row, row + 1)});
  }
  return all;
}

void DecodeAttention::shared_scores(const Block& block, int worker, float* weights) const {
  const std::int64_t size = shape_.head_size;
  const float* q = q_ + (block.row * shape_.heads + block.kv_head * heads_per_kv()) * size;
  for_each_run(block, k_, [&](const KvRun& run) {
    kernels_.gemm_nt(
        {heads_per_kv(), run.keys, size, q, size, 1, k_ + run.row * width() + block.kv_head * size,
         width(), weights + run.key - block.seen.first, block.seen.count(), false},
        context_.gemm_memory(worker));
  });
}

void DecodeAttention::shared_values(const Block& block, int worker, const float* weights,
                                    float* out) const {
  const std::int64_t size = shape_.head_size;
  for_each_run(block, v_, [&](const KvRun& run) {
    kernels_.gemm_nn({heads_per_kv(), size, run.keys, weights + run.key - block.seen.first,
                      block.seen.count(), 1, v_ + run.row * width() + block.kv_head * size, width(),
                      out, size, run.key > block.seen.first},
                     context_.gemm_memory(worker));
  });
}

template <class Visit>
void DecodeAttention::for_each_key_block(const Block& block, const float* from, const float* next,
                                         float* weights, Visit visit) const {
  constexpr std::int64_t max_keys = 16;
  const float* first = from + block.kv_head * shape_.head_size;
  const float* waiting = nullptr;
  DecodeHeads heads{.heads = block.kv_heads,
                    .size = shape_.head_size,
                    .keys = 0,
                    .rows = nullptr,
                    .ld = width(),
                    .prefetch = 0,
                    .weights = weights,
                    .ld_weights = block.seen.count()};
  const auto pass = [&](const float* prefetched) {
    if (waiting == nullptr) return;
    heads.prefetch = prefetched - waiting;
    heads.rows = waiting;
    visit(heads, heads.weights == weights);
    heads.weights += heads.keys;
  };
  runs_.for_each(block.sequence, block.seen, [&](const KvRun& run, const KvRun&) {
    for (std::int64_t done = 0; done < run.keys; done += max_keys) {
      const float* rows = first + (run.row + done) * width();
      pass(rows);
      waiting = rows;
      heads.keys = std::min(max_keys, run.keys - done);
    }
  });
  pass(next);
}

const float* DecodeAttention::first_values(const Block& block) const {
  const float* values = nullptr;
  runs_.for_each(block.sequence, block.seen, [&](const KvRun& run, const KvRun&) {
    if (values == nullptr) values = v_ + run.row * width() + block.kv_head * shape_.head_size;
  });
  return values;
}

void DecodeAttention::separate_scores(const Block& block, float* weights) const {
  const float* q = q_ + (block.row * shape_.heads + block.kv_head) * shape_.head_size;
  for_each_key_block(block, k_, first_values(block), weights,
                     [&](const DecodeHeads& heads, bool) { kernels_.decode_scores(heads, q); });
}

void DecodeAttention::separate_values(const Block& block, float* weights, float* out) const {
  for_each_key_block(
      block, v_, first_values(block), weights,
      [&](const DecodeHeads& heads, bool begins) { kernels_.decode_values(heads, out, !begins); });
}

void DecodeAttention::forward_block(const Block& block, int worker, float* out, float* lse) const {
  const std::int64_t keys = block.seen.count(), heads = heads_per_kv() * block.kv_heads,
                     size = shape_.head_size;
  const std::int64_t first = block.row * shape_.heads + block.kv_head * heads_per_kv();
  float* weights = context_.workspace.tiles(worker).need(heads * (keys + 1));
  float* inverse = weights + heads * keys;
  heads_per_kv() > 1 ? shared_scores(block, worker, weights) : separate_scores(block, weights);
  for (std::int64_t h = 0; h < heads; ++h) {
    const SoftmaxSums sums = softmax_.forward(first + h, block.seen, weights + h * keys);
    inverse[h] = static_cast<float>(1 / sums.sum);
    if (lse != nullptr) lse[first + h] = lse_of(sums);
  }
  out += first * size;
  heads_per_kv() > 1 ? shared_values(block, worker, weights, out)
                     : separate_values(block, weights, out);
  for (std::int64_t h = 0; h < heads; ++h) kernels_.scale(out + h * size, inverse[h], size);
}

void DecodeAttention::forward(float* out, float* lse) const {
  const std::vector<Block> all = blocks();
  std::int64_t work = 0;
  for (const Block& block : all)
    work += block.seen.count() * shape_.head_size * 2 * heads_per_kv() * block.kv_heads;
  const std::int64_t tasks = work < 100'000 ? 1 : static_cast<std::int64_t>(all.size());
  context_.pool.run(tasks, [&](std::int64_t i, int worker) {
    if (tasks > 1) return forward_block(all[static_cast<std::size_t>(i)], worker, out, lse);
    for (const Block& block : all) forward_block(block, worker, out, lse);
  });
}

}  // namespace troupe::engine::ops::cpu
