// Benchmark of the matrix products of a model's layers: forward (x W^T), input gradient (dy W) and
// weight gradient (dy^T x). With --table also those of results.md. A multiply-add counts as two
// operations.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "benchmarks/support/training.h"
#include "engine/base/text/text.h"

namespace {

using namespace troupe::benchmarks;
using namespace troupe::engine::ops;
using troupe::Tensor;
using troupe::to_text;

struct Sizes {
  std::int64_t m, n, k;
  double operations() const { return 2e-9 * static_cast<double>(m * n * k); }
};
constexpr std::array<Sizes, 11> table_sizes{{{256, 256, 256},
                                             {512, 512, 512},
                                             {1024, 1024, 1024},
                                             {2048, 2048, 2048},
                                             {1024, 352, 128},
                                             {1024, 128, 128},
                                             {64, 1024, 1024},
                                             {8, 1024, 1024},
                                             {1, 128, 128},
                                             {1, 1024, 1024},
                                             {1, 4096, 4096}}};

// One product with its operands.
class Product {
 public:
  Product(Device& device, Sizes of, Gemm how) : device_(device), how_(how) {
    a_ = device.empty(how.transpose_a ? troupe::Shape{of.k, of.m} : troupe::Shape{of.m, of.k});
    b_ = device.empty(how.transpose_b ? troupe::Shape{of.n, of.k} : troupe::Shape{of.k, of.n});
    c_ = device.empty({of.m, of.n});
    fill_random(device, a_, 1, 1);
    fill_random(device, b_, 1, 2);
    device.fill(c_, 0);
  }
  void operator()() { device_.gemm(a_, b_, c_, how_); }

 private:
  Device& device_;
  Gemm how_;
  Tensor a_, b_, c_;
};

Gemm forward(Precision precision) {
  return {.transpose_b = true, .precision = precision};
}
Gemm input_gradient(Precision precision) {
  return {.precision = precision};
}
Gemm weight_gradient(Precision precision) {
  return {.transpose_a = true, .accumulate = true, .precision = precision};
}

// A single thread is timed by its own processor time, which other load does not affect.
double now(bool own) {
  std::timespec time{};
  ::clock_gettime(own ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// GFLOP/s of the best of seven batches of calls of about twenty milliseconds each.
double table_rate(Device& device, Sizes of, Gemm how, bool own_time) {
  Product product(device, of, how);
  product();
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    int calls = 0;
    const double start = now(own_time);
    double taken = 0;
    do {
      product();
      ++calls;
      taken = now(own_time) - start;
    } while (taken < 0.02);
    best = std::min(best, taken / calls);
  }
  return of.operations() / best;
}

void print_table(Device& device, int threads) {
  say("| M x N x K | x W^T | dy W | dy^T x (+=) | x W^T, bf16 |\n|---|---|---|---|---|");
  for (const Sizes& of : table_sizes) {
    std::printf("| %ld x %ld x %ld |", static_cast<long>(of.m), static_cast<long>(of.n),
                static_cast<long>(of.k));
    for (const Gemm& how : {forward(Precision::f32), input_gradient(Precision::f32),
                            weight_gradient(Precision::f32), forward(Precision::bf16)})
      std::printf(" %.1f |", table_rate(device, of, how, threads == 1));
    say("");
  }
}

struct Matrix {
  const char* name;
  std::int64_t rows, columns;  // of the weight
  int times;                   // in a layer
};

// The products of a step, each once per round, in the order of a step.
std::vector<Matrix> matrices_of(const ModelShape& shape) {
  return {{"queries, output", shape.width, shape.width, 2},
          {"keys, values", shape.kv_heads * shape.head_size(), shape.width, 2},
          {"gate, up", shape.inner, shape.width, 2},
          {"down", shape.width, shape.inner, 1}};
}

// The three products of a training step with one matrix.
struct Three {
  Matrix of;
  std::int64_t tokens;
  Product forward, input, weight;
  std::array<std::vector<double>, 3> seconds = {};

  Three(Device& device, Matrix matrix, std::int64_t rows, Precision precision)
      : of(matrix),
        tokens(rows),
        forward(device, {rows, matrix.rows, matrix.columns}, ::forward(precision)),
        input(device, {rows, matrix.columns, matrix.rows}, input_gradient(precision)),
        weight(device, {matrix.rows, matrix.columns, rows}, weight_gradient(precision)) {}

  double operations() const { return 2e-9 * static_cast<double>(tokens * of.rows * of.columns); }
  void run() {
    for (int i = 0; i < of.times; ++i) {
      seconds[0].push_back(troupe::benchmarks::seconds(forward));
      seconds[1].push_back(troupe::benchmarks::seconds(input));
      seconds[2].push_back(troupe::benchmarks::seconds(weight));
    }
  }
};

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  if (options.table) print_table(*device, options.threads);
  std::vector<Three> products;
  Work work;
  const std::int64_t tokens = options.batch * options.shape.sequence;
  for (const Matrix& matrix : matrices_of(options.shape)) {
    products.emplace_back(*device, matrix, tokens, options.precision);
    work.products += 3 * matrix.times * products.back().operations();
  }
  const Steps steps = time_steps(*device, options, work, [&] {
    for (Three& three : products) three.run();
  });
  say(troupe::cat("one layer, ", tokens,
                  " rows, GFLOP/s: forward, input gradient, weight gradient"));
  for (const Three& three : products) {
    const auto rate = [&](std::size_t kind) {
      return to_text(three.operations() / median(three.seconds[kind]), 1);
    };
    say(troupe::cat("  ", three.of.name, " [", three.of.rows, ", ", three.of.columns,
                    "]: ", rate(0), ", ", rate(1), ", ", rate(2)));
  }
  return outcome_of(steps, work.products, "GFLOP/s");
}

}  // namespace

int main(int count, char** words) {
  return run("gemm", {.table = true}, count, words, measure);
}
