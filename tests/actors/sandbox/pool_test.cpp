// Processes that share the requests of a rule; the rule in combination with others; the examples of
// docs/rewards.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "actors/roles/rules/rules.h"
#include "engine/base/text/text.h"
#include "tests/actors/sandbox/marked.h"

namespace troupe::actors::rules {
namespace {

using sandbox::Isolation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Result<Rules> rules_of(std::string_view text) {
  return Rules::from_json(value_or_throw(parse_json(text, "test")), "reward");
}

std::vector<protocol::RewardResult> score(std::string_view text,
                                          const std::vector<protocol::RewardRequest>& requests) {
  const auto rules = value_or_throw(rules_of(text));
  value_or_throw(rules.start());
  return rules.score(requests);
}

// A rule that runs the hostile program; `more`: further options.
std::string rule(const std::string& mode, const std::string& more = "") {
  return cat(R"({"name": "command", "options": {"run": [")", TROUPE_HOSTILE, "\", \"", mode,
             R"(", "pool"], "timeout": 60, "startup": 60)", more, "}}");
}

class Pool : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto denied = sandbox::denied(Isolation::namespaces); !denied.empty())
      GTEST_SKIP() << "SKIP: " << denied;
  }
};

TEST_F(Pool, AnswersKeepTheOrderOfTheRequestsForAnyWorker) {
  std::vector<protocol::RewardRequest> requests;
  for (int i = 0; i < 20; ++i) requests.push_back({"", cat("slow", i), Json()});
  for (const char* workers :
       {", \"workers\": 1", ", \"workers\": 3", ", \"workers\": 2, \"fresh\": true"}) {
    const auto results = score(cat("[", rule("none", workers), "]"), requests);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(results[static_cast<std::size_t>(i)].reward, i) << workers;
  }
}

TEST_F(Pool, OneThatFailsDoesNotTouchItsNeighbours) {
  std::vector<protocol::RewardRequest> requests;
  for (int i = 0; i < 12; ++i)
    requests.push_back({"", i % 3 == 1 ? "bad" : cat("slow", i), Json()});
  const auto results = score(cat("[", rule("segfault", ", \"workers\": 2"), "]"), requests);
  for (std::size_t i = 0; i < 12; ++i) {
    if (i % 3 == 1) {
      EXPECT_FALSE(results[i].reward);
      EXPECT_EQ(
          results[i].failure,
          "command: crash: it was killed by signal 11 (Segmentation fault) without an answer");
    } else {
      EXPECT_EQ(results[i].reward, static_cast<double>(i));
    }
  }
}

TEST_F(Pool, ItsRewardIsWeightedAndItsPartsAreNamed) {
  const auto results =
      score(cat(R"([{"name": "exact_match", "weight": 2}, )", rule("with_parts"), "]"),
            {{"", "bad", "bad"}});
  EXPECT_EQ(results[0].reward, 2.5);
  EXPECT_THAT(results[0].parts, ElementsAre(Pair("exact_match", 1), Pair("command", 0.5),
                                            Pair("command/style", 0.25)));
}

TEST_F(Pool, AFailureLeavesTheOtherPartsAndNoReward) {
  const auto results = score(cat(R"([{"name": "exact_match"}, )", rule("nan"), "]"),
                             {{"", "bad", "bad"}, {"", "good", "bad"}});
  EXPECT_FALSE(results[0].reward);
  EXPECT_THAT(results[0].failure, HasSubstr("command: malformed: "));
  EXPECT_THAT(results[0].parts, ElementsAre(Pair("exact_match", 1)));
  EXPECT_EQ(results[1].reward, 1);
}

TEST_F(Pool, NoRequestsNeedNoAnswers) {
  EXPECT_TRUE(score(cat("[", rule("hang"), "]"), {}).empty());
}

