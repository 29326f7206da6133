// Benchmark of the HTTP server with a stub in place of the engine, by a load generator in the same
// process. `serve --stub` and
//   --connections N          a closed loop over N connections (64): value in requests/s
//   --limit L --offered R    the stub finishes L requests/s and holds a queue of L/20; R are
//                            offered in an open loop: value in requests/s that were answered
//   --streams N              N streams at once, of 50 events each at 10 events/s: value in events/s
//   --seconds S              duration of the loops (5)
//   --threads N              threads of the server (2)
//   --target PORT            any other server at 127.0.0.1:PORT instead, by a closed loop of GET /
// Without --stub and --target: the server with a model (serve_engine.h). The last line is one JSON
// object.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/serve_engine.h"
#include "benchmarks/support/http_load.h"
#include "benchmarks/support/program.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "launch/serve/http/server.h"

namespace {

using namespace troupe;  // NOLINT: a program of one page
using namespace troupe::benchmarks;
namespace http = troupe::launch::serve::http;
using Clock = std::chrono::steady_clock;

constexpr int events_per_stream = 50;
constexpr std::chrono::milliseconds event_period{100};
constexpr std::string_view completion =
    R"({"id":"cmpl-0","object":"text_completion","created":0,"model":"stub","choices":[{"index":0,)"
    R"("text":" a stub that answers every prompt with this text","logprobs":null,"finish_reason":)"
    R"("length"}],"usage":{"prompt_tokens":8,"completion_tokens":8,"total_tokens":16}})";

/// Calls what is queued at fixed times on a thread of its own.
class StubEngine {
 public:
  StubEngine(double rate, std::size_t queue)
      : period_(
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate))),
        queue_limit_(queue),
        thread_([this] { run(); }) {}
  ~StubEngine() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  /// False if the queue is full.
  bool submit(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= queue_limit_) return false;
    queue_.push_back(std::move(work));
    changed_.notify_all();
    return true;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    auto next = Clock::now();
    while (!stopping_) {
      if (queue_.empty()) {
        changed_.wait(lock);
        next = std::max(next, Clock::now());
        continue;
      }
      next += period_;
      changed_.wait_until(lock, next, [this] { return stopping_; });
      if (stopping_) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  const Clock::duration period_;
  const std::size_t queue_limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Sends an event to every stream in each period.
class StubStreams {
 public:
  StubStreams() : thread_([this] { run(); }) {}
  ~StubStreams() {
    stopping_ = true;
    thread_.join();
  }
  void add(http::Responder responder) {
    responder.begin_stream();
    const std::lock_guard lock(mutex_);
    streams_.push_back({std::move(responder), 0});
  }

 private:
  struct Stream {
    http::Responder responder;
    int sent;
  };
  void run() {
    for (auto next = Clock::now(); !stopping_; next += event_period) {
      std::this_thread::sleep_until(next);
      const std::lock_guard lock(mutex_);
      for (Stream& stream : streams_) {
        stream.responder.send_event(completion);
        if (++stream.sent == events_per_stream) stream.responder.end_stream();
      }
      std::erase_if(streams_, [](const Stream& s) { return s.sent == events_per_stream; });
    }
  }

  std::mutex mutex_;
  std::vector<Stream> streams_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

using Flags = std::map<std::string, double>;

double flag(const Flags& flags, const std::string& name, double otherwise) {
  const auto found = flags.find(name);
  return found == flags.end() ? otherwise : found->second;
}

http::Response answer() {
  return {.body = std::string(completion)};
}

http::Handler limited_by(StubEngine& engine) {
  return [&engine](http::Request, http::Responder responder) {
    if (engine.submit([responder] { responder.respond(answer()); })) return;
    http::Response refusal = http::error_response(429, {.message = "the queue is full"});
    refusal.headers = {{"Retry-After", "1"}};
    responder.respond(std::move(refusal));
  };
}

std::string request_to(const std::string& path) {
  const std::string body = R"({"model":"stub","prompt":"one two three four","max_tokens":8})";
  return cat("POST ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n",
             "Content-Length: ", body.size(), "\r\n\r\n", body);
}

/// The figures of a run as a JSON object; prints them as a line, too.
Json report(const HttpResult& result, double value, const char* unit) {
  const double p50 = quantile(result.ok, 0.5), p99 = quantile(result.ok, 0.99);
  say(cat(to_text(value, 0), " ", unit, ", p50 ", to_text(p50, 2), " ms, p99 ", to_text(p99, 2),
          " ms, ", result.failed, " failed"));
  return Json(Json::Object{})
      .set("benchmark", "serve")
      .set("value", value)
      .set("unit", unit)
      .set("p50_ms", p50)
      .set("p99_ms", p99)
      .set("failed", result.failed);
}

Result<Json> closed_loop(const Flags& flags, HttpLoad load) {
  load.connections = static_cast<int>(flag(flags, "--connections", 64));
  const auto result = run_load(load);
  RETURN_IF_ERROR(result);
  return report(*result, static_cast<double>(result->ok.size()) / result->seconds, "requests/s")
      .set("connections", load.connections);
}

Result<Json> open_loop(const Flags& flags, HttpLoad load) {
  load.connections = static_cast<int>(flag(flags, "--connections", 256));
  load.rate = flag(flags, "--offered", 5000);
  load.request = request_to("/limited");
  const double limit = flag(flags, "--limit", 500);
  const auto result = run_load(load);
  RETURN_IF_ERROR(result);
  const double rate = static_cast<double>(result->ok.size()) / result->seconds;
  const double refused_ms = quantile(result->refused, 0.99);
  say(cat(result->refused.size(), " refused with 429, p99 ", to_text(refused_ms, 2), " ms, ",
          result->with_retry_after, " with Retry-After"));
  return report(*result, rate, "requests/s")
      .set("goodput", rate / limit)
      .set("refused", static_cast<std::int64_t>(result->refused.size()))
      .set("with_retry_after", result->with_retry_after)
      .set("refused_p99_ms", refused_ms);
}

Result<Json> streams(const Flags& flags, HttpLoad load) {
  load.connections = static_cast<int>(flag(flags, "--streams", 1024));
  load.max_requests = load.connections;
  load.seconds = 60;
  load.request = request_to("/stream");
  const auto result = run_load(load);
  RETURN_IF_ERROR(result);
  return report(*result, static_cast<double>(result->events) / result->seconds, "events/s")
      .set("streams", load.connections)
      .set("complete", result->events == std::int64_t{events_per_stream} * load.connections);
}

Result<Json> measure(const Flags& flags) {
  HttpLoad load{.seconds = flag(flags, "--seconds", 5), .request = request_to("/v1/completions")};
  if (flags.contains("--target")) {
    load.port = static_cast<int>(flag(flags, "--target", 0));
    load.request = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    return closed_loop(flags, load);
  }
  const double limit = flag(flags, "--limit", 500);
  StubEngine engine(limit, static_cast<std::size_t>(limit / 20) + 1);
  StubStreams events;
  http::Router router;
  router
      .add({"POST", "/v1/completions",
            [](http::Request, http::Responder responder) { responder.respond(answer()); }})
      .add({"POST", "/limited", limited_by(engine)})
      .add({"POST", "/stream",
            [&](http::Request, http::Responder responder) { events.add(std::move(responder)); }});
  auto server = http::Server::start({.threads = static_cast<int>(flag(flags, "--threads", 2))},
                                    std::move(router), {}, nullptr);
  RETURN_IF_ERROR(server);
  load.port = (*server)->port();
  if (flags.contains("--streams")) return streams(flags, load);
  return flags.contains("--offered") ? open_loop(flags, load) : closed_loop(flags, load);
}

int usage() {
  std::fputs(
      "usage: serve --stub [--connections N] [--limit L --offered R] [--streams N] [--seconds S] "
      "[--threads N] [--target PORT]\n       serve --shape a|b|c [--dtype f32|bf16] [--batch N] "
      "[--rounds N] [--threads N]\n",
      stderr);
  return 2;
}

}  // namespace

int main(int count, char** words) {
  const bool only_http = std::any_of(words, words + count, [](std::string_view word) {
    return word == "--stub" || word == "--target";
  });
  if (!only_http) return serve_engine(count, words);
  Flags flags;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--stub") continue;
    const bool known = word == "--connections" || word == "--limit" || word == "--offered" ||
                       word == "--streams" || word == "--seconds" || word == "--threads" ||
                       word == "--target";
    if (!known || i + 1 == count) return usage();
    flags[word] = std::atof(words[++i]);
    if (flags[word] <= 0) return usage();
  }
  const auto result = measure(flags);
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().what.c_str());
    return 1;
  }
  std::printf("%s\n", result->dump().c_str());
  return result->find("failed")->integer() == 0 ? 0 : 1;
}
