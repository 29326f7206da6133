#include "launch/serve/http/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/serve/http/connection.h"
#include "launch/serve/http/event_loop.h"
#include "launch/serve/http/listener.h"
#include "launch/serve/http/service.h"
#include "launch/serve/http/stream.h"
#include "launch/serve/http/tls.h"

namespace troupe::launch::serve::http {

namespace {

constexpr std::chrono::milliseconds sweep_period{250};
/// Descriptors that the process needs besides connections.
constexpr rlim_t other_descriptors = 256;
/// Accepted connections that no loop knows yet.
constexpr int max_unadded = 64;

/// Raises the soft limit of descriptors towards what the connections need; returns how many
/// connections fit.
std::size_t raise_descriptor_limit(std::size_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  const rlim_t wanted = connections + other_descriptors;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(limit.rlim_max, wanted);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= wanted) return connections;
  const std::size_t fitting =
      limit.rlim_cur > 2 * other_descriptors ? limit.rlim_cur - other_descriptors : 64;
  log_warning(cat("the limit of open files (", limit.rlim_cur, ") allows ", fitting,
                  " connections, not ", connections));
  return std::min(fitting, connections);
}

}  // namespace

/// A loop and its connections, which only the loop's thread uses.
struct Worker {
  std::shared_ptr<EventLoop> loop = std::make_shared<EventLoop>();
  std::set<std::shared_ptr<Connection>> connections;

  void for_each(const std::function<void(Connection&)>& call) {
    const std::vector<std::shared_ptr<Connection>> now(connections.begin(), connections.end());
    for (const auto& connection : now) call(*connection);
  }
};

struct Server::Impl {
  Impl(Listener bound, std::shared_ptr<Service> shared, std::shared_ptr<TlsContext> context)
      : listener(std::move(bound)), service(std::move(shared)), tls(std::move(context)) {}

  void start(int threads);
  bool accept();
  void add(Worker& worker, Listener::Accepted accepted);
  /// Whether the new connection of a network stays; another one may have to give way.
  bool has_room(const std::string& network);
  void remove(Worker& worker, Connection& ended, const std::string& network);
  void post_all(const std::function<void(Worker&)>& call);
  void stop_accepting();
  void close_all();

  Listener listener;
  const std::shared_ptr<Service> service;
  const std::shared_ptr<TlsContext> tls;
  std::vector<std::unique_ptr<Worker>> workers;
  std::size_t next = 0;          // of the first loop's thread: the worker of the next connection
  bool accepting = true;         // likewise
  std::atomic<int> unadded = 0;  // accepted connections on their way to their loops
  std::mutex mutex;
  std::condition_variable closed;               // a connection was closed
  std::map<std::string, std::size_t> networks;  // connections of each
};

void Server::Impl::start(int threads) {
  for (int i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>());
  for (std::size_t i = 0; i < workers.size(); ++i) {
    Worker& worker = *workers[i];
    worker.loop->every(sweep_period, [this, &worker] {
      const auto now = Connection::Clock::now();
      worker.for_each([&](Connection& connection) { connection.check_deadline(now); });
      if (service->log != nullptr) service->log->flush();
    });
    worker.loop->start(cat("http-", i));
  }
  workers[0]->loop->when_readable(listener.descriptor(), [this] { return accept(); });
}

bool Server::Impl::accept() {
  // Beyond it descriptors would run out before others have given way.
  while (accepting && unadded < max_unadded) {
    auto accepted = listener.accept();
    if (!accepted) return true;
    ++service->connections;
    ++unadded;
    Worker& worker = *workers[next++ % workers.size()];
    worker.loop->post([this, &worker, accepted = std::move(*accepted)] {
      --unadded;
      add(worker, accepted);
    });
  }
  return accepting;
}

void Server::Impl::add(Worker& worker, Listener::Accepted accepted) {
  auto connection = std::make_shared<Connection>(
      service, worker.loop, make_stream(worker.loop, accepted.socket, tls),
      std::move(accepted.client), [this, &worker, network = accepted.network](Connection& ended) {
        remove(worker, ended, network);
      });
  worker.connections.insert(connection);
  if (has_room(accepted.network)) return connection->start();
  ++service->refused;
  connection->start_refused();
}

