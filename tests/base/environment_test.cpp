#include "base/environment.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "support/catch.h"

using ddl::Environment;
using ddl::parse_environment;

TEST_CASE("environ's entries become a map, the first of a name as getenv has it") {
  CHECK(parse_environment({"A=1", "EMPTY=", "EQUALS=a=b", "no entry", "=name missing", "A=2"}) ==
        Environment{{"A", "1"}, {"EMPTY", ""}, {"EQUALS", "a=b"}});
}

TEST_CASE("an environment becomes entries, and an unset variable has the value \"\"") {
  const Environment environment{{"B", "a=b"}, {"A", ""}};
  CHECK(ddl::environment_entries(environment) == std::vector<std::string>{"A=", "B=a=b"});
  CHECK(ddl::value_of(environment, "B") == "a=b");
  CHECK(ddl::value_of(environment, "C") == "");
}

TEST_CASE("a home directory is missing only without HOME, and not if passwd has one") {
  CHECK_FALSE(ddl::lacks_home({{"HOME", ""}}));
  CHECK(ddl::lacks_home({}) == (::getpwuid(::geteuid()) == nullptr));
}

TEST_CASE("this process's environment is read as it is now") {
  ::setenv("DDL_TEST_OF_THE_ENVIRONMENT", "a=b", 1);
  CHECK(ddl::process_environment().at("DDL_TEST_OF_THE_ENVIRONMENT") == "a=b");
  ::unsetenv("DDL_TEST_OF_THE_ENVIRONMENT");
  CHECK_FALSE(ddl::process_environment().contains("DDL_TEST_OF_THE_ENVIRONMENT"));
}
