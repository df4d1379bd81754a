#include "affinity/source/in_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/deadline.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace ddl::affinity {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VendorGpu, index, bus_id, uuid, model, by_uuid)

namespace {

constexpr std::size_t kMostAnswer = 1 << 20;

std::string answer_of(const std::function<Result<std::vector<VendorGpu>>()>& ask) {
  const auto gpus = ask();
  nlohmann::json json;
  if (gpus) {
    json["gpus"] = *gpus;
  } else {
    json["failure"] = gpus.error().message();
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

[[noreturn]] void be_child(const std::function<Result<std::vector<VendorGpu>>()>& ask, int answer,
                           pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // A library's own words are not the user's.
  const int null = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(null, stream);
  const std::string text = answer_of(ask);
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t now =
        retry_eintr([&] { return ::write(answer, text.data() + written, text.size() - written); });
    if (now <= 0) break;
    written += static_cast<std::size_t>(now);
  }
  ::_exit(0);
}

/// All that comes until the end; nothing if it does not end in time.
std::optional<std::string> read_all(int fd, Deadline deadline) {
  std::string text;
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    if (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) != 1)
      return std::nullopt;
    std::array<char, 4096> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer.data(), buffer.size()); });
    if (got <= 0 || text.size() > kMostAnswer) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::vector<VendorGpu>> in_child(const std::function<Result<std::vector<VendorGpu>>()>& ask,
                                        std::chrono::milliseconds patience) {
  auto pipe = make_pipe();
  if (!pipe) return fail(std::move(pipe.error()));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) be_child(ask, pipe->second.get(), parent);
  pipe->second.reset();
  const auto text = read_all(pipe->first.get(), Deadline::after(patience));
  // Who has answered may hang on its way out.
  ::kill(child, SIGKILL);
  int status = 0;
  retry_eintr([&] { return ::waitpid(child, &status, 0); });
  if (!text) return fail(ErrorCode::kTimeout, "no answer within " + std::to_string(patience.count()) + " ms");
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_object() && json.contains("failure"))
    return fail(ErrorCode::kUnavailable, json.value("failure", ""));
  try {
    return json.at("gpus").get<std::vector<VendorGpu>>();
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::kUnavailable, WIFSIGNALED(status) ? "it crashed: " + signal_text(WTERMSIG(status))
                                                             : std::string("it ended without an answer"));
  }
}

}  // namespace ddl::affinity
