// main() of a test program that starts sandboxes: their helper is this program as well.
#include "actors/sandbox/helper.h"
#include "tests/support/run_tests.h"

int main(int count, char** arguments) {
  troupe::actors::sandbox::run_if_helper(count, arguments);
  return troupe::test::run_tests(count, arguments);
}
