// The fast CPU device: shares the work of each operation out to a pool of threads, which run one
// instruction set's kernels. Not safe to use from two threads at once: it owns one pool and its
// scratch memory.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "engine/ops/cpu/access.h"
#include "engine/ops/cpu/host_device.h"
#include "engine/ops/cpu/parts.h"
#include "engine/ops/cpu/pool.h"

namespace troupe::engine::ops {

/// Float memory that only grows, so that a hot path does not allocate.
class Scratch {
 public:
  explicit Scratch(std::shared_ptr<BlockPool> blocks) : blocks_(std::move(blocks)) {}
  float* need(std::int64_t count);
  /// What need() gave last.
  float* at() const { return reinterpret_cast<float*>(buffer_->data()); }

 private:
  std::shared_ptr<BlockPool> blocks_;
  std::unique_ptr<HostBuffer> buffer_;
};

class FastDevice final : public HostDevice {
 public:
  /// A product whose A (where it is multiplied by rows) or B (by columns) is packed on the way;
  /// none of its items lie together.
  struct Unpacked {
    Packing items;
    PanelProduct product;
  };

  FastDevice(const Kernels& kernels, const CpuOptions& options);

  void upload_from(Tensor& to, const Source& source) override;
  void visit_rows(const Tensor& from, const RowVisitor& visit) override;
  void fill(Tensor& x, float value) override;
  void gather_rows(const Tensor& from, std::span<const std::int32_t> rows, Tensor& to) override;
  void scatter_add_rows(const Tensor& from, std::span<const std::int32_t> rows,
                        Tensor& table) override;
  void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) override;
  void grouped_gemm(std::span<GemmCall> calls) override;
  void pack(const Tensor& weight, DType type, Tensor& packed) override;
  void add_bias(Tensor& y, const Tensor& bias) override;
  void bias_backward(const Tensor& dy, Tensor& dbias) override;
  void add(const Tensor& a, const Tensor& b, Tensor& sum) override;
  void scale(Tensor& x, float factor) override;
  void rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y, Tensor& inv_rms,
                float offset) override;
  void rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                         const Tensor& dy, Tensor& dx, Tensor& dgain, float offset) override;
  void layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, float eps, Tensor& y,
                  Tensor& mean, Tensor& inv_std) override;
  void layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                           const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                           Tensor& dgain) override;
  void rope(Tensor& x, std::span<const std::int32_t> positions, const Tensor& cos,
            const Tensor& sin, int heads, bool inverse) override;
  void attention(const Tensor& q, const KeyValues& kv, const Layout& layout,
                 const AttentionShape& shape, Precision precision, Tensor& out,
                 Tensor* lse) override;
  void attention_backward(const Tensor& q, const KeyValues& kv, const Layout& layout,
                          const AttentionShape& shape, Precision precision, const Tensor& out,
                          const Tensor& lse, const Tensor& dout, Tensor& dq, Tensor& dk,
                          Tensor& dv) override;
  void gated(Activation activation, const Tensor& gate, const Tensor& up, Tensor& y) override;
  void gated_backward(Activation activation, const Tensor& gate, const Tensor& up, const Tensor& dy,
                      Tensor& dgate, Tensor& dup, Tensor* y) override;
  void activate(Activation activation, const Tensor& x, Tensor& y) override;
  void activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                         Tensor& dx) override;
  void head(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets,
            const HeadScale& scale, Precision precision, Tensor& logp, Tensor& lse, Tensor* entropy,
            const HeadAdapter* adapter, Tensor* kept) override;
  void head_backward(const Tensor& hidden, const Tensor& weight,
                     std::span<const std::int32_t> targets, const HeadScale& scale,
                     Precision precision, const Tensor& lse, const Tensor& dlogp,
                     const Tensor* dentropy, const Tensor* entropy, Tensor& dhidden,
                     Tensor& dweight, HeadAdapter* adapter, const Tensor* kept,
                     bool accumulate) override;
  void head_through(const Tensor& hidden, const Tensor& weight,
                    std::span<const std::int32_t> targets, const HeadScale& scale,
                    Precision precision, const Tensor& dlogp, const Tensor* dentropy, Tensor& logp,
                    Tensor& lse, Tensor* entropy, Tensor& dhidden, Tensor& dweight,
                    HeadAdapter* adapter, bool accumulate) override;
  void scale_logits(Tensor& logits, const HeadScale& scale) override;
  void token_logprob(const Tensor& logits, std::span<const std::int32_t> targets,
                     float inv_temperature, Tensor& logp, Tensor& lse) override;
  void adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) override;
  void round_to_bf16(Tensor& x, const StochasticRounding& how) override;
  double sum_of_squares(const Tensor& x) override;
  bool all_finite(const Tensor& x) override;

 private:
  enum class Kind { dot, outer };
  static Product product_of(const Tensor& a, const Tensor& b, Tensor& c, Gemm how);
  /// C = A B on all threads. dot: B is [n, k], outer: it is [k, n]. In bf16, and where it is large,
  /// from operands that are packed first.
  void product(Kind kind, const Product& p, Precision precision);
  void packed_product(Kind kind, const Product& p, const Panels& with);
  /// In f32 by a kernel that packs for itself, in blocks of C.
  void blocks_of_product(Kind kind, const Product& p);
  /// Products of packed weights with one A.
  void products_with_packed(std::span<GemmCall> calls);
  /// dot of few rows in f32, the same of all products, which each thread packs once for all of its
  /// columns.
  void products_of_few_rows(std::span<const Product> products);
  /// nullptr: a product so small or of so few rows is not worth packing.
  const Panels* panels_for(Kind kind, const Product& p, Precision precision) const;
  /// nullptr: not all of them go the same way.
  const Panels* panels_for_all(Kind kind, std::span<const Product> products,
                               Precision precision) const;
  /// What products share is packed once. False: nothing was done, each goes its own way.
  bool products_of_one_left(std::span<const Product> products, Precision precision);
  /// Of few parts of k. by_columns: A is packed beforehand, else the Bs are.
  void multiply_one_left(const Panels& with, std::span<const Product> products, bool by_columns);
  bool products_of_one_right(std::span<const Product> products, Precision precision);
  bool products_of_one_sum(std::span<const Product> products, Precision precision);
  void multiply(const Panels& with, const PanelProduct& p) { multiply(with, std::span(&p, 1)); }
  /// Products that do not depend on each other, shared out together.
  void multiply(const Panels& with, std::span<const PanelProduct> products);
  /// The same one after the other, so that they may add to one C, from an A that is packed once
  /// where neighbours have the same; their m is one.
  void multiply_rows(const Panels& with, std::span<const Unpacked> products);
  /// The same from packed As of one m and k.
  void multiply_columns(const Panels& with, std::span<const Unpacked> products);
  /// With weights of whole numbers (kernels_int8.h): few rows read them as they are, more of them a
  /// copy in bf16.
  void pack_int8(const Tensor& weight, Tensor& packed);
  void product_with_int8(const PanelProduct& p);
  const float* pack_left(const Panels& with, const Packing& items);
  /// All items, `width` at a time. The last tile is as narrow as what is left; the last panel is
  /// filled up with zeros.
  void pack_tiles(const Panels& with, const Packing& items, float* to);
  void pack_panels(const Panels& with, const Packing& items, float* to);
  /// visit(item, worker) for 0 .. count - 1, on all threads where `work` (multiplications in all)
  /// is worth it.
  template <class Visit>
  void spread(std::int64_t count, std::int64_t work, Visit visit);
  /// visit(begin, end, worker) over [0, count), cut where the whole is worth more than one thread.
  /// `cost`: operations an element.
  template <class Visit>
  void share(std::int64_t count, std::int64_t cost, std::int64_t grain, Visit visit);

  /// Of one factor of the vocabulary head: its input rows as they are, and packed for logits (left)
  /// and for the weight's gradient (across), its weight packed for logits (right) and for the
  /// inputs' gradients (below), and these gradients.
  struct HeadScratch {
    explicit HeadScratch(std::shared_ptr<BlockPool> blocks)
        : gathered(blocks),
          left(blocks),
          right(blocks),
          below(blocks),
          across(blocks),
          slopes(blocks) {}
    Scratch gathered, left, right, below, across, slopes;
  };

  const Kernels& kernels_;
  std::int64_t head_logits_, kept_logits_;
  Pool pool_;
  std::vector<Scratch> product_scratch_, score_scratch_;  ///< one a thread
  /// offset + gain, [D].
  const float* shifted(const Tensor& gain, float offset);
  /// Products of the head become its logits at temperature 1.
  void scale_row(float* logits, std::int64_t n, const HeadScale& scale) const;

  Scratch left_{blocks()}, right_{blocks()};  ///< packed operands of a product
  std::vector<Product> grouped_, few_rows_;   ///< of one call
  Scratch gain_{blocks()}, by_column_{blocks()};
  Scratch kept_{blocks()};
  std::array<HeadScratch, 2> head_scratch_{HeadScratch(blocks()), HeadScratch(blocks())};
  std::vector<double> partial_sums_;

  float* scratch(int worker) {
    return product_scratch_[static_cast<std::size_t>(worker)].need(product_scratch);
  }
  friend class RowAttention;
  friend class PackedAttention;
  friend class HeadPass;
};

template <class Visit>
void FastDevice::spread(std::int64_t count, std::int64_t work, Visit visit) {
  if (work >= worth_waking) return pool_.run(count, visit);
  for (std::int64_t item = 0; item < count; ++item) visit(item, 0);
}

template <class Visit>
void FastDevice::share(std::int64_t count, std::int64_t cost, std::int64_t grain, Visit visit) {
  constexpr std::int64_t worth_cutting = 100'000;
  if (count == 0) return;
  if (pool_.threads() == 1 || count * cost < worth_cutting) return visit(std::int64_t{0}, count, 0);
  const std::int64_t pieces = std::int64_t{4} * pool_.threads();
  const std::int64_t size = ((count + pieces - 1) / pieces + grain - 1) / grain * grain;
  pool_.run((count + size - 1) / size, [&](std::int64_t piece, int worker) {
    const std::int64_t begin = piece * size, end = begin + size < count ? begin + size : count;
    visit(begin, end, worker);
  });
}

}  // namespace troupe::engine::ops
