// main() of every test program that has none of its own.
#include "tests/support/run_tests.h"

int main(int count, char** arguments) {
  return troupe::test::run_tests(count, arguments);
}
