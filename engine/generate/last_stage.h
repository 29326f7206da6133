// LastStage: results that only the last pipeline stage of a decoder can compute, on every stage.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/models/decoder.h"

namespace troupe::engine::generate {

class LastStage {
 public:
  /// `what` names the results in errors of communication.
  LastStage(const models::Decoder& decoder, std::string_view what)
      : pp_(decoder.pp()), what_(what) {}

  /// The values that `compute` returns on the last stage, which alone calls it. A Failure that it
  /// throws, also a RequestFailure, is thrown on every stage. Collective over the stages; without
  /// them, compute().
  template <class Value>
  requires std::is_trivially_copyable_v<Value> std::vector<Value> values(
      const std::function<std::vector<Value>()>& compute)
  const {
    if (pp_ == nullptr) return compute();
    const std::string bytes = share([&] {
      const std::vector<Value> own = compute();
      return std::string(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(Value));
    });
    std::vector<Value> all(bytes.size() / sizeof(Value));
    if (!all.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }

 private:
  std::string share(const std::function<std::string()>& compute) const;

  parallel::Communicator* pp_;
  std::string what_;
};

}  // namespace troupe::engine::generate
