#include "cli/program_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/command.h"
#include "base/fd.h"
#include "support/catch.h"

namespace ddl::test {

namespace {

constexpr std::chrono::seconds kTestTimeout(30);

// A file in memory: unlike a pipe it does not block a writer whose output is not read.
UniqueFd make_capture() {
  UniqueFd fd(::memfd_create("captured output", MFD_CLOEXEC));
  REQUIRE(fd);
  return fd;
}

std::string captured(const UniqueFd& fd) {
  std::string text(static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  REQUIRE(::pread(fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  return text;
}

UniqueFd make_input(const std::string& text) {
  UniqueFd fd(::memfd_create("given input", MFD_CLOEXEC));
  REQUIRE(fd);
  REQUIRE(write_all(fd.get(), text.data(), text.size()));
  REQUIRE(::lseek(fd.get(), 0, SEEK_SET) == 0);
  return fd;
}

}  // namespace

ProgramRun run_program(const ProgramSetup& setup) {
  const UniqueFd in = make_input(setup.stdin_text);
  const UniqueFd out = make_capture();
  const UniqueFd err = make_capture();
  UniqueFd file;
  if (!setup.out_path.empty() && setup.out_path != "-") {
    file.reset(::open(setup.out_path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(file);
  }
  Command command{.argv = setup.argv,
                  .variables = parse_environment(setup.environment),
                  .streams = {in.get(), file ? file.get() : out.get(), err.get()},
                  .directory = setup.directory};
  if (setup.stdin_text.empty()) command.streams.in = kNullStream;
  if (setup.out_path == "-") command.streams.out = kClosedStream;
  if (setup.close_all_standard_fds) command.streams = {kClosedStream, kClosedStream, kClosedStream};
  auto child = Child::start(command);
  REQUIRE(child);
  const bool ended = child->wait(Deadline::after(kTestTimeout));
  child->end(Deadline::after(std::chrono::seconds(0)));
  ProgramRun run{child->exit_code(), captured(out), captured(err)};
  INFO("standard error: " << run.err);
  REQUIRE(ended);  // by itself
  return run;
}

}  // namespace ddl::test
