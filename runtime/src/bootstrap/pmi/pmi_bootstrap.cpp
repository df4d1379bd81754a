#include "runtime/src/bootstrap/pmi/pmi_bootstrap.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/bootstrap/host_groups.h"
#include "runtime/src/bootstrap/pmi/pmi_session.h"
#include "runtime/src/bootstrap/pmi/process_mapping.h"
#include "runtime/src/host_name.h"

namespace ddl::runtime {
namespace {

/// Of what a value may have less room for the rest of its line, which MPICH's parser ends at 1023 bytes.
constexpr std::size_t kMostPiece = 512;
constexpr char kHexDigits[] = "0123456789abcdef";

/// Values of PMI-1 may hold no blanks and no newlines.
std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

Result<std::string> from_hex(std::string_view text) {
  const std::string_view digits(kHexDigits);
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const std::size_t high = digits.find(text[i]), low = digits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos)
      return fail(ErrorCode::kProtocol, "PMI-1: a value is not as it was put");
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// Keys are the job's: each rank's bear its number. A value goes in pieces; the first says how many there are.
std::string key_of(int rank, std::string_view key, std::size_t piece) {
  return std::to_string(rank) + "-" + std::string(key) + "-" + std::to_string(piece);
}

class PmiBootstrap final : public Bootstrap {
 public:
  explicit PmiBootstrap(PmiSession& session) : session_(session) { session.add_user(); }
  ~PmiBootstrap() override { (void)leave(); }

  Status load_membership(const PmiPlace& place, std::uint32_t generation, Deadline deadline);

  const char* name() const override { return "pmi"; }
  const Membership& membership() const override { return membership_; }

  Status put(std::string_view key, std::string_view value) override {
    const std::string text = to_hex(value);
    const std::size_t room = std::min(kMostPiece, session_.value_bytes() - kCountBytes);
    const std::size_t pieces = std::max<std::size_t>(1, (text.size() + room - 1) / room);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      std::string part = text.substr(piece * room, room);
      if (piece == 0) part = std::to_string(pieces) + ":" + part;
      const std::string name = key_of(membership_.rank, key, piece);
      if (name.size() >= session_.key_bytes())
        return fail(ErrorCode::kInvalidArgument, "PMI-1: the launcher takes no key as long as " + name);
      const auto done = session_.ask({"put", {{"kvsname", session_.space()}, {"key", name}, {"value", part}}},
                                     "put_result", Deadline::after(PmiSession::kAnswerPatience));
      if (!done) return fail(done.error());
    }
    return {};
  }

  Status fence(Deadline deadline) override {
    const auto done = session_.ask({"barrier_in", {}}, "barrier_out", deadline);
    if (!done) return fail(done.error());
    return {};
  }

  Result<std::string> get(int rank, std::string_view key, Deadline deadline) override {
    const auto first = fetch(key_of(rank, key, 0), deadline);
    if (!first) return fail(first.error());
    const std::size_t colon = first->find(':');
    const auto pieces = parse_integer(first->substr(0, colon));
    if (colon == std::string::npos || !pieces || *pieces < 1 || *pieces > kMostPieces)
      return fail(ErrorCode::kProtocol, "PMI-1: a value is not as it was put");
    std::string text = first->substr(colon + 1);
    for (std::int64_t piece = 1; piece < *pieces; ++piece) {
      const auto more = fetch(key_of(rank, key, static_cast<std::size_t>(piece)), deadline);
      if (!more) return fail(more.error());
      text += *more;
    }
    return from_hex(text);
  }

  void tell_launcher(int) override {}
  Status leave() override {
    if (!std::exchange(left_, true)) session_.remove_user();
    return {};
  }

 private:
  static constexpr std::size_t kCountBytes = 16;
  static constexpr std::int64_t kMostPieces = 1024;

  Result<std::string> fetch(const std::string& key, Deadline deadline) {
    const auto found =
        session_.ask({"get", {{"kvsname", session_.space()}, {"key", key}}}, "get_result", deadline);
    if (!found) return fail(Error(found.error()).during(key));
    return std::string((*found)["value"]);
  }
  Result<std::vector<std::vector<int>>> groups(Deadline deadline);

  PmiSession& session_;
  Membership membership_;
  bool left_ = false;
};

/// By the launcher's map, or, where it has none, by what the ranks' hosts call themselves.
Result<std::vector<std::vector<int>>> PmiBootstrap::groups(Deadline deadline) {
  if (const auto mapping = fetch("PMI_process_mapping", deadline); mapping && !mapping->empty())
    return parse_process_mapping(*mapping, membership_.size);
  return groups_by_host_name(*this, membership_, deadline);
}

Status PmiBootstrap::load_membership(const PmiPlace& place, std::uint32_t generation, Deadline deadline) {
  membership_.generation = generation;
  membership_.rank = place.rank;
  membership_.size = place.size;
  membership_.host = host_name();
  auto found = groups(deadline);
  if (!found) return fail(std::move(found.error()));
  auto layout = HostLayout::of(*std::move(found), membership_.rank, membership_.size);
  if (!layout) return fail(std::move(layout.error().during("the launcher's map of the job")));
  membership_.layout = *std::move(layout);
  return {};
}

}  // namespace

Result<BootstrapAttempt> attempt_pmi(const Settings& settings, std::uint32_t generation) {
  if (!settings.pmi)
    return BootstrapAttempt{nullptr, std::string(contract::env::kPmiFd) + ", " + contract::env::kPmiRank +
                                         " and " + contract::env::kPmiSize + " are not all set"};
  PmiSession& session = PmiSession::instance();
  if (session.is_inherited()) {
    return fail(
        ErrorCode::kInvalidArgument,
        "this process was forked, without exec, from one that had joined a job; it cannot join in its place");
  }
  if (const auto opened = session.open(settings.pmi->fd); !opened)
    return BootstrapAttempt{nullptr, opened.error().message()};
  auto bootstrap = std::make_unique<PmiBootstrap>(session);
  DDL_TRY(bootstrap->load_membership(*settings.pmi, generation, settings.start_deadline()));
  return BootstrapAttempt{std::move(bootstrap), ""};
}

}  // namespace ddl::runtime
