#include "engine/generate/last_stage.h"

#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "engine/generate/generator.h"

namespace troupe::engine::generate {
namespace {

enum class Kind : std::uint32_t { values, failure, request_failure };

// What the last stage announces before the bytes: values, or the message of a failure.
struct Header {
  std::uint64_t bytes = 0;
  std::uint64_t request = 0;  // of a RequestFailure
  Kind kind = Kind::values;
  Errc code = Errc::internal;
};

std::pair<Header, std::string> outcome_of(const std::function<std::string()>& compute) {
  Header header;
  std::string bytes;
  try {
    bytes = compute();
  } catch (const RequestFailure& failure) {
    header = {0, failure.id(), Kind::request_failure, failure.error().code};
    bytes = failure.error().what;
  } catch (const Failure& failure) {
    header = {0, 0, Kind::failure, failure.error().code};
    bytes = failure.error().what;
  }
  header.bytes = bytes.size();
  return {header, std::move(bytes)};
}

}  // namespace

std::string LastStage::share(const std::function<std::string()>& compute) const {
  const int last = pp_->size() - 1;
  Header header;
  std::string bytes;
  if (pp_->rank() == last) std::tie(header, bytes) = outcome_of(compute);
  pp_->broadcast(std::as_writable_bytes(std::span(&header, 1)), last, what_);
  bytes.resize(header.bytes);
  if (!bytes.empty()) pp_->broadcast(std::as_writable_bytes(std::span(bytes)), last, what_);
  if (header.kind == Kind::values) return bytes;
  Error error{header.code, std::move(bytes)};
  if (header.kind == Kind::request_failure) throw RequestFailure(header.request, std::move(error));
  throw Failure(std::move(error));
}

}  // namespace troupe::engine::generate
