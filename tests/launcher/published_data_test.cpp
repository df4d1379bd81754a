#include "launcher/pmix/published_data.h"

#include "launcher/pmix/info_list.h"
#include "support/catch.h"

using namespace ddl::launcher;

namespace {

pmix_proc_t process(int rank, const char* name_space = "job") {
  pmix_proc_t process;
  PMIX_LOAD_PROCID(&process, name_space, static_cast<pmix_rank_t>(rank));
  return process;
}

void add_persistence(InfoList& infos, pmix_persistence_t persistence) {
  infos.add(PMIX_PERSISTENCE, std::uint32_t{0});
  pmix_info_t& info = infos.data()[infos.size() - 1];
  PMIX_INFO_DESTRUCT(&info);
  PMIX_INFO_LOAD(&info, PMIX_PERSISTENCE, &persistence, PMIX_PERSIST);
}

std::string name_of(pmix_status_t status) {
  switch (status) {
    case PMIX_SUCCESS: return "all:";
    case PMIX_ERR_PARTIAL_SUCCESS: return "some:";
    case PMIX_ERR_NOT_FOUND: return "none";
    case PMIX_ERR_TIMEOUT: return "timed out";
    default: return std::to_string(status);
  }
}

/// What a lookup was answered with: "all: a=1(rank 2) b=2(rank 0)"; empty until it was.
class Asked {
 public:
  PublishedData::Answer answer() {
    return [this](pmix_status_t status, const std::vector<PublishedData::Found>& found) {
      ++times;
      text = name_of(status);
      for (const auto& one : found) {
        text += " " + one.key + "=" + one.value->data.string + "(rank " + std::to_string(one.publisher.rank) +
                ")";
      }
    };
  }
  std::string text;
  int times = 0;
};

class Store {
 public:
  pmix_status_t publish(int rank, const std::map<std::string, std::string>& pairs,
                        pmix_persistence_t persistence = PMIX_PERSIST_APP) {
    InfoList infos;
    for (const auto& [key, value] : pairs) infos.add(key.c_str(), value);
    add_persistence(infos, persistence);
    return data.publish(process(rank), infos.data(), infos.size());
  }
  std::string lookup(const std::vector<std::string>& keys) {
    Asked asked;
    REQUIRE_FALSE(data.lookup(keys, false, asked.answer()));
    REQUIRE(asked.times == 1);
    return asked.text;
  }
  PublishedData data;
};

}  // namespace

TEST_CASE_METHOD(Store, "what is published can be looked up, with its publisher, again and again") {
  CHECK(publish(2, {{"port", "7"}, {"host", "a"}}) == PMIX_SUCCESS);
  for (int time = 0; time < 2; ++time)
    CHECK(lookup({"port", "host"}) == "all: port=7(rank 2) host=a(rank 2)");
}

TEST_CASE_METHOD(Store, "directives steer the call and are no data") {
  InfoList infos;
  infos.add("key", "value");
  add_persistence(infos, PMIX_PERSIST_SESSION);
  infos.add(PMIX_TIMEOUT, std::uint32_t{5});
  CHECK(data.publish(process(0), infos.data(), infos.size()) == PMIX_SUCCESS);
  CHECK(lookup({PMIX_PERSISTENCE}) == "none");
  CHECK(lookup({PMIX_TIMEOUT}) == "none");
  CHECK(lookup({"key"}) == "all: key=value(rank 0)");
}

TEST_CASE_METHOD(Store, "a key that is there already is refused, and nothing of the call is stored") {
  REQUIRE(publish(0, {{"a", "1"}}) == PMIX_SUCCESS);
  CHECK(publish(1, {{"a", "2"}, {"b", "3"}}) == PMIX_ERR_DUPLICATE_KEY);
  CHECK(lookup({"a"}) == "all: a=1(rank 0)");
  CHECK(lookup({"b"}) == "none");
  CHECK(publish(0, {{"a", "2"}}) == PMIX_ERR_DUPLICATE_KEY);  // one's own, too
}

TEST_CASE_METHOD(Store, "a lookup that finds some of its keys says so") {
  REQUIRE(publish(0, {{"a", "1"}}) == PMIX_SUCCESS);
  CHECK(lookup({"a", "b"}) == "some: a=1(rank 0)");
  CHECK(lookup({"b"}) == "none");
}

