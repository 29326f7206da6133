#include "benchmarks/support/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "benchmarks/support/clock.h"

namespace troupe::benchmarks {
namespace {

constexpr std::size_t page = std::size_t{2} << 20;  // a huge one

using Words = std::uint64_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

// Receives a value that depends on the bytes read; otherwise the compiler would remove the reads.
std::atomic<std::uint64_t> used{0};

void read_part(const std::byte* from, std::size_t bytes) {
  Words sums[8] = {};
  const auto* words = reinterpret_cast<const Words*>(from);
  for (std::size_t i = 0; i + 8 <= bytes / sizeof(Words); i += 8)
    for (std::size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j];
  for (const Words& sum : sums) used.fetch_xor(sum[0] ^ sum[1], std::memory_order_relaxed);
}

void update_part(std::byte* a, const std::byte* b, std::size_t bytes) {
  auto* to = reinterpret_cast<Floats*>(a);
  const auto* from = reinterpret_cast<const Floats*>(b);
  for (std::size_t i = 0; i + 4 <= bytes / sizeof(Floats); i += 4)
    for (std::size_t j = 0; j < 4; ++j) to[i + j] = to[i + j] * 0.5f + from[i + j];
}

// Calls part(begin, end) for each thread, with ranges of whole huge pages except at the end.
template <class Part>
void on_all(int threads, std::size_t bytes, Part part) {
  const auto count = static_cast<std::size_t>(threads);
  const auto edge = [&](std::size_t i) {
    return i == count ? bytes : bytes * i / count / 4096 * 4096;
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < count; ++i)
    others.emplace_back([&part, from = edge(i), to = edge(i + 1)] { part(from, to); });
  part(0, edge(1));
}

}  // namespace

Bandwidth::Bandwidth(int threads, bool small)
    : threads_(threads),
      bytes_((small ? 1u : 512u) << 20),
      memory_(nullptr, [](std::byte* p) { std::free(p); }) {
}
Bandwidth::~Bandwidth() = default;

void Bandwidth::take() {
  if (memory_) return;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, std::max(bytes_, page))));
  if (!memory_) throw std::bad_alloc();
  ::madvise(memory_.get(), bytes_, MADV_HUGEPAGE);  // where the system allows it
  on_all(threads_, bytes_, [&](std::size_t from, std::size_t to) {
    std::memset(memory_.get() + from, 0, to - from);
  });
}

template <class Pass>
double Bandwidth::best(double bytes, Pass pass) {
  double minimum = seconds(pass);
  for (int i = 0; i < 2; ++i) minimum = std::min(minimum, seconds(pass));
  return 1e-9 * bytes / minimum;
}

double Bandwidth::read() {
  take();
  return best(static_cast<double>(bytes_), [&] {
    on_all(threads_, bytes_,
           [&](std::size_t from, std::size_t to) { read_part(memory_.get() + from, to - from); });
  });
}

double Bandwidth::update() {
  take();
  std::byte *a = memory_.get(), *b = a + bytes_ / 2;
  return best(1.5 * static_cast<double>(bytes_), [&] {
    on_all(threads_, bytes_ / 2,
           [&](std::size_t from, std::size_t to) { update_part(a + from, b + from, to - from); });
  });
}

double Bandwidth::copy() {
  take();
  std::byte *a = memory_.get(), *b = a + bytes_ / 2;
  return best(0.5 * static_cast<double>(bytes_), [&] {
    on_all(threads_, bytes_ / 2,
           [&](std::size_t from, std::size_t to) { std::memcpy(a + from, b + from, to - from); });
  });
}

}  // namespace troupe::benchmarks
