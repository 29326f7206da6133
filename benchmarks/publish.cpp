// Benchmark of a transfer of weights: a publisher without an optimizer, two receivers and the
// process of the algorithm, connected by hub and spokes over ipc with CURVE, as in a cluster.
// `publish --parameters N [--format f32|bf16|delta] [--dtype f32|bf16] [--transport
// shared_memory|ipc] [--chunk-mib M] [--rounds R]`. Each round is a version after one step of AdamW
// at a learning rate of 1e-6. The last line is one JSON object: `gb_per_s` is the bytes of a copy
// as the receivers read it (f32) divided by the time from Publish until both receivers have
// verified it (the median of the rounds after the first, whose deltas have no base); `bytes_ratio`
// is the bytes in sockets divided by those of all values in `dtype`, for one transfer; memory is
// read while the receivers have the current and the prepared weights.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "actors/roles/weight_assembly.h"
#include "actors/runtime/node.h"
#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "algorithms/training/weight_stream.h"
#include "benchmarks/support/clock.h"
#include "engine/base/json/json.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "engine/ops/borrowed.h"
#include "transports/zmq/hub.h"
#include "transports/zmq/spoke.h"

namespace {

using namespace troupe;  // NOLINT: a program of one page
namespace protocol = actors::protocol;
using algorithms::WeightStream;
using engine::checkpoint::checksum;
using Clock = std::chrono::steady_clock;

constexpr std::array<const char*, 3> children{"publisher", "rollout-0", "rollout-1"};
constexpr double mib = 1 << 20;
constexpr std::size_t tensor_values = 1 << 18;

struct Settings {
  std::size_t parameters = 10'000'000;
  algorithms::WeightsConfig weights;
  bool bf16 = true;  ///< dtype
  int rounds = 4;
};

/// Weights of a normal distribution, and updates of the size of the learning rate, from tables: the
/// publisher holds no model.
class MadeWeights {
 public:
  explicit MadeWeights(bool bf16) : bf16_(bf16), values_(tensor_values), updates_(tensor_values) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - uniform(5, 1, i)));
      values_[i] = static_cast<float>(0.02 * radius * std::cos(6.283185307 * uniform(5, 2, i)));
      updates_[i] = static_cast<float>(1e-6 * (2 * uniform(5, 3, i) - 1));
    }
  }
  /// Calls each(values) for one tensor after the other.
  template <class Each>
  void write(std::uint64_t version, std::size_t count, const Each& each) const {
    const auto steps = static_cast<float>(version);
    std::vector<float> tensor(values_.size());
    for (std::size_t at = 0; at < count; at += tensor.size()) {
      for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = values_[i] - steps * updates_[i];
      if (bf16_)
        for (float& value : tensor) value = rounded(value);
      each(std::span(tensor).first(std::min(tensor.size(), count - at)));
    }
  }

 private:
  /// To the nearest bf16, ties to even, of a finite value.
  static float rounded(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
  }
  bool bf16_;
  std::vector<float> values_, updates_;
};

struct Publisher {
  using Handled = actors::Messages<protocol::Publish, protocol::ReadWeights>;
  std::size_t count;
  MadeWeights made;
  actors::roles::BaseWeights published = {}, before = {};

  protocol::Weights on(protocol::Publish message) {
    before = std::exchange(published, {});
    if (!message.keep_before) before = {};
    protocol::Weights weights{message.version, message.version, {}, {}, {}, count};
    if (message.shared_memory) {
      const std::shared_ptr<SharedMemory> memory =
          value_or_throw(SharedMemory::create(count * sizeof(float)));
      made.write(message.version, count, [&](std::span<const float> part) {
        weights.checksums.push_back(checksum(part));
        value_or_throw(memory->append(std::as_bytes(part)));
      });
      value_or_throw(memory->seal());
      weights.memory = memory->name();
      published.values = {memory, {reinterpret_cast<const float*>(memory->bytes().data()), count}};
    } else {
      const auto array = engine::ops::host_array(static_cast<std::int64_t>(count));
      auto into = array.values.begin();
      made.write(message.version, count, [&](std::span<const float> part) {
        weights.checksums.push_back(checksum(part));
        into = std::ranges::copy(part, into).out;
      });
      published.values = {array.owner, array.values};
    }
    published.version = message.version;
    return weights;
  }
  Result<protocol::WeightPart> on(protocol::ReadWeights message) {
    return actors::roles::weight_part(message, *published.values, before);
  }
};

/// A rollout's side, without a model: it verifies the values and keeps those in use.
struct Receiver {
  using Handled = actors::Messages<protocol::LoadWeights, protocol::MapWeights,
                                   protocol::PrepareWeights, protocol::CommitWeights>;
  actors::roles::WeightAssembly arriving;
  actors::roles::BaseWeights used = {}, prepared = {};

