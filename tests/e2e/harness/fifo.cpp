#include "e2e/harness/fifo.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "e2e/harness/job.h"

namespace ddl::e2e {

Fifo::Fifo(const Scratch& scratch, const std::string& name)
    : path_(scratch.make_fifo(name)), fd_(::open(path_.c_str(), O_RDWR | O_CLOEXEC)) {
  if (!fd_) throw std::runtime_error("open " + path_);
}

bool Fifo::wait_for(std::string_view text, int times) {
  const auto deadline = Deadline::after(kTestTimeout);
  while (occurrences(bytes_, text) < times) {
    if (!read_some(deadline)) return false;
  }
  return true;
}

const std::string& Fifo::read_now() {
  while (read_some(Deadline::after(std::chrono::seconds(0)))) {
  }
  return bytes_;
}

// False if the deadline passed before any byte came.
bool Fifo::read_some(Deadline deadline) {
  pollfd entry{fd_.get(), POLLIN, 0};
  if (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) == 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t got = retry_eintr([&] { return ::read(fd_.get(), buffer.data(), buffer.size()); });
  if (got > 0) bytes_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

void Fifo::write(std::string_view lines) {
  if (auto status = write_all(fd_.get(), lines.data(), lines.size()); !status) {
    throw std::runtime_error(status.error().message());
  }
}

int occurrences(std::string_view text, std::string_view word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size()))
    ++found;
  return found;
}

}  // namespace ddl::e2e
