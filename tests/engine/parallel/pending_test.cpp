// Non-blocking operations on every implementation but MPI (tests/mp), and their errors.
#include "engine/parallel/pending.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/parallel/all_reduce.h"
#include "engine/parallel/profiled_communicator.h"
#include "tests/support/hostile.h"
#include "tests/support/on_ranks.h"
#include "tests/support/operation_oracle.h"

namespace troupe::engine::parallel {
namespace {

using test::on_ranks;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::span<std::byte> bytes_in(auto& values) {
  return std::as_writable_bytes(std::span(values));
}

class NoSpans final : public Spans {
 public:
  bool recording() override { return true; }
  void begin(SpanStart) override { ++open; }
  void end() noexcept override { --open; }
  bool wants_shapes() const override { return false; }
  int open = 0;
};

TEST(Pending, OperationsOfOneRankEqualPlainLoops) {
  OneRank alone;
  EXPECT_EQ(test::wrong_operation(alone), "");
}

TEST(Pending, OperationsOfThreadsEqualPlainLoops) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    on_ranks(ranks, [](Communicator& group) { EXPECT_EQ(test::wrong_operation(group), ""); });
}

TEST(Pending, OperationsOfSplitGroupsEqualPlainLoops) {
  on_ranks(6, [](Communicator& world) {
    const auto part = world.split(world.rank() % 2, -world.rank());
    EXPECT_EQ(test::wrong_operation(*part), "");
  });
}

TEST(Pending, DelaysChangeNoByte) {
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    on_ranks(4, [seed](Communicator& group) {
      const auto late = make_hostile(group.split(0, group.rank()), {.seed = seed, .max_yields = 4});
      EXPECT_EQ(test::wrong_operation(*late), "");
    });
}

TEST(Pending, AProfileChangesNoByteAndItsSpansNest) {
  on_ranks(3, [](Communicator& group) {
    NoSpans spans;
    const auto profiled = make_profiled(group.split(0, group.rank()), spans);
    EXPECT_EQ(test::wrong_operation(*profiled), "");
    EXPECT_EQ(spans.open, 0);
  });
}

TEST(Pending, WaitsDoNotDependOnWhatOtherRanksDoAfterTheStart) {
  // Rank 0 waits for the gathering before it sends; rank 1 receives before it waits.
  on_ranks(2, [](Communicator& group) {
    std::vector<int> mine{group.rank()}, all(2), message{7};
    const std::vector<std::size_t> counts(2, sizeof(int));
    Pending gathering =
        group.start_all_gather(bytes_in(mine), bytes_in(all), counts, "a gathering");
    if (group.rank() == 0) {
      gathering.wait();
      group.send(bytes_in(message), 1, "a message");
    } else {
      group.receive(bytes_in(message), 0, "a message");
      gathering.wait();
    }
    EXPECT_EQ(all, (std::vector<int>{0, 1}));
  });
}

TEST(Pending, SendAndReceiveBlock) {
  on_ranks(3, [](Communicator& group) {
    std::vector<int> value{10 * group.rank()};
    if (group.rank() > 0) group.receive(bytes_in(value), group.rank() - 1, "a token");
    value[0] += 1;
    if (group.rank() < 2) group.send(bytes_in(value), group.rank() + 1, "a token");
    EXPECT_EQ(value[0], group.rank() + 1);
  });
}

/// The message with which `call` fails, as a Failure or a Bug.
std::string message_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Pending, AHandleThatIsDestroyedUnwaitedIsABugThatNamesTheOperationOnEveryRank) {
  std::atomic<int> told = 0;
  on_ranks(3, [&](Communicator& group) {
    std::vector<float> values(6, 1), part(2);
    const std::vector<std::size_t> counts(3, 2);
    EXPECT_THROW(
        {
          Pending mine = group.start_reduce_scatter(values, counts, part, "gradients of step 7");
          if (group.rank() == 1) {
            { const Pending dropped = std::move(mine); }
            barrier(group, "the next operation");
          }
          mine.wait();
          barrier(group, "the next operation");
        },
        Bug);
    const std::string message = message_of([&] { barrier(group, "later"); });
    EXPECT_THAT(message, AllOf(HasSubstr("rank 1: 'gradients of step 7' was started"),
                               HasSubstr("destroyed before it was waited for")));
    ++told;
  });
  EXPECT_EQ(told, 3);
  OneRank alone;
  std::vector<int> value{1}, copy(1);
  {
    const std::vector<std::size_t> counts{sizeof(int)};
    const auto unused =
        alone.start_all_gather(bytes_in(value), bytes_in(copy), counts, "a gathering");
  }
  EXPECT_THAT(message_of([&] { barrier(alone, "later"); }),
              HasSubstr("'a gathering' was started, but its handle"));
}

TEST(Pending, AnExceptionThatUnwindsAHandleLeavesTheGroupUsable) {
  on_ranks(2, [](Communicator& group) {
    std::vector<int> mine{group.rank()}, all(2);
    const std::vector<std::size_t> counts(2, sizeof(int));
    try {
      Pending gathering =
          group.start_all_gather(bytes_in(mine), bytes_in(all), counts, "a gathering");
      if (group.rank() == 0) throw Failure(Error{Errc::io, "the disk is full"});
      gathering.wait();
    } catch (const Failure& failure) {
      EXPECT_EQ(group.rank(), 0) << failure.what();
    }
    EXPECT_EQ(all, (std::vector<int>{0, 1}));
    barrier(group, "the next operation");
  });
}