TEST_F(Pool, AProgramThatCannotBeRunIsRefusedAtTheStart) {
  const auto why = [](const std::string& run) {
    const auto started =
        value_or_throw(rules_of(cat(R"([{"name": "command", "options": {"run": [)", run, "]}}]")))
            .start();
    return started ? "started" : started.error().what;
  };
  EXPECT_EQ(why("\"/no/such/program\""),
            "reward[0]: no program \"/no/such/program\" that may be run; tried /no/such/program");
  EXPECT_EQ(why("\"true\""), "started");
}

// Standard error of this process while `work` runs.
template <class Work>
std::string log_of(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
  return found;
}

std::string shell(const std::string& script, const std::string& more = "") {
  return cat(R"([{"name": "command", "options": {"run": ["sh", "-c", ")", script, "\"]", more,
             "}}]");
}

TEST_F(Pool, AProgramThatFailsAtItsStartShowsItsErrorOnce) {
  const std::vector<protocol::RewardRequest> many(20);
  std::string error;
  const std::string log = log_of([&] {
    try {
      score(shell("echo Traceback >&2; echo NameError >&2; exit 1", ", \"workers\": 2"), many);
    } catch (const Failure& failure) {
      error = failure.error().what;
    }
  });
  EXPECT_THAT(error, HasSubstr("failed 10 times without ever answering"));
  EXPECT_THAT(error, HasSubstr("NameError"));
  EXPECT_EQ(count(log, "Traceback"), 1u) << log;
  EXPECT_EQ(count(log, "NameError"), 1u) << log;
}

TEST_F(Pool, OtherErrorsOfAProgramAreShownToo) {
  const std::string log = log_of([&] {
    score(shell("read line; echo start >&2; case $line in *bad*) echo odd >&2; exit 1;; esac; "
                "echo '{\\\"id\\\":1,\\\"reward\\\":1}'",
                ", \"fresh\": true"),
          {{"", "good", Json()}, {"", "bad", Json()}, {"", "good", Json()}, {"", "bad", Json()}});
  });
  EXPECT_EQ(count(log, "worker 0: start"), 2u) << "with and without another line\n" << log;
  EXPECT_EQ(count(log, ": odd"), 1u) << log;
}

// Answers with the seconds at which it began and ended a completion, which takes 2 s unless it is
// "quick".
std::string timed(int workers) {
  return shell(
      "n=0; while read -r line; do n=$((n+1)); b=$(date +%s.%N); case $line in *quick*) ;; *) "
      "sleep 2;; esac; e=$(date +%s.%N); echo '{\\\"id\\\": '$n', \\\"reward\\\": 1, "
      "\\\"parts\\\": {\\\"began\\\": '1${b#?????}', \\\"ended\\\": '1${e#?????}'}}'; done",
      cat(", \"workers\": ", workers, ", \"timeout\": 60, \"startup\": 60"));
}

TEST_F(Pool, CallsShareTheProcesses) {
  const auto rules = value_or_throw(rules_of(timed(6)));
  EXPECT_EQ(rules.concurrency(), 6u);
  value_or_throw(rules.start());
  std::vector<std::vector<protocol::RewardResult>> results(6);
  const protocol::RewardRequest request{"", "slow", Json()};
  {
    std::vector<std::jthread> calls;
    for (auto& result : results) calls.emplace_back([&] { result = rules.score({&request, 1}); });
  }
  double began = 0, ended = 1e9;
  for (const auto& result : results) {
    ASSERT_EQ(result.size(), 1u);
    ASSERT_TRUE(result[0].reward) << result[0].failure;
    began = std::max(began, result[0].parts[1].second);
    ended = std::min(ended, result[0].parts[2].second);
  }
  EXPECT_LT(began, ended) << "all six were scored at the same time";
}

TEST_F(Pool, ASlowCompletionDelaysNoOtherCall) {
  const auto rules = value_or_throw(rules_of(timed(2)));
  value_or_throw(rules.start());
  std::atomic<bool> slow_ended = false;
  const protocol::RewardRequest slow{"", "slow", Json()};
  std::jthread call([&] {
    EXPECT_EQ(rules.score({&slow, 1})[0].reward, 1);
    slow_ended = true;
  });
  const std::vector<protocol::RewardRequest> quick(3, {"", "quick", Json()});
  for (const auto& result : rules.score(quick)) EXPECT_EQ(result.reward, 1) << result.failure;
  EXPECT_FALSE(slow_ended);
}

