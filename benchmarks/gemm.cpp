// How fast are the matrix products of the fast device? Forward (x W^T), input gradient (dy W) and weight gradient (dy^T x), in
// multiply-adds counted twice. `gemm --benchmark_filter=forward/1024` and the other flags of Google Benchmark apply; so does
// `--threads=N` (default 1) and `--isa=avx2`.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/ops/device.h"

namespace {

using troupe::Tensor;
using namespace troupe::engine::ops;

struct Sizes {
  std::int64_t m, n, k;
};
constexpr Sizes sizes[] = {{1, 128, 128},    {1, 1024, 1024}, {1, 4096, 4096}, {8, 1024, 1024},    {64, 1024, 1024},  {1024, 128, 128},
                           {1024, 352, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}};

Tensor random_matrix(Device& device, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(2 * troupe::uniform(1, 0, i) - 1);
  return from_host(device, {rows, columns}, values);
}

void measure(benchmark::State& state, Device& device, Sizes of, Gemm how) {
  const Tensor a = how.transpose_a ? random_matrix(device, of.k, of.m) : random_matrix(device, of.m, of.k);
  const Tensor b = how.transpose_b ? random_matrix(device, of.n, of.k) : random_matrix(device, of.k, of.n);
  Tensor c = random_matrix(device, of.m, of.n);
  for (auto step : state) device.gemm(a, b, c, how);
  const double operations = 2.0 * static_cast<double>(of.m * of.n * of.k);
  state.counters["FLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
}

void add_all(Device& device, int threads) {
  const struct {
    const char* name;
    Gemm how;
  } kinds[] = {{"forward", {.transpose_b = true}},
               {"input_gradient", {}},
               {"weight_gradient", {.transpose_a = true, .accumulate = true}},
               {"forward_bf16", {.transpose_b = true, .precision = Precision::bf16}}};
  for (const auto& kind : kinds) {
    for (const Sizes& of : sizes) {
      const std::string name =
          std::string(kind.name) + "/" + std::to_string(of.m) + "x" + std::to_string(of.n) + "x" + std::to_string(of.k);
      auto* one = benchmark::RegisterBenchmark(name.c_str(),
                                               [&device, of, how = kind.how](benchmark::State& state) { measure(state, device, of, how); });
      if (threads != 1) one->UseRealTime();  // a single thread is judged by its own processor time, which a busy machine does not change
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  CpuOptions options{.threads = 1};
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag.starts_with("--threads=")) {
      options.threads = std::atoi(argv[i] + 10);
    } else if (flag.starts_with("--isa=")) {
      options.isa = argv[i] + 6;
    } else {
      std::fprintf(stderr, "gemm: %s is not known; there are --threads=N, --isa=NAME and Google Benchmark's own flags\n", argv[i]);
      return 2;
    }
  }
  try {
    const auto device = make_cpu_device(options);
    add_all(*device, options.threads);
    benchmark::RunSpecifiedBenchmarks();
  } catch (const troupe::Failure& failure) {
    std::fprintf(stderr, "gemm: %s\n", failure.what());
    return 1;
  }
}
