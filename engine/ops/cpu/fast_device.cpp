// The fast device's element-wise operations and optimizer, and how it is made.
#include "engine/ops/cpu/fast_device.h"

#include <algorithm>
#include <cmath>

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::engine::ops {

float* Scratch::need(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  if (!buffer_ || buffer_->bytes() < bytes) {
    buffer_.reset();
    buffer_ = std::make_unique<HostBuffer>(bytes, blocks_);
  }
  return reinterpret_cast<float*>(buffer_->data());
}

FastDevice::FastDevice(const Kernels& kernels, const CpuOptions& options)
    : kernels_(kernels),
      head_logits_(options.head_logits),
      kept_logits_(options.kept_logits),
      pool_(options.threads, options.pin_threads) {
  for (int i = 0; i < options.threads; ++i)
    product_scratch_.emplace_back(blocks()), score_scratch_.emplace_back(blocks());
}

void FastDevice::upload_from(Tensor& to, const Source& source) {
  constexpr std::int64_t part = 65536;  // values; few enough that what makes them in two passes
                                        // finds them in the second-level cache
  const std::int64_t count = to.count();
  float* values = out(to);
  spread((count + part - 1) / part, count, [&](std::int64_t item, int) {
    const std::int64_t begin = item * part;
    source(begin, {values + begin, static_cast<std::size_t>(std::min(part, count - begin))});
  });
}

void FastDevice::visit_rows(const Tensor& from, const RowVisitor& visit) {
  const std::int64_t width = width_of(from);
  const float* values = in(from);
  pool_.run(rows_of(from), [&](std::int64_t row, int) {
    visit(row, {values + row * width, static_cast<std::size_t>(width)});
  });
}

void FastDevice::fill(Tensor& x, float value) {
  float* values = out(x);
  share(x.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    std::fill(values + begin, values + end, value);
  });
}

void FastDevice::add(const Tensor& a, const Tensor& b, Tensor& sum) {
  check(a.count() == b.count() && a.count() == sum.count(), "add: operands differ in size");
  const float *left = in(a), *right = in(b);
  float* result = out(sum);
  share(sum.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.add(left + begin, right + begin, result + begin, end - begin);
  });
}

void FastDevice::scale(Tensor& x, float factor) {
  float* values = out(x);
  share(x.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.scale(values + begin, factor, end - begin);
  });
}

void FastDevice::adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) {
  const std::int64_t count = values.count();
  check(grads.count() == count && m.count() == count && v.count() == count,
        "adamw: operands differ in size");
  const AdamWScalars with(how);
  float *p = out(values), *g = out(grads), *first = out(m), *second = out(v);
  share(count, 8, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.adamw(p + begin, g + begin, first + begin, second + begin, with, end - begin);
  });
}

double FastDevice::sum_of_squares(const Tensor& x) {
  constexpr std::int64_t block = 16384;  // part of the order of summation
  const std::int64_t count = x.count(), blocks = (count + block - 1) / block;
  const float* values = in(x);
  partial_sums_.assign(static_cast<std::size_t>(blocks), 0.0);
  share(blocks, block, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      partial_sums_[static_cast<std::size_t>(i)] =
          kernels_.sum_of_squares(values + i * block, std::min(block, count - i * block));
    }
  });
  double total = 0;
  for (const double sum : partial_sums_) total += sum;
  return total;
}

bool FastDevice::all_finite(const Tensor& x) {
  const float* values = in(x);
  std::atomic<bool> finite{true};
  share(x.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    if (!kernels_.all_finite(values + begin, end - begin))
      finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

std::unique_ptr<Device> make_cpu_device(CpuOptions options) {
  check(options.threads >= 0 && options.threads <= 1024, "make_cpu_device: threads");
  if (options.threads == 0) options.threads = usable_processors();
  if (options.pin_threads && !Pool::pins(options.threads))
    log_warning(cat("threads are not pinned: the engine has ", options.threads,
                    ", the processors that this process may use are ", usable_processors(),
                    "; start it on as many (taskset, mpirun --bind-to, a job's cpu mask)"));
  return std::make_unique<FastDevice>(kernels_for(options.isa == nullptr ? "" : options.isa),
                                      options);
}

}  // namespace troupe::engine::ops
