// A power failure at any point of a ledger that is written: no row that was acknowledged is
// missing, and the ledger that is left is whole.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/ledger/ledger.h"
#include "launch/audit/audit.h"
#include "tests/support/sanitized.h"
#include "tests/system/recorded_files.h"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using engine::ledger::Anchor, engine::ledger::Ledger;

class LedgerPower : public testing::Test {
 protected:
  LedgerPower() {
    std::string name = testing::TempDir() + "ledger-power-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~LedgerPower() override { fs::remove_all(folder_); }

  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  }
  /// What a ledger of `batches` batches writes.
  std::vector<FileOperation> record(int batches) const {
    const std::string root = folder_ + "/recorded";
    fs::create_directory(root);
    const std::string line = cat("env LD_PRELOAD='" TROUPE_FILE_RECORDER "' FILE_RECORDER_ROOT='",
                                 fs::canonical(root).string(), "' FILE_RECORDER_LOG='", folder_,
                                 "/recording' '" TROUPE_LEDGER_WRITER "' '", root, "' ", batches);
    EXPECT_EQ(std::system(line.c_str()), 0);
    return read_recording(folder_ + "/recording");
  }
  /// What is wrong with the directory that a failure left; "" if nothing is.
  static std::string damage(const std::string& output, const std::optional<Anchor>& acknowledged) {
    const auto folder = OutputFolder::open(output);
    if (!folder) return acknowledged ? folder.error().what : "";
    if (!acknowledged && !folder->contains("ledger.db")) return "";
    if (const auto found = launch::audit::examine(output); !found || !found->clean())
      return found ? found->to_text(output) : found.error().what;
    const auto ledger = Ledger::open(*folder, acknowledged);
    if (!ledger) return ledger.error().what;
    const auto anchor = (*ledger)->anchor();
    return anchor ? "" : anchor.error().what;
  }

  std::string folder_;
};

// The last acknowledgement in an operation, if it has one.
std::optional<Anchor> acknowledgement(const FileOperation& operation) {
  if (operation.kind != 'w' || operation.path != "acknowledged") return std::nullopt;
  std::istringstream line(operation.data);
  Anchor anchor;
  return line >> anchor.length >> anchor.head ? std::optional(anchor) : std::nullopt;
}

bool is_sync_of(const FileOperation& operation, std::string_view end) {
  return operation.kind == 's' && operation.path.ends_with(end);
}

TEST_F(LedgerPower, AtAnyPointWhatWasAcknowledgedIsThere) {
  const char* wanted = std::getenv("TROUPE_LEDGER_POWER_LOSSES");
  const std::size_t images = wanted ? std::strtoull(wanted, nullptr, 10) : 300;
  const auto operations = record(250);
  RecordedFiles files;
  std::optional<Anchor> acknowledged;
  std::size_t done = 0, checkpoints = 0;
  for (std::size_t image = 0; image < images && !HasFailure(); ++image) {
    const std::size_t until = (2 * image + 1) * operations.size() / (2 * images);
    for (; done < until; ++done) {
      files.apply(operations[done]);
      checkpoints += is_sync_of(operations[done], "ledger.db");
      if (const auto anchor = acknowledgement(operations[done])) acknowledged = anchor;
    }
    files.restore_torn(folder_ + "/disk", image);
    EXPECT_EQ(damage(folder_ + "/disk", acknowledged), "")
        << "after " << until << " of " << operations.size() << " operations, seed " << image;
    fs::remove_all(folder_ + "/disk");
  }
  EXPECT_GE(checkpoints, 1u) << "pages of the log should have been copied to the database";
  ASSERT_TRUE(acknowledged);
  EXPECT_GT(acknowledged->length, 1500);
}

// The images tell a disk that keeps what was synchronized from one that does not.
TEST_F(LedgerPower, SyncsThatDoNothingAreNoticed) {
  const auto operations = record(30);
  for (const std::string_view ignored : {"ledger.db-wal", ".seg"}) {
    RecordedFiles files;
    std::optional<Anchor> acknowledged;
    int damaged = 0;
    for (std::size_t at = 0; at < operations.size(); ++at) {
      if (!is_sync_of(operations[at], ignored)) files.apply(operations[at]);
      if (const auto anchor = acknowledgement(operations[at])) acknowledged = anchor;
      if (at % (operations.size() / 20) != 0) continue;
      files.restore_torn(folder_ + "/disk", at);
      damaged += !damage(folder_ + "/disk", acknowledged).empty();
      fs::remove_all(folder_ + "/disk");
    }
    EXPECT_GE(damaged, 10) << ignored;
  }
}

}  // namespace
}  // namespace troupe::test
