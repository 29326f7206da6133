// What main() of a test program does.
#pragma once

namespace troupe::test {

/// Runs all tests. testing::TempDir() is a folder of its own, which is removed at the end. Returns
/// the exit code.
int run_tests(int count, char** arguments);

}  // namespace troupe::test
