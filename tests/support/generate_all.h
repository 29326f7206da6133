// Requests that a generator of a test computes until all of them have ended.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/generate/generator.h"

namespace troupe::test {

/// Submits all requests, or none.
inline Result<> submit_all(engine::generate::Generator& generator,
                           std::vector<engine::generate::Request> requests) {
  for (auto& request : requests) {
    if (auto accepted = generator.submit(std::move(request)); !accepted) {
      generator.discard_all();
      return fail(accepted);
    }
  }
  return {};
}

/// Submits all requests and steps until they are finished. Results are in the order of `requests`.
inline Result<std::vector<engine::generate::Generation>> generate_all(
    engine::generate::Generator& generator, std::vector<engine::generate::Request> requests) {
  std::unordered_map<std::uint64_t, std::size_t> index_of;
  for (std::size_t i = 0; i < requests.size(); ++i) index_of[requests[i].id] = i;
  std::vector<engine::generate::Generation> results(requests.size());
  RETURN_IF_ERROR(submit_all(generator, std::move(requests)));
  try {
    while (!generator.idle())
      for (auto& done : generator.step()) results[index_of.at(done.id)] = std::move(done);
  } catch (...) {
    generator.discard_all();
    throw;
  }
  return results;
}
inline Result<std::vector<engine::generate::Generation>> generate_all(
    engine::generate::Generator&& generator, std::vector<engine::generate::Request> requests) {
  return generate_all(generator, std::move(requests));
}

}  // namespace troupe::test
