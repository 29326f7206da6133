// Any bytes as an HTTP request: refused with a status, or parsed to the same request whether they
// arrive at once or in pieces. Input: a byte for the size of the pieces, then the bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launch/serve/http/request_parser.h"

namespace {

using namespace troupe::launch::serve::http;  // NOLINT: a program of one page
using State = RequestParser::State;

struct Outcome {
  State state = State::more;
  Request request;
};

Outcome parse(std::string_view bytes, std::size_t step) {
  const ServerLimits limits{.header_bytes = 2048, .body_bytes = 4096};
  RequestParser parser(limits);
  Outcome out;
  std::string input;
  while (!bytes.empty() && (out.state == State::more || out.state == State::header)) {
    input += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    do {
      std::size_t consumed = 0;
      out.state = parser.feed(input, consumed);
      if (consumed > input.size()) std::abort();
      input.erase(0, consumed);
    } while (out.state == State::header && !input.empty());
  }
  if (out.state == State::failed && (parser.status() < 400 || parser.message().empty()))
    std::abort();
  out.request = parser.request();
  if (out.request.body.size() > limits.body_bytes) std::abort();
  if (out.request.headers.size() > limits.header_fields) std::abort();
  return out;
}

bool same(const Request& a, const Request& b) {
  if (a.headers.size() != b.headers.size()) return false;
  for (std::size_t i = 0; i < a.headers.size(); ++i)
    if (a.headers[i].name != b.headers[i].name || a.headers[i].value != b.headers[i].value)
      return false;
  return a.method == b.method && a.path == b.path && a.query == b.query && a.body == b.body &&
         a.keep_alive == b.keep_alive;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t step = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Outcome whole = parse(bytes, bytes.size()), pieces = parse(bytes, step);
  // Near the limit of the header the pieces decide which rule is broken first, not whether one is.
  if ((whole.state == State::complete) != (pieces.state == State::complete)) std::abort();
  if (whole.state == State::complete && !same(whole.request, pieces.request)) std::abort();
  return 0;
}
