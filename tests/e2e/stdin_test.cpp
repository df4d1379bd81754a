// Standard input of ddlrun and of the ranks.
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

constexpr char kCopy[] = "sed \"s/^/rank $RANK got /\"";

Command with_pipe(Command command) {
  command.input = Command::Input::kPipe;
  return command;
}

/// Runs ddlrun with this input, and returns the output of the ranks.
std::string output_for(const Scratch& scratch, const std::vector<std::string>& options,
                       const std::string& input) {
  std::vector<std::string> arguments = {"-np", "2", "--no-tag-output"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"sh", "-c", kCopy});
  Job job(scratch, with_pipe(ddlrun(arguments)));
  job.write(input);
  job.close_input();
  CHECK(job.wait_and_require_nothing_left() == 0);
  return job.out();
}

TEST_CASE("only rank 0 reads standard input by default", "[stdin]") {
  const Scratch scratch;
  CHECK(output_for(scratch, {}, "one\ntwo\n") == "rank 0 got one\nrank 0 got two\n");
  CHECK(output_for(scratch, {"--stdin", "0"}, "one\n") == "rank 0 got one\n");
}

TEST_CASE("--stdin all gives every rank the complete input", "[stdin]") {
  const Scratch scratch;
  const std::string out = output_for(scratch, {"--stdin", "all"}, "one\ntwo\n");
  for (const std::string line :
       {"rank 0 got one\n", "rank 0 got two\n", "rank 1 got one\n", "rank 1 got two\n"}) {
    CHECK_THAT(out, Contains(line));
  }
}

TEST_CASE("with --stdin none ranks have an empty input, and ddlrun reads nothing", "[stdin]") {
  const Scratch scratch;
  const std::string file = scratch.write("input", "first\nsecond\n");
  // The next command of the same shell reads the input that ddlrun leaves unread.
  Command command = ddlrun({"-np", "2", "--stdin", "none", "cat"});
  command.argv.insert(command.argv.begin(), {"sh", "-c", "\"$@\"; echo left: $(cat)", "sh"});
  command.input = Command::Input::kFile;
  command.input_file = file;
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out() == "left: first second\n");
}

TEST_CASE("input that ends without a newline is forwarded unchanged", "[stdin]") {
  const Scratch scratch;
  Job job(scratch, with_pipe(ddlrun({"-np", "1", "--no-tag-output", "cat"})));
  job.write("no newline");
  job.close_input();
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out() == "no newline");
}

TEST_CASE("input is delivered at once, not only at its end", "[stdin]") {
  const Scratch scratch;
  Job job(scratch, with_pipe(ddlrun({"-np", "1", "cat"})));
  job.write("first\n");
  job.wait_for("first\n");
  job.write("second\n");
  job.wait_for("second\n");
  job.close_input();
  CHECK(job.wait_and_require_nothing_left() == 0);
}

/// Bytes of every value; the length is not a multiple of any buffer size.
std::string many_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  return bytes;
}

std::string checksum(const Scratch& scratch, const std::string& file) {
  Command command;
  command.argv = {"cksum"};
  command.input = Command::Input::kFile;
  command.input_file = file;
  Job job(scratch, command);
  REQUIRE(job.wait() == 0);
  return job.out();
}

TEST_CASE("50 MB of arbitrary bytes reach rank 0 unchanged, from a pipe and from a file", "[stdin]") {
  const Scratch scratch;
  const std::string bytes = many_bytes(50'000'001);
  const std::string file = scratch.write("input", bytes);
  const std::string expected = checksum(scratch, file);

  Job from_pipe(
      scratch,
      with_pipe(ddlrun({"-np", "2", "--no-tag-output", "sh", "-c", "[ $RANK = 1 ] || cat | cksum"})));
  from_pipe.write(bytes);
  from_pipe.close_input();
  CHECK(from_pipe.wait_and_require_nothing_left() == 0);
  CHECK(from_pipe.out() == expected);

  Command command = ddlrun({"-np", "2", "--no-tag-output", "--stdin", "all", "cksum"});
  command.input = Command::Input::kFile;
  command.input_file = file;
  Job from_file(scratch, command);
  CHECK(from_file.wait_and_require_nothing_left() == 0);
  CHECK(from_file.out() == expected + expected);
}

TEST_CASE("memory stays bounded if a rank reads its input slowly", "[stdin]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  // A million reads of one byte take longer than ddlrun takes to read a file without back-pressure.
  Command command = ddlrun(
      {"-np", "1", "sh", "-c", "dd bs=1 count=1000000 of=/dev/null; echo enough; read go < " + go.path()});
  command.input = Command::Input::kFile;
  constexpr std::size_t kBytes = 200'000'000;
  command.input_file =
      scratch.write("input", std::string(kBytes, 'x'));  // NOLINT(bugprone-string-constructor)
  Job job(scratch, command);
  job.wait_for("enough\n");
  const auto head_peak = peak_memory_of(job.pid());
  const auto agent_peak = peak_memory_of(job.agent());
  go.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  if (std::string_view(DDL_E2E_SANITIZE) != "") DDL_SKIP("a sanitizer changes the use of memory");
  REQUIRE(head_peak);
  REQUIRE(agent_peak);
  CHECK(*head_peak < std::int64_t{64} << 20);
  CHECK(*agent_peak < std::int64_t{64} << 20);
}

TEST_CASE("a rank may close its input early", "[stdin]") {
  const Scratch scratch;
  for (const std::string target : {"0", "all"}) {
    CAPTURE(target);
    Job job(
        scratch,
        with_pipe(ddlrun({"-np", "2", "--stdin", target, "sh", "-c", "exec 0<&-; echo closed; echo done"})));
    job.wait_for("closed", 2);
    job.write(std::string(1 << 20, 'x'));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(), Contains("[0]<stdout>:done") && Contains("[1]<stdout>:done"));
  }
}

TEST_CASE("with --stdin all the others get the complete input if one rank stops reading", "[stdin]") {
  const Scratch scratch;
  const std::string file = scratch.write("input", many_bytes(3'000'000));
  Command command =
      ddlrun({"-np", "2", "--no-tag-output", "--stdin", "all", "sh", "-c", "[ $RANK = 1 ] || cksum"});
  command.input = Command::Input::kFile;
  command.input_file = file;
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(job.out() == checksum(scratch, file));
}

TEST_CASE("a job ends although its standard input is open and idle", "[stdin]") {
  const Scratch scratch;
  Job job(scratch, with_pipe(ddlrun({"-np", "2", "true"})));
  CHECK(job.wait_and_require_nothing_left() == 0);
}

TEST_CASE("a closed standard input and /dev/null are empty inputs", "[stdin]") {
  const Scratch scratch;
  for (const auto input : {Command::Input::kNull, Command::Input::kClosed}) {
    Command command = ddlrun({"-np", "2", "--stdin", "all", "sh", "-c", "cat; echo end"});
    command.input = input;
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(), Contains("[0]<stdout>:end") && Contains("[1]<stdout>:end"));
  }
}

}  // namespace
}  // namespace ddl::e2e
