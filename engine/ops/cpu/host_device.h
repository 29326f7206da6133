// HostDevice: base of both CPU devices. Memory, copies, moves of rows, and the operations of
// adapters and of mixtures of experts.
#pragma once

#include <functional>

#include "engine/ops/device.h"
#include "engine/ops/memory/block_pool.h"

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

  void gather_rows(const Tensor& from, const Indices& rows, Tensor& to) override;
  void scatter_rows(const Tensor& from, const Indices& rows, Tensor& to) override;
  void scatter_add_rows(const Tensor& from, const Indices& rows, Tensor& table) override;

  void dropout(const Tensor& x, const Dropout& how, Tensor& y) override;
  void scale_columns(Tensor& x, const Tensor& factors) override;
  void column_dots(const Tensor& a, const Tensor& b, Tensor& sums) override;
  void row_squares(const Tensor& x, Tensor& sums) override;
  // cpu/experts/experts.cpp
  void route(const Router& how, const Tensor& logits, const Tensor& bias, Routes& routes) override;
  void route_backward(const Router& how, const Tensor& logits, const Routes& routes,
                      const Tensor& dweights, Tensor& dlogits) override;
  void drop_choices(std::int64_t capacity, DropPolicy policy, Routes& routes) override;
  // cpu/experts/balance.cpp
  void add_router_sums(const Router& how, const Tensor& logits, const Routes& routes,
                       std::span<const std::int32_t> offsets, std::span<RouterSums> sums,
                       bool shares) override;
  void add_router_slopes(const Router& how, const Tensor& logits, const RouterSlopes& slopes,
                         Tensor& dlogits) override;
  // cpu/experts/experts.cpp
  void permute(const Tensor& x, const Routes& routes, Tensor& rows) override;
  void permute_backward(const Tensor& rows, const Routes& routes, Tensor& sums) override;
  void ragged_gemm(const Routes& routes, const Tensor& a, std::span<const Tensor> b, Tensor& c,
                   Gemm how) override;
  void ragged_gradients(const Routes& routes, const Tensor& dc, const Tensor& a,
                        const RaggedGradients& to, Precision precision) override;
  void combine(const Combination& in, Tensor& y) override;
  void combine_backward(const Combination& in, const Tensor& dy,
                        const CombinationGradients& to) override;
  void round_to_bf16(Tensor& x, const StochasticRounding& how) override;
  void store_bf16(const Tensor& from, Tensor& to, const StochasticRounding& how,
                  const FlatPart& part) override;

 protected:
  using RangeVisitor = std::function<void(std::int64_t begin, std::int64_t end)>;
  /// Visits ranges that cover [0, count), each element on its own; `cost`: operations per element.
  virtual void for_ranges(std::int64_t count, std::int64_t cost, const RangeVisitor& visit) {
    (void)cost;
    visit(0, count);
  }
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