  Result<> on(protocol::LoadWeights message) { return arriving.load(message.part, used); }
  Result<> on(protocol::MapWeights message) { return arriving.map(message); }
  Result<std::vector<float>> on(protocol::PrepareWeights message) {
    auto values = arriving.take(message.weights.version);
    RETURN_IF_ERROR(values);
    std::size_t at = 0;
    for (const std::uint64_t expected : message.weights.checksums) {
      const std::size_t count = std::min(tensor_values, (*values)->size() - at);
      if (checksum((*values)->subspan(at, count)) != expected)
        return fail(Errc::corrupt, "weights arrived with other bytes than were sent");
      at += count;
    }
    prepared = {message.weights.version, std::move(*values)};
    return std::vector<float>();
  }
  void on(protocol::CommitWeights) { used = std::exchange(prepared, {}); }
};

/// What the processes know of each other; made before they are started.
struct Connection {
  std::string folder, endpoint;
  transports::KeyPair hub = transports::new_keys();
  std::array<transports::KeyPair, children.size()> keys{
      transports::new_keys(), transports::new_keys(), transports::new_keys()};
};

void serve(const Settings& settings, const Connection& at, std::size_t child, int until_closed) {
  auto spoke = value_or_throw(transports::Spoke::create(
      {children[child], "controller", at.endpoint, at.keys[child], at.hub.public_key, {}}));
  actors::ThreadScheduler scheduler;
  actors::Node node(children[child], scheduler, *spoke);
  if (child == 0)
    node.spawn("weights", Publisher{settings.parameters, MadeWeights(settings.bf16)});
  else
    node.spawn("weights", Receiver{actors::roles::WeightAssembly(settings.parameters)});
  spoke->open();
  char byte = 0;
  while (::read(until_closed, &byte, 1) > 0) continue;
  node.stop();
  spoke->close();
}

/// Memory of a process in MiB, from /proc/PID/smaps_rollup; shared pages count in parts.
struct Memory {
  double pss = 0, shared = 0;
};
Memory memory_of(pid_t process) {
  std::ifstream file(cat("/proc/", process, "/smaps_rollup"));
  Memory found;
  for (std::string word; file >> word;) {
    if (double kib = 0; word == "Pss:" && file >> kib) found.pss = kib / 1024;
    if (double kib = 0; word == "Pss_Shmem:" && file >> kib) found.shared = kib / 1024;
  }
  return found;
}

struct Measured {
  std::vector<double> seconds, bytes;
  std::vector<Memory> memory;  ///< of this process and the children, in the last round
};

actors::Task<void> rounds(actors::Node& node, const Settings& settings,
                          const std::vector<pid_t>& processes, Measured& out) {
  WeightStream stream({settings.weights, settings.parameters, settings.bf16});
  const WeightStream::Source publisher = node.ref({children[0], "weights"}, Publisher::Handled{});
  const auto rollouts = {node.ref({children[1], "weights"}, Receiver::Handled{}),
                         node.ref({children[2], "weights"}, Receiver::Handled{})};
  for (int round = 0; round < settings.rounds; ++round) {
    const auto began = Clock::now();
    const std::uint64_t bytes = stream.sent_bytes();
    auto fetching = stream.fetch(publisher, static_cast<std::uint64_t>(round));
    protocol::Weights weights = co_await fetching;
    std::vector<actors::Reply<std::vector<float>>> preparing;
    for (const auto& rollout : rollouts) {
      co_await stream.send(rollout, weights);
      protocol::PrepareWeights message{weights};
      message.weights.values = {};
      preparing.push_back(rollout.ask(std::move(message)));
    }
    for (auto& reply : preparing) co_await reply.get();
    out.seconds.push_back(std::chrono::duration<double>(Clock::now() - began).count());
    out.bytes.push_back(static_cast<double>(stream.sent_bytes() - bytes));
    out.memory.clear();
    for (const pid_t process : processes) out.memory.push_back(memory_of(process));
    for (const auto& rollout : rollouts) {
      protocol::CommitWeights message{weights.version};
      auto committing = rollout.ask(std::move(message));
      co_await committing.get();
      stream.committed(rollout.address(), weights);
    }
  }
}

Measured control(const Settings& settings, const Connection& at,
                 const std::vector<pid_t>& processes) {
  std::map<std::string, std::string> allowed;
  for (std::size_t i = 0; i < children.size(); ++i) allowed[at.keys[i].public_key] = children[i];
  std::atomic<std::size_t> joined = 0;
  transports::LinkOptions link;
  link.on_peer = [&](const transports::PeerEvent& event) {
    if (event.what == transports::PeerEvent::What::joined && ++joined == children.size())
      joined.notify_one();
  };
  auto hub = value_or_throw(
      transports::Hub::bind({"controller", {at.endpoint}, at.hub, std::move(allowed), link}));
  actors::ThreadScheduler scheduler;
  Measured out;
  {
    actors::Node node("controller", scheduler, *hub);
    hub->open();
    for (auto n = joined.load(); n < children.size(); n = joined.load()) joined.wait(n);
    actors::run(node, rounds(node, settings, processes, out));
  }
  hub->close();
  return out;
}

