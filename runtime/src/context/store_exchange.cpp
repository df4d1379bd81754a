#include "runtime/src/context/store_exchange.h"

#include <algorithm>
#include <chrono>
#include <span>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text.h"
#include "runtime/src/common/interruption.h"

namespace ddl::runtime {
namespace {

using Json = nlohmann::json;

/// How long one call of the store may wait. After each, this rank looks whether another one has died.
constexpr double kLook = 0.5;
/// Grace periods for what follows the deadline. The first member says which rank is missing, and the others wait for
/// that; and all wait for the reason why one could not connect, which is known when its time has passed.
constexpr int kPatience = 4;
constexpr std::size_t kTokenBytes = 8;
/// Most values are smaller, and all are smaller than the other one.
constexpr std::size_t kUsualBytes = 4096;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string> shown;
  for (const int rank : std::span(ranks).first(std::min(ranks.size(), kShown)))
    shown.push_back(std::to_string(rank));
  if (ranks.size() > kShown) shown.emplace_back("...");
  return "{" + join(shown, ", ") + "}";
}

std::string digest_text(const std::vector<std::uint64_t>& numbers) {
  const std::uint64_t digest = digest_of(numbers);
  return to_hex(std::as_bytes(std::span(&digest, 1)));
}

// Values of the store. A failure is {"status": 4, "why": "rank 2: ..."}.

Json json_of(const StoreExchange::Note& note) {
  return {{"token", note.token}, {"ranks", note.ranks}, {"digest", note.digest}, {"text", note.text}};
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

StoreExchange::Note note_in(const Json& value) {
  return {text_in(value, "token"), text_in(value, "ranks"), text_in(value, "digest"), text_in(value, "text")};
}

constexpr char kOldValues[] =
    "the store holds values of another job, or of another program: give the set another name, or use a new "
    "store";

std::string dumped(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }

/// DDL_OK if the value is no failure.
ddl_status status_in(const Json& value) {
  if (!value.is_object() || !value.contains("status")) return DDL_OK;
  const Json& given = value["status"];
  const int status = given.is_number_integer() ? given.get<int>() : 0;
  return status > DDL_OK && status <= DDL_ERROR_INTERRUPTED ? status : DDL_ERROR_BOOTSTRAP;
}

/// The value, discarded if it is no JSON, or the failure that another member has told with it.
tl::expected<Json, Failure> parsed(const std::string& value, bool& is_told) {
  Json given = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  const ddl_status status = status_in(given);
  if (status == DDL_OK) return given;
  is_told = true;
  return fail(status, text_in(given, "why"));
}

}  // namespace

StoreExchange::StoreExchange(const ddl_store& store, const AbortDomain& abort, SetMaking making)
    : store_(store), abort_(abort), making_(std::move(making)) {
  own_.ranks = list_of(making_.ranks);
  own_.digest = digest_text({making_.ranks.begin(), making_.ranks.end()});
}

std::string StoreExchange::key_of(std::size_t member, const char* what, int exchange) const {
  return making_.key + "/" + std::to_string(making_.ranks[member]) + "/" + what + "/" +
         std::to_string(exchange);
}

Result<std::vector<std::string>> StoreExchange::gather(const std::string& own) {
  if (making_.ranks.size() == 1) return std::vector<std::string>{own};
  ++exchange_;
  own_.text = own;
  auto notes = exchange();
  if (!notes) {
    fail_with(notes.error());
    return fail(ErrorCode::kClosed, failure_->message);
  }
  std::vector<std::string> texts;
  for (Note& note : *notes) texts.push_back(std::move(note.text));
  return texts;
}

auto StoreExchange::exchange() -> OrFailure<std::vector<Note>> {
  const auto own = static_cast<std::size_t>(making_.own);
  if (abort_.is_raised()) return fail(DDL_ERROR_ABORTED, "");  // fail_with() asks for the cause
  if (exchange_ == 1) {
    auto token = random_hex(kTokenBytes);
    if (!token) return fail(DDL_ERROR_SYSTEM, token.error().message());
    own_.token = *std::move(token);
  }
  DDL_TRY(put(key_of(own, "text", exchange_), dumped(json_of(own_))));
  DDL_ASSIGN(notes, own == 0 ? collect() : receive());
  DDL_TRY(check_tokens(notes));
  if (own == 0) {
    Json all = Json::array();
    for (const Note& note : notes) all.push_back(json_of(note));
    DDL_TRY(put(key_of(0, "all", exchange_), dumped(all)));
  }
  if (exchange_ == 1) {
    std::vector<std::uint64_t> tokens;
    for (const Note& note : notes) tokens.push_back(digest_of(note.token));
    own_.token = digest_text(tokens);
  }
  return notes;
}

auto StoreExchange::collect() -> OrFailure<std::vector<Note>> {
  std::vector<Note> notes(making_.ranks.size());
  notes.front() = own_;
  std::vector<std::size_t> missing;
  for (std::size_t member = 1; member < notes.size(); ++member) missing.push_back(member);
  const Deadline deadline = making_.deadline.later(kPatience * (exchange_ - 1));
  for (;;) {
    DDL_ASSIGN(absent, take(missing, notes, deadline));
    if (absent.empty()) return notes;
    missing = std::move(absent);
    if (!deadline.has_passed()) continue;
    std::vector<std::string> labels;
    for (const std::size_t member : missing) labels.push_back(label(member));
    return fail(DDL_ERROR_TIMEOUT, "not arrived within " + time_limit_text(making_.deadline.seconds) + ": " +
                                       join(labels, ", "));
  }
}

auto StoreExchange::take(const std::vector<std::size_t>& missing, std::vector<Note>& notes, Deadline deadline)
    -> OrFailure<std::vector<std::size_t>> {
  std::vector<std::size_t> absent;
  for (const std::size_t member : missing) {
    DDL_ASSIGN(value, look(key_of(member, "text", exchange_), deadline));
    if (!value) {
      absent.push_back(member);
      continue;
    }
    DDL_ASSIGN(note, parsed(*value, is_told_));
    notes[member] = note_in(note);
    DDL_TRY(check_list(member, notes[member]));
  }
  return absent;
}

auto StoreExchange::receive() -> OrFailure<std::vector<Note>> {
  const Deadline deadline = making_.deadline.later(kPatience * exchange_);
  const std::string within = " within " + time_limit_text(making_.deadline.seconds);
  const auto await = [&](const char* what, const std::string& why) -> OrFailure<Json> {
    for (;;) {
      DDL_ASSIGN(value, look(key_of(0, what, exchange_), deadline));
      if (value) return parsed(*value, is_told_);
      if (deadline.has_passed()) return fail(DDL_ERROR_TIMEOUT, why);
    }
  };
  // If the first member was given another list, it may itself be waiting for another rank.
  DDL_ASSIGN(first, await("text", "not arrived" + within + ": " + label(0)));
  DDL_TRY(check_list(0, note_in(first)));
  DDL_ASSIGN(all, await("all", label(0) + " has not collected what all need" + within));
  std::vector<Note> notes;
  for (std::size_t member = 0; all.is_array() && member < all.size(); ++member)
    notes.push_back(note_in(all[member]));
  return notes;
}

auto StoreExchange::check_list(std::size_t member, const Note& note) const -> OrFailure<void> {
  if (note.digest == own_.digest) return {};
  if (note.digest.empty()) return fail(DDL_ERROR_BOOTSTRAP, kOldValues);
  return fail(DDL_ERROR_MISMATCH, label(member) + " has given the ranks " + note.ranks + ", and " +
                                      label(static_cast<std::size_t>(making_.own)) + " " + own_.ranks);
}

auto StoreExchange::check_tokens(const std::vector<Note>& notes) const -> OrFailure<void> {
  bool are_known = notes.size() == making_.ranks.size();
  for (std::size_t member = 0; are_known && member < notes.size(); ++member) {
    // In the first exchange, this rank knows no token but its own.
    if (exchange_ > 1 || member == static_cast<std::size_t>(making_.own))
      are_known = notes[member].token == own_.token;
  }
  if (are_known) return {};
  return fail(DDL_ERROR_BOOTSTRAP, kOldValues);
}

auto StoreExchange::put(const std::string& key, const std::string& value) const -> OrFailure<void> {
  const std::int32_t failed = store_.put(store_.argument, key.c_str(), value.data(), value.size());
  if (failed == 0) return {};
  return fail(DDL_ERROR_BOOTSTRAP,
              "the store has failed to put the key " + key + " (" + std::to_string(failed) + ")");
}

auto StoreExchange::fetch(const std::string& key, double seconds) const
    -> OrFailure<std::optional<std::string>> {
  std::string value(kUsualBytes, '\0');
  std::int64_t size = store_.get(store_.argument, key.c_str(), seconds, value.data(), value.size());
  if (size > std::ssize(value) && size <= kMostBytes) {
    value.resize(static_cast<std::size_t>(size));
    size = store_.get(store_.argument, key.c_str(), seconds, value.data(), value.size());
  }
  if (size == -1) return std::nullopt;
  if (size < 0 || size > std::ssize(value)) {
    return fail(DDL_ERROR_BOOTSTRAP,
                "the store has failed to get the key " + key + " (" + std::to_string(size) + ")");
  }
  value.resize(static_cast<std::size_t>(size));
  return value;
}

auto StoreExchange::look(const std::string& key, Deadline deadline) const
    -> OrFailure<std::optional<std::string>> {
  const std::chrono::duration<double> left = deadline.remaining();
  auto value = fetch(key, std::min(kLook, left.count()));
  if (abort_.is_raised()) return fail(DDL_ERROR_ABORTED, "");
  if (!value || *value) return value;
  if (Interruption().is_wanted(true)) return fail(DDL_ERROR_INTERRUPTED, "the program has ended the wait");
  return value;
}

void StoreExchange::fail_with(const Failure& failure) {
  if (abort_.is_raised()) {
    failure_ = abort_.describe(making_.call, true);
    return;
  }
  failure_ = Failure{failure.status, "process set \"" + making_.name + "\" was not made: " + failure.message};
  if (making_.ranks.size() == 1) return;
  const auto own = static_cast<std::size_t>(making_.own);
  // The arguments of the others are valid.
  const ddl_status status =
      failure.status == DDL_ERROR_INVALID_ARGUMENT ? DDL_ERROR_BOOTSTRAP : failure.status;
  const std::string told = is_told_ ? failure.message : label(own) + ": " + failure.message;
  const std::string value = dumped({{"status", status}, {"why", told}});
  // A member that has taken this rank's text already learns it in the next exchange.
  const int exchange = std::max(exchange_, 1);
  for (const std::string& key :
       {key_of(own, "text", exchange), key_of(own, "text", exchange + 1), key_of(own, "all", exchange)}) {
    if (!put(key, value)) return;
  }
}

}  // namespace ddl::runtime