TEST_CASE_METHOD(Store, "a lookup that waits is answered once, when the last of its keys is there") {
  Asked asked;
  REQUIRE(data.lookup({"a", "b"}, true, asked.answer()));
  REQUIRE(publish(0, {{"a", "1"}}) == PMIX_SUCCESS);
  CHECK(asked.times == 0);
  REQUIRE(publish(1, {{"b", "2"}}) == PMIX_SUCCESS);
  CHECK(asked.text == "all: a=1(rank 0) b=2(rank 1)");
  REQUIRE(publish(1, {{"c", "3"}}) == PMIX_SUCCESS);
  CHECK(asked.times == 1);
}

TEST_CASE_METHOD(Store, "a lookup that may wait and need not is answered at once") {
  REQUIRE(publish(0, {{"a", "1"}}) == PMIX_SUCCESS);
  Asked asked;
  CHECK_FALSE(data.lookup({"a"}, true, asked.answer()));
  CHECK(asked.text == "all: a=1(rank 0)");
}

TEST_CASE_METHOD(Store, "a waiting lookup can run out of time, and only that one") {
  Asked impatient, patient;
  const auto id = data.lookup({"a"}, true, impatient.answer());
  REQUIRE(id);
  REQUIRE(data.lookup({"a"}, true, patient.answer()));
  data.time_out(*id);
  CHECK(impatient.text == "timed out");
  CHECK(patient.times == 0);
  data.time_out(*id);  // again: nothing
  REQUIRE(publish(0, {{"a", "1"}}) == PMIX_SUCCESS);
  CHECK(impatient.times == 1);
  CHECK(patient.text == "all: a=1(rank 0)");
}

TEST_CASE_METHOD(Store, "the time of a lookup that has been answered no longer matters") {
  Asked asked;
  const auto id = data.lookup({"a"}, true, asked.answer());
  REQUIRE(id);
  REQUIRE(publish(0, {{"a", "1"}}) == PMIX_SUCCESS);
  data.time_out(*id);
  CHECK(asked.times == 1);
}

TEST_CASE_METHOD(Store,
                 "what is published until its first read is gone after it, and can be published anew") {
  REQUIRE(publish(0, {{"a", "1"}, {"b", "2"}}, PMIX_PERSIST_FIRST_READ) == PMIX_SUCCESS);
  CHECK(lookup({"a"}) == "all: a=1(rank 0)");
  CHECK(lookup({"a"}) == "none");
  CHECK(lookup({"b", "b"}) == "all: b=2(rank 0) b=2(rank 0)");
  CHECK(publish(0, {{"a", "3"}}) == PMIX_SUCCESS);
}

TEST_CASE_METHOD(Store, "of two that wait for a first read, one gets it and the other goes on waiting") {
  Asked first, second;
  REQUIRE(data.lookup({"a"}, true, first.answer()));
  REQUIRE(data.lookup({"a"}, true, second.answer()));
  REQUIRE(publish(0, {{"a", "1"}}, PMIX_PERSIST_FIRST_READ) == PMIX_SUCCESS);
  CHECK(first.text == "all: a=1(rank 0)");
  CHECK(second.times == 0);
  REQUIRE(publish(0, {{"a", "2"}}, PMIX_PERSIST_FIRST_READ) == PMIX_SUCCESS);
  CHECK(second.text == "all: a=2(rank 0)");
}

TEST_CASE_METHOD(Store, "only one's own keys can be unpublished: the named ones, or all") {
  REQUIRE(publish(0, {{"a", "1"}, {"b", "2"}, {"c", "3"}}) == PMIX_SUCCESS);
  REQUIRE(publish(1, {{"d", "4"}}) == PMIX_SUCCESS);
  data.unpublish(process(1), {"a"});
  data.unpublish(process(0, "another job"), {});
  CHECK(lookup({"a", "b", "c", "d"}) == "all: a=1(rank 0) b=2(rank 0) c=3(rank 0) d=4(rank 1)");
  data.unpublish(process(0), {"a", "unknown"});
  CHECK(lookup({"a", "b"}) == "some: b=2(rank 0)");
  data.unpublish(process(0), {});
  CHECK(lookup({"a", "b", "c", "d"}) == "some: d=4(rank 1)");
}