bool Server::Impl::has_room(const std::string& network) {
  ++service->open;
  {
    const std::lock_guard lock(mutex);
    if (++networks[network] > service->limits.connections_per_address) return false;
  }
  // One that gives way is counted until it is closed, in place of the new one.
  if (++service->admitted <= service->limits.connections || service->idle.close_longest())
    return true;
  --service->admitted;
  return false;
}

void Server::Impl::remove(Worker& worker, Connection& ended, const std::string& network) {
  worker.connections.erase(ended.shared_from_this());
  if (!ended.refused()) --service->admitted;
  --service->open;
  const std::lock_guard lock(mutex);
  if (--networks[network] == 0) networks.erase(network);
  closed.notify_all();
}

void Server::Impl::post_all(const std::function<void(Worker&)>& call) {
  for (const auto& worker : workers) {
    std::promise<void> done;
    worker->loop->post([&] {
      call(*worker);
      done.set_value();
    });
    done.get_future().wait();
  }
}

void Server::Impl::stop_accepting() {
  service->draining = true;
  std::promise<void> done;
  workers[0]->loop->post([&] {
    accepting = false;
    listener.close();
    done.set_value();
  });
  done.get_future().wait();
}

void Server::Impl::close_all() {
  post_all(
      [](Worker& worker) { worker.for_each([](Connection& connection) { connection.close(); }); });
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Router router, ApiKeys keys,
                                              std::shared_ptr<AccessLog> log) {
  const bool tls = !options.tls_cert.empty() || !options.tls_key.empty();
  if (tls && (options.tls_cert.empty() || options.tls_key.empty()))
    return fail(Errc::usage, "TLS needs both --tls-cert and --tls-key");
  const bool local = !options.unix_socket.empty();
  if (!local)
    RETURN_IF_ERROR(check_exposure(options.host, !keys.empty(), tls, options.behind_tls_proxy));
  std::shared_ptr<TlsContext> context;
  if (tls) {
    auto read = TlsContext::read(options.tls_cert, options.tls_key);
    RETURN_IF_ERROR(read);
    context = std::move(*read);
  }
  auto listener = local ? Listener::listen_unix(options.unix_socket)
                        : Listener::listen(options.host, options.port);
  RETURN_IF_ERROR(listener);
  auto service = std::make_shared<Service>();
  service->limits = options.limits;
  service->limits.connections = raise_descriptor_limit(options.limits.connections);
  // One address stands for all clients there.
  if (local || loopback(options.host) || options.behind_tls_proxy)
    service->limits.connections_per_address = SIZE_MAX;
  service->port = listener->port();
  service->loopback_names_only =
      keys.empty() && !local && loopback(options.host) && !options.behind_tls_proxy;
  service->router = std::move(router);
  service->keys = std::move(keys);
  service->log = std::move(log);
  auto impl = std::make_unique<Impl>(std::move(*listener), std::move(service), std::move(context));
  impl->start(std::max(1, options.threads));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() {
  impl_->stop_accepting();
  impl_->close_all();
  for (const auto& worker : impl_->workers) worker->loop->stop();
  if (impl_->service->log != nullptr) impl_->service->log->flush();
}

int Server::port() const {
  return impl_->listener.port();
}

std::string Server::url() const {
  if (impl_->listener.port() == 0) return impl_->listener.address();
  return cat(impl_->tls != nullptr ? "https://" : "http://", impl_->listener.address());
}

ServerCounts Server::counts() const {
  const Service& service = *impl_->service;
  return {.connections = service.connections,
          .requests = service.requests,
          .refused = service.refused,
          .malformed = service.malformed,
          .timeouts = service.timeouts,
          .slow = service.slow,
          .gave_way = service.gave_way,
          .body_bytes = *service.body_bytes,
          .open = service.open,
          .active = service.active};
}

bool Server::drain(std::chrono::milliseconds deadline) {
  impl_->stop_accepting();
  impl_->post_all(
      [](Worker& worker) { worker.for_each([](Connection& connection) { connection.drain(); }); });
  bool ended = false;
  {
    std::unique_lock lock(impl_->mutex);
    ended = impl_->closed.wait_for(lock, deadline, [&] { return impl_->service->open == 0; });
  }
  impl_->close_all();
  return ended;
}

}  // namespace troupe::launch::serve::http
