// The rendezvous of Horovod's Gloo contexts, as ranks that are ahead of others or behind them see it.
#include "launcher/gloo/gloo_store.h"

#include "support/catch.h"

using namespace ddl::launcher;
using Catch::Matchers::Contains;

namespace {

/// Two hosts with two ranks and one.
GlooShape three_ranks() { return {3, {{"node-a", 2}, {"node-b", 1}}, {2, 1}}; }

struct StoreFixture {
  GlooStore store{three_ranks()};

  GlooAnswer call(const std::string& method, const std::string& path, const std::string& body = {}) {
    const auto request = read_gloo_request(method, path, body);
    return request ? store.apply(*request) : request.error();
  }
  int put(const std::string& path, const std::string& value = "v") { return call("PUT", path, value).status; }
  int remove(const std::string& path) { return call("DELETE", path).status; }
  /// The value, or "404".
  std::string get(const std::string& path) {
    const GlooAnswer answer = call("GET", path);
    return answer.status == 200 ? answer.body : std::to_string(answer.status);
  }

  void announce(const std::string& scope, int rank, const std::string& address) {
    CHECK(put("/" + scope + "/rank_" + std::to_string(rank), "host") == 200);
    CHECK(put("/" + scope + "/" + std::to_string(rank), address) == 200);
  }
  void announce_all(const std::string& scope, int ranks, const std::string& address) {
    for (int rank = 0; rank < ranks; ++rank) announce(scope, rank, address);
  }
};

}  // namespace

TEST_CASE_METHOD(StoreFixture, "a value is there after it was put, with all its bytes, and 404 before") {
  const std::string bytes("\0\r\n\xff/", 5);
  CHECK(call("GET", "/global/0") == GlooAnswer{404, {}});
  CHECK(call("PUT", "/global/0", bytes) == GlooAnswer{200, {}});
  CHECK(call("GET", "/global/0") == GlooAnswer{200, bytes});
  CHECK(get("/local_node-a/0") == "404");
  CHECK(get("/global/1") == "404");
}

TEST_CASE_METHOD(StoreFixture, "a repeated PUT replaces the value, and an empty value is one") {
  CHECK(put("/global/0", "old") == 200);
  CHECK(put("/global/0", "newer") == 200);
  CHECK(get("/global/0") == "newer");
  CHECK(store.keys() == 1);
  CHECK(store.bytes() == 6);
  CHECK(put("/global/0", "") == 200);
  CHECK(call("GET", "/global/0") == GlooAnswer{200, {}});
}

TEST_CASE("a path is a scope and a key, and nothing else") {
  for (const char* path : {"", "/", "//", "/scope", "/scope/", "//key", "scope/key", "/a/b/c", "/a//b",
                           "/a b/c", "/a/b\n", "/a/\x7f", "/a/\xc3\xa4", "http://host/a/b"}) {
    CAPTURE(path);
    const auto request = read_gloo_request("GET", path, {});
    REQUIRE_FALSE(request);
    CHECK(request.error().status == 400);
    CHECK_THAT(request.error().body, Contains("/SCOPE/KEY"));
  }
  CHECK_FALSE(read_gloo_request("GET", "/a/" + std::string(kMaxGlooName + 1, 'k'), {}));
  CHECK(read_gloo_request("GET", "/a/" + std::string(kMaxGlooName, 'k'), {}));
  const auto request = read_gloo_request("PUT", "/rank_and_size/node-a:0?x=%2f", "body");
  REQUIRE(request);
  CHECK(request->scope == "rank_and_size");
  CHECK(request->key == "node-a:0?x=%2f");
  CHECK(request->body == "body");
}

TEST_CASE("only three methods are known") {
  for (const char* method : {"POST", "HEAD", "get", ""}) {
    const auto request = read_gloo_request(method, "/a/b", {});
    REQUIRE_FALSE(request);
    CHECK(request.error().status == 501);
  }
}

TEST_CASE_METHOD(StoreFixture, "names that cannot be in a path are refused however a request was made") {
  for (const auto& [scope, key] :
       std::vector<std::pair<std::string, std::string>>{{"", "k"}, {"s", ""}, {"a/b", "k"}})
    CHECK(store.apply({GlooMethod::kPut, scope, key, "v"}).status == 400);
  CHECK(store.keys() == 0);
}

