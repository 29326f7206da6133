// The command line of the benchmarks and their last line, an interface for scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "engine/base/environment/processors.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

using testing::ElementsAreArray;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

struct ProgramOutput {
  int code = 0;
  std::string out;
};

// Runs a program of the build and captures both of its streams.
ProgramOutput run(const std::string& environment, const std::string& name,
                  const std::string& arguments) {
  ProgramOutput said;
  FILE* pipe = ::popen(cat("env -u TROUPE_PEER ", environment, " " TROUPE_BENCHMARK_PROGRAMS "/",
                           name, " ", arguments, " 2>&1")
                           .c_str(),
                       "r");
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe))
    said.out.append(part.data(), count);
  said.code = WEXITSTATUS(::pclose(pipe));
  return said;
}

Json last_line(const std::string& text) {
  EXPECT_THAT(text, EndsWith("\n"));
  const std::string whole = text.substr(0, text.size() - 1);
  return value_or_throw(parse_json(whole.substr(whole.rfind('\n') + 1), "the last line"));
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.object()) out.push_back(key);
  return out;
}

const std::vector<std::string> fixed{"name", "shape",   "dtype", "threads",     "value",
                                     "unit", "ceiling", "ratio", "peak_rss_mib"};
const std::vector<std::string> with_peer{"name",         "shape", "dtype",      "threads",
                                         "value",        "unit",  "ceiling",    "ratio",
                                         "peak_rss_mib", "peer",  "peer_value", "peer_ratio"};

// The keys in order; programs whose ceiling is a product also have the instruction peak.
std::vector<std::string> keys_of(const std::string& name, const std::vector<std::string>& keys) {
  static const std::set<std::string> compute{"attention", "dpo_step", "gemm",
                                             "grpo_step", "head",     "train_step"};
  std::vector<std::string> out = keys;
  const auto memory = [&out] { return std::find(out.begin(), out.end(), "peak_rss_mib"); };
  if (compute.contains(name)) out.insert(memory(), {"peak", "peak_ratio"});
  if (name == "preprocess") out.insert(memory() + 1, "processor_ratio");
  if (name == "serve")
    out.insert(memory() + 1, {"streamed_ratio", "cached_first_token_ratio", "lookup_speedup"});
  if (name == "save") out.insert(memory() + 1, {"waited_s", "hidden", "growth_mib"});
  return out;
}

class Programs : public testing::TestWithParam<const char*> {
 protected:
  /// Runs the program, which succeeds; its last line has these keys.
  Json run_to_end(const char* environment, const char* flags,
                  const std::vector<std::string>& expected) {
    said = run(environment, GetParam(), flags);
    EXPECT_EQ(said.code, 0) << said.out;
    Json line = last_line(said.out);
    EXPECT_THAT(keys(line), ElementsAreArray(keys_of(GetParam(), expected)));
    return line;
  }
  ProgramOutput said;
};

TEST_P(Programs, EndWithTheFixedObject) {
  const Json line =
      run_to_end("", "--shape tiny --dtype bf16 --threads 1 --batch 2 --rounds 2", fixed);
  ASSERT_FALSE(HasFailure());
  if (line.find("peak")) {
    EXPECT_GT(line.find("peak")->number(), 0);
    EXPECT_GT(line.find("peak_ratio")->number(), 0);
    EXPECT_LE(line.find("peak_ratio")->number(), 1.05);
  }
  EXPECT_EQ(line.find("name")->string(), GetParam());
  EXPECT_EQ(line.find("shape")->string(), "tiny");
  EXPECT_EQ(line.find("dtype")->string(), "bf16");
  EXPECT_EQ(line.find("threads")->integer(), 1);
  for (const char* key : {"value", "ceiling", "ratio", "peak_rss_mib"})
    EXPECT_GT(line.find(key)->number(), 0) << key;
}

TEST_P(Programs, SayWhyThereIsNoPeer) {
  const Json line = run_to_end("TROUPE_PYTHON=/bin/false",
                               "--shape=tiny --threads=1 --rounds=1 --peer", with_peer);
  ASSERT_FALSE(HasFailure());
  EXPECT_TRUE(line.find("peer")->is_null() && line.find("peer_value")->is_null() &&
              line.find("peer_ratio")->is_null());
  EXPECT_THAT(said.out, HasSubstr("peer: no peer: "));
}

TEST_P(Programs, RefuseUnknownWordsInOneSentence) {
  for (const char* wrong :
       {"--shapes a", "--shape d", "--dtype f16", "--threads 0", "--batch x", "--rounds"}) {
    const ProgramOutput said = run("", GetParam(), wrong);
    EXPECT_EQ(said.code, 2) << wrong;
    EXPECT_EQ(said.out.find('\n'), said.out.size() - 1) << said.out;
  }
}

TEST(WeightsIn8Bits, AreReadByDecodeAndGenerate) {
  for (const char* name : {"decode", "generate"}) {
    const ProgramOutput said =
        run("", name, "--shape tiny --dtype bf16 --threads 1 --batch 2 --rounds 2 --int8");
    ASSERT_EQ(said.code, 0) << said.out;
    EXPECT_EQ(last_line(said.out).find("weights")->string(), "int8");
  }
  EXPECT_EQ(run("", "train_step", "--int8").code, 2);
}

