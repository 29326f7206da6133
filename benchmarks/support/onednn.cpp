#include "benchmarks/support/onednn.h"

#include <omp.h>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace troupe::benchmarks {
namespace {

struct Product {
  dnnl::stream stream;
  dnnl::matmul product;
  std::unordered_map<int, dnnl::memory> arguments;
};

void fill(dnnl::memory& f32) {
  auto* values = static_cast<float*>(f32.get_data_handle());
  for (std::size_t i = 0; i < f32.get_desc().get_size() / sizeof(float); ++i)
    values[i] = static_cast<float>(i % 255) * 0x1p-7f - 1;
}

std::shared_ptr<Product> make(std::int64_t size, bool bf16) {
  using Memory = dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto type = bf16 ? Memory::data_type::bf16 : Memory::data_type::f32;
  const Memory::desc plain({size, size}, Memory::data_type::f32, Memory::format_tag::ab);
  const Memory::desc rows({size, size}, type, Memory::format_tag::ab),
      packed({size, size}, type, Memory::format_tag::any);
  const dnnl::matmul::primitive_desc how(dnnl::matmul::desc(rows, packed, plain), engine);
  auto out = std::make_shared<Product>(Product{dnnl::stream(engine), dnnl::matmul(how), {}});
  Memory values(plain, engine), source(rows, engine), weights(how.weights_desc(), engine);
  fill(values);
  dnnl::reorder(values, source).execute(out->stream, values, source);
  dnnl::reorder(values, weights).execute(out->stream, values, weights);
  out->stream.wait();
  out->arguments = {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, values}};
  return out;
}

}  // namespace

std::function<void()> onednn_product(std::int64_t size, bool bf16, int threads) try {
  ::omp_set_num_threads(threads);
  return [made = make(size, bf16)] {
    made->product.execute(made->stream, made->arguments);
    made->stream.wait();
  };
} catch (const dnnl::error&) {
  return {};
}

}  // namespace troupe::benchmarks
