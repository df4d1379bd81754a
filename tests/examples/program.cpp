#include "examples/program.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include <poll.h>
#include <unistd.h>

namespace ddl::test {
namespace {

constexpr std::chrono::minutes kTestTimeout(2);

}  // namespace

Program::Program(const std::vector<std::string>& argv) : deadline_(Deadline::after(kTestTimeout)) {
  auto output = make_pipe();
  if (!output) throw std::runtime_error(output.error().message());
  const int to_us = output->second.get();
  auto child = Child::start({.argv = argv, .streams = {kNullStream, to_us, to_us}});
  if (!child) throw std::runtime_error(child.error().message());
  output_fd_ = std::move(output->first);
  child_.emplace(*std::move(child));
}

bool Program::read_more() {
  pollfd readable{output_fd_.get(), POLLIN, 0};
  const int ready = retry_eintr([&] { return ::poll(&readable, 1, deadline_.poll_milliseconds()); });
  if (ready < 0) throw std::runtime_error(std::string("poll: ") + std::strerror(errno));
  if (ready == 0) throw std::runtime_error("no end after two minutes; so far:\n" + output_);
  char block[4096];
  const ssize_t n = ::read(output_fd_.get(), block, sizeof block);
  if (n < 0) throw std::runtime_error(std::string("read: ") + std::strerror(errno));
  output_.append(block, static_cast<std::size_t>(n));
  return n > 0;
}

void Program::wait_for_output(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!read_more()) throw std::runtime_error("ended without printing \"" + text + "\":\n" + output_);
  }
}

void Program::signal(int number) { child_->signal(number); }

Outcome Program::wait() {
  while (read_more()) {
  }
  child_->wait(Deadline::never());
  return {child_->exit_code(), output_};
}

}  // namespace ddl::test
