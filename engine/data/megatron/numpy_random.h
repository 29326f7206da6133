// NumpyRandom: numpy.random.RandomState(seed), whose shuffles give the order of Megatron's samples.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace troupe::engine::data::megatron {

class NumpyRandom {
 public:
  /// numpy seeds MT19937 as std::mt19937 does.
  explicit NumpyRandom(std::uint32_t seed) : generator_(seed) {}

  /// A uniform integer in [0, maximum]: random_interval() of numpy/random/src.
  std::uint64_t interval(std::uint64_t maximum);

  /// RandomState.shuffle of a one-dimensional array.
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[interval(i)]);
  }

 private:
  std::mt19937 generator_;
};

}  // namespace troupe::engine::data::megatron
