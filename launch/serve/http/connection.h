// Connection: the requests of one client, one after the other.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launch/serve/http/exchange.h"
#include "launch/serve/http/request_parser.h"
#include "launch/serve/http/service.h"
#include "launch/serve/http/stream.h"

namespace troupe::launch::serve::http {

/// Everything runs on the loop's thread. While a request is handled, the connection keeps reading:
/// the end of the stream then means that the client has disconnected, as in other servers; a client
/// must not shut down its side before it has the response.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  /// `closed` is called once, when the connection has been closed.
  Connection(std::shared_ptr<Service> service, std::shared_ptr<EventLoop> loop,
             std::unique_ptr<Stream> stream, std::string client,
             std::function<void(Connection&)> closed);

  void start();
  /// Refuses the client with status 503, which is sent if the system takes it at once.
  void start_refused();
  bool refused() const { return refused_; }
  /// Ends what has taken too long.
  void check_deadline(Clock::time_point now);
  /// Closes the connection if it is idle; otherwise it is closed after the current answer, as the
  /// service is draining.
  void drain();
  void close();

 private:
  enum class Phase { handshake, idle, header, body, answer, lingering, closed };

  void enter(Phase phase, std::chrono::milliseconds limit);
  /// From now on the connection may have to give way to another one.
  void may_give_way();
  /// From now on it may not; false if it was chosen before and is closed now.
  bool stays();
  /// `call` on the loop's thread, from any thread, if the connection exists then.
  std::function<void()> on_loop(void (Connection::*call)());
  void give_way();
  void read();
  void on_read(bool ok, std::size_t bytes);
  void parse();
  /// Whether parsing continues.
  bool on_progress(RequestParser::State state);
  bool begin_body();
  /// Whether the server has room for what has arrived of the body.
  bool body_fits();
  void admit();
  void refuse(Response response);
  void open_exchange(bool keep_alive);
  void run_handler(const Route& route);
  void pump();
  void on_written(bool ok, const Exchange::Output& what);
  void finish(bool keep_alive);
  void linger();
  void record(int status);

  const std::shared_ptr<Service> service_;
  const std::shared_ptr<EventLoop> loop_;
  const std::unique_ptr<Stream> stream_;
  const std::string client_;
  const std::function<void(Connection&)> closed_;

  Phase phase_ = Phase::handshake;
  Clock::time_point deadline_ = Clock::time_point::max();        // of the phase
  Clock::time_point write_deadline_ = Clock::time_point::max();  // of the write in progress
  bool reading_ = false, writing_ = false, refused_ = false;
  std::array<char, 16384> chunk_;
  std::string input_;   // read and not parsed
  std::string output_;  // being written
  RequestParser parser_;
  std::shared_ptr<HeldBytes> held_;  // of the body that arrives
  std::optional<IdleConnections::Ticket> ticket_;
  const Route* route_ = nullptr;
  std::shared_ptr<Exchange> exchange_;
  AccessRecord record_;
  Clock::time_point received_;
};

}  // namespace troupe::launch::serve::http