TEST_CASE_METHOD(StoreFixture, "after the last DELETE nothing is left, and the scope can be used again") {
  for (int round = 0; round < 3; ++round) {
    const std::string address = "address " + std::to_string(round);
    announce_all("global", 3, address);
    for (int rank = 0; rank < 3; ++rank) CHECK(get("/global/" + std::to_string(rank)) == address);
    for (int rank = 0; rank < 3; ++rank) CHECK(remove("/global/" + std::to_string(rank)) == 200);
    CHECK(store.keys() == 0);
    CHECK(store.bytes() == 0);
  }
}

TEST_CASE_METHOD(StoreFixture, "a rank in the next round neither sees old addresses nor loses its own") {
  announce_all("global", 3, "old");
  CHECK(remove("/global/1") == 200);
  // Rank 1 is in the next round; ranks 0 and 2 have passed the barrier, and have not sent their DELETE.
  CHECK(put("/global/rank_1", "host") == 200);
  CHECK(get("/global/rank_0") == "404");
  CHECK(put("/global/1", "new") == 200);
  CHECK(get("/global/0") == "404");
  CHECK(remove("/global/0") == 200);
  CHECK(get("/global/1") == "new");
  announce("global", 0, "new");
  CHECK(get("/global/2") == "404");
  CHECK(remove("/global/2") == 200);
  CHECK(get("/global/0") == "new");
  announce("global", 2, "new");
  for (int rank = 0; rank < 3; ++rank) CHECK(get("/global/" + std::to_string(rank)) == "new");
  // The second round ends as the first did.
  for (int rank = 2; rank >= 0; --rank) CHECK(remove("/global/" + std::to_string(rank)) == 200);
  CHECK(store.keys() == 0);
}

TEST_CASE_METHOD(StoreFixture, "a DELETE that a client repeats counts once") {
  announce_all("global", 3, "old");
  CHECK(remove("/global/0") == 200);
  CHECK(remove("/global/0") == 200);
  CHECK(remove("/global/1") == 200);
  announce("global", 0, "new");
  CHECK(remove("/global/1") == 200);  // the answer was lost; rank 2 is not yet done
  CHECK(remove("/global/2") == 200);
  CHECK(remove("/global/2") == 200);  // also after the round has ended
  CHECK(get("/global/0") == "new");
  announce("global", 1, "new");
  announce("global", 2, "new");
  CHECK(get("/global/2") == "new");
}

TEST_CASE_METHOD(StoreFixture, "a DELETE before all ranks have written takes nothing from them") {
  announce("global", 0, "a");
  announce("global", 1, "a");
  CHECK(remove("/global/0") == 200);
  CHECK(get("/global/0") == "a");
  CHECK(get("/global/1") == "a");
  announce("global", 2, "a");
  for (int rank = 0; rank < 3; ++rank) CHECK(remove("/global/" + std::to_string(rank)) == 200);
  CHECK(store.keys() == 0);
}

TEST_CASE_METHOD(StoreFixture, "a rank that begins anew has no address until it writes one") {
  announce_all("global", 3, "old");
  // The round was given up without DELETE, for example after a timeout.
  CHECK(put("/global/rank_1", "host") == 200);
  CHECK(get("/global/1") == "404");
  CHECK(get("/global/0") == "old");
  CHECK(put("/global/1", "new") == 200);
  CHECK(get("/global/1") == "new");
}

TEST_CASE_METHOD(StoreFixture, "a rank that begins anew in place of its DELETE is not waited for") {
  announce_all("global", 3, "old");
  CHECK(remove("/global/0") == 200);
  announce_all("global", 3, "new");
  for (int rank = 0; rank < 3; ++rank) CHECK(get("/global/" + std::to_string(rank)) == "new");
  CHECK(remove("/global/1") == 200);  // the first of the second round
  CHECK(get("/global/0") == "404");
  CHECK(store.keys() == 0);
}

TEST_CASE_METHOD(StoreFixture, "each scope has rounds of its own") {
  announce_all("local_node-a", 2, "a");
  announce_all("cross_0", 2, "c");
  announce_all("global", 3, "g");
  CHECK(remove("/local_node-a/0") == 200);
  CHECK(get("/local_node-a/1") == "404");
  CHECK(get("/cross_0/0") == "c");
  CHECK(get("/global/0") == "g");
}

TEST_CASE_METHOD(StoreFixture, "a context of one rank begins and ends") {
  for (int round = 0; round < 2; ++round) {
    announce("local_node-b", 0, "");
    CHECK(get("/local_node-b/0").empty());
    CHECK(remove("/local_node-b/0") == 200);
    CHECK(store.keys() == 0);
  }
}