INSTANTIATE_TEST_SUITE_P(All, Programs,
                         testing::Values("adamw", "attention", "decode", "dpo_step", "gemm",
                                         "generate", "grpo_step", "head", "load", "preprocess",
                                         "save", "serve", "tokenize", "train_step"),
                         [](const auto& program) { return std::string(program.param); });

// The peer of --peer is a program with the output of torch_lm.py.
TEST(Peer, IsReadFromItsLine) {
  const std::string script = testing::TempDir() + "/peer.sh";
  FILE* file = std::fopen(script.c_str(), "w");
  std::fputs(
      "echo \"$1 $2 $3 threads=$4: step 0.161s (best 0.150s) 199 tok/s  1.5 GFLOP/s  peak RSS 10 "
      "MiB\"\n",
      file);
  std::fclose(file);
  const ProgramOutput said = run(cat("TROUPE_PEER=", script, " TROUPE_PEER_PYTHON=/bin/sh"),
                                 "train_step", "--shape tiny --threads 1 --rounds 1 --peer");
  ASSERT_EQ(said.code, 0) << said.out;
  const Json line = last_line(said.out);
  if (line.find("peer")->is_null())
    GTEST_SKIP() << "the settings of the peer need the package libopenblas0-openmp";
  EXPECT_THAT(line.find("peer")->string(), HasSubstr("train tiny fp32 threads=1"));
  const double peers =
      32 / 0.161;  // its tokens over its step: the rate that it prints has fewer digits
  EXPECT_NEAR(line.find("peer_value")->number(), peers, 0.01);
  EXPECT_NEAR(line.find("peer_ratio")->number(), line.find("value")->number() / peers,
              0.001 * line.find("value")->number());
  EXPECT_THAT(said.out, HasSubstr("our peak memory over the peer's"));
}

// Programs with the output of llama.cpp: the better of two rows counts, and the median of three.
TEST(Llama, GeneratesOneSequenceOrMany) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "llama";
  fs::create_directories(folder);
  const auto program = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << "#!/bin/sh\n" << text;
    fs::permissions(folder / name, fs::perms::owner_all);
  };
  program("llama-bench",
          "[ \"$2 $6\" = 'some.gguf 16' ] || exit 1\n"
          "echo '[{\"n_gen\": 0, \"avg_ts\": 7.0}, {\"n_gen\": 0, \"avg_ts\": 5.0}, {\"n_gen\": 8, "
          "\"avg_ts\": 3.0}]'\n");
  program(
      "llama-batched-bench",
      "case \"$*\" in *'-npl 2,2,2 '*) ;; *) exit 1 ;; esac\n"
      "echo; for rate in 11 13 12; do echo \"{\\\"speed_tg\\\": $rate.0}\"; done; echo timings\n");
  const std::string environment =
      cat("TROUPE_LLAMA_MODEL=some.gguf TROUPE_LLAMA_BENCH=", (folder / "llama-bench").string());
  const std::string arguments = "--shape tiny --threads 1 --rounds 3 --batch ";
  const ProgramOutput one = run(environment, "decode", arguments + "1"),
                      many = run(environment, "decode", arguments + "2");
  EXPECT_THAT(one.out, HasSubstr("llama.cpp: 3.0 new tokens/s, ours over it "));
  EXPECT_THAT(one.out, HasSubstr("llama.cpp: 7.0 prompt tokens/s, ours over it "));
  EXPECT_THAT(many.out, HasSubstr("llama.cpp: 12.0 new tokens/s, ours over it "));
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(
      run("TROUPE_LLAMA_MODEL=x TROUPE_LLAMA_BENCH=/bin/false", "decode", arguments + "1").out,
      HasSubstr("llama.cpp: no answer for new tokens/s"));
}

TEST(Isa, IsTheOneThatIsNamed) {
  const ProgramOutput said = run("", "adamw", "--shape tiny --threads 1 --rounds 1 --isa avx3");
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out, HasSubstr("avx3"));
  EXPECT_EQ(run("", "adamw", "--shape tiny --threads 1 --rounds 1 --isa baseline").code, 0);
}

TEST(Distance, OfTheCoresIsReportedWhereThereAreTwo) {
  const std::string flags = "--shape tiny --dtype f32 --threads 2 --batch 1 --rounds 1";
  const std::string first =
      "$(awk '/Cpus_allowed_list/ { split($2, of, /[-,]/); print of[1] }' /proc/self/status)";
  const ProgramOutput one = run("taskset -c " + first, "gemm", flags);
  EXPECT_EQ(one.code, 0) << one.out;
  EXPECT_THAT(one.out, Not(HasSubstr("from core to core")));
  if (engine::usable_processors() < 2) GTEST_SKIP() << "this process may use one processor";
  EXPECT_THAT(run("", "gemm", flags).out,
              testing::ContainsRegex(
                  "a cache line takes [0-9]+ ns from core to core before the run, [0-9]+ after"));
}

}  // namespace
}  // namespace troupe::benchmarks