TEST_F(Pool, ABrokenProgramEndsEveryCall) {
  const auto rules = value_or_throw(rules_of(shell("exit 1", ", \"workers\": 3")));
  value_or_throw(rules.start());
  std::atomic<int> thrown = 0;
  {
    std::vector<std::jthread> calls;
    for (int i = 0; i < 3; ++i)
      calls.emplace_back([&] {
        const std::vector<protocol::RewardRequest> many(20);
        try {
          rules.score(many);
        } catch (const Failure& failure) {
          EXPECT_THAT(failure.error().what, HasSubstr("failed 10 times without ever answering"));
          ++thrown;
        }
      });
  }
  EXPECT_EQ(thrown, 3);
}

TEST_F(Pool, AScriptThatIsNotThereIsRefusedByTheNameThatTheUserWrote) {
  const auto rules = value_or_throw(rules_of(
      R"([{"name": "command", "options": {"run": ["python3", "-u", "no/such.py", "x.sh"]}}])"));
  for (const auto& found : {rules.check_files(), rules.start()}) {
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::not_found);
    EXPECT_EQ(found.error().what, cat("reward[0].run: no file \"no/such.py\" in ",
                                      std::filesystem::current_path().string()));
  }
}

TEST(Command, OptionsAreCheckedBeforeAnythingStarts) {
  const auto why = [](const std::string& options) {
    const auto rules = rules_of(cat(R"([{"name": "command", "options": )", options, "}]"));
    return rules ? "read" : rules.error().what;
  };
  EXPECT_THAT(why("{}"), HasSubstr("reward[0].run: expected a program and its arguments"));
  EXPECT_THAT(why(R"({"run": "python3 my.py"})"), HasSubstr("reward[0].run: expected a list"));
  EXPECT_THAT(why(R"({"run": ["true"], "timeout": 0})"),
              HasSubstr("reward[0].timeout = 0: must be between 0.01 and 3600"));
  EXPECT_THAT(why(R"({"run": ["true"], "workers": 0})"),
              HasSubstr("reward[0].workers = 0: must be between 1 and 256"));
  EXPECT_THAT(why(R"({"run": ["true"], "memory": 10})"), HasSubstr("memory_mb"));
  EXPECT_THAT(why(R"({"run": ["true"], "isolation": "none"})"), HasSubstr("limits"));
}

const std::vector<protocol::RewardRequest> thanks{
    {"Hi?", "Thank you, 7.", "7"}, {"Hi?", "7", "7"}, {"Hi?", "thank you", "7"}};

TEST_F(Pool, TheShellExampleOfTheDocumentationRuns) {
  const auto results = score(cat(R"([{"name": "command", "options": {"run": ["sh", ")", TROUPE_DOCS,
                                 "/rewards/polite.sh\"]}}]"),
                             thanks);
  EXPECT_EQ(results[0].reward, 1) << results[0].failure;
  EXPECT_EQ(results[1].reward, 0) << results[1].failure;
  EXPECT_EQ(results[2].reward, 1) << results[2].failure;
}

TEST_F(Pool, ThePythonExampleOfTheDocumentationRuns) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "SKIP: no /usr/bin/python3";
  const auto results =
      score(cat(R"([{"name": "command", "options": {"run": ["/usr/bin/python3", ")", TROUPE_DOCS,
                "/rewards/polite_and_right.py\"]}}]"),
            thanks);
  EXPECT_EQ(results[0].reward, 1.5) << results[0].failure;
  EXPECT_EQ(results[1].reward, 1) << results[1].failure;
  EXPECT_EQ(results[2].reward, 0.5) << results[2].failure;
  EXPECT_THAT(results[0].parts, ElementsAre(Pair("command", 1.5), Pair("command/right", 1),
                                            Pair("command/polite", 1)));
}

}  // namespace
}  // namespace troupe::actors::rules
