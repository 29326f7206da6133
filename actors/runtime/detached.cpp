#include "actors/runtime/detached.h"

#include <exception>

namespace troupe::actors {

CaughtException caught_exception() {
  CaughtException ending;
  try {
    throw;
  } catch (const Failure& failure) {
    ending.failure = failure.error();
  } catch (const std::exception& other) {
    ending.bug = other.what();
  } catch (...) {
    ending.bug = "something that is not an exception was thrown";
  }
  return ending;
}

}  // namespace troupe::actors
