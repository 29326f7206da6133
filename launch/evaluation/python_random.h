// Random numbers of the reference tools: CPython's `random.Random` and NumPy's legacy
// `RandomState`, both of the Mersenne Twister (Matsumoto and Nishimura 1998, MT19937).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::launch::evaluation {

class MersenneTwister {
 public:
  /// init_genrand() of the reference implementation.
  explicit MersenneTwister(std::uint32_t seed);
  /// init_by_array(). `key`: at least one word.
  explicit MersenneTwister(const std::vector<std::uint32_t>& key);
  /// genrand_int32().
  std::uint32_t next();

 private:
  std::array<std::uint32_t, 624> state_;
  std::size_t at_ = 624;
};

/// `random.Random(seed)` of CPython 3.11 (Lib/random.py, Modules/_randommodule.c).
class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed);
  /// random(): uniform in [0, 1), 53 bits.
  double uniform();
  /// _randbelow(n), n >= 1.
  std::uint64_t below(std::uint64_t n);
  /// sample(range(n), k), k <= n.
  std::vector<std::size_t> sample(std::size_t n, std::size_t k);
  /// shuffle(list(range(n))).
  std::vector<std::size_t> shuffled(std::size_t n);
  /// choices(range(n), k=k), n >= 1.
  std::vector<std::size_t> choices(std::size_t n, std::size_t k);

 private:
  std::uint64_t bits(int count);
  MersenneTwister twister_;
};

/// `numpy.random.RandomState(seed).permutation(n)`; pandas' `sample(random_state=seed)` takes its
/// first entries.
std::vector<std::size_t> numpy_permutation(std::size_t n, std::uint32_t seed);

}  // namespace troupe::launch::evaluation
