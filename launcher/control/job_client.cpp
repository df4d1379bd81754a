#include "launcher/control/job_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "base/fd.h"
#include "launcher/process/process_state.h"
#include "launcher/protocol/codec.h"
#include "net/abstract_socket.h"
#include "net/frame.h"

namespace ddl::launcher {
namespace {

using Answers = std::vector<message::JobToClient>;

// A job of a million ranks needs less, and a process that only claims to be a job gets no more of this one's memory.
constexpr std::size_t kMaxAnswerFrame = std::size_t{16} << 20;
constexpr std::size_t kMaxAnswer = std::size_t{1} << 30;

bool is_last(const message::JobToClient& answer) {
  return !std::holds_alternative<message::JobOverview>(answer) &&
         !std::holds_alternative<message::InspectedRanks>(answer);
}

/// One question to one job.
class Question {
 public:
  Question(const JobSocket& socket, const net::Frame& request) { begin(socket, request); }

  bool is_over() const { return result_.has_value(); }
  int fd() const { return fd_.get(); }

  /// To be called while it is readable.
  void read() {
    std::array<std::byte, 65536> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(fd_.get(), buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return end(fail(ErrorCode::kClosed, "the job has ended"));
    const std::size_t size = got;
    read_bytes_ += size;
    decoder_.append(std::span(buffer).first(size));
    while (!is_over()) {
      auto frame = decoder_.next();
      if (frame && !*frame && read_bytes_ > kMaxAnswer)
        frame = fail(ErrorCode::kProtocol, "an answer that is too long");
      if (!frame) return end(fail(std::move(frame.error()).during("reading the answer of a job")));
      if (!*frame) return;
      take(**frame);
    }
  }

  Result<Answers> result() {
    if (result_) return *std::move(result_);
    std::string why = "it has not answered in time";
    if (peer_ > 0 && is_stopped(peer_))
      why = "its process " + std::to_string(peer_) + " is stopped; continue it with fg, or kill -CONT " +
            std::to_string(peer_);
    return fail(ErrorCode::kTimeout, why);
  }

 private:
  void begin(const JobSocket& socket, const net::Frame& request) {
    auto connection = net::connect_abstract(socket.name());
    if (!connection) {
      const bool is_busy = connection.error().code() == ErrorCode::kUnavailable;
      return end(is_busy ? fail(ErrorCode::kTimeout, "it does not accept connections")
                         : fail(ErrorCode::kClosed, "the job has ended"));
    }
    const auto peer = net::peer_of(connection->get());
    const bool is_as_named = peer && static_cast<std::int64_t>(peer->uid) == socket.uid;
    if (!is_as_named || (peer->uid != ::getuid() && ::getuid() != 0)) {
      return end(fail(ErrorCode::kPermissionDenied, "the job belongs to user " +
                                                        (peer ? std::to_string(peer->uid) : "?") +
                                                        ": only that user and root may look at it"));
    }
    peer_ = peer->pid;
    fd_ = *std::move(connection);
    std::string bytes;
    net::append_frame(bytes, request.type, request.payload);
    // It fits into the buffer of a new connection. If the job refuses this user, it has closed its side already, and
    // its sentence waits to be read.
    (void)::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  void take(const net::Frame& frame) {
    auto answer = message::decode<message::JobToClient>(frame);
    if (!answer) return end(fail(std::move(answer.error()).during("reading the answer of a job")));
    if (const auto* const refused = std::get_if<message::Refused>(&*answer))
      return end(fail(refused->is_timeout ? ErrorCode::kTimeout : ErrorCode::kUnavailable, refused->why));
    const bool was_last = is_last(*answer);
    answers_.push_back(*std::move(answer));
    if (was_last) end(std::exchange(answers_, {}));
  }

  void end(Result<Answers> result) {
    result_ = std::move(result);
    fd_.reset();
  }

  UniqueFd fd_;
  pid_t peer_ = 0;
  net::FrameDecoder decoder_{kMaxAnswerFrame};
  std::size_t read_bytes_ = 0;
  Answers answers_;
  std::optional<Result<Answers>> result_;
};

tl::unexpected<Error> unexpected_answer() {
  return fail(ErrorCode::kProtocol, "the job has answered something else than it was asked");
}

}  // namespace

std::vector<Result<Answers>> ask_jobs(const std::vector<JobSocket>& sockets,
                                      const message::ClientToJob& request, Deadline deadline) {
  const net::Frame frame = message::encode(request);
  std::vector<Question> questions;
  questions.reserve(sockets.size());
  for (const JobSocket& socket : sockets) questions.emplace_back(socket, frame);
  for (;;) {
    std::vector<pollfd> entries;
    for (const Question& one : questions) {
      if (!one.is_over()) entries.push_back({one.fd(), POLLIN, 0});
    }
    if (entries.empty() || deadline.has_passed()) break;
    if (::poll(entries.data(), entries.size(), deadline.poll_milliseconds()) <= 0) continue;
    for (Question& one : questions) {
      if (!one.is_over()) one.read();
    }
  }
  std::vector<Result<Answers>> results;
  for (Question& one : questions) results.push_back(one.result());
  return results;
}

Result<JobDescription> description_of(Result<Answers>&& answers) {
  if (!answers) return fail(std::move(answers.error()));
  auto* const described =
      answers->size() == 1 ? std::get_if<message::JobDescribed>(&answers->front()) : nullptr;
  if (described == nullptr) return unexpected_answer();
  return std::move(described->job);
}

Result<std::string> timeline_of(Result<Answers>&& answers) {
  if (!answers) return fail(std::move(answers.error()));
  auto* const changed =
      answers->size() == 1 ? std::get_if<message::TimelineChanged>(&answers->front()) : nullptr;
  if (changed == nullptr) return unexpected_answer();
  return std::move(changed->path);
}

Result<JobInspection> inspection_of(Result<Answers>&& answers) {
  if (!answers) return fail(std::move(answers.error()));
  auto* const overview = std::get_if<message::JobOverview>(&answers->front());
  if (overview == nullptr || !std::holds_alternative<message::InspectionEnd>(answers->back()))
    return unexpected_answer();
  JobInspection inspection{
      std::move(overview->job), std::move(overview->nodes), std::move(overview->waits), {}};
  const auto is_index = [](int index, std::ptrdiff_t size) { return index >= 0 && index < size; };
  for (std::size_t i = 1; i + 1 < answers->size(); ++i) {
    auto* const some = std::get_if<message::InspectedRanks>(&(*answers)[i]);
    if (some == nullptr) return unexpected_answer();
    for (InspectedRank& rank : some->ranks) {
      if (!is_index(rank.node, inspection.nodes.size()) ||
          (rank.wait != -1 && !is_index(rank.wait, inspection.waits.size())))
        return unexpected_answer();
      inspection.ranks.push_back(std::move(rank));
    }
  }
  return inspection;
}

}  // namespace ddl::launcher
