// Benchmark of hub and spoke: tensors of 1 MiB and messages of 64 bytes from a spoke to its hub,
// through frames, codec, credit and refusals, compared with a bare ROUTER and DEALER with the same
// CURVE settings, alternately, in one run: each pair is measured back to back. `transport [PAIRS]`
// prints wall-clock rates, the processor time of all threads, and the ratios; the last line is one
// JSON object. On a loaded machine the ratio of processor times varies less.
#include <zmq.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/clock.h"
#include "engine/base/json/json.h"
#include "engine/base/memory/shared_array.h"
#include "engine/base/text/text.h"
#include "transports/zmq/hub.h"
#include "transports/zmq/spoke.h"

namespace {

using namespace troupe;  // NOLINT: a program of one page
using namespace troupe::transports;
using benchmarks::median;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t tensor_bytes = 1 << 20, small_bytes = 64;

struct Load {
  const char* name;
  std::size_t bytes;
  int messages;
};

/// Messages per second of wall-clock time and of this process's processor time.
struct Rates {
  double wall, cpu;
};

class Stopwatch {
 public:
  Rates rates(int messages) const {
    return {messages / Seconds(std::chrono::steady_clock::now() - began_).count(),
            messages / (static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC)};
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::clock_t cpu_ = std::clock();
};

/// Both ends of a bare connection; one thread receives, another sends.
class Bare {
 public:
  Bare()
      : receiver_(context_, zmq::socket_type::router), sender_(sending_, zmq::socket_type::dealer) {
    const KeyPair hub = new_keys(), spoke = new_keys();
    for (zmq::socket_t* socket : {&receiver_, &sender_}) {
      socket->set(zmq::sockopt::sndhwm, 0);
      socket->set(zmq::sockopt::rcvhwm, 0);
      socket->set(zmq::sockopt::linger, 0);
    }
    receiver_.set(zmq::sockopt::curve_server, 1);
    receiver_.set(zmq::sockopt::curve_secretkey, hub.secret_key);
    sender_.set(zmq::sockopt::curve_serverkey, hub.public_key);
    sender_.set(zmq::sockopt::curve_publickey, spoke.public_key);
    sender_.set(zmq::sockopt::curve_secretkey, spoke.secret_key);
    receiver_.bind("tcp://127.0.0.1:*");
    sender_.connect(receiver_.get(zmq::sockopt::last_endpoint));
    once({"first", 1, 1});
  }
  Rates once(const Load& load) {
    const std::vector<char> data(load.bytes, 'x');
    const Stopwatch watch;
    std::thread sending([&] {
      for (int i = 0; i < load.messages; ++i)
        sender_.send(
            zmq::message_t(const_cast<char*>(data.data()), data.size(), [](void*, void*) {}),
            zmq::send_flags::none);
    });
    zmq::message_t route, message;
    for (int i = 0; i < load.messages; ++i) {
      static_cast<void>(receiver_.recv(route));
      static_cast<void>(receiver_.recv(message));
    }
    sending.join();
    return watch.rates(load.messages);
  }

 private:
  zmq::context_t context_, sending_;
  zmq::socket_t receiver_, sender_;
};

class Ours {
 public:
  Ours() {
    const KeyPair hub = new_keys(), spoke = new_keys();
    LinkOptions link;
    link.on_peer = [this](const PeerEvent& event) {
      joined_ += event.what == PeerEvent::What::joined;
    };
    hub_ = value_or_throw(
        Hub::bind({"hub", {"tcp://127.0.0.1:*"}, hub, {{spoke.public_key, "spoke"}}, link}));
    spoke_ = value_or_throw(
        Spoke::create({"spoke", "hub", hub_->endpoints()[0], spoke, hub.public_key, link}));
    hub_->attach("hub", [this](Frame frame) {
      bytes_ += frame.body.take<SharedArray<char>>()->size();
      if (++come_ == expected_) come_.notify_one();
    });
    hub_->open();
    spoke_->open();
    while (joined_ < 2) std::this_thread::yield();
  }
  Rates once(const Load& load) {
    const SharedArray<char> data(std::make_shared<const std::vector<char>>(load.bytes, 'x'));
    come_ = 0;
    expected_ = load.messages;
    const Stopwatch watch;
    for (int i = 0; i < load.messages; ++i) {
      // Replies, so that no ask is left waiting.
      if (!spoke_->send(
              {{"hub", "actor"}, {"spoke", "actor"}, ++id_, Kind::reply, "bench", Body::of(data)}))
        std::abort();
    }
    for (int come = come_; come != load.messages; come = come_) come_.wait(come);
    return watch.rates(load.messages);
  }

 private:
  std::atomic<int> joined_ = 0, come_ = 0, expected_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
  std::uint64_t id_ = 0;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<Spoke> spoke_;
};

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  Bare bare;
  Ours ours;
  Json results = Json::Array{};
  for (const Load& load : {Load{"tensor of 1 MiB", tensor_bytes, 100},
                           Load{"message of 64 bytes", small_bytes, 20000}}) {
    std::vector<double> bare_rates, our_rates, ratios, cpu_ratios;
    for (int i = 0; i < pairs; ++i) {
      const bool ours_first = i % 2 == 1;
      const Rates first = ours_first ? ours.once(load) : bare.once(load);
      const Rates second = ours_first ? bare.once(load) : ours.once(load);
      const Rates& mine = ours_first ? first : second;
      const Rates& theirs = ours_first ? second : first;
      our_rates.push_back(mine.wall);
      bare_rates.push_back(theirs.wall);
      ratios.push_back(mine.wall / theirs.wall);
      cpu_ratios.push_back(mine.cpu / theirs.cpu);
    }
    std::printf(
        "%-20s bare %8.0f/s  hub and spoke %8.0f/s  ratio %.3f (%.3f to %.3f); by processor time "
        "%.3f; medians of %d pairs\n",
        load.name, median(bare_rates), median(our_rates), median(ratios),
        *std::ranges::min_element(ratios), *std::ranges::max_element(ratios), median(cpu_ratios),
        pairs);
    Json one = Json::Object{};
    one.set("name", load.name)
        .set("value", median(our_rates))
        .set("unit", "messages/s")
        .set("ceiling", median(bare_rates));
    results.array().push_back(
        std::move(one.set("ratio", median(ratios)).set("cpu_ratio", median(cpu_ratios))));
  }
  std::printf("%s\n", Json(Json::Object{})
                          .set("benchmark", "transport")
                          .set("results", std::move(results))
                          .dump()
                          .c_str());
}
