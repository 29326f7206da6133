// Threads that read requests: clients take turns, and work that nobody waits for ends.
#include "launch/serve/api/workers.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "engine/base/text/text.h"
#include "engine/base/threads/cancellation.h"
#include "tests/launch/serve/posted_request.h"

namespace troupe::launch::serve::api {
namespace {

using std::chrono::milliseconds;

struct WorkerCall : PostedRequest {
  using PostedRequest::PostedRequest;
  void post_to(serve::api::Workers& workers, serve::api::Workers::Task task) {
    workers.post(request, responder(), std::move(task));
  }
};

void answer(const serve::http::Request&, const serve::http::Responder& to) {
  to.respond({});
}

/// A task that holds its thread until `end` is set, or its work is cancelled.
struct Held {
  std::promise<void> started;
  std::atomic<bool> end = false;
  std::optional<Errc> ended_with;
  serve::api::Workers::Task task() {
    return [this](const serve::http::Request&, const serve::http::Responder& to) {
      started.set_value();
      while (!end) {
        if (auto going = check_cancelled(); !going) {
          ended_with = going.error().code;
          throw Failure(going.error());
        }
      }
      to.respond({});
    };
  }
  void wait() { started.get_future().wait(); }
};

constexpr serve::api::Workers::Limits one_thread{.threads = 1, .threads_per_client = 1};

TEST(Workers, ClientsTakeTurns) {
  serve::api::Workers workers(one_thread);
  Held held;
  WorkerCall first("mallory");
  first.post_to(workers, held.task());
  held.wait();
  std::vector<std::string> order;  // of the only thread
  std::vector<std::unique_ptr<WorkerCall>> calls;
  const auto add = [&](const std::string& key) {
    calls.push_back(std::make_unique<WorkerCall>(key));
    calls.back()->post_to(
        workers, [&order](const serve::http::Request& from, const serve::http::Responder& to) {
          order.push_back(from.key);
          to.respond({});
        });
  };
  for (int i = 0; i < 100; ++i) add("mallory");
  for (const char* key : {"alice", "alice", "bob"}) add(key);
  held.end = true;
  for (const auto& call : calls) EXPECT_EQ(call->status(), 200);
  const std::vector<std::string> begin(order.begin(), order.begin() + 6);
  EXPECT_EQ(begin,
            (std::vector<std::string>{"mallory", "alice", "bob", "mallory", "alice", "mallory"}));
}

TEST(Workers, OneClientLeavesAThreadToOthers) {
  serve::api::Workers workers({.threads = 3, .threads_per_client = 2});
  Held first, second, third;
  WorkerCall one("mallory"), two("mallory"), three("mallory"), honest("alice");
  one.post_to(workers, first.task());
  two.post_to(workers, second.task());
  first.wait();
  second.wait();
  three.post_to(workers, third.task());
  honest.post_to(workers, answer);
  EXPECT_EQ(honest.status(), 200);
  EXPECT_EQ(three.exchange->status(), 0);
  first.end = second.end = third.end = true;
  EXPECT_EQ(three.status(), 200);
}

TEST(Workers, WithoutKeysConnectionsTakeTurns) {
  serve::api::Workers workers({.threads = 2, .threads_per_client = 1});
  Held held;
  WorkerCall mine(""), other("");
  other.request.client = "127.0.0.1:2";
  mine.post_to(workers, held.task());
  held.wait();
  other.post_to(workers, answer);
  EXPECT_EQ(other.status(), 200);
  held.end = true;
  EXPECT_EQ(mine.status(), 200);
}

TEST(Workers, WorkEndsWhenItsClientHasGone) {
  serve::api::Workers workers(one_thread);
  Held held;
  WorkerCall gone("mallory"), next("alice");
  gone.post_to(workers, held.task());
  held.wait();
  next.post_to(workers, answer);
  gone.exchange->disconnect();
  EXPECT_EQ(next.status(), 200);
  EXPECT_EQ(held.ended_with, Errc::cancelled);
}

TEST(Workers, AWaitingRequestWhoseClientHasGoneIsDropped) {
  serve::api::Workers workers(one_thread);
  Held held;
  WorkerCall first("mallory"), gone("bob", std::string(1 << 20, 'a')), next("alice");
  const auto total = std::make_shared<std::atomic<std::size_t>>(0);
  gone.request.held = std::make_shared<serve::http::HeldBytes>(total);
  gone.request.held->grow_to(1 << 20);
  first.post_to(workers, held.task());
  held.wait();
  std::atomic<bool> ran = false;
  gone.post_to(workers,
               [&](const serve::http::Request&, const serve::http::Responder&) { ran = true; });
  gone.request = {};
  EXPECT_EQ(*total, std::size_t{1} << 20);
  gone.exchange->disconnect();
  EXPECT_EQ(*total, 0u) << "its body is kept until its turn";
  next.post_to(workers, answer);
  held.end = true;
  EXPECT_EQ(next.status(), 200);
  EXPECT_FALSE(ran);
}

TEST(Workers, ARequestHasADeadline) {
  serve::api::Workers workers({.threads = 1, .deadline = milliseconds(50)});
  Held held;
  WorkerCall slow("mallory"), waits("alice");
  slow.post_to(workers, held.task());
  held.wait();
  waits.post_to(workers, answer);
  EXPECT_EQ(slow.status(), 503);
  EXPECT_EQ(held.ended_with, Errc::timeout);
  const int status = waits.status();  // at once, or too late: never nothing
  EXPECT_TRUE(status == 200 || status == 503) << status;
}

TEST(Workers, AcceptedWorkWithoutADeadlineIsDone) {
  serve::api::Workers workers({.threads = 1, .deadline = milliseconds(0)});
  Held held, waiting;
  WorkerCall first("admin"), second("admin");
  first.post_to(workers, held.task());
  held.wait();
  second.post_to(workers, waiting.task());
  first.exchange->disconnect();
  second.exchange->disconnect();
  held.end = true;
  waiting.wait();
  waiting.end = true;
  EXPECT_FALSE(held.ended_with);
}

TEST(Workers, TooManyWaitingRequestsAreRefusedByClient) {
  serve::api::Workers workers({.threads = 1, .waiting = 4});
  Held held;
  WorkerCall first("mallory");
  first.post_to(workers, held.task());
  held.wait();
  std::vector<std::unique_ptr<WorkerCall>> calls;
  for (const char* key : {"mallory", "mallory", "mallory", "alice", "bob", "carol"}) {
    calls.push_back(std::make_unique<WorkerCall>(key));
    calls.back()->post_to(workers, answer);
  }
  EXPECT_EQ(calls[2]->status(), 429) << "more than half of the places";
  EXPECT_EQ(calls[5]->status(), 429) << "more than there are";
  held.end = true;
  for (const int i : {0, 1, 3, 4}) EXPECT_EQ(calls[static_cast<std::size_t>(i)]->status(), 200);
}

TEST(Workers, TheEndCancelsWhatRunsAndDropsWhatWaits) {
  Held held;
  WorkerCall running("mallory"), waiting("alice");
  std::atomic<bool> ran = false;
  {
    serve::api::Workers workers(one_thread);
    running.post_to(workers, held.task());
    held.wait();
    waiting.post_to(
        workers, [&](const serve::http::Request&, const serve::http::Responder&) { ran = true; });
  }
  EXPECT_EQ(held.ended_with, Errc::cancelled);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace troupe::launch::serve::api
