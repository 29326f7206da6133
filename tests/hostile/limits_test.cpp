// Every command under small limits of open files and of memory: it works, or it ends with a message
// and an exit code of its own, and never by a signal or as an internal error.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/run/exit_code.h"
#include "tests/support/sanitized.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::hostile::limits_test {
namespace {

using launch::data;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

/// A command, and what it prints when it is ready and then waits for a signal ("": it ends itself).
struct Command {
  std::string arguments;
  std::string ready;
};

class Limits : public test::SystemRuns {
 protected:
  Limits() { value_or_throw(write_file_durably(path("cluster.yaml"), "groups: [{role: policy}]")); }

  std::vector<Command> commands() const {
    const std::string model = cat("--model '", data("models/stories260k/hf"), "' ");
    const std::string digits = cat("--model '", data("models/digit-completion"), "' ");
    const std::string rows = TROUPE_SOURCE "/launch/quickstart";
    const std::string sft = arguments("sft", "out", "--set train.steps=1 ");
    return {
        {"--version", ""},
        {"man train", ""},
        {"completion bash", ""},
        {"import --table trl", ""},
        {cat("info '", data("models/stories260k/hf"), "'"), ""},
        {cat("info '", rows, "/train.parquet'"), ""},
        {cat("tokenize ", model), ""},
        {cat("logprobs ", model), ""},
        {cat("generate ", model, "--prompt Once --max-new-tokens 4"), ""},
        {cat("chat ", model), ""},
        {cat("eval ", digits, "--data '", rows,
             "/test.jsonl' --reward exact_match --max-new-tokens 2 --output '", path("out"), "'"),
         ""},
        {cat("explain --no-data --algorithm sft ", model, "--data '", rows,
             "/train.jsonl' --output '", path("out"), "'"),
         ""},
        {cat("convert --use-mcore-models --load-model-type hf --save-model-type mg --load-dir '",
             data("models/stories260k/hf"), "' --save-dir '", path("out"), "'"),
         ""},
        {cat("preprocess --input '", data("datasets/pretrain/tinystories_train_head.txt"),
             "' --output-prefix '", path("out"), "' --tokenizer-name-or-path '",
             data("models/stories260k/hf"), "'"),
         ""},
        {sft, ""},
        {arguments("grpo", "out", "--set train.steps=1 "), ""},
        {cat("launch --cluster '", path("cluster.yaml"), "' -- ", sft), ""},
        {cat("serve ", model, "--port 0"), "listening on"}};
  }

  /// Runs a command under `limit`, an option of prlimit(1), and expects a clean end.
  void expect_clean_end(const Command& each, const std::string& limit) {
    SCOPED_TRACE(cat(limit, ": ", each.arguments.substr(0, 60)));
    fs::remove_all(path("out"));
    fs::remove(log());
    test::Child child(cat("prlimit --core=0 ", limit, " ", command(each.arguments)), log());
    const auto said = [&] { return read_file(log()).value_or(""); };
    if (!each.ready.empty() &&
        child.until([&] { return said().find(each.ready) != std::string::npos; }))
      child.signal(SIGTERM);
    const int code = child.wait();
    // 127: the dynamic linker could not load the program.
    const bool known = std::ranges::any_of(launch::run::exit_codes, [&](const auto& listed) {
      return listed.first == code && code != launch::run::exit_internal;
    });
    EXPECT_TRUE(code == 0 || code == 127 || known) << "exit code " << code << ": " << said();
    EXPECT_THAT(said(), Not(AnyOf(HasSubstr("terminate called"), HasSubstr("internal error"),
                                  HasSubstr("dumped"))));
    if (code != 0) {
      EXPECT_THAT(said(), Not(testing::IsEmpty())) << "exit code " << code;
    }
  }
};

TEST_F(Limits, OfOpenFilesEndNoCommandByASignal) {
  if (test::sanitized) GTEST_SKIP() << "UBSan opens a pipe before it reads the type of an object";
  for (const Command& each : commands())
    for (const int files : {4, 6, 8, 10, 14}) expect_clean_end(each, cat("--nofile=", files));
}

TEST_F(Limits, OfMemoryEndNoCommandByASignal) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers reserve more address space";
  for (const Command& each : commands())
    for (const int mib : {60, 80, 110, 146, 180}) expect_clean_end(each, cat("--as=", mib << 20));
}

// Where the threads of the server no longer find room.
TEST_F(Limits, OfMemoryEndTheServerCleanlyAtEachOfItsThreads) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers reserve more address space";
  for (int mib = 100; mib <= 170; mib += 5)
    expect_clean_end(commands().back(), cat("--as=", mib << 20));
}

}  // namespace
}  // namespace troupe::hostile::limits_test
