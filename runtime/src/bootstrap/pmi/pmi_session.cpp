#include "runtime/src/bootstrap/pmi/pmi_session.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/fd.h"
#include "base/text.h"

namespace ddl::runtime {
namespace {

/// At exit nobody wants to wait for a goodbye.
constexpr std::chrono::seconds kGoodbyePatience{2};

}  // namespace

PmiSession& PmiSession::instance() {
  static PmiSession session;
  return session;
}

PmiSession::~PmiSession() {
  // A forked child that calls exit() has inherited this.
  if (owner_ != ::getpid() || users_ != 0 || is_broken_) return;
  (void)exchange({"finalize", {}}, "finalize_ack", Deadline::after(kGoodbyePatience));
}

bool PmiSession::is_inherited() const { return owner_ != 0 && owner_ != ::getpid(); }

Status PmiSession::open(int fd) {
  if (owner_ != 0) return {};
  fd_ = fd;
  if (auto status = greet(); !status) {
    is_broken_ = true;
    return status;
  }
  owner_ = ::getpid();
  return {};
}

Status PmiSession::greet() {
  const Deadline deadline = Deadline::after(kAnswerPatience);
  const auto hello =
      ask({"init", {{"pmi_version", "1"}, {"pmi_subversion", "1"}}}, "response_to_init", deadline);
  if (!hello) return fail(hello.error());
  const auto maxes = ask({"get_maxes", {}}, "maxes", deadline);
  if (!maxes) return fail(maxes.error());
  const auto most = [&maxes](std::string_view name, std::size_t limit) {
    const auto number = parse_integer((*maxes)[name]);
    return number && *number > 0 ? std::min(static_cast<std::size_t>(*number), limit) : limit;
  };
  most_key_ = most("keylen_max", net::kMostPmiKey);
  most_value_ = most("vallen_max", net::kMostPmiValue);
  const auto space = ask({"get_my_kvsname", {}}, "my_kvsname", deadline);
  if (!space) return fail(space.error());
  space_ = (*space)["kvsname"];
  return {};
}

Result<net::PmiLine> PmiSession::ask(const net::PmiLine& line, std::string_view answer, Deadline deadline) {
  if (is_broken_) return fail(ErrorCode::kClosed, "PMI-1: the connection to the launcher is lost");
  auto said = exchange(line, answer, deadline);
  if (!said) {
    is_broken_ = true;
    return said;
  }
  const std::string_view code = (*said)["rc"];
  if (!code.empty() && code != "0") {
    return fail(ErrorCode::kNotFound, "PMI-1: " + line.command + ": the launcher answers rc=" +
                                          std::string(code) + " " + std::string((*said)["msg"]));
  }
  return said;
}

Status PmiSession::say(std::string_view text) const {
  while (!text.empty()) {
    // Not write(2): the signal of a launcher that has gone is not the program's business.
    const ssize_t sent = retry_eintr([&] { return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); });
    if (sent < 0) return fail_errno("PMI-1: writing to the launcher");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<net::PmiLine> PmiSession::exchange(const net::PmiLine& line, std::string_view answer,
                                          Deadline deadline) {
  DDL_TRY(say(line.text()));
  for (;;) {
    auto next = reader_.next();
    if (!next) return fail(std::move(next.error()));
    if (*next) {
      auto said = net::PmiLine::parse(**next);
      if (said && said->command != answer) {
        return fail(ErrorCode::kProtocol,
                    "PMI-1: the launcher answers " + line.command + " with " + said->command);
      }
      return said;
    }
    pollfd waited{fd_, POLLIN, 0};
    const int ready = retry_eintr([&] { return ::poll(&waited, 1, deadline.poll_milliseconds()); });
    if (ready < 0) return fail_errno("poll");
    if (ready == 0) return fail(ErrorCode::kTimeout, "PMI-1: no answer to " + line.command);
    std::array<char, 4096> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(fd_, buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) continue;
    if (got < 0) return fail_errno("read of PMI_FD");
    if (got == 0) return fail(ErrorCode::kClosed, "PMI-1: the launcher has closed the connection");
    reader_.append({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace ddl::runtime
