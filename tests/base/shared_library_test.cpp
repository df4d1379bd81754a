#include "base/shared_library.h"

#include <unistd.h>

#include "support/catch.h"

using ddl::SharedLibrary;

TEST_CASE("a library that is not there is an error with the loader's reason") {
  const auto missing = SharedLibrary::load("libddl_no_such_library.so.7");
  REQUIRE_FALSE(missing);
  CHECK_THAT(missing.error().message(), Catch::Contains("libddl_no_such_library.so.7"));
  const auto libc = SharedLibrary::load("libc.so.6");
  REQUIRE(libc);
  CHECK_THAT(libc->path(), Catch::EndsWith("libc.so.6") && Catch::StartsWith("/"));
  CHECK(libc->function<int()>("getpid")() == ::getpid());
  CHECK(libc->function<int()>("ddl_no_such_function") == nullptr);
}
