#include "base/shared_library.h"

#include <unistd.h>

#include "base/files.h"
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

TEST_CASE("the file of code is the library's, or this program's own with its whole path") {
  CHECK_THAT(ddl::file_of_code(reinterpret_cast<void*>(&::getpid)),
             Catch::StartsWith("/") && Catch::Contains("libc.so.6"));
  CHECK_FALSE(ddl::is_in_this_program(reinterpret_cast<void*>(&::getpid)));
  CHECK(ddl::file_of_code(reinterpret_cast<void*>(&ddl::own_path)) == ddl::own_path());
  CHECK_THAT(ddl::own_path(), Catch::StartsWith("/"));
  const int on_the_stack = 0;
  CHECK(ddl::file_of_code(&on_the_stack).empty());
}
