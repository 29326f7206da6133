#include "launch/serve/http/stream.h"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace troupe::launch::serve::http {

namespace {

namespace asio = boost::asio;
using Protocol = asio::generic::stream_protocol;
using Socket = asio::basic_stream_socket<Protocol>;
using ErrorCode = boost::system::error_code;

/// The form of a callback that Asio expects.
auto completion(Stream::Done done) {
  return [done = std::move(done)](const ErrorCode& failed, std::size_t bytes = 0) {
    done(!failed, bytes);
  };
}

class PlainStream final : public Stream {
 public:
  PlainStream(std::shared_ptr<EventLoop> loop, int socket)
      : loop_(std::move(loop)), socket_(loop_->context(), Protocol(AF_INET, 0), socket) {}

  void handshake(Done done) override {
    asio::post(loop_->context(), [done = std::move(done)] { done(true, 0); });
  }
  void read_some(char* to, std::size_t size, Done done) override {
    socket_.async_read_some(asio::buffer(to, size), completion(std::move(done)));
  }
  void write(std::string_view bytes, Done done) override {
    asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()),
                      completion(std::move(done)));
  }
  void shut_down(Done done) override {
    ErrorCode failed;
    socket_.shutdown(Socket::shutdown_send, failed);
    asio::post(loop_->context(), [done = std::move(done), ok = !failed] { done(ok, 0); });
  }
  void close() override {
    ErrorCode ignored;
    socket_.close(ignored);
  }

 private:
  const std::shared_ptr<EventLoop> loop_;  // outlives the socket
  Socket socket_;
};

class TlsStream final : public Stream {
 public:
  TlsStream(std::shared_ptr<EventLoop> loop, int socket, std::shared_ptr<TlsContext> tls)
      : loop_(std::move(loop)),
        tls_(std::move(tls)),
        stream_(Socket(loop_->context(), Protocol(AF_INET, 0), socket), tls_->native()) {}

  void handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, completion(std::move(done)));
  }
  void read_some(char* to, std::size_t size, Done done) override {
    stream_.async_read_some(asio::buffer(to, size), completion(std::move(done)));
  }
  void write(std::string_view bytes, Done done) override {
    asio::async_write(stream_, asio::buffer(bytes.data(), bytes.size()),
                      completion(std::move(done)));
  }
  void shut_down(Done done) override {
    stream_.async_shutdown([done = std::move(done)](const ErrorCode&) { done(false, 0); });
  }
  void close() override {
    ErrorCode ignored;
    stream_.lowest_layer().close(ignored);
  }

 private:
  const std::shared_ptr<EventLoop> loop_;
  const std::shared_ptr<TlsContext> tls_;
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<Stream> make_stream(std::shared_ptr<EventLoop> loop, int socket,
                                    std::shared_ptr<TlsContext> tls) {
  if (tls != nullptr) return std::make_unique<TlsStream>(std::move(loop), socket, std::move(tls));
  return std::make_unique<PlainStream>(std::move(loop), socket);
}

}  // namespace troupe::launch::serve::http
