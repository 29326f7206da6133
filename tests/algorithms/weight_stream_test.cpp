// WeightStream: what the receivers get is what was published, whatever the format, the size of the
// parts and the way; errors of one side end the transfer with their reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "actors/runtime/node.h"
#include "actors/runtime/run.h"
#include "actors/runtime/virtual_scheduler.h"
#include "algorithms/training/weight_stream.h"
#include "engine/base/random/random.h"
#include "transports/inproc/loopback.h"

namespace troupe::algorithms {
namespace {

namespace protocol = actors::protocol;
using actors::Task;
using actors::roles::BaseWeights, actors::roles::WeightAssembly;
using testing::HasSubstr;
using Values = std::vector<float>;

constexpr std::size_t count = 600'000;  // parts of 1 MiB have 262,144 values

Values values_of(std::uint64_t version) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(uniform(3, 1, i) -
                                   1e-6 * static_cast<double>(version) * uniform(3, 2, i));
  return values;
}

struct Source {
  using Handled = actors::Messages<protocol::Publish, protocol::ReadWeights>;
  std::size_t claims = count;  ///< values
  int unreadable = -1;         ///< number of the ReadWeights that fails
  BaseWeights published = {}, before = {};
  int reads = 0;

  protocol::Weights on(protocol::Publish message) {
    before = std::exchange(published, {});
    Values values = values_of(message.version);
    protocol::Weights weights{message.version, 0, {}, {}, {}, claims};
    if (!message.shared_memory) {
      published = {message.version, std::make_shared<const Values>(std::move(values))};
      return weights;
    }
    const std::shared_ptr<SharedMemory> memory =
        value_or_throw(SharedMemory::create(count * sizeof(float)));
    value_or_throw(memory->append(std::as_bytes(std::span(values))));
    value_or_throw(memory->seal());
    weights.memory = memory->name();
    published = {message.version,
                 {memory, {reinterpret_cast<const float*>(memory->bytes().data()), count}}};
    return weights;
  }
  Result<protocol::WeightPart> on(protocol::ReadWeights message) {
    if (reads++ == unreadable) return fail(Errc::internal, "the policy has ended");
    return actors::roles::weight_part(message, *published.values, before);
  }
};

/// What a receiver does, and what it got.
struct Behaviour {
  Errc refuses_memory = Errc::internal;  ///< internal: it does not
  int unloadable = -1;                   ///< number of the LoadWeights that fails
  int maps = 0, loads = 0;
  std::vector<protocol::WeightCoding> codings = {};
};

struct Sink {
  using Handled = actors::Messages<protocol::LoadWeights, protocol::MapWeights>;
  Behaviour* does;
  WeightAssembly arriving{count};
  BaseWeights used = {};

  Result<> on(protocol::LoadWeights message) {
    if (does->loads++ == does->unloadable) return fail(Errc::closed, "the rollout has ended");
    does->codings.push_back(message.part.coding);
    RETURN_IF_ERROR(arriving.load(message.part, used));
    if (message.part.first + message.part.count < count) return {};
    return take(message.part.version);
  }
  Result<> on(protocol::MapWeights message) {
    ++does->maps;
    if (does->refuses_memory != Errc::internal) return fail(does->refuses_memory, "no memory");
    RETURN_IF_ERROR(arriving.map(message));
    return take(message.version);
  }
  Result<> take(std::uint64_t version) {
    used = {version, value_or_throw(arriving.take(version))};
    const Values expected = values_of(version);
    if (std::ranges::equal(*used.values, expected)) return {};
    return fail(Errc::corrupt, cat("version ", version, " has other values"));
  }
};

struct WeightStreams : testing::Test {
  actors::VirtualScheduler scheduler;
  transports::Loopback transport;
  actors::Node node{"node", scheduler, transport};
  std::vector<Behaviour> does{2};
  Source source;
  int transfers = 0;
  WeightsConfig config{.chunk_mib = 1, .shared_memory = SharedMemoryUse::off};

