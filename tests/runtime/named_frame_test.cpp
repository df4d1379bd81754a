// The bytes in which a rank announces its named tensors: what is written can be read, and nothing else can.
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/src/named/frame.h"
#include "support/catch.h"

using namespace ddl::runtime;
using Json = nlohmann::json;

namespace {

Announcement announcement_named(const std::string& name) {
  Announcement announced;
  announced.name = name;
  announced.terms.call.count = 10;
  return announced;
}

void check_same(const Frame& written, const Frame& read) {
  CHECK(read.has_joined == written.has_joined);
  CHECK(read.steps == written.steps);
  CHECK(read.fusion_bytes == written.fusion_bytes);
  REQUIRE(read.announcements.size() == written.announcements.size());
  for (std::size_t i = 0; i < read.announcements.size(); ++i) {
    CAPTURE(i);
    CHECK(read.announcements[i].name == written.announcements[i].name);
    CHECK(read.announcements[i].terms == written.announcements[i].terms);
    CHECK(read.announcements[i].send_counts == written.announcements[i].send_counts);
    CHECK(read.announcements[i].follows_completion == written.announcements[i].follows_completion);
  }
}

/// The items of a valid announcement, in order.
Json valid_announcement() {
  Frame frame;
  frame.announcements = {announcement_named("a")};
  return Json::from_cbor(frame.to_bytes()).at(0).at(0);
}

bool is_accepted(const Json& frame, int ranks = 3) {
  const auto parsed = Frame::parse(Json::to_cbor(frame), ranks);
  if (!parsed) CHECK(parsed.error().code() == ddl::ErrorCode::kProtocol);
  return parsed.has_value();
}

/// With this item in the place of another one.
bool is_accepted_with(std::size_t item, const Json& value) {
  Json announced = valid_announcement();
  announced.at(item) = value;
  return is_accepted(Json::array({Json::array({announced}), false, 0, 1024}));
}

enum Item : std::size_t {
  kName,
  kKind,
  kOp,
  kDtype,
  kRoot,
  kPrescale,
  kPostscale,
  kCount,
  kCounts,
  kShape,
  kPriority,
  kGroup,
  kGroupSize,
  kZerosIfJoined,
  kFailsIfJoined,
  kMemory,
  kSendCounts,
  kFollowsCompletion,
};

}  // namespace

TEST_CASE("a frame of named tensors is read as it was written") {
  Frame frame;
  frame.has_joined = true;
  frame.steps = std::numeric_limits<std::uint64_t>::max();
  frame.fusion_bytes = std::uint64_t{1} << 40;
  frame.announcements.push_back(announcement_named("a"));
  // Names are bytes: UTF-8, and what is not.
  frame.announcements.push_back(announcement_named("größe/層/🙂"));
  frame.announcements.push_back(announcement_named("\xff\xfe\xc0\x80 \x01"));
  frame.announcements.push_back(announcement_named(std::string(1024, 'x')));
  Announcement& all = frame.announcements.emplace_back(announcement_named("all"));
  all.terms.call.kind = CallKind::kReduceScatter;
  all.terms.call.op = DDL_MIN;
  all.terms.call.dtype = DDL_BFLOAT16;
  all.terms.call.root = 2;
  all.terms.call.prescale = 0.1;
  all.terms.call.postscale = -1e300;
  all.terms.call.count = std::numeric_limits<std::uint64_t>::max();
  all.terms.counts = {0, 1, std::numeric_limits<std::uint64_t>::max()};
  all.terms.shape = {3, 0, std::uint64_t{1} << 33};
  all.terms.priority = std::numeric_limits<std::int32_t>::min();
  all.terms.group = "grüppe\xff";
  all.terms.group_size = std::numeric_limits<std::uint32_t>::max();
  all.terms.zeros_if_joined = all.terms.fails_if_joined = true;
  all.follows_completion = true;
  Announcement& exchanged = frame.announcements.emplace_back(announcement_named("exchanged"));
  exchanged.terms.call.kind = CallKind::kAlltoallv;
  exchanged.send_counts = {1, 2, 3};
  const auto parsed = Frame::parse(frame.to_bytes(), 3);
  REQUIRE(parsed);
  check_same(frame, *parsed);
  const auto empty = Frame::parse(Frame().to_bytes(), 1);
  REQUIRE(empty);
  check_same(Frame(), *empty);
}

