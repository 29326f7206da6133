// What both CPU devices share: memory, copies, and the movement of whole rows.
#pragma once

#include <string_view>

#include "engine/ops/cpu/block_pool.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

class HostDevice : public Device {
 public:
  Tensor empty(Shape shape, DType type) override;
  void upload(Tensor& to, std::span<const float> values) override;
  void upload_from(Tensor& to, const Source& source) override;
  void download(const Tensor& from, std::span<float> values) override;
  void visit_rows(const Tensor& from, const RowVisitor& visit) override;
  void fill(Tensor& x, float value) override;
  void copy(const Tensor& from, Tensor& to) override;
  void synchronize() override {}
  MemoryUse memory() const override { return blocks_->use(); }

  void gather_rows(const Tensor& from, std::span<const std::int32_t> rows, Tensor& to) override;
  void scatter_rows(const Tensor& from, std::span<const std::int32_t> rows, Tensor& to) override;
  void scatter_add_rows(const Tensor& from, std::span<const std::int32_t> rows,
                        Tensor& table) override;

  void dropout(const Tensor& x, const Dropout& how, Tensor& y) override;
  void scale_columns(Tensor& x, const Tensor& factors) override;
  void column_dots(const Tensor& a, const Tensor& b, Tensor& sums) override;
  void row_squares(const Tensor& x, Tensor& sums) override;
  void round_to_bf16(Tensor& x, const StochasticRounding& how) override;

 protected:
  /// Rows [begin, end) of it.
  static void round_rows(Tensor& x, const StochasticRounding& how, std::int64_t begin,
                         std::int64_t end);
  const std::shared_ptr<BlockPool>& blocks() const { return blocks_; }

 private:
  std::shared_ptr<BlockPool> blocks_ =
      std::make_shared<BlockPool>();  // tensors may live longer than their device
};

/// Checks the operands of what moves rows: `each` [M, W] has one for each of `rows`, all of them
/// below those of `table` [., W].
void check_moved_rows(std::string_view operation, const Tensor& each,
                      std::span<const std::int32_t> rows, const Tensor& table);

/// The three sizes of a product, after checking that its operands agree.
struct GemmSizes {
  std::int64_t m, n, k;
};
/// A packed weight may take the place of B; its shape is the packing device's affair.
GemmSizes gemm_sizes(const Tensor& a, const Tensor& b, const Tensor& c, Gemm how);

/// Check the operands of a norm: x, y [T, D], gain [D], inverse (of the root mean square, or of the
/// deviation) [T].
void check_norm(const Tensor& x, const Tensor& gain, const Tensor& y, const Tensor& inverse);
void check_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inverse,
                         const Tensor& dy, const Tensor& dx, const Tensor& dgain);
/// And those that layer_norm has beside them: bias [D] or absent, mean [T].
void check_layer_norm(const Tensor& gain, const Tensor& bias, const Tensor& mean,
                      const Tensor& inverse);

/// Checks every size and index that attention will use.
void check_attention(const Tensor& q, const KeyValues& kv, const Layout& layout,
                     const AttentionShape& shape);

/// Checks the operands of head(): hidden [T, D], weight [V, D], T targets below V.
void check_head(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets);
void check_targets(std::span<const std::int32_t> targets, std::int64_t rows,
                   std::int64_t vocabulary);
/// And those of its adapter, if there is one: down [T, R], up [V, R].
/// logp, lse, entropy are [T].
void check_head_scores(std::span<const std::int32_t> targets, const Tensor& logp, const Tensor& lse,
                       const Tensor* entropy);
/// So are dlogp, dentropy and entropy; dhidden is like hidden, and dweight like weight, or absent.
void check_head_gradients(const Tensor& hidden, const Tensor& weight,
                          std::span<const std::int32_t> targets, const Tensor& dlogp,
                          const Tensor* dentropy, const Tensor* entropy, const Tensor& dhidden,
                          const Tensor& dweight);
void check_head_adapter(const HeadAdapter* adapter, std::int64_t rows, std::int64_t vocabulary);

}  // namespace troupe::engine::ops