  // Transfers versions 0 to `versions` - 1 to every receiver, and returns the bytes of the last.
  std::uint64_t transfer(int versions) {
    const auto from = node.spawn(cat("source", ++transfers), source);
    std::vector<WeightStream::Receiver> to;
    for (std::size_t i = 0; i < does.size(); ++i)
      to.push_back(node.spawn(cat("sink", transfers, "-", i), Sink{&does[i]}));
    WeightStream stream({config, count, false, std::chrono::minutes(1)});
    std::uint64_t bytes = 0;
    for (int version = 0; version < versions; ++version) {
      bytes = stream.sent_bytes();
      actors::run(node, once(stream, from, to, static_cast<std::uint64_t>(version)));
      bytes = stream.sent_bytes() - bytes;
    }
    return bytes;
  }
  static Task<void> once(WeightStream& stream, WeightStream::Source from,
                         const std::vector<WeightStream::Receiver>& to, std::uint64_t version) {
    auto fetching = stream.fetch(from, version);
    const protocol::Weights weights = co_await fetching;
    for (const auto& receiver : to) {
      co_await stream.send(receiver, weights);
      stream.committed(receiver.address(), weights);
    }
  }
  Error failure(int versions = 1) {
    try {
      transfer(versions);
    } catch (const Failure& failure) {
      return failure.error();
    }
    return {Errc::internal, "no failure"};
  }
};

TEST_F(WeightStreams, BringEveryVersionInPartsOfEverySize) {
  for (const std::int64_t mib : {1, 2, 64}) {
    config.chunk_mib = mib;
    does = std::vector<Behaviour>(2);
    EXPECT_EQ(transfer(2), 3 * count * sizeof(float));
    EXPECT_EQ(does[1].loads, mib == 64 ? 2 : mib == 2 ? 4 : 6);
  }
}

TEST_F(WeightStreams, SendTheDifferenceToTheVersionThatAReceiverHas) {
  config.format = protocol::WeightCoding::delta;
  EXPECT_LT(transfer(3), 3 * count * sizeof(float) * 7 / 10);
  const auto bf16 = protocol::WeightCoding::bf16, delta = protocol::WeightCoding::delta;
  EXPECT_THAT(does[0].codings,
              testing::ElementsAre(bf16, bf16, bf16, delta, delta, delta, delta, delta, delta))
      << "the first version has no base";
}

TEST_F(WeightStreams, SendNothingThroughSocketsWhereMemoryIsShared) {
  config.shared_memory = SharedMemoryUse::automatic;
  EXPECT_EQ(transfer(3), 0u);
  EXPECT_EQ(does[0].maps, 3);
  EXPECT_EQ(does[0].loads, 0);
}

TEST_F(WeightStreams, SendPartsToAReceiverThatDoesNotReachTheMemory) {
  config.shared_memory = SharedMemoryUse::automatic;
  does[1].refuses_memory = Errc::not_found;
  EXPECT_EQ(transfer(2), count * sizeof(float));
  EXPECT_EQ(does[0].maps, 2);
  EXPECT_EQ(does[1].maps, 1) << "it is not asked again";
  EXPECT_EQ(does[1].loads, 6);
}

TEST_F(WeightStreams, EndWithTheErrorOfAReceiverThatEndsMeanwhile) {
  does[1].unloadable = 1;
  EXPECT_THAT(failure().what, HasSubstr("the rollout has ended"));
  config.shared_memory = SharedMemoryUse::automatic;
  does[0].refuses_memory = Errc::closed;
  EXPECT_EQ(failure().code, Errc::closed) << "it is not unable, but gone";
}

TEST_F(WeightStreams, EndWithTheErrorOfAPolicyThatEndsMeanwhile) {
  source.unreadable = 2;
  EXPECT_THAT(failure().what, HasSubstr("the policy has ended"));
}

TEST_F(WeightStreams, RefuseAnotherNumberOfValuesThanTheModelHas) {
  source.claims = std::size_t{1} << 60;
  EXPECT_EQ(failure().code, Errc::bad_input);
  EXPECT_THAT(failure().what, HasSubstr("expected weights of 600000 values"));
}

}  // namespace
}  // namespace troupe::algorithms