TEST_CASE("bytes that are not a frame of named tensors are refused") {
  Frame frame;
  frame.announcements = {announcement_named("a"), announcement_named("b")};
  std::vector<std::uint8_t> bytes = frame.to_bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(Frame::parse(std::span(bytes).first(length), 3));
  bytes.push_back(0);
  CHECK_FALSE(Frame::parse(bytes, 3));
  // An array of more elements than fit into memory, and one that is nested deeper than any stack.
  const std::vector<std::uint8_t> huge{0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  CHECK_FALSE(Frame::parse(huge, 3));
  CHECK_FALSE(Frame::parse(std::vector<std::uint8_t>(std::size_t{1} << 20, 0x81), 3));
  const Json announced = valid_announcement(), list = Json::array({announced});
  CHECK(is_accepted(Json::array({list, false, 0, 0})));
  for (const Json& odd :
       {Json(), Json(1), Json("text"), Json::object({{"a", 1}}), Json::array(), Json::array({list, false, 0}),
        Json::array({list, false, 0, 0, 0}), Json::array({list, 0, 0, 0}), Json::array({list, false, -1, 0}),
        Json::array({list, false, 0, 1.5}), Json::array({announced, false, 0, 0}),
        Json::array({Json(), false, 0, 0}), Json::array({Json::object({{"a", announced}}), false, 0, 0})}) {
    CAPTURE(odd.dump());
    CHECK_FALSE(is_accepted(odd));
  }
  Json item_too_few = announced, item_too_many = announced;
  item_too_few.erase(item_too_few.size() - 1);
  item_too_many.push_back(0);
  CHECK_FALSE(is_accepted(Json::array({Json::array({item_too_few}), false, 0, 0})));
  CHECK_FALSE(is_accepted(Json::array({Json::array({item_too_many}), false, 0, 0})));
}

TEST_CASE("announcements that no rank of the process set may make are refused") {
  CHECK(is_accepted_with(kName, "b"));
  CHECK_FALSE(is_accepted_with(kName, 1));
  CHECK_FALSE(is_accepted_with(kName, ""));
  CHECK_FALSE(is_accepted_with(kName, Json::binary({1})));
  for (const CallKind kind : {CallKind::kNone, CallKind::kReduce, CallKind::kBarrier, CallKind::kAgree})
    CHECK_FALSE(is_accepted_with(kKind, static_cast<int>(kind)));
  // 1 is an allreduce.
  CHECK(is_accepted_with(kKind, 1));
  for (const Json& kind :
       {Json(-1), Json(99), Json(257), Json((std::uint64_t{1} << 32) + 1), Json(1.0), Json(true)})
    CHECK_FALSE(is_accepted_with(kKind, kind));
  CHECK_FALSE(is_accepted_with(kOp, 99));
  CHECK_FALSE(is_accepted_with(kOp, DDL_BIT_AND));  // of floats
  CHECK(is_accepted_with(kDtype, DDL_INT32));
  CHECK_FALSE(is_accepted_with(kDtype, 0x7fff));
  CHECK_FALSE(is_accepted_with(kDtype, static_cast<std::int64_t>(DDL_INT32) + (std::int64_t{1} << 32)));
  CHECK(is_accepted_with(kRoot, 2));
  CHECK_FALSE(is_accepted_with(kRoot, 3));
  CHECK_FALSE(is_accepted_with(kRoot, -1));
  CHECK_FALSE(is_accepted_with(kPrescale, "1"));
  CHECK_FALSE(is_accepted_with(kCount, -1));
  CHECK_FALSE(is_accepted_with(kCounts, Json::array({1, 2, 3})));  // of an allreduce
  CHECK_FALSE(is_accepted_with(kShape, Json::array({1, -2})));
  CHECK_FALSE(is_accepted_with(kShape, 7));
  CHECK_FALSE(is_accepted_with(kPriority, std::int64_t{1} << 31));
  CHECK_FALSE(is_accepted_with(kPriority, 1e300));
  CHECK_FALSE(is_accepted_with(kGroupSize, std::int64_t{1} << 32));
  CHECK(is_accepted_with(kZerosIfJoined, true));
  CHECK_FALSE(is_accepted_with(kZerosIfJoined, 1));
  CHECK(is_accepted_with(kFailsIfJoined, true));
  CHECK_FALSE(is_accepted_with(kFailsIfJoined, 1));
  CHECK(is_accepted_with(kMemory, 1));
  CHECK_FALSE(is_accepted_with(kMemory, 2));
  CHECK_FALSE(is_accepted_with(kSendCounts, Json::array({1, 2, 3})));
  CHECK_FALSE(is_accepted_with(kFollowsCompletion, 1));

  Frame frame;
  frame.announcements = {announcement_named("a")};
  TensorTerms& terms = frame.announcements[0].terms;
  terms.call.kind = CallKind::kReduceScatter;
  terms.counts = {4, 6};
  CHECK(Frame::parse(frame.to_bytes(), 2));
  CHECK_FALSE(Frame::parse(frame.to_bytes(), 3));
  terms.call.kind = CallKind::kAlltoallv;
  terms.counts.clear();
  frame.announcements[0].send_counts = {1, 2};
  CHECK(Frame::parse(frame.to_bytes(), 2));
  CHECK_FALSE(Frame::parse(frame.to_bytes(), 1));
}