void report(const Settings& settings, const Measured& found) {
  const auto values = static_cast<double>(settings.parameters);
  const double bytes = values * (settings.bf16 ? 2 : 4), copy = values * 4 / mib;
  const std::vector<double> later(found.seconds.begin() + 1, found.seconds.end());
  const double seconds = benchmarks::median(later);
  double shared = 0, own = 0;
  Json pss = Json::Object{};
  for (std::size_t i = 0; i < found.memory.size(); ++i) {
    shared += found.memory[i].shared;
    own = std::max(own, found.memory[i].pss - found.memory[i].shared);
    pss.set(i == 0 ? "controller" : children[i - 1], found.memory[i].pss);
  }
  std::printf(
      "a transfer takes %.3f s; shared memory %.0f MiB (a copy in f32 has %.0f), beside it "
      "at most %.0f MiB in a process\n",
      seconds, shared, copy, own);
  Json line = Json::Object{};
  line.set("benchmark", "publish")
      .set("parameters", values)
      .set("format", std::string(name_of(settings.weights.format)))
      .set("dtype", settings.bf16 ? "bf16" : "f32")
      .set("transport", found.bytes.back() > 0 ? "ipc" : "shared_memory")
      .set("seconds", seconds)
      .set("gb_per_s", 4 * values / seconds / 1e9)
      .set("copies", shared / copy)
      .set("private_mib_max", own)
      .set("pss_mib", std::move(pss))
      .set("bytes_ratio", found.bytes.back() / (3 * bytes));
  std::printf("%s\n", line.dump().c_str());
}

Result<Settings> read_settings(int count, char** words) {
  Settings out;
  using protocol::WeightCoding;
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i], value = i + 1 < count ? words[i + 1] : "";
    const double number = std::strtod(value.c_str(), nullptr);
    const auto one_of = [&](const auto& names) {
      return std::ranges::find(names, value) - names.begin();
    };
    constexpr auto formats = names_of(WeightCoding());
    if (name == "--parameters" && number >= 1 && number <= 1e11)
      out.parameters = static_cast<std::size_t>(number);
    else if (name == "--rounds" && number >= 2 && number <= 1e6)
      out.rounds = static_cast<int>(number);
    else if (name == "--chunk-mib" && number >= 1 && number <= 1024)
      out.weights.chunk_mib = static_cast<std::int64_t>(number);
    else if (name == "--format" && one_of(formats) < std::ssize(formats))
      out.weights.format = static_cast<WeightCoding>(one_of(formats));
    else if (name == "--dtype" && (value == "f32" || value == "bf16"))
      out.bf16 = value == "bf16";
    else if (name == "--transport" && (value == "shared_memory" || value == "ipc"))
      out.weights.shared_memory = value == "ipc" ? algorithms::SharedMemoryUse::off
                                                 : algorithms::SharedMemoryUse::automatic;
    else
      return fail(Errc::usage,
                  cat("expected --parameters N, --format f32|bf16|delta, --dtype f32|bf16, "
                      "--transport shared_memory|ipc, --chunk-mib M or --rounds R (2 or more), "
                      "found ",
                      name, " ", value));
  }
  return out;
}

// Starts the children before this process has threads; they end when `until_closed` is closed.
std::vector<pid_t> start(const Settings& settings, const Connection& at,
                         std::array<int, 2> until_closed) {
  std::vector<pid_t> processes{::getpid()};
  for (std::size_t child = 0; child < children.size(); ++child) {
    const pid_t process = ::fork();
    if (process < 0) throw Failure({Errc::io, "cannot start a process"});
    if (process == 0) {
      ::close(until_closed[1]);
      serve(settings, at, child, until_closed[0]);
      ::_exit(0);
    }
    processes.push_back(process);
  }
  ::close(until_closed[0]);
  return processes;
}

int run(const Settings& settings) {
  Connection at;
  std::string folder = (std::filesystem::temp_directory_path() / "publish-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    throw Failure({Errc::io, cat(folder, ": cannot create a folder")});
  at.folder = folder;
  at.endpoint = cat("ipc://", folder, "/hub");
  std::array<int, 2> until_closed{};
  if (::pipe(until_closed.data()) != 0) throw Failure({Errc::io, "cannot create a pipe"});
  const auto processes = start(settings, at, until_closed);
  const Measured found = control(settings, at, processes);
  ::close(until_closed[1]);
  for (std::size_t i = 1; i < processes.size(); ++i) ::waitpid(processes[i], nullptr, 0);
  std::filesystem::remove_all(folder);
  report(settings, found);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto settings = read_settings(argc, argv);
  try {
    return run(value_or_throw(settings));
  } catch (const Failure& failure) {
    std::fprintf(stderr, "publish: %s\n", failure.error().what.c_str());
    return failure.error().code == Errc::usage ? 2 : 1;
  }
}
