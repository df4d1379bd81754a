#include "base/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <type_traits>

#include "base/fd.h"
#include "support/catch.h"
#include "support/started_program.h"

namespace {

template <class Texts>
concept HasPointers = requires(Texts&& texts) { ddl::c_strings(std::forward<Texts>(texts)); };

using Environment = std::optional<std::vector<std::string>>;

/// What a child says that start, given its standard output, has started, and that ends with 0.
template <class Start>
std::string output_of_started(const Start& start) {
  auto out = ddl::make_pipe();
  REQUIRE(out);
  const pid_t pid = start(out->second.get());
  REQUIRE(pid > 0);
  out->second.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(out->first.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  int status = -1;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  return text;
}

std::string spawned(const std::vector<std::string>& words, const Environment& environment) {
  return output_of_started([&](int out) {
    const auto pid = ddl::spawn(words, {STDIN_FILENO, out, STDERR_FILENO}, environment);
    REQUIRE(pid);
    return *pid;
  });
}

std::string became(const std::vector<std::string>& words, const Environment& environment) {
  return output_of_started([&](int out) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::dup2(out, STDOUT_FILENO);
    (void)ddl::become(words, environment);
    ::_exit(127);
  });
}

}  // namespace

TEST_CASE("pointers for exec are not made of texts that end at once") {
  STATIC_REQUIRE(HasPointers<std::vector<std::string>&>);
  STATIC_REQUIRE(HasPointers<const std::vector<std::string>&>);
  STATIC_REQUIRE_FALSE(HasPointers<std::vector<std::string>>);
  STATIC_REQUIRE_FALSE(HasPointers<const std::vector<std::string>>);
}

// Every srun once got freed memory as its environment, which mostly looked like an environment still.
TEST_CASE("a spawned program gets exactly the arguments and the environment that it was given", "[exec]") {
  const StartedProgram program;
  CHECK(spawned(program.words, program.environment) == program.output());
  StartedProgram::own_entry();
  CHECK(program.has_own_entry(spawned(program.words, std::nullopt)));
  CHECK(spawned(program.words, std::vector<std::string>{}) == program.output({}));
}

TEST_CASE("a program that a process becomes gets exactly the arguments and the environment", "[exec]") {
  const StartedProgram program;
  CHECK(became(program.words, program.environment) == program.output());
  StartedProgram::own_entry();
  CHECK(program.has_own_entry(became(program.words, std::nullopt)));
  CHECK(ddl::become({"/no/such/program"}).message() ==
        "executing /no/such/program: No such file or directory");
}
