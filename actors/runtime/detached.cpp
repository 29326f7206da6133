#include "actors/runtime/detached.h"

#include <exception>

#include "engine/base/files/environment_error.h"

namespace troupe::actors {

CaughtException caught_exception() {
  CaughtException caught;
  try {
    throw;
  } catch (const Failure& failure) {
    caught.failure = failure.error();
  } catch (const std::exception& other) {
    caught.failure = environment_error(other);
    if (!caught.failure) caught.bug = other.what();
  } catch (...) {
    caught.bug = "something that is not an exception was thrown";
  }
  return caught;
}

}  // namespace troupe::actors
