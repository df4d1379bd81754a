#include "launcher/head/pmix_relay.h"

#include "support/catch.h"

using namespace ddl::launcher;
using NameStatus = NameService::Status;

namespace {

std::string name_of(NameStatus status) {
  switch (status) {
    case NameStatus::kDone: return "all:";
    case NameStatus::kPartial: return "some:";
    case NameStatus::kNotFound: return "none";
    case NameStatus::kTimedOut: return "timed out";
    case NameStatus::kDuplicate: break;
  }
  return "duplicate";
}

/// What a lookup was answered with: "all: a=1(rank 2) b=2(rank 0)"; empty until it was.
class Asked {
 public:
  NameService::Answer answer() {
    return [this](NameStatus status, const NameService::Pairs& found) {
      ++times;
      text = name_of(status);
      for (const auto& one : found)
        text += " " + one.key + "=" + one.value + "(rank " + std::to_string(one.publisher) + ")";
    };
  }
  std::string text;
  int times = 0;
};

class Store {
 public:
  NameStatus publish(int rank, const std::map<std::string, std::string>& pairs,
                     bool first_read_only = false) {
    NameService::Pairs list;
    for (const auto& [key, value] : pairs) list.push_back({key, value, rank});
    return data.publish(list, first_read_only);
  }
  std::string lookup(const std::vector<std::string>& keys) {
    Asked asked;
    REQUIRE_FALSE(data.lookup(keys, false, asked.answer()));
    REQUIRE(asked.times == 1);
    return asked.text;
  }
  NameService data;
};

}  // namespace

TEST_CASE_METHOD(Store, "what is published can be looked up, with its publisher, again and again") {
  CHECK(publish(2, {{"host", "a"}, {"port", "7"}}) == NameStatus::kDone);
  for (int time = 0; time < 2; ++time)
    CHECK(lookup({"port", "host"}) == "all: port=7(rank 2) host=a(rank 2)");
}

TEST_CASE_METHOD(Store, "a key that exists already is refused, and nothing of the call is stored") {
  REQUIRE(publish(0, {{"a", "1"}}) == NameStatus::kDone);
  CHECK(publish(1, {{"a", "2"}, {"b", "3"}}) == NameStatus::kDuplicate);
  CHECK(lookup({"a"}) == "all: a=1(rank 0)");
  CHECK(lookup({"b"}) == "none");
  CHECK(publish(0, {{"a", "2"}}) == NameStatus::kDuplicate);  // also of the same publisher
}

TEST_CASE_METHOD(Store, "a lookup that finds only some of its keys reports that") {
  REQUIRE(publish(0, {{"a", "1"}}) == NameStatus::kDone);
  CHECK(lookup({"a", "b"}) == "some: a=1(rank 0)");
  CHECK(lookup({"b"}) == "none");
}

TEST_CASE_METHOD(Store, "a lookup that waits is answered once, when the last of its keys is published") {
  Asked asked;
  REQUIRE(data.lookup({"a", "b"}, true, asked.answer()));
  REQUIRE(publish(0, {{"a", "1"}}) == NameStatus::kDone);
  CHECK(asked.times == 0);
  REQUIRE(publish(1, {{"b", "2"}}) == NameStatus::kDone);
  CHECK(asked.text == "all: a=1(rank 0) b=2(rank 1)");
  REQUIRE(publish(1, {{"c", "3"}}) == NameStatus::kDone);
  CHECK(asked.times == 1);
}

TEST_CASE_METHOD(Store, "a lookup that may wait and need not is answered at once") {
  REQUIRE(publish(0, {{"a", "1"}}) == NameStatus::kDone);
  Asked asked;
  CHECK_FALSE(data.lookup({"a"}, true, asked.answer()));
  CHECK(asked.text == "all: a=1(rank 0)");
}

TEST_CASE_METHOD(Store, "a waiting lookup can time out, and only that one") {
  Asked impatient, patient;
  const auto id = data.lookup({"a"}, true, impatient.answer());
  REQUIRE(id);
  REQUIRE(data.lookup({"a"}, true, patient.answer()));
  data.time_out(*id);
  CHECK(impatient.text == "timed out");
  CHECK(patient.times == 0);
  data.time_out(*id);  // again: nothing
  REQUIRE(publish(0, {{"a", "1"}}) == NameStatus::kDone);
  CHECK(impatient.times == 1);
  CHECK(patient.text == "all: a=1(rank 0)");
}

TEST_CASE_METHOD(Store, "the timeout of a lookup that has been answered no longer matters") {
  Asked asked;
  const auto id = data.lookup({"a"}, true, asked.answer());
  REQUIRE(id);
  REQUIRE(publish(0, {{"a", "1"}}) == NameStatus::kDone);
  data.time_out(*id);
  CHECK(asked.times == 1);
}

TEST_CASE_METHOD(
    Store, "a key that is published until its first read is removed by it, and can be published again") {
  REQUIRE(publish(0, {{"a", "1"}, {"b", "2"}}, true) == NameStatus::kDone);
  CHECK(lookup({"a"}) == "all: a=1(rank 0)");
  CHECK(lookup({"a"}) == "none");
  CHECK(lookup({"b", "b"}) == "some: b=2(rank 0)");
  CHECK(publish(0, {{"a", "3"}}) == NameStatus::kDone);
}

TEST_CASE_METHOD(Store,
                 "of two lookups that wait for a first read, one gets it and the other continues to wait") {
  Asked first, second;
  REQUIRE(data.lookup({"a"}, true, first.answer()));
  REQUIRE(data.lookup({"a"}, true, second.answer()));
  REQUIRE(publish(0, {{"a", "1"}}, true) == NameStatus::kDone);
  CHECK(first.text == "all: a=1(rank 0)");
  CHECK(second.times == 0);
  REQUIRE(publish(0, {{"a", "2"}}, true) == NameStatus::kDone);
  CHECK(second.text == "all: a=2(rank 0)");
}

TEST_CASE_METHOD(Store, "a publisher can unpublish only its own keys: the named ones, or all") {
  REQUIRE(publish(0, {{"a", "1"}, {"b", "2"}, {"c", "3"}}) == NameStatus::kDone);
  REQUIRE(publish(1, {{"d", "4"}}) == NameStatus::kDone);
  data.unpublish(1, {"a"});
  data.unpublish(7, {});
  CHECK(lookup({"a", "b", "c", "d"}) == "all: a=1(rank 0) b=2(rank 0) c=3(rank 0) d=4(rank 1)");
  data.unpublish(0, {"a", "unknown"});
  CHECK(lookup({"a", "b"}) == "some: b=2(rank 0)");
  data.unpublish(0, {});
  CHECK(lookup({"a", "b", "c", "d"}) == "some: d=4(rank 1)");
}