TEST(Pending, ADeadlineOfAWaitNamesTheOperationOnEveryRank) {
  on_ranks(3, [](Communicator& group) {
    std::vector<int> mine{1}, all(3), mail(1);
    const std::vector<std::size_t> counts(3, sizeof(int));
    const std::string message = message_of([&] {
      if (group.rank() == 2) {  // never starts it, and hears why the group ended
        group.receive(bytes_in(mail), 0, "mail");
      } else {
        group.start_all_gather(bytes_in(mine), bytes_in(all), counts, "weights of step 8")
            .wait(std::chrono::milliseconds(20));
      }
    });
    EXPECT_THAT(message, AllOf(HasSubstr("'weights of step 8'"), HasSubstr("waited 0.02 s")));
  });
}

TEST(Pending, SpansOfTheWrongSizeAreABug) {
  OneRank alone;
  ThreadGroup group(2);
  const auto rank = group.rank(0);
  std::vector<char> three(3), four(4);
  std::vector<float> values(4), part(2);
  const std::vector<std::size_t> one{4}, two{2, 2}, uneven{1, 3};
  const auto read = [](auto& from) { return std::as_bytes(std::span(from)); };
  EXPECT_THROW(alone.start_all_gather(read(three), bytes_in(four), one, "x"), Bug);
  EXPECT_THROW(rank->start_all_gather(read(three), bytes_in(four), two, "x"), Bug);
  EXPECT_THROW(rank->start_all_to_all(read(four), two, bytes_in(three), two, "x"), Bug);
  EXPECT_THROW(rank->start_reduce_scatter(values, uneven, part, "x"), Bug);
  EXPECT_THROW(rank->start_send(read(four), 2, "x"), Bug);
  EXPECT_THROW(rank->start_receive(bytes_in(four), -1, "x"), Bug);
}

TEST(Pending, ARankWithoutAPartnerDoesNotWaitForItself) {
  OneRank alone;
  std::vector<char> data(4);
  EXPECT_THAT(message_of([&] { alone.receive(bytes_in(data), 0, "activations"); }),
              AllOf(HasSubstr("'activations'"), HasSubstr("did not start the send")));
}

/// A schedule of three operations, all in flight, on one rank of three.
void schedule(Communicator& group) {
  const int next = (group.rank() + 1) % 3, previous = (group.rank() + 2) % 3;
  std::vector<float> values(9, 1), part(3);
  std::vector<char> mine(3, 'x'), all(9), blocks(9), theirs(9), sent(4), received(4);
  const std::vector<std::size_t> counts(3, 3);
  std::vector<Pending> started;
  started.push_back(group.start_reduce_scatter(values, counts, part, "gradients"));
  started.push_back(
      group.start_all_gather(std::as_bytes(std::span(mine)), bytes_in(all), counts, "weights"));
  started.push_back(group.start_all_to_all(std::as_bytes(std::span(blocks)), counts,
                                           bytes_in(theirs), counts, "heads"));
  started.push_back(group.start_receive(bytes_in(received), previous, "activations"));
  started.push_back(group.start_send(std::as_bytes(std::span(sent)), next, "activations"));
  for (Pending& one : started) one.wait();
  std::byte last{};  // without a deadline: the timeout of another rank is the first one
  group.broadcast_idle(std::span(&last, 1), 1, "the end of the step");
}

/// Runs the schedule with a fault of rank 1; every rank must fail and name one of the operations.
void expect_named_failure(const std::string& title, const HostileOptions& options) {
  std::atomic<int> failed = 0;
  on_ranks(3,
           [&](Communicator& group) {
             const auto own = make_hostile(group.split(0, group.rank()),
                                           group.rank() == 1 ? options : HostileOptions{});
             const std::string message = message_of([&] { schedule(*own); });
             EXPECT_THAT(message, ::testing::ContainsRegex("gradients|weights|heads|activations"))
                 << title;
             ++failed;
           },
           {.deadline = std::chrono::milliseconds(50)});
  EXPECT_EQ(failed, 3) << title;
}

TEST(Pending, EveryFaultOfEveryOperationIsNamedOnEveryRank) {
  for (std::int64_t call = 0; call < 5; ++call) {
    expect_named_failure(cat("lost ", call), {.lose_at = call});
    expect_named_failure(cat("shortened ", call), {.shorten_at = call});
  }
  // A receive and a send have no order between them.
  for (std::int64_t call = 0; call < 2; ++call)
    expect_named_failure(cat("exchanged ", call), {.swap_at = call});
}

TEST(Pending, ALateRankIsNamedByTheOthers) {
  for (std::int64_t call = 0; call < 5; ++call) {
    std::promise<void> over;
    const auto is_over = over.get_future().share();
    std::atomic<int> waiting = 2;
    on_ranks(3,
             [&](Communicator& group) {
               const bool late = group.rank() == 1;
               const auto own =
                   make_hostile(group.split(0, group.rank()),
                                {.stall_at = late ? call : -1, .stall = [&] { is_over.wait(); }});
               const std::string message = message_of([&] { schedule(*own); });
               EXPECT_THAT(message,
                           ::testing::ContainsRegex("gradients|weights|heads|activations"));
               EXPECT_THAT(message, HasSubstr(late ? "timed out in" : "rank"));
               if (!late && --waiting == 0) over.set_value();
             },
             {.deadline = std::chrono::milliseconds(50)});
  }
}

}  // namespace
}  // namespace troupe::engine::parallel
