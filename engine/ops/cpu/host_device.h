// HostDevice: base of both CPU devices. Memory, copies, moves of rows and the operations of
// adapters.
#pragma once

#include "engine/ops/cpu/memory/block_pool.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

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
  void store_bf16(const Tensor& from, Tensor& to, const StochasticRounding& how,
                  const FlatPart& part) override;

 protected:
  /// round_to_bf16() of rows [begin, end).
  static void round_rows(Tensor& x, const StochasticRounding& how, std::int64_t begin,
                         std::int64_t end);
  /// store_bf16() of elements [begin, end), and copy() of those between f32 and bf16.
  static void store_range(const Tensor& from, Tensor& to, const StochasticRounding& how,
                          const FlatPart& part, std::int64_t begin, std::int64_t end);
  static void convert_range(const Tensor& from, Tensor& to, std::int64_t begin, std::int64_t end);
  /// x in f32: x itself, or a copy.
  Tensor widened(const Tensor& x);
  const std::shared_ptr<BlockPool>& blocks() const { return blocks_; }

 private:
  // Tensors may outlive their device.
  std::shared_ptr<BlockPool> blocks_ = std::make_shared<BlockPool>();
};

}  // namespace troupe::engine::ops::cpu