TEST_CASE_METHOD(StoreFixture, "process sets have rounds, though their size is not known") {
  for (const std::string scope : {"global_process_set_hash_1f", "local_node-a_process_set_hash_0",
                                  "cross_0_process_set_hash_ABCdef0123456789"}) {
    CAPTURE(scope);
    for (int round = 0; round < 2; ++round) {
      announce_all(scope, 2, "a");
      CHECK(remove("/" + scope + "/1") == 200);
      CHECK(get("/" + scope + "/0") == "404");
      CHECK(put("/" + scope + "/1", "next") == 200);
      CHECK(remove("/" + scope + "/0") == 200);
      CHECK(get("/" + scope + "/1") == "next");
    }
  }
}

TEST_CASE_METHOD(StoreFixture,
                 "a rank that a scope does not have is refused, and the scope's size is named") {
  const GlooAnswer answer = call("PUT", "/cross_1/1", "x");
  CHECK(answer.status == 400);
  CHECK_THAT(answer.body, Contains("no rank 1 in cross_1, which has 1"));
  for (const char* path : {"/global/3", "/global/rank_3", "/local_node-b/1", "/cross_0/2",
                           "/global_process_set_hash_1/3", "/global/2147483647"}) {
    CAPTURE(path);
    CHECK(put(path) == 400);
  }
  CHECK(store.keys() == 0);
}

TEST_CASE_METHOD(StoreFixture, "in scopes of other purposes DELETE removes one key") {
  for (const std::string scope : {"worker_addresses", "local_elsewhere", "cross_2", "cross_00", "global_",
                                  "global_process_set_hash_xyz", "process_set_hash_1"}) {
    CAPTURE(scope);
    CHECK(put("/" + scope + "/0", "a") == 200);
    CHECK(put("/" + scope + "/7", "b") == 200);
    CHECK(remove("/" + scope + "/0") == 200);
    CHECK(get("/" + scope + "/0") == "404");
    CHECK(get("/" + scope + "/7") == "b");
    CHECK(remove("/" + scope + "/7") == 200);
  }
  CHECK(store.keys() == 0);
  CHECK(remove("/never/seen") == 200);
}

TEST_CASE_METHOD(StoreFixture, "keys that are not ranks' belong to the round of their scope") {
  announce_all("global", 3, "a");
  CHECK(put("/global/note", "n") == 200);
  CHECK(put("/global/01", "not a rank") == 200);
  CHECK(remove("/global/01") == 200);
  CHECK(get("/global/note") == "n");
  CHECK(remove("/global/0") == 200);
  CHECK(get("/global/note") == "404");
}

TEST_CASE("values, keys and bytes are limited, and what is there stays") {
  GlooStore store(three_ranks(), GlooLimits{8, 3, 20});
  const auto put = [&](const std::string& key, const std::string& value) {
    return store.apply({GlooMethod::kPut, "s", key, value});
  };
  CHECK(put("a", "12345678").status == 200);
  const GlooAnswer too_long = put("a", "123456789");
  CHECK(too_long.status == 413);
  CHECK_THAT(too_long.body, Contains("/s/a has 9 bytes") && Contains("at most 8"));
  CHECK(put("b", "12345678").status == 200);
  const GlooAnswer too_many_bytes = put("c", "12");
  CHECK(too_many_bytes.status == 507);
  CHECK_THAT(too_many_bytes.body, Contains("full") && Contains("2 keys and 18 bytes"));
  CHECK(put("c", "1").status == 200);
  CHECK(put("d", "").status == 507);
  CHECK(store.apply({GlooMethod::kGet, "s", "a", {}}).body == "12345678");
  CHECK(store.apply({GlooMethod::kDelete, "s", "a", {}}).status == 200);
  CHECK(put("d", "").status == 200);
}

TEST_CASE("scopes in which only DELETEs are missing count against the limit") {
  GlooStore store(three_ranks(), GlooLimits{8, 4, 1000});
  const auto apply = [&](GlooMethod method, int set, const char* key) {
    return store.apply({method, "global_process_set_hash_" + std::to_string(set), key, {}}).status;
  };
  for (int set = 0; set < 4; ++set) {
    CHECK(apply(GlooMethod::kPut, set, "0") == 200);
    CHECK(apply(GlooMethod::kPut, set, "1") == 200);
    CHECK(apply(GlooMethod::kDelete, set, "0") == 200);
  }
  CHECK(store.keys() == 0);
  CHECK(apply(GlooMethod::kPut, 4, "0") == 507);
}
