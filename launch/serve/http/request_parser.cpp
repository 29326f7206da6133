#include "launch/serve/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <utility>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

namespace beast = boost::beast;
using ErrorCode = beast::error_code;
using Bytes = beast::string_view;

std::string text_of(Bytes bytes) {
  return std::string(bytes.data(), bytes.size());
}

bool visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

bool folded(std::string_view header) {
  return header.find("\r\n ") != std::string_view::npos ||
         header.find("\r\n\t") != std::string_view::npos;
}

/// Whether a request line names a version other than 1.0 and 1.1 in the right place.
bool other_version(std::string_view line) {
  constexpr std::string_view name = " HTTP/";
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return false;
  const std::string_view number = line.substr(at + name.size(), 3);
  return number.size() == 3 && digit(number[0]) && number[1] == '.' && digit(number[2]) &&
         number != "1.0" && number != "1.1";
}

/// Whether a line ends with LF alone. Beast notices it only at the end of a header that arrives in
/// pieces.
bool bare_line_feed(std::string_view header) {
  for (std::size_t at = header.find('\n'); at != std::string_view::npos;
       at = header.find('\n', at + 1))
    if (at == 0 || header[at - 1] != '\r') return true;
  return false;
}

/// The shortest end of a chunked body: "0" and two line ends.
constexpr std::size_t last_chunk_bytes = 5;

/// Fields of which a second one makes the request ambiguous.
bool single(beast::http::field name, const std::string& text) {
  using beast::http::field;
  if (text == "x-api-key") return true;  // ClientForm::key_field
  return name == field::host || name == field::content_length || name == field::content_type ||
         name == field::transfer_encoding || name == field::authorization || name == field::expect;
}

}  // namespace

/// Receives what Beast parses. Refusals of this class set `status` and any error code.
struct RequestParser::Impl : beast::http::basic_parser<true> {
  explicit Impl(const ServerLimits& limits) : max_fields(limits.header_fields) {
    header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    body_limit(limits.body_bytes);
  }

  void refuse(int with, std::string why, ErrorCode& ec) {
    status = with;
    message = std::move(why);
    ec = beast::http::error::bad_field;
  }

  void on_request_impl(beast::http::verb, Bytes method, Bytes target, int version,
                       ErrorCode& ec) override {
    request.method = text_of(method);
    http11 = version == 11;
    std::string whole = text_of(target);
    if (!visible_ascii(whole)) return refuse(400, "the request target is not visible ASCII", ec);
    const bool asterisk = whole == "*" && request.method == "OPTIONS";
    if (!asterisk && (whole.empty() || whole[0] != '/'))
      return refuse(400, "the request target must be a path that begins with /", ec);
    if (whole.find('#') != std::string::npos)
      return refuse(400, "the request target has a fragment (#)", ec);
    const std::size_t mark = whole.find('?');
    if (mark != std::string::npos) request.query = whole.substr(mark + 1);
    request.path = whole.substr(0, mark);
  }

  void on_field_impl(beast::http::field name, Bytes raw_name, Bytes value, ErrorCode& ec) override {
    if (in_body) return;  // trailers
    using beast::http::field;
    if (request.headers.size() >= max_fields)
      return refuse(431, cat("more than ", max_fields, " header fields"), ec);
    HeaderField added{ascii_lower(text_of(raw_name)), text_of(value)};
    if (single(name, added.name) && request.header(added.name) != nullptr)
      return refuse(400, cat("the header field ", added.name, " occurs more than once"), ec);
    const std::string_view content = added.value;
    if (name == field::content_length &&
        (content.empty() || content.find_first_not_of("0123456789") != std::string_view::npos))
      return refuse(400, "Content-Length must be one decimal number", ec);
    if (name == field::transfer_encoding && ascii_lower(text_of(value)) != "chunked")
      return refuse(400, "the only Transfer-Encoding that is accepted is chunked", ec);
    if (name == field::host && (content.empty() || !visible_ascii(content)))
      return refuse(400, "the Host field is empty or malformed", ec);
    if (name == field::expect && ascii_lower(text_of(value)) != "100-continue")
      return refuse(417, "the only Expect that is accepted is 100-continue", ec);
    request.headers.push_back(std::move(added));
  }

  void on_header_impl(ErrorCode& ec) override {
    in_body = true;
    const bool encoded = request.header("transfer-encoding") != nullptr;
    if (http11 && request.header("host") == nullptr)
      return refuse(400, "an HTTP/1.1 request must have a Host field", ec);
    if (encoded && !http11) return refuse(400, "Transfer-Encoding needs HTTP/1.1", ec);
    if (encoded && request.header("content-length") != nullptr)
      return refuse(400, "Content-Length and Transfer-Encoding exclude each other", ec);
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(Bytes body, ErrorCode&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, Bytes, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Bytes body, ErrorCode&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(ErrorCode&) override { request.keep_alive = keep_alive(); }
  void on_response_impl(int, Bytes, int, ErrorCode&) override {}

  State fail(const ErrorCode& ec, std::string_view bytes) {
    if (status != 0) return State::failed;
    if (ec == beast::http::error::header_limit)
      status = 431;
    else if (ec == beast::http::error::body_limit)
      status = 413;
    else if (ec == beast::http::error::bad_version && other_version(bytes))
      status = 505;
    else
      status = 400;
    message = cat("malformed HTTP request: ", ec.message());
    return State::failed;
  }

  Request request;
  const std::size_t max_fields;
  bool http11 = true, in_body = false, header_returned = false;
  int status = 0;
  std::string message;
};

RequestParser::RequestParser(const ServerLimits& limits) : impl_(std::make_unique<Impl>(limits)) {
}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

RequestParser::State RequestParser::feed(std::string_view bytes, std::size_t& consumed) {
  Impl& parser = *impl_;
  consumed = 0;
  while (consumed < bytes.size()) {
    const std::string_view rest = bytes.substr(consumed);
    const bool in_header = !parser.is_header_done();
    // With fewer bytes an assertion of Beast 1.74 fails; they cannot complete the body.
    if (!in_header && parser.chunked() && rest.size() < last_chunk_bytes) return State::more;
    ErrorCode ec;
    const std::size_t taken = parser.put({rest.data(), rest.size()}, ec);
    consumed += taken;
    // Beast joins folded lines; they are within the bytes of one call, as a field is taken whole.
    if (in_header && folded(rest.substr(0, taken)))
      parser.refuse(400, "a header field continues on a second line", ec);
    if (in_header && ec == beast::http::error::need_more && bare_line_feed(rest.substr(taken)))
      parser.refuse(400, "a line of the header ends with LF instead of CR LF", ec);
    if (ec && ec != beast::http::error::need_more) return parser.fail(ec, rest);
    if (parser.is_done()) return State::complete;
    if (parser.is_header_done() && !parser.header_returned) {
      parser.header_returned = true;
      return State::header;
    }
    if (ec || taken == 0) break;
  }
  return State::more;
}

Request& RequestParser::request() {
  return impl_->request;
}

bool RequestParser::http11() const {
  return impl_->http11;
}

bool RequestParser::header_done() const {
  return impl_->is_header_done();
}

bool RequestParser::expects_continue() const {
  return impl_->http11 && impl_->request.header("expect") != nullptr;
}

int RequestParser::status() const {
  return impl_->status;
}

const std::string& RequestParser::message() const {
  return impl_->message;
}

}  // namespace troupe::launch::serve::http
