#include "launch/serve/http/client.h"

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using SentRequest = beast::http::request<beast::http::string_body>;

constexpr std::chrono::milliseconds stop_period{100};
constexpr std::size_t piece_bytes = std::size_t{16} << 10;

/// Waits for one operation at a time, with a deadline.
class Waiting {
 public:
  Waiting(asio::io_context& context, std::string server, const std::function<bool()>& stop)
      : context_(context), server_(std::move(server)), stop_(stop) {}

  /// Calls start(handler) and runs the loop until the handler is called. After the deadline or a
  /// stop, cancel() ends the operation. `code`: of the operation's own errors.
  template <class Start, class Cancel>
  Result<> run(const char* what, std::chrono::milliseconds limit, Errc code, Start start,
               Cancel cancel) {
    std::optional<ErrorCode> done;
    start([&done](const ErrorCode& failed, const auto&...) { done = failed; });
    const auto until = std::chrono::steady_clock::now() + limit;
    std::optional<Error> ended;
    context_.restart();
    while (!done) {
      context_.run_one_for(stop_period);
      if (ended || done) continue;
      if (stop_ && stop_())
        ended = Error{Errc::cancelled, cat(what, " ", server_, ": stopped")};
      else if (std::chrono::steady_clock::now() > until)
        ended = Error{Errc::timeout, cat(what, " ", server_, ": nothing for ", limit.count(),
                                         " ms; is the server busy or unreachable?")};
      if (ended) cancel();
    }
    if (ended) return fail(ended->code, ended->what);
    if (*done == beast::http::error::body_limit)
      return fail(Errc::full, cat("the response of ", server_, " is too long"));
    if (*done) return fail(code, cat(what, " ", server_, ": ", done->message()));
    return {};
  }

 private:
  asio::io_context& context_;
  std::string server_;
  const std::function<bool()>& stop_;
};

/// One request on a connected stream: a socket, or TLS on one.
template <class Stream>
class Transfer {
 public:
  Transfer(Stream& stream, Waiting& waiting, const ClientLimits& limits)
      : stream_(stream), waiting_(waiting), limits_(limits) {
    parser_.body_limit(limits.body);
  }

  Result<ClientResponse> run(const SentRequest& request, const ClientCalls& calls) {
    const auto cancel = [this] { close(); };
    const auto write = [&](auto handler) {
      beast::http::async_write(stream_, request, std::move(handler));
    };
    RETURN_IF_ERROR(waiting_.run("sending to", limits_.silence, Errc::closed, write, cancel));
    const auto read = [&](auto handler) {
      beast::http::async_read_header(stream_, buffer_, parser_, std::move(handler));
    };
    RETURN_IF_ERROR(
        waiting_.run("waiting for a response of", limits_.silence, Errc::closed, read, cancel));
    ClientResponse response{static_cast<int>(parser_.get().result_int()), ""};
    const bool passes = calls.on_body && response.status == 200;
    while (!parser_.is_done()) {
      const auto piece = next_piece();
      RETURN_IF_ERROR(piece);
      if (passes)
        calls.on_body(*piece);
      else
        response.body += *piece;
    }
    return response;
  }

 private:
  /// The next bytes of the body, which may be none.
  Result<std::string_view> next_piece() {
    parser_.get().body().data = piece_.data();
    parser_.get().body().size = piece_.size();
    parser_.get().body().more = true;
    const auto read = [&](auto handler) {
      beast::http::async_read_some(stream_, buffer_, parser_,
                                   [handler](ErrorCode failed, std::size_t bytes) mutable {
                                     // The piece is full; what else was read is parsed next.
                                     if (failed == beast::http::error::need_buffer) failed = {};
                                     handler(failed, bytes);
                                   });
    };
    RETURN_IF_ERROR(
        waiting_.run("reading from", limits_.silence, Errc::closed, read, [this] { close(); }));
    return std::string_view(piece_.data(), piece_.size() - parser_.get().body().size);
  }

  void close() {
    ErrorCode ignored;
    stream_.lowest_layer().close(ignored);
  }

  Stream& stream_;
  Waiting& waiting_;
  const ClientLimits& limits_;
  beast::flat_buffer buffer_{std::size_t{128} << 10};
  beast::http::response_parser<beast::http::buffer_body> parser_;
  std::array<char, piece_bytes> piece_{};
};

