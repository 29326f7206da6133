// Encoding speed on one core, document by document, beside that of Hugging Face's tokenizers where python3 (or $TROUPE_PYTHON) has them.
// Usage: tokenize FOLDER TEXT... (texts are cut at <|endoftext|>, or at line ends where it does not occur)
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/tokenizer/tokenizer.h"

namespace {

constexpr int rounds = 5;
constexpr std::string_view mark = "<|endoftext|>";

// The best of the rounds, in processor seconds: other programs on the machine do not count. The same is done to both.
constexpr const char* python_program = R"(
import os, sys, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    from tokenizers import Tokenizer
except ImportError:
    print(0)
    sys.exit()
tokenizer = Tokenizer.from_file(os.path.join(sys.argv[1], "tokenizer.json"))
documents = []
for path in sys.argv[2:]:
    text = open(path, encoding="utf-8", newline="").read()
    documents += [d for d in text.split("<|endoftext|>" if "<|endoftext|>" in text else "\n") if d]
best = float("inf")
for _ in range(5):
    start = time.process_time()
    for document in documents:
        tokenizer.encode(document, add_special_tokens=False)
    best = min(best, time.process_time() - start)
print(sum(len(d.encode()) for d in documents) / best / 1e6)
)";

double processor_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void append_documents(const std::string& path, std::vector<std::string>& out) {
  const std::string text = troupe::value_or_throw(troupe::read_file(path));
  const std::string_view separator = text.find(mark) == std::string::npos ? "\n" : mark;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(separator, from), text.size());
    if (end > from) out.push_back(text.substr(from, end - from));
    from = end + separator.size();
  }
}

double our_speed(const std::string& folder, const std::vector<std::string>& documents) {
  const auto tokenizer = troupe::value_or_throw(troupe::engine::tokenizer::Tokenizer::load(folder));
  double best = 1e30;
  std::size_t bytes = 0, tokens = 0;
  for (const auto& document : documents) bytes += document.size();
  for (int round = 0; round < rounds; ++round) {
    const double start = processor_seconds();
    tokens = 0;
    for (const auto& document : documents) tokens += tokenizer.encode(document, false).size();
    best = std::min(best, processor_seconds() - start);
  }
  std::printf("%zu documents, %.2f MB, %zu tokens\n", documents.size(), static_cast<double>(bytes) * 1e-6, tokens);
  return static_cast<double>(bytes) / best * 1e-6;
}

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) c == '\'' ? void(out += "'\\''") : out.push_back(c);
  return out + "'";
}

// 0 where python or the library is not there.
double their_speed(int count, char** words) {
  const char* python = std::getenv("TROUPE_PYTHON");
  std::string command = quoted(python ? python : "python3") + " -c " + quoted(python_program);
  for (int i = 1; i < count; ++i) command += " " + quoted(words[i]);
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  double speed = 0;
  if (!pipe || std::fscanf(pipe, "%lf", &speed) != 1) speed = 0;
  if (pipe) ::pclose(pipe);
  return speed;
}

}  // namespace

int main(int count, char** words) try {
  if (count < 3) return std::fprintf(stderr, "usage: tokenize FOLDER TEXT...\n"), 2;
  std::vector<std::string> documents;
  for (int i = 2; i < count; ++i) append_documents(words[i], documents);
  const double ours = our_speed(words[1], documents);
  std::printf("troupe: %.2f MB/s\n", ours);
  const double theirs = their_speed(count, words);
  if (theirs > 0) {
    std::printf("Hugging Face tokenizers: %.2f MB/s, ratio %.2f\n", theirs, ours / theirs);
  } else {
    std::printf("Hugging Face tokenizers: not here (python3, or $TROUPE_PYTHON, cannot import them)\n");
  }
  return 0;
} catch (const std::exception& error) { return std::fprintf(stderr, "%s\n", error.what()), 1; }