Result<> connect(tcp::socket& socket, const Url& url, Waiting& waiting,
                 const ClientLimits& limits) {
  tcp::resolver resolver(socket.get_executor());
  tcp::resolver::results_type addresses;
  const auto resolve = [&](auto handler) {
    resolver.async_resolve(
        url.host, url.port,
        [&addresses, handler](const ErrorCode& failed, tcp::resolver::results_type found) mutable {
          addresses = std::move(found);
          handler(failed);
        });
  };
  RETURN_IF_ERROR(waiting.run("looking up the name of", limits.connect, Errc::io, resolve,
                              [&] { resolver.cancel(); }));
  const auto start = [&](auto handler) {
    asio::async_connect(socket, addresses, std::move(handler));
  };
  return waiting.run("connecting to", limits.connect, Errc::io, start, [&] {
    ErrorCode ignored;
    socket.close(ignored);
  });
}

/// A context that trusts the system's certificates.
Result<> read_certificates(asio::ssl::context& context) {
  ErrorCode failed;
  context.set_default_verify_paths(failed);
  if (failed)
    return fail(Errc::io, cat("cannot read the system's certificates: ", failed.message()));
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  return {};
}

SentRequest sent_request(const Url& url, const std::string& key, const ClientRequest& request) {
  using beast::http::field;
  SentRequest sent;
  sent.method_string(request.method);
  sent.target(url.path + request.path);
  const bool numeric_v6 = url.host.find(':') != std::string::npos;
  const std::string host = numeric_v6 ? cat("[", url.host, "]") : url.host;
  sent.set(field::host, url.port == (url.tls ? "443" : "80") ? host : cat(host, ":", url.port));
  sent.set(field::user_agent, "troupe");
  sent.set(field::accept, "application/json, text/event-stream");
  if (!key.empty()) sent.set(field::authorization, "Bearer " + key);
  if (!request.body.empty()) sent.set(field::content_type, "application/json");
  sent.keep_alive(false);
  sent.body() = request.body;
  sent.prepare_payload();
  return sent;
}

/// The numbers and letters of a host name or address.
bool is_host(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  });
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  const auto wrong = [&] {
    return fail(Errc::usage, cat("the URL ", quote(text),
                                 ": expected http://HOST:PORT or https://HOST, with or without a "
                                 "path such as /v1"));
  };
  Url url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) return wrong();
  const std::string_view rest = text.substr(url.tls ? 8 : 7);
  const std::string_view place = rest.substr(0, rest.find('/'));
  url.path = rest.substr(place.size());
  while (url.path.ends_with('/')) url.path.pop_back();
  if (url.path.find_first_of("?# ") != std::string::npos) return wrong();
  // A colon inside brackets belongs to an address.
  const std::size_t colon = place.find(':', place.starts_with('[') ? place.find(']') : 0);
  std::string_view host = place.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  url.host = host;
  url.port = colon == std::string_view::npos ? (url.tls ? "443" : "80") : place.substr(colon + 1);
  const bool number = !url.port.empty() && url.port.size() <= 5 &&
                      url.port.find_first_not_of("0123456789") == std::string::npos;
  if (!is_host(host) || !number) return wrong();
  return url;
}

Client::Client(Url url, std::string key, ClientLimits limits)
    : url_(std::move(url)), key_(std::move(key)), limits_(limits) {
}

Result<ClientResponse> Client::send(const ClientRequest& request, const ClientCalls& calls) const {
  asio::io_context context;
  Waiting waiting(context, cat(url_.host, ":", url_.port), calls.stop);
  const SentRequest sent = sent_request(url_, key_, request);
  if (!url_.tls) {
    tcp::socket socket(context);
    RETURN_IF_ERROR(connect(socket, url_, waiting, limits_));
    return Transfer(socket, waiting, limits_).run(sent, calls);
  }
  asio::ssl::context tls(asio::ssl::context::tls_client);
  RETURN_IF_ERROR(read_certificates(tls));
  asio::ssl::stream<tcp::socket> stream(context, tls);
  stream.set_verify_mode(asio::ssl::verify_peer);
  stream.set_verify_callback(asio::ssl::host_name_verification(url_.host));
  SSL_set_tlsext_host_name(stream.native_handle(), url_.host.c_str());
  RETURN_IF_ERROR(connect(stream.next_layer(), url_, waiting, limits_));
  const auto handshake = [&](auto handler) {
    stream.async_handshake(asio::ssl::stream_base::client, std::move(handler));
  };
  RETURN_IF_ERROR(waiting.run("TLS with", limits_.connect, Errc::io, handshake, [&] {
    ErrorCode ignored;
    stream.lowest_layer().close(ignored);
  }));
  return Transfer(stream, waiting, limits_).run(sent, calls);
}

}  // namespace troupe::launch::serve::http
